"""The local clock by which a worker trusts its leases."""

from __future__ import annotations

import time

_CLOCK = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


def now() -> float:
    """Seconds on a clock that never steps back and, where the system has one, goes on while
    the machine is suspended: a lease must not look fresh after a night with the lid closed."""
    return time.clock_gettime(_CLOCK)
