"""The gate of a campaign: a transaction-level advisory lock that orders sending and deciding.

Whoever can open or hand over a row takes it shared; whoever decides about the campaign takes
it exclusively, *as a statement of its own*, and only then reads: under READ COMMITTED the next
statement's snapshot is younger than every commit that held the gate. Gates come before row
locks, in ascending order of id, so that nobody waits in a circle. PostgreSQL queues waiters,
so a decision is not starved by a stream of shared holders.

Transaction-level locks work behind a transaction pooler; they end with the transaction.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

#: Upper 24 bits of the 64-bit lock key ("SEN"); the lower 40 are the campaign's id.
_NAMESPACE = 0x53454E << 40
_ID_MASK = (1 << 40) - 1

#: Under REPEATABLE READ the snapshot would be as old as the transaction, and whoever waited at
#: the gate would decide by what was before. Raises where a transaction of another level has
#: begun to read already.
READ_COMMITTED = "SET TRANSACTION ISOLATION LEVEL READ COMMITTED"

_SHARED = "SELECT pg_advisory_xact_lock_shared(%s)"
_EXCLUSIVE = "SELECT pg_advisory_xact_lock(%s)"


def key(campaign_id: int) -> int:
    """The advisory lock key of a campaign's gate."""
    return _NAMESPACE | (campaign_id & _ID_MASK)


def enter_shared(cursor: Any, campaign_ids: Iterable[int]) -> None:
    """Hold these campaigns' gates shared until the transaction ends. ``cursor`` must be in a
    READ COMMITTED transaction, ``READ_COMMITTED`` its first statement; a lock timeout of its
    session applies."""
    for campaign_id in sorted(set(campaign_ids)):
        cursor.execute(_SHARED, [key(campaign_id)])


def enter_exclusive(cursor: Any, campaign_id: int) -> None:
    """Hold one campaign's gate alone until the transaction ends, which must be, and is made,
    READ COMMITTED; ``django.db.InternalError`` where that is too late."""
    cursor.execute(READ_COMMITTED)
    cursor.execute(_EXCLUSIVE, [key(campaign_id)])
