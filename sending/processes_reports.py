"""What sender processes tell the parent that started them: figures, added up for one display.

A report is a datagram: whole or not there, whenever its sender dies; one that finds no room is
left out, as the next one says it all again.
"""

from __future__ import annotations

import json
import os
from collections import Counter, deque
from collections.abc import Callable
from dataclasses import asdict, replace
from typing import Any

from . import clock
from .plain_table import short
from .progress import Display, Figures
from .remaining import Remaining, closed

#: Seconds between two reports of a process.
REPORT_EVERY = 0.5
#: Bytes of a report; macOS takes no larger datagram. Reasons that have no room are left out.
LARGEST = 2048
#: Characters of a reason.
_REASON = 100
#: Sums that are kept, to know what it was when the database was counted.
_SUMS = 500


class Reporter(Display):
    """The display of a process that has a parent: ``tell`` is handed a report now and then."""

    def __init__(self, stream: Any, tell: Callable[[bytes], None], *, count_every: float) -> None:
        super().__init__(stream)
        self.count_every = count_every
        self._tell = tell
        self._next = float("-inf")

    def present(self, figures: Figures) -> None:
        now = clock.now()
        if now < self._next and not figures.ending:
            return
        self._next = now + REPORT_EVERY
        self._tell(encode(os.getpid(), figures))


def encode(pid: int, figures: Figures) -> bytes:
    """A report of the process ``pid``."""
    reasons = [short(reason, _REASON) for reason in figures.reasons]
    while True:
        told = {
            "pid": pid,
            "counts": figures.counts,
            "remaining": asdict(figures.remaining) if figures.remaining else None,
            "reasons": reasons,
            "ending": figures.ending,
        }
        report = json.dumps(told, ensure_ascii=False, separators=(",", ":")).encode()
        if len(report) <= LARGEST or not reasons:
            return report
        reasons = reasons[: len(reasons) // 2]


def decode(report: bytes) -> tuple[int, Figures]:
    """``(pid, figures)`` of a report."""
    told = json.loads(report)
    remaining = told["remaining"]
    return told["pid"], Figures(
        counts=told["counts"],
        remaining=Remaining(**remaining) if remaining else None,
        reasons=told["reasons"],
        ending=told["ending"],
    )


class Totals:
    """The figures of ``wanted`` processes together, those that have died included."""

    def __init__(self, wanted: int) -> None:
        self.wanted = wanted
        #: How many there should be beyond those there are.
        self.missing = 0
        self.ending = False
        self._told: dict[int, Figures] = {}
        self._gone: Counter[str] = Counter()
        self._remaining: Remaining | None = None
        #: When, and the rows that had been closed by then.
        self._sums: deque[tuple[float, int]] = deque(maxlen=_SUMS)

    def heard(self, pid: int, figures: Figures) -> None:
        """A process has told its figures."""
        self._told[pid] = figures
        self._sums.append((clock.now(), closed(self._counts())))
        counted = figures.remaining
        if counted is not None and (self._remaining is None or counted.at != self._remaining.at):
            # One of them counts for all. What it had closed itself by then is no measure here.
            self._remaining = replace(counted, closed_here=self._closed_at(counted.at))

    def ended(self, pid: int) -> None:
        """A process is gone; what it did stays done."""
        figures = self._told.pop(pid, None)
        if figures is not None:
            self._gone.update(figures.counts)

    def read(self) -> Figures:
        """The sum, as a display wants it."""
        reasons = [reason for figures in self._told.values() for reason in figures.reasons]
        all_ = str(self.wanted)
        return Figures(
            counts=self._counts(),
            remaining=self._remaining,
            reasons=list(dict.fromkeys(reasons)),
            ending=self.ending,
            processes=f"{self.wanted - self.missing} of {self.wanted}" if self.missing else all_,
        )

    def _counts(self) -> Counter[str]:
        counts = Counter(self._gone)
        for figures in self._told.values():
            counts.update(figures.counts)
        return counts

    def _closed_at(self, at: float) -> int:
        known = 0
        for when, total in self._sums:
            if when > at:
                break
            known = total
        return known
