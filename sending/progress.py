"""What somebody who watches a sender sees: a live bar on a terminal, else a line now and then.

``choose`` gives a display; ``display.show(source)`` is called again and again. The source is one
sender (``OneSender``) or several processes together (``processes_reports.Totals``). A display
costs the sender nothing it would notice and never fails it: the database is asked by
``remaining.Watcher`` on a thread of its own, and what the display gets wrong stays in the display.
"""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, Any, Protocol, TextIO, cast

from . import clock
from .plain_table import duration, short
from .remaining import Remaining, Watcher, Window, closed, eta

if TYPE_CHECKING:
    from .shared import Shared

log = logging.getLogger("sendonce.sender")

#: Seconds between two log lines, or where mail waits and nothing moves; between two counts for the
#: bar, and between two drawings.
LINE_EVERY = 30.0
STILL_EVERY = 300.0
COUNT_EVERY = 2.0
DRAW_EVERY = 0.25

#: What the tally calls it, and what people read.
SHOWN = (
    ("sent", "sent"),
    ("retry", "to retry"),
    ("bounced", "bounced"),
    ("failed", "failed"),
    ("in_doubt", "in doubt"),
    ("withheld", "withheld"),
)


def choose(stream: Any, live: bool) -> Display:
    """The display for ``stream`` (a text stream): the bar where ``live`` is wanted, it is a
    terminal and ``rich`` (the extra ``progress``) is installed; else log lines."""
    if live and stream.isatty():
        try:
            from .progress_bar import Bar
        except ImportError:
            return Lines(stream)
        return Bar(stream)
    return Lines(stream)


@dataclass(frozen=True, slots=True)
class Figures:
    """What a source knows at one moment, rates apart. ``counts`` are rows by what they became
    since it began, ``ending``: it sends no more."""

    counts: Mapping[str, int]
    remaining: Remaining | None
    reasons: Sequence[str]
    ending: bool = False
    #: Of several processes together: how many there are, in words.
    processes: str = ""


class Source(Protocol):
    """Whose progress is shown."""

    def read(self) -> Figures:
        """The moment's figures, from memory alone."""


class OneSender:
    """The process that sends. ``count_every`` (seconds) None: it does not ask the database."""

    def __init__(self, shared: Shared, *, count_every: float | None) -> None:
        self.shared = shared
        self.watcher = None if count_every is None else Watcher(shared, every=count_every)

    def read(self) -> Figures:
        if self.watcher is not None:
            self.watcher.poke()
        return Figures(
            counts=self.shared.tally.counts(),
            remaining=self.watcher.latest if self.watcher is not None else None,
            reasons=list(dict.fromkeys(self.shared.pauses.reasons)),
            ending=self.shared.stopping.is_set(),
        )


@dataclass(frozen=True, slots=True)
class Reading:
    """What there is to show at one moment. ``rate`` is rows a second of the source,
    ``left`` seconds of all senders together; ``done`` and ``total`` are None while unknown."""

    done: int | None
    total: int | None
    waiting: int
    building: bool
    rate: float
    left: float | None
    counts: Mapping[str, int]
    reasons: Sequence[str]
    processes: str = ""


