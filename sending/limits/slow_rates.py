"""How fast to go on when the other side asks to slow down, and how that ends; pure.

Multiplicative decrease and increase, as mailbox providers advise for 421 and 4.7.x replies:
halve, wait, and come back in steps. Workers agree on each step in the database
(``SLOW_DOWN``, ``RAISE`` and ``FORGET_SLOW_DOWN`` of ``sending.sql.limits``).
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Mapping

from .. import clock

#: By how much a complaint slows down, and how often at most (seconds).
DECREASE = 0.5
PATIENCE = 10.0
#: By how much, and after how many seconds without a complaint, it is raised again.
INCREASE = 1.25
RECOVERY = 30.0
#: No slower than one message a minute: only a message can show that it works again.
SLOWEST = 1 / 60
#: Without a limit the slow-down is over at so many times the rate at which it began.
CEILING = 4.0
#: Who was sent less than this (messages a second) is taken to have been sent this much: one
#: complaint about a single message must not make it minutes between two.
LEAST_OBSERVED = 1.0
#: Seconds over which a process counts what it sends.
SPAN = 5.0


def slower(rate: float) -> float:
    """The next rate after a complaint, messages a second."""
    return max(SLOWEST, rate * DECREASE)


def first_slow_down(observed: float) -> tuple[float, float]:
    """``(rate, ceiling)`` of a slow-down where there was no limit, ``observed`` messages a second
    having been sent."""
    seen = max(observed, LEAST_OBSERVED)
    return slower(seen), seen * CEILING


class Observed:
    """How many messages a second this process sends, by key; safe between threads.

    Two spans, the one under way and the one before it, so that it forgets without a timer.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._begun = self._since = clock.now()
        self._now: Counter[str] = Counter()
        self._before: Counter[str] = Counter()

    def count(self, *keys: str) -> None:
        self.count_all(dict.fromkeys(keys, 1))

    def count_all(self, counts: Mapping[str, int]) -> None:
        with self._lock:
            self._turn()
            for key, messages in counts.items():
                self._now[key] += messages

    def rate(self, key: str) -> float:
        with self._lock:
            self._turn()
            # A process that has just begun, or begun again, has not sent for two spans.
            watched = min(SPAN + clock.now() - self._begun, clock.now() - self._since)
            return (self._now[key] + self._before[key]) / max(watched, 1.0)

    def _turn(self) -> None:
        passed = clock.now() - self._begun
        if passed >= SPAN:
            if passed < 2 * SPAN:
                self._before = self._now
            else:
                self._before, self._since = Counter(), clock.now()
            self._now = Counter()
            self._begun = clock.now()
