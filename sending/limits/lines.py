"""Rows of one process that wait for a permit: a line for each limit, in memory, still claimed.

The dispatcher claims no more of what stands in a long line, and the rest of the mail passes by.
Of each line a few rows at a time are let out to a lane, when the limit is likely to have tokens;
what is refused again takes its old place.
"""

from __future__ import annotations

import heapq
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from .. import clock
from ..queue import Claimed

#: Entries of rows that nobody came back for are forgotten after so many seconds.
FORGET = 900.0


@dataclass(slots=True)
class _Line:
    next_at: float
    batch: int = 1
    rows: list[tuple[tuple[bool, float, int], Claimed]] = field(default_factory=list)


class Lines:
    """Safe between threads. Times are on ``sending.clock``; transactional rows come first, then
    whoever has waited longest."""

    def __init__(self) -> None:
        #: Called when somebody may be let out sooner than ``next_due`` said.
        self.on_change: Callable[[], object] = lambda: None
        self._lock = threading.Lock()
        self._lines: dict[str, _Line] = {}
        self._since: dict[Any, float] = {}
        self._count = 0

    def add(self, waiting: Iterable[tuple[Claimed, str]]) -> None:
        """``(row, key of the limit)``. A line of which nothing is known opens at once."""
        now = clock.now()
        with self._lock:
            for row, key in waiting:
                line = self._lines.get(key)
                if line is None:
                    line = self._lines[key] = _Line(next_at=now)
                since = self._since.setdefault(row.token, now)
                self._count += 1
                place = (row.campaign_id is not None, since, self._count)
                heapq.heappush(line.rows, (place, row))
        self.on_change()

    def pace(self, key: str, at: float, batch: int) -> None:
        """The next ``batch`` rows of this line may try at ``at``."""
        with self._lock:
            line = self._lines.get(key)
            if line is None:
                line = self._lines[key] = _Line(next_at=at)
            line.next_at, line.batch = at, batch
        self.on_change()

    def sooner(self, key: str, at: float) -> None:
        """Not later than ``at``."""
        with self._lock:
            line = self._lines.get(key)
            if line is not None:
                line.next_at = min(line.next_at, at)
        self.on_change()

    def due(self) -> list[Claimed]:
        """Take out what may try now. Each line opens again a second later, or when ``pace`` says
        so: the lane that tries knows more then."""
        now = clock.now()
        out: list[Claimed] = []
        with self._lock:
            for key, line in list(self._lines.items()):
                if line.next_at > now:
                    continue
                if not line.rows:
                    del self._lines[key]
                    continue
                for _ in range(min(line.batch, len(line.rows))):
                    out.append(heapq.heappop(line.rows)[1])
                line.next_at = now + 1.0
        return out

    def next_due(self) -> float | None:
        """When ``due`` will have something; None: never, nobody waits."""
        with self._lock:
            return min((line.next_at for line in self._lines.values() if line.rows), default=None)

    def length(self, key: str) -> int:
        with self._lock:
            line = self._lines.get(key)
            return len(line.rows) if line is not None else 0

    def waited(self, row: Claimed) -> bool:
        """Whether the row stood in a line before."""
        with self._lock:
            return row.token in self._since

    def leave(self, rows: Iterable[Claimed]) -> None:
        """They come back no more under this claim."""
        with self._lock:
            for row in rows:
                self._since.pop(row.token, None)

    def standing(self) -> list[str]:
        """The keys of the lines in which somebody waits."""
        with self._lock:
            return [key for key, line in self._lines.items() if line.rows]

    def drain(self, alias: str | None = None) -> list[Claimed]:
        """Take out everybody, or all rows of one transport."""
        return self.take_out(lambda row: alias in (None, row.alias))

    def take_out(self, unwanted: Callable[[Claimed], bool]) -> list[Claimed]:
        """Take out those that are ``unwanted``."""
        out: list[Claimed] = []
        with self._lock:
            for line in self._lines.values():
                stay = []
                for place, row in line.rows:
                    if unwanted(row):
                        out.append(row)
                        self._since.pop(row.token, None)
                    else:
                        stay.append((place, row))
                heapq.heapify(stay)
                line.rows = stay
        return out

    def tidy(self) -> None:
        """Forget since when those wait that left with a lane and never came back."""
        with self._lock:
            standing = {row.token for line in self._lines.values() for _, row in line.rows}
            old = clock.now() - FORGET
            self._since = {
                token: since
                for token, since in self._since.items()
                if token in standing or since > old
            }