class Display(ABC):
    """A context manager; ``stream`` is where log lines go while it is open."""

    stream: TextIO
    count_every = COUNT_EVERY
    #: What others write to its terminal would spoil what it draws there.
    draws = False

    def __init__(self, stream: Any) -> None:
        self.stream = cast(TextIO, stream)
        self._own = Window()
        self._all = Window()
        self._failed = False

    def __enter__(self) -> Display:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Nothing to close."""
        return None

    def show(self, source: Source) -> None:
        """Show how far it is. Called ten times a second; returns at once and never raises."""
        try:
            self.present(source.read())
        except Exception:
            # A display that fails must not stop what it displays; once is enough to say so.
            if not self._failed:
                self._failed = True
                log.warning(
                    "progress can't be shown", extra={"event": "progress_error"}, exc_info=True
                )

    @abstractmethod
    def present(self, figures: Figures) -> None:
        """Show it; may raise."""

    def combine(self, now: float, figures: Figures) -> Reading:
        """A reading at ``now`` (seconds of ``sending.clock``); keeps the windows that rates are
        taken over."""
        remaining = figures.remaining
        here = closed(figures.counts)
        self._own.add(now, here)
        done = total = left = None
        # A campaign that began after the count is not in it.
        stale = remaining is not None and not remaining.total and here > remaining.closed_here
        if remaining is not None and not stale:
            done, total = remaining.done(here), remaining.total
            self._all.add(now, done)
            left = eta(total - done, self._all.rate)
        return Reading(
            done=done,
            total=total,
            waiting=remaining.waiting if remaining else 0,
            building=bool(remaining and remaining.building),
            rate=self._own.rate,
            left=left,
            counts=figures.counts,
            reasons=figures.reasons,
            processes=figures.processes,
        )


class Lines(Display):
    """A structured log line every half a minute in which something moved, and every five minutes
    in which people wait and nothing does."""

    count_every = LINE_EVERY / 2

    def __init__(self, stream: Any) -> None:
        super().__init__(stream)
        self._next: float | None = None
        self._told: Mapping[str, int] = {}
        self._still_until = 0.0

    def present(self, figures: Figures) -> None:
        now = clock.now()
        reading = self.combine(now, figures)
        if self._next is None:
            self._next = now + LINE_EVERY
            self._still_until = now + STILL_EVERY
        if now < self._next:
            return
        self._next = now + LINE_EVERY
        is_still = reading.counts == self._told
        if is_still and (now < self._still_until or reading.done is None):
            return
        self._told = reading.counts
        self._still_until = now + STILL_EVERY
        if is_over(reading):
            return
        log.info("progress", extra=fields(reading))


def is_over(reading: Reading) -> bool:
    """Nothing is open and nothing moves; what a canceled campaign had counted is gone with it."""
    if reading.done is None or reading.total is None:
        return False
    return reading.done >= reading.total and not reading.building and not reading.rate


def fields(reading: Reading) -> dict[str, object]:
    """The reading as ``extra`` of a log record; what is unknown is None, which shows as nothing.

    ``done`` and ``total`` are people of the campaigns being sent, left out where there is none;
    ``rows_...`` are this process's since it began, or of all ``processes`` that it started.
    """
    return {
        "event": "progress",
        "processes": reading.processes or None,
        "done": reading.done if reading.total else None,
        "total": reading.total or None,
        "rate": f"{reading.rate:.1f}/s",
        "eta": None if reading.left is None else f"{reading.left:.0f}s",
        **{f"rows_{name}": reading.counts[name] for name, _ in SHOWN if reading.counts.get(name)},
        "waiting_for": "; ".join(reading.reasons) or None,
    }


def headline(reading: Reading) -> str:
    """``612 of 1,000   98/s   4 s left``; what is unknown yet is ``...``."""
    if reading.total is None or reading.done is None:
        return speed(reading.rate) if reading.rate else "..."
    if not reading.total:
        return "nothing to send"
    people = f"{reading.done:,} of {reading.total:,}{'+' if reading.building else ''}"
    if reading.done >= reading.total and not reading.building:
        return people
    return f"{people}   {speed(reading.rate)}   {remainder(reading)}"


def speed(rate: float) -> str:
    """``1,234/s``, with a decimal where it says something."""
    return f"{rate:,.1f}/s" if 0 < rate < 10 else f"{rate:,.0f}/s"


def remainder(reading: Reading) -> str:
    """How long it will take, or why nobody can tell."""
    if reading.left is not None:
        return f"{duration(reading.left)} left"
    assert reading.done is not None
    assert reading.total is not None
    if 0 < reading.total - reading.done <= reading.waiting:
        return "waiting for retries"
    return "waiting" if reading.reasons else "..."


def tallied(counts: Mapping[str, int]) -> str:
    """``590 sent, 12 to retry``: what the source has done."""
    return ", ".join(f"{counts[name]:,} {word}" for name, word in SHOWN if counts.get(name))


def complaints(reasons: Sequence[str], *, limit: int = 3, width: int = 100) -> list[str]:
    """The reasons why mail waits, the first few, each on one line."""
    lines = [short(reason, width) for reason in reasons[:limit]]
    if len(reasons) > limit:
        lines.append(f"and {len(reasons) - limit} more: see sender_status")
    return lines
