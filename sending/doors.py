"""How many lanes at once may try to open a session of one transport.

A relay that is away may take minutes to say so: the lanes that try it meanwhile are lost to
every other transport. One tries where it is known to be paused (the probe), half of them where
nothing is known, all where it works.
"""

from __future__ import annotations

import threading
from collections import Counter
from typing import TYPE_CHECKING

from . import clock

if TYPE_CHECKING:
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
    """Counts the lanes that are opening a session, by transport."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._opening: Counter[str] = Counter()

    def enter(self, alias: str, shared: Shared) -> bool:
        """Wait for a turn; False when it does not come soon. ``leave`` ends it."""
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
