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
                continue  # nobody waits for a decision; the hand-over finds it anyway
            people = {"campaign": campaign_id, "subscribers": subscriber_ids}
            # Waits for a chunk that is being built, where somebody moved.
            cursor.execute(sql.HOLD_BUILD, people)
            held = cursor.fetchone() is not None
            cursor.execute(sql.LOCK_LEAVERS, people)
            if held:
                with contextlib.suppress(IntegrityError), transaction.atomic():
                    # Somebody else's row may have come under the new address at this moment.
                    cursor.execute(sql.FOLLOW_MOVED, people)
            # Who moves just now is left to the call that follows that.
            cursor.execute(sql.WITHDRAW_LEAVERS, {**people, "moved": held})
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
