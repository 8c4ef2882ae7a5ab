"""Rows of campaigns that ended long ago become counts, in the transaction that deletes them.

The ledger adds these counts to the rows that are left, so that every recipient is accounted for at
every moment. What is given up is who got what: one person's story and copy no longer tell of it,
and nothing of it can be sent again. Nobody gets a campaign twice by it: a row is only made by the
build, which never runs again for a campaign that was built or canceled.

Left alone: whatever is open or in doubt, every row of which somebody said something lately, and
transactional messages, whose job ids bar a repetition for ever.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from django.db import OperationalError, connection, transaction

from campaigns.gate import is_lock_timeout, try_shared

from . import sql
from .sql import pruning as statements

#: Days without any news after which a row may go. Bounces come within days, complaints within
#: weeks, as a rule, and staff look at what failed within months; a provider's own events are kept
#: for 90 days.
DAYS = 180
#: The fewest: leases, replays and retries are measured in hours.
FEWEST_DAYS = 1
#: Rows that one transaction looks at; it holds their locks for a fraction of a second.
BATCH, LARGEST_BATCH = 2000, 20_000


@dataclass(frozen=True, slots=True)
class Old:
    """A campaign that is over, with rows."""

    id: int
    name: str


@dataclass(frozen=True, slots=True)
class Step:
    """How far a campaign is: rows ``looked`` at and ``pruned`` so far, the last of them ``after``.
    ``busy``: somebody decides about the campaign or holds a row for long; the rest is for another
    time. ``done``: nothing beyond."""

    looked: int = 0
    pruned: int = 0
    after: int = 0
    busy: bool = False
    done: bool = False


def old_campaigns(*, days: int, campaign_id: int | None = None) -> list[Old]:
    """Campaigns sent or canceled so many days ago that have rows; oldest first."""
    with connection.cursor() as cursor:
        cursor.execute(statements.OVER_CAMPAIGNS, {"days": days, "campaign": campaign_id})
        return [Old(*row) for row in cursor.fetchall()]


def prunable(campaign_id: int, *, days: int) -> tuple[int, int]:
    """``(rows that would go, rows)`` of a campaign, now."""
    with connection.cursor() as cursor:
        cursor.execute(statements.COUNT_PRUNABLE, {"days": days, "campaign": campaign_id})
        would_go, rows = cursor.fetchone()
        return would_go, rows


def prune(campaign_id: int, *, days: int, batch: int = BATCH) -> Iterator[Step]:
    """Prune a campaign in slices of ``batch`` rows, each a transaction; yields after each. Any
    number of processes may do it at once, beside senders; one that dies loses nothing."""
    step = Step()
    while not (step.done or step.busy):
        step = prune_slice(campaign_id, step, days=days, batch=batch)
        yield step


def prune_slice(campaign_id: int, so_far: Step, *, days: int, batch: int) -> Step:
    """The next slice, behind the campaign's gate (shared) and the rows' locks."""
    try:
        return _prune_slice(campaign_id, so_far, days=days, batch=batch)
    except OperationalError as error:
        if not is_lock_timeout(error):
            raise
        return replace(so_far, busy=True)


def _prune_slice(campaign_id: int, so_far: Step, *, days: int, batch: int) -> Step:
    place = {"campaign": campaign_id, "days": days, "after": so_far.after, "size": batch}
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(sql.RELAXED)
        if try_shared(cursor, [campaign_id]):
            return replace(so_far, busy=True)
        cursor.execute(statements.IS_OVER, place)
        if cursor.fetchone() is None:
            return replace(so_far, done=True)  # opened again meanwhile: its rows are wanted
        cursor.execute(statements.LOCK_SLICE, place)
        ids = [row_id for (row_id,) in cursor.fetchall()]
        if not ids:
            return replace(so_far, done=True)
        cursor.execute(statements.DOOMED, {**place, "ids": ids})
        doomed: dict[str, Any] = {
            "campaign": campaign_id,
            "ids": [row_id for (row_id,) in cursor.fetchall()],
        }
        cursor.execute(statements.PRUNE_EVENTS_OF, doomed)
        cursor.execute(statements.PRUNE_ROWS, doomed)
        (pruned,) = cursor.fetchone()
    return Step(so_far.looked + len(ids), so_far.pruned + pruned, after=ids[-1])
