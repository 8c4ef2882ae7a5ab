"""The gate of a campaign: a transaction-level advisory lock that orders sending and deciding.

Whoever can open or hand over a row takes it shared, or comes back later: nobody waits for it
with a connection in hand that others need. Whoever decides about the campaign takes
it exclusively, *as a statement of its own*, and only then reads: under READ COMMITTED the next
statement's snapshot is younger than every commit that held the gate. Gates come before row
locks, so that nobody waits in a circle. Who waits to decide is ahead of those who come later,
so a decision is not starved by a stream of shared holders.

Transaction-level locks work behind a transaction pooler; they end with the transaction.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from django.db import OperationalError

from .errors import GateBusy

#: Upper 24 bits of the 64-bit lock key ("SEN"); the lower 40 are the campaign's id.
_NAMESPACE = 0x53454E << 40
_ID_MASK = (1 << 40) - 1

#: Under REPEATABLE READ the snapshot would be as old as the transaction, and whoever waited at
#: the gate would decide by what was before. Raises where a transaction of another level has
#: begun to read already.
READ_COMMITTED = "SET TRANSACTION ISOLATION LEVEL READ COMMITTED"

#: A decision waits so long at the gate, and then says so: somebody may hold it who was stopped.
DECISION_PATIENCE = "SET LOCAL lock_timeout = '20s'"

#: A worker that decides (due, finish, a policy) comes again in a second anyway, and has others to
#: look after.
WORKER_PATIENCE = "SET LOCAL lock_timeout = '1s'"

#: Whoever is stopped (SIGSTOP, a suspended machine, a dead link) while it holds a gate must not
#: hold it for ever: PostgreSQL ends its session, and it finds out when it goes on.
NO_SLEEP_AT_THE_GATE = "SET LOCAL idle_in_transaction_session_timeout = '15s'"

LOCK_NOT_AVAILABLE = "55P03"  # the SQLSTATE of a lock time-out

_TRY_SHARED = """
SELECT place FROM unnest(%s::bigint[]) WITH ORDINALITY AS t(gate, place)
WHERE NOT pg_try_advisory_xact_lock_shared(gate)"""
_EXCLUSIVE = "SELECT pg_advisory_xact_lock(%s)"


def is_lock_timeout(error: BaseException) -> bool:
    """Whether somebody else's lock was waited for too long: the database is there all the same."""
    return getattr(error.__cause__, "sqlstate", None) == LOCK_NOT_AVAILABLE


def key(campaign_id: int) -> int:
    """The advisory lock key of a campaign's gate."""
    return _NAMESPACE | (campaign_id & _ID_MASK)


def try_shared(cursor: Any, campaign_ids: Iterable[int]) -> set[int]:
    """Hold these campaigns' gates shared until the transaction ends, without waiting; returns
    the ids whose gate was not to be had: somebody decides about them, or waits to.

    ``cursor`` must be in a READ COMMITTED transaction, ``READ_COMMITTED`` its first statement.
    """
    wanted = sorted(set(campaign_ids))
    if not wanted:
        return set()
    cursor.execute(_TRY_SHARED, [[key(campaign_id) for campaign_id in wanted]])
    return {wanted[place - 1] for (place,) in cursor.fetchall()}


def enter_exclusive(cursor: Any, campaign_id: int, *, worker: bool = False) -> None:
    """Hold one campaign's gate alone until the transaction ends, which must be, and is made,
    READ COMMITTED; ``django.db.InternalError`` where that is too late. Raises ``GateBusy``
    after 20 s, for a ``worker`` after one."""
    cursor.execute(READ_COMMITTED)
    cursor.execute(NO_SLEEP_AT_THE_GATE)
    cursor.execute(WORKER_PATIENCE if worker else DECISION_PATIENCE)
    try:
        cursor.execute(_EXCLUSIVE, [key(campaign_id)])
    except OperationalError as error:
        if is_lock_timeout(error):
            raise GateBusy from error
        raise
