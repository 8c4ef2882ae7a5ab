"""Closing rows that must not be sent any more: a canceled campaign's, a leaver's."""

from __future__ import annotations

import contextlib

from django.db import IntegrityError, connection, transaction

from campaigns.gate import try_shared

from . import events, sql
from .withheld import WITHHELD

#: Rows per transaction.
SLICE = 20_000


def cancel_rows(campaign_id: int) -> int:
    """Cancel what is queued, in retry or claimed of a *canceled* campaign; returns how many.

    In slices of one transaction each. No row opens behind it: all who open rows look at the
    campaign's status behind its gate.
    """
    canceled = 0
    while True:
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute(sql.READ_COMMITTED)
            cursor.execute(
                sql.CANCEL_ROWS,
                {"campaign": campaign_id, "size": SLICE, "text": WITHHELD["canceled"]},
            )
            (changed,) = cursor.fetchone()
        canceled += changed
        if changed < SLICE:
            return canceled


def finish_cancels() -> int:
    """Cancel rows that a cancel which died half-way has left open; returns how many."""
    with connection.cursor() as cursor:
        cursor.execute(sql.CANCELED_WITH_OPEN_ROWS)
        left = [campaign_id for (campaign_id,) in cursor.fetchall()]
    return sum(cancel_rows(campaign_id) for campaign_id in left)


def withdraw_leavers(subscriber_ids: list[int]) -> int:
    """Close the open rows of people who left, unsubscribed or paused, in running campaigns that
    reach them no more. Of people who changed their address, those of which nothing was tried
    follow them.

    The hand-over would find it too; this makes it visible at once. Claimed rows are left to
    the hand-over. Returns how many rows became ``suppressed``.
    """
    withdrawn = 0
    with connection.cursor() as cursor:
        cursor.execute(sql.LEAVERS_CAMPAIGNS, {"subscribers": subscriber_ids})
        campaigns = [campaign_id for (campaign_id,) in cursor.fetchall()]
    for campaign_id in campaigns:
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute(sql.READ_COMMITTED)
            if try_shared(cursor, [campaign_id]):
                continue  # somebody who leaves does not wait; the hand-over finds it anyway
            people = {"campaign": campaign_id, "subscribers": subscriber_ids}
            cursor.execute(sql.HOLD_BUILD, people)
            cursor.execute(sql.LOCK_LEAVERS, people)
            with contextlib.suppress(IntegrityError), transaction.atomic():
                # Somebody else's row may have come under the new address at this moment.
                cursor.execute(sql.FOLLOW_MOVED, people)
            cursor.execute(sql.WITHDRAW_LEAVERS, people)
            rows = cursor.fetchall()
            events.record(
                cursor,
                [
                    events.Note(
                        send_id=row_id,
                        account_id=account_id,
                        kind=status,
                        stage="local",
                        reason=reason,
                        text=WITHHELD[reason],
                    )
                    for row_id, account_id, status, reason in rows
                ],
            )
            withdrawn += len(rows)
    return withdrawn
