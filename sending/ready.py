"""Claimed rows between the claim and the lanes, and all rows this process holds."""

from __future__ import annotations

import threading
from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping, Sequence

from . import clock
from .doors import Doors
from .limits.lines import Lines
from .queue import Claimed
from .turns import Turns


class Shares:
    """Which transport may have one more lane: a relay that hangs holds the lanes that it has
    for minutes, and must leave some to the others.

    ``works(alias)``: it took a message within the last seconds. ``doors``: a lane is given only
    what it may have a session for.
    """

    def __init__(
        self,
        lanes: int,
        aliases: list[str],
        works: Callable[[str], bool] = lambda alias: True,
        doors: Doors | None = None,
    ) -> None:
        self.lanes = lanes
        self.aliases = aliases
        self.works = works
        self.doors = doors or Doors()

    def allow(self, alias: str, busy: Mapping[str, int]) -> bool:
        """With ``busy`` lanes by transport: a first lane always; more while as many are left
        as there are other transports (half of all at most), or, where it is not known to work,
        as there are other transports without any."""
        if busy.get(alias, 0) == 0:
            return True
        others = [a for a in self.aliases if a != alias]
        reserve = min(len(others), self.lanes // 2)
        if busy[alias] >= self.lanes - reserve:
            return False
        if self.works(alias):
            return True
        free = self.lanes - sum(busy.values()) - 1
        return free >= sum(busy.get(a, 0) == 0 for a in others)


class Ready:
    """Rows waiting for a lane, by transport; safe between threads.

    ``held`` is every row of this process that is not yet settled or given back, waiting or in
    a lane's hands: what the heartbeat renews and a shutdown accounts for.

    ``shares`` says which transport may have one more lane; None: any. ``lines``: rows that wait
    for a permit, and come back here when there may be one. Transactional rows come first, then
    campaigns in turn (``Turns``).
    """

    def __init__(self, shares: Shares | None = None, lines: Lines | None = None) -> None:
        self._shares = shares
        self._lines = lines or Lines()
        self._busy: Counter[str] = Counter()
        lock = threading.RLock()
        self._changed = threading.Condition(lock)  # there may be something for a lane
        self._room = threading.Condition(lock)  # fewer wait than the dispatcher waits for
        self._level = 0
        #: Among how many lanes what waits is to be shared, while no more is to be had.
        self.shared_by = 1
        self._waiting: dict[str, Turns] = {}
        self._held: dict[int, Claimed] = {}
        self._order: deque[str] = deque()
        self._lines.on_change = self.wake

    def put(self, rows: Iterable[tuple[str, Claimed]]) -> None:
        with self._changed:
            for alias, row in rows:
                self._queue(alias).append(row)
                self._held[row.id] = row
            self._changed.notify_all()

    def wait(self, waiting: Sequence[tuple[Claimed, str]]) -> None:
        """These rows, each with the key of its limit, wait for a permit; still held. Whoever had
        them in hand has forgotten them by now: another lane may get them at once."""
        self._lines.add(waiting)

    def _let_in(self) -> None:
        """Those that may try for a permit now are first, after transactional ones."""
        by_alias: dict[str, list[Claimed]] = {}
        for row in self._lines.due():
            by_alias.setdefault(row.alias, []).append(row)
        for alias, rows in by_alias.items():
            self._queue(alias).let_in(rows)

    def _queue(self, alias: str) -> Turns:
        if alias not in self._waiting:
            self._waiting[alias] = Turns()
            self._order.append(alias)
        return self._waiting[alias]

    def take(self, size: int, timeout: float) -> tuple[str, list[Claimed]] | None:
        """Up to ``size`` rows of one transport, transports in turn; None after ``timeout``
        seconds without any. The lane says ``done`` when it has dealt with them.

        Of the last that there are a lane takes its share and no more: it would be sending long
        after the others have nothing to do.
        """
        deadline = clock.now() + timeout
        with self._changed:
            while True:
                self._let_in()
                alias = self._choose()
                if alias is not None:
                    self._busy[alias] += 1
                    waiting = self._waiting[alias]
                    share = -(-len(waiting) // self.shared_by)
                    return alias, self._taken(waiting, min(size, share))
                now = clock.now()
                if now >= deadline:
                    return None
                due = self._lines.next_due()
                self._changed.wait(max(0.0, min(deadline, due or deadline) - now))

    def _taken(self, waiting: Turns, count: int) -> list[Claimed]:
        taken = waiting.take(count)
        if len(waiting) < self._level:
            self._room.notify_all()
        return taken

    def more(self, alias: str, size: int) -> list[Claimed]:
        """Up to ``size`` rows more for a lane that has some of this transport in hand. None where
        another's wait, whose turn it would be; and of the last its share, if that is several.

        Those that may try for a permit now come first, as in ``take``: lanes that always find more
        would never let them in."""
        with self._changed:
            self._let_in()
            waiting = self._waiting.get(alias)
            if not waiting or any(rows for name, rows in self._waiting.items() if name != alias):
                return []
            share = -(-len(waiting) // self.shared_by)
            if share < 2 and self.shared_by > 1:
                return []
            return self._taken(waiting, min(size, share))

    def put_back(self, alias: str, rows: Sequence[Claimed]) -> None:
        """These are the first to be taken again."""
        with self._changed:
            self._queue(alias).put_back(rows)
            self._changed.notify_all()

    def _choose(self) -> str | None:
        """Whose turn it is; with the slot for its session, where those are limited."""
        shares = self._shares
        possible = [
            alias
            for alias in self._order
            if self._waiting[alias] and (shares is None or shares.allow(alias, self._busy))
        ]
        # Who has one of a few sessions goes on with it, unless somebody has no lane at all:
        # to turn from one transport to another costs it.
        if shares is not None and all(self._busy[alias] for alias in possible):
            possible.sort(key=lambda alias: not shares.doors.has_slot(alias))
        for alias in possible:
            if shares is None or shares.doors.take_slot(alias):
                self._order.remove(alias)
                self._order.append(alias)
                return alias
        return None

    def done(self, alias: str) -> None:
        """A lane has dealt with the rows of a ``take``."""
        with self._changed:
            self._busy[alias] -= 1
            self._changed.notify_all()

    def crowded(self, level: int) -> set[str]:
        """Transports for which ``level`` rows or more wait."""
        with self._changed:
            return self._crowded(level)

    def wait_for_room(self, crowded: set[str], level: int, timeout: float) -> None:
        """Wait until one of ``crowded`` is not any more, ``timeout`` seconds at most."""
        with self._changed:
            self._level = level
            self._room.wait_for(lambda: crowded - self._crowded(level), timeout)
            self._level = 0

    def _crowded(self, level: int) -> set[str]:
        return {alias for alias, rows in self._waiting.items() if len(rows) >= level}

    def waiting(self, alias: str | None = None) -> int:
        """How many rows wait, of one transport or of all."""
        with self._changed:
            return sum(len(rows) for name, rows in self._waiting.items() if alias in (None, name))

    def drain(self, alias: str | None = None) -> list[Claimed]:
        """Take back everything that waits, also for a permit, of one transport or all."""
        with self._changed:
            taken: list[Claimed] = []
            for name, rows in self._waiting.items():
                if alias in (None, name):
                    taken += rows.take(len(rows))
            taken += self._lines.drain(alias)
            self._room.notify_all()
            return taken

    def take_out(self, unwanted: Callable[[Claimed], bool]) -> list[Claimed]:
        """Take back those that are ``unwanted`` of what waits, also for a permit."""
        with self._changed:
            taken: list[Claimed] = []
            for rows in self._waiting.values():
                taken += rows.take_out(unwanted)
            return taken + self._lines.take_out(unwanted)

    def release(self, rows: Iterable[Claimed]) -> None:
        """These rows are settled or given back: no longer ours. Only the same claim is let go:
        the row may have come back to this process under another token meanwhile."""
        with self._changed:
            for row in rows:
                if self._held.get(row.id) is row:
                    del self._held[row.id]

    def held(self) -> list[Claimed]:
        with self._changed:
            return list(self._held.values())

    def wake(self) -> None:
        with self._changed:
            self._changed.notify_all()
            self._room.notify_all()
