"""A campaign's numbers without counting its rows: sums that the database keeps.

See ``models.counts`` for how they are kept, and ``recount`` for the check. All of them go on
counting rows that were pruned. Each is of one moment: of one statement, so of one snapshot.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db import connection, transaction

from campaigns.models import Campaign

from . import sql
from .ledger import STATUSES
from .sql import counters as statements

#: Changes that are rolled up in one transaction, and how many of these a look makes at most.
BATCH, LARGEST_LOOK = 20_000, 5
#: Ids by which the mark moves at least, as each step leaves a version of it where an old snapshot
#: is held. So many dead rows are read, and those of two looks.
STEP = 10_000


def totals(campaign_id: int) -> dict[tuple[str, str], int]:
    """``{(status, reason): rows}`` of what there is; ``{}`` for a campaign without rows."""
    with connection.cursor() as cursor:
        cursor.execute(statements.TOTALS, {"campaign": campaign_id})
        return {(status, reason): number for status, reason, number in cursor.fetchall()}


def by_status(campaign_id: int) -> dict[str, int]:
    """``{status: rows}``, all statuses."""
    found = dict.fromkeys(STATUSES, 0)
    for (status, _), number in totals(campaign_id).items():
        found[status] += number
    return found


def with_audience(campaign_id: int) -> dict[str, int]:
    """``{status: rows, ..., "audience": people}``, as ``ledger.counts`` has it from the rows.

    Raises ``Campaign.DoesNotExist``.
    """
    with connection.cursor() as cursor:
        cursor.execute(statements.BY_STATUS, {"campaign": campaign_id})
        rows = cursor.fetchall()
    if not rows:
        raise Campaign.DoesNotExist(f"there is no campaign {campaign_id}")
    found = dict.fromkeys(STATUSES, 0)
    found.update({status: number for _, status, number in rows if status is not None})
    return {**found, "audience": rows[0][0]}


def with_campaign(campaign_id: int) -> tuple[int, bool, dict[tuple[str, str], int]]:
    """The audience, whether it is complete, and ``totals``, of one moment. Raises
    ``Campaign.DoesNotExist``."""
    with connection.cursor() as cursor:
        cursor.execute(statements.WITH_CAMPAIGN, {"campaign": campaign_id})
        rows = cursor.fetchall()
    if not rows:
        raise Campaign.DoesNotExist(f"there is no campaign {campaign_id}")
    found = {(status, reason): number for _, _, status, reason, number in rows if number}
    return rows[0][0], rows[0][1], found


def by_hour(campaign_id: int) -> list[tuple[datetime, str, str, int]]:
    """``(hour, status, reason, n)``: by how many rows in it a status grew within an hour, less
    those that left it; negative where more left. Oldest first; hours are UTC's, by their
    beginning. The sum over all hours is ``totals``."""
    with connection.cursor() as cursor:
        cursor.execute(statements.BY_HOUR, {"campaign": campaign_id})
        return cursor.fetchall()


def events_by_hour(campaign_id: int) -> list[tuple[datetime, str, str, int]]:
    """``(hour, kind, reason, events)`` of the campaign's delivery events, by the hour in which
    they happened (``DeliveryEvent.at``), oldest first. Events that went with their pruned rows
    go on counting."""
    with connection.cursor() as cursor:
        cursor.execute(statements.EVENTS_BY_HOUR, {"campaign": campaign_id})
        return cursor.fetchall()


def compact(*, batch: int = BATCH) -> int:
    """Roll changes up into counts, in short transactions; returns how many changes.

    Beside writers, readers and others who do the same; whoever is not the first leaves it.
    """
    rolled = 0
    for _ in range(LARGEST_LOOK):
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute(sql.RELAXED)
            cursor.execute(statements.TRY_LOCK)
            if cursor.fetchone() == (False,):
                break
            cursor.execute(statements.BY_KEY)
            cursor.execute(statements.COMPACT, {"size": batch})
            taken, highest = cursor.fetchone()
            _move_mark(cursor, highest)
        rolled += taken
        if taken < batch:
            break
    return rolled


@dataclass(frozen=True, slots=True)
class Mark:
    """``models.LedgerMark`` as a roll-up finds it. ``below``: what of ``rolled_up`` is believed;
    ``free``: who wrote when ``noted`` was noted has ended."""

    below: int = 0
    rolled_up: int = 0
    noted: int = 0
    free: bool = False


def next_mark(mark: Mark, highest: int, *, step: int) -> tuple[int, int] | None:
    """``(rolled_up, noted)`` as they are to be when ``highest`` is the highest id that was just
    taken (0: none was), or None: as they are. Pure."""
    if mark.below < mark.rolled_up:  # not of this sequence
        return 0, 0
    if mark.noted > mark.below:
        if not mark.free:
            return None
        return mark.noted, highest if highest >= mark.noted + step else mark.noted
    return (mark.below, highest) if highest >= mark.below + step else None


def _move_mark(cursor: Any, highest: int) -> None:
    """Two statements, as the second's snapshot must be younger than the first's look."""
    cursor.execute(statements.MARK)
    row = cursor.fetchone()
    mark = Mark(*row) if row is not None else Mark()
    moved = next_mark(mark, highest, step=STEP)
    if moved is None:
        return
    rolled_up, noted = moved
    cursor.execute(
        statements.MOVE_MARK,
        {
            "below": mark.below,
            "rolled_up": rolled_up,
            "noted": noted,
            "was_rolled_up": mark.rolled_up,
            "was_noted": mark.noted,
        },
    )
