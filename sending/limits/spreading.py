"""When rows try again that were put off because a limit's lines are long enough; pure but for
the dice.

The limit keeps the moment up to which its backlog is spread (``RateLimit.spread_until``), for all
workers together: each row is put a place further, so that they come back as fast as the limit
takes them, and not all at once, again and again.
"""

from __future__ import annotations

import random

#: No row is put off longer than this (seconds): a limit may be raised or lifted meanwhile.
LONGEST = 900.0
#: Rows are to be there before the line is through: they have to be found and claimed first.
AHEAD = 1.5


def first_after(room: int, rate: float) -> float:
    """Seconds until a line of ``room`` rows may be through, if nobody else takes any tokens."""
    return max(1.0, room / rate - AHEAD)


def waits(count: int, end: float, rate: float) -> list[float]:
    """Seconds for each of ``count`` rows whose places, ``rate`` a second, end in ``end`` seconds.

    Where the backlog is longer than ``LONGEST`` its later part comes back anywhere in the second
    half of that, to be put off again.
    """
    if end >= LONGEST - 1.0:
        return [random.uniform(LONGEST / 2, LONGEST) for _ in range(count)]
    begin = end - count / rate
    return [max(1.0, begin + place / rate) * random.uniform(0.97, 1.03) for place in range(count)]
