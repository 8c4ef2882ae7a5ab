"""What the end of one of several sender processes means for the whole. Pure."""

from __future__ import annotations

from collections.abc import Collection
from enum import Enum

#: Exit codes that another start would only repeat: usage, the database refused, the cluster
#: changed.
HOPELESS = frozenset({2, 3, 4})
#: A process could not write its last outcomes.
ABANDONED = 5
#: Seconds before a process is started again: doubled from the first to the longest, and back to
#: the first after one that has lived so long.
FIRST_WAIT, LONGEST_WAIT = 1.0, 30.0
LIVED_WELL = 60.0


class Next(Enum):
    AGAIN = "start it again"
    OVER = "it is not started again"
    END_ALL = "the others end too, and its exit code is that of the whole"


def after(code: int, *, any_came_up: bool, drain: bool, stopping: bool) -> Next:
    """What follows when a process has ended with ``code`` (negative: the signal that killed it).

    Until a first one ``came_up`` (it has reached the database and sends) an error is that of the
    whole, as it is with one process.
    """
    if stopping:
        return Next.OVER
    if code in HOPELESS or (code > 0 and not any_came_up):
        return Next.END_ALL
    if code == 0 and drain:
        return Next.OVER
    # Killed, or failed. Or somebody stopped this one alone: N were asked for.
    return Next.AGAIN


def wait_before(*, lived: float, last: float) -> float:
    """Seconds until the next start of a process that lived ``lived`` seconds, after a wait of
    ``last`` seconds (0: none yet)."""
    if lived >= LIVED_WELL or last <= 0:
        return FIRST_WAIT
    return min(last * 2, LONGEST_WAIT)


def exit_code(*, ended_all: int | None, any_abandoned: bool, last: Collection[int]) -> int:
    """The exit code of the whole: what ``ended_all``, else 5 if any process ever ended so, else 1
    if any of the ``last`` ones (when no other was started after them) did not end well."""
    if ended_all is not None:
        return ended_all
    if any_abandoned:
        return ABANDONED
    return 1 if any(last) else 0
