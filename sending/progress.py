"""What somebody who watches a sender sees: a live bar on a terminal, else a line now and then.

``choose`` gives a display for ``Sender.run(watch=display.show)``. A display costs the sender
nothing it would notice and never fails it: the database is asked by ``remaining.Watcher`` on a
thread of its own, and what the display gets wrong stays in the display.
"""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, Any, TextIO, cast

from . import clock
from .plain_table import duration, short
from .remaining import Remaining, Watcher, Window, closed, eta

if TYPE_CHECKING:
    from .worker import Sender

log = logging.getLogger("sendonce.sender")

#: Seconds between two log lines, between two counts for the bar, and between two drawings.
LINE_EVERY = 30.0
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
class Reading:
    """What there is to show at one moment. ``rate`` is rows a second of this process,
    ``left`` seconds of all of them together; ``done`` and ``total`` are None while unknown."""

    done: int | None
    total: int | None
    waiting: int
    building: bool
    rate: float
    left: float | None
    counts: Mapping[str, int]
    reasons: Sequence[str]


class Display(ABC):
    """A context manager; ``stream`` is where log lines go while it is open."""

    stream: TextIO
    count_every = COUNT_EVERY

    def __init__(self, stream: Any) -> None:
        self.stream = cast(TextIO, stream)
        self._watcher: Watcher | None = None
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

    def show(self, sender: Sender) -> None:
        """Show how far it is. Called about twice a second; returns at once and never raises."""
        try:
            self.present(sender)
        except Exception:
            # A display that fails must not stop what it displays; once is enough to say so.
            if not self._failed:
                self._failed = True
                log.warning(
                    "progress can't be shown", extra={"event": "progress_error"}, exc_info=True
                )

    @abstractmethod
    def present(self, sender: Sender) -> None:
        """Show it; may raise."""

    def read(self, sender: Sender) -> Reading:
        """The moment's figures, from memory alone."""
        shared = sender.shared
        if self._watcher is None or self._watcher.shared is not shared:
            self._watcher = Watcher(shared, every=self.count_every)
        self._watcher.poke()
        counts = shared.tally.counts()
        return self.combine(
            clock.now(), counts, self._watcher.latest, list(dict.fromkeys(shared.pauses.reasons))
        )

    def combine(
        self,
        now: float,
        counts: Mapping[str, int],
        remaining: Remaining | None,
        reasons: Sequence[str],
    ) -> Reading:
        """A reading from its parts; keeps the windows that rates are taken over."""
        here = closed(counts)
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
            counts=counts,
            reasons=reasons,
        )


class Lines(Display):
    """A structured log line every half a minute in which something moved."""

    count_every = LINE_EVERY / 2

    def __init__(self, stream: Any) -> None:
        super().__init__(stream)
        self._next: float | None = None
        self._told: Mapping[str, int] = {}

    def present(self, sender: Sender) -> None:
        reading = self.read(sender)
        now = clock.now()
        if self._next is None:
            self._next = now + LINE_EVERY
        if now < self._next:
            return
        self._next = now + LINE_EVERY
        if reading.counts == self._told:
            return
        self._told = reading.counts
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
    ``rows_...`` are this process's since it began.
    """
    return {
        "event": "progress",
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
    """``590 sent, 12 to retry``: what this process has done."""
    return ", ".join(f"{counts[name]:,} {word}" for name, word in SHOWN if counts.get(name))


def complaints(reasons: Sequence[str], *, limit: int = 3, width: int = 100) -> list[str]:
    """The reasons why mail waits, the first few, each on one line."""
    lines = [short(reason, width) for reason in reasons[:limit]]
    if len(reasons) > limit:
        lines.append(f"and {len(reasons) - limit} more: see sender_status")
    return lines
