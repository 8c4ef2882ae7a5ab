"""How many lanes at once may try to open a session of one transport, and how many may have one.

A relay that is away may take minutes to say so: the lanes that try it meanwhile are lost to
every other transport. One tries where it is known to be paused (the probe), half of them where
nothing is known, all where it works.

A transport that allows only so many connections has a slot for each that this process may hold.
A lane gets one with its lot (``take_slot``) and keeps it as long as its session, open or about
to be: ``closed`` gives it back.
"""

from __future__ import annotations

import threading
from collections import Counter
from typing import TYPE_CHECKING

from . import clock

if TYPE_CHECKING:
    from .limits.session_shares import SessionShares
    from .shared import Shared

#: Seconds that a lane waits for its turn before it gives its rows back.
PATIENCE = 1.0
#: It worked within so many seconds: nobody has to wait.
WORKED = 30.0


def allowed(lanes: int, *, paused: bool, works: bool) -> int:
    """How many of ``lanes`` may try to open a session at once."""
    if paused:
        return 1
    return lanes if works else max(1, lanes // 2)


class Doors:
    """Counts the lanes that are opening a session, and the slots that they hold, by transport.

    ``shares`` says how many there are; None: any number. A lane is its thread.
    """

    def __init__(self, shares: SessionShares | None = None) -> None:
        self._changed = threading.Condition()
        self._opening: Counter[str] = Counter()
        self._slots: dict[str, set[int]] = {}
        self._leaving: dict[str, set[int]] = {}
        self._shares = shares
        if shares is not None:
            shares.held = self.held

    def enter(self, alias: str, shared: Shared) -> bool:
        """Wait for a turn; False when it does not come soon. ``leave`` ends it."""
        if not self.take_slot(alias):
            return False
        deadline = clock.now() + PATIENCE
        with self._changed:
            while True:
                paused = shared.pauses.knows(alias, None)
                works = shared.last_success.recent(alias, WORKED)
                if self._opening[alias] < allowed(shared.lanes, paused=paused, works=works):
                    self._opening[alias] += 1
                    return True
                left = deadline - clock.now()
                if paused or left <= 0 or shared.stopping.is_set():
                    return False
                self._changed.wait(min(left, 0.1))

    def leave(self, alias: str) -> None:
        with self._changed:
            self._opening[alias] -= 1
            self._changed.notify_all()

    # --- slots -------------------------------------------------------------------------------

    def take_slot(self, alias: str) -> bool:
        """A slot for this thread's session, if it has none yet; False: they are all taken."""
        limit = self._shares.may_hold(alias) if self._shares is not None else None
        if limit is None:
            return True
        me = threading.get_ident()
        with self._changed:
            slots = self._slots.setdefault(alias, set())
            if me not in slots and len(slots) >= limit:
                return False
            slots.add(me)
            return True

    def has_slot(self, alias: str) -> bool:
        """Whether this thread holds one of a transport whose sessions are limited."""
        with self._changed:
            return threading.get_ident() in self._slots.get(alias, ())

    def to_close(self, shared: Shared, current: str | None = None) -> list[str]:
        """Transports whose session this lane has to close now, and then say ``closed``.

        The process has more of them than it may keep, since another worker has come. Or
        ``current``, which the lane turns to, is another transport, and lanes without a slot could
        use this one: a relay that hangs must not hold up the slots of others.
        """
        me = threading.get_ident()
        with self._changed:
            mine = [alias for alias, slots in self._slots.items() if me in slots]
        found: list[str] = []
        for alias in mine:
            keeps = self._shares.keeps(alias) if self._shares is not None else None
            with self._changed:
                slots, leaving = self._slots[alias], self._leaving.setdefault(alias, set())
                staying = len(slots - leaving)
                over = keeps is not None and me not in leaving and staying > keeps
                wanted = staying >= (keeps or 0) and staying < shared.lanes
                if over or me in leaving or (wanted and current not in (None, alias)):
                    leaving.add(me)
                    found.append(alias)
        return found

    def closed(self, alias: str) -> None:
        """This thread has no session of it (any more)."""
        me = threading.get_ident()
        with self._changed:
            self._slots.get(alias, set()).discard(me)
            self._leaving.get(alias, set()).discard(me)

    def held(self) -> dict[str, int]:
        """How many slots are taken, by transport."""
        with self._changed:
            return {alias: len(slots) for alias, slots in self._slots.items() if slots}
