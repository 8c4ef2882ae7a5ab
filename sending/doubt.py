"""Deciding about doubt: by a person, by a replay where the transport deduplicates, or by the
account's policy once the wait is over."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from django.db import connection, transaction

from campaigns.errors import GateBusy
from campaigns.gate import enter_exclusive, try_shared
from campaigns.lifecycle import notify, reopen
from campaigns.models import Campaign

from . import events, sql
from .models import Send

SEND_AGAIN = "send_again"
TREAT_AS_SENT = "treat_as_sent"
DECISIONS = (SEND_AGAIN, TREAT_AS_SENT)


def resolve(
    sends: Iterable[Send],
    decision: str,
    by: Any = None,
    *,
    by_name: str = "",
    failed: bool = False,
) -> int:
    """Decide about rows in doubt; returns how many the decision took effect on. ``by`` is a user,
    or ``by_name`` who else it was.

    ``send_again`` queues them with fresh attempts and reopens a campaign that was ``sent``; an
    acceptance of the earlier hand-over that still comes makes the row ``sent`` and stops the
    repeat if it has not left. With ``failed`` it takes ``failed`` rows as well.
    A row whose lost worker may still live (its lease is not over, a minute at most) is left for
    now, and so are rows of a campaign about which somebody decides at this moment. Nothing of an
    erased person is sent again.
    ``treat_as_sent`` closes them as ``sent``. Rows in other states, and rows of a canceled
    campaign for ``send_again``, are left as they are. Raises ``ValueError`` on another decision.
    """
    if decision not in DECISIONS:
        raise ValueError(f"{decision!r} is no decision; it is one of {', '.join(DECISIONS)}")
    groups: dict[int | None, list[int]] = defaultdict(list)
    for send in sends:
        groups[send.campaign_id].append(send.pk)
    who = by_name or (by.get_username() if by is not None else "the system")
    return sum(
        _decide(campaign_id, ids, decision, who=who, failed=failed)
        for campaign_id, ids in groups.items()
    )


def apply_policies() -> int:
    """Settle doubt whose wait is over; returns how many rows.

    What a deduplicating transport may have is replayed while that is harmless; the rest goes by
    the account's policy.
    """
    with connection.cursor() as cursor:
        cursor.execute(sql.DOUBT_DUE)
        due = cursor.fetchall()
    groups: dict[tuple[int | None, str], list[int]] = defaultdict(list)
    for send_id, campaign_id, policy in due:
        groups[campaign_id, policy].append(send_id)
    decisions = {"resend": SEND_AGAIN, "assume_sent": TREAT_AS_SENT}
    settled = 0
    for (campaign_id, how), ids in groups.items():
        if how in decisions:
            who = f"policy {how}"
            settled += _decide(campaign_id, ids, decisions[how], who=who, due_only=True)
        else:
            settled += _move(campaign_id, ids, _REPLAY if how == "replay" else _HOLD)
    return settled


@dataclass(frozen=True, slots=True)
class _Move:
    statement: str
    kind: str
    text: str


_REPLAY = _Move(sql.REPLAY, "replay", "to be repeated under its key, which can't deliver it twice")
_HOLD = _Move(sql.HOLD, "held", "nothing repeats it any more: it waits for evidence or a person")


def _move(campaign_id: int | None, ids: list[int], move: _Move) -> int:
    """Both leave the campaign's own status alone, so that the gate is only shared."""
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(sql.READ_COMMITTED)
        if campaign_id is not None and try_shared(cursor, [campaign_id]):
            return 0  # the next look, in seconds, finds them again
        cursor.execute(move.statement, {"ids": ids, "campaign": campaign_id})
        rows = cursor.fetchall()
        if rows and move is _REPLAY:
            notify(campaign_id)
        events.record(
            cursor,
            [
                events.Note(
                    send_id=i, account_id=a, kind=move.kind, reason="decided", text=move.text
                )
                for i, a in rows
            ],
        )
    return len(rows)


def _decide(
    campaign_id: int | None,
    ids: list[int],
    decision: str,
    *,
    who: str,
    failed: bool = False,
    due_only: bool = False,
) -> int:
    try:
        return _decide_now(campaign_id, ids, decision, who, failed=failed, due_only=due_only)
    except GateBusy:
        return 0  # nothing was changed; for a person and a policy alike: try again


def _decide_now(
    campaign_id: int | None,
    ids: list[int],
    decision: str,
    who: str,
    *,
    failed: bool,
    due_only: bool,
) -> int:
    given = {"ids": ids, "campaign": campaign_id, "failed": failed, "due_only": due_only}
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(sql.READ_COMMITTED)
        if decision == TREAT_AS_SENT:
            if campaign_id is not None and try_shared(cursor, [campaign_id]):
                raise GateBusy
            cursor.execute(sql.TREAT_AS_SENT, given)
        else:
            if campaign_id is not None:
                # Alone behind the gate: a campaign that was sent opens again with its rows.
                enter_exclusive(cursor, campaign_id, worker=due_only)
                if not _may_open(campaign_id):
                    return 0
            cursor.execute(sql.SEND_AGAIN, given)
        rows = cursor.fetchall()
        if rows and campaign_id is not None and decision == SEND_AGAIN:
            reopen(campaign_id, f"{len(rows)} rows to be sent again, decided by {who}")
            notify(campaign_id)
        events.record(
            cursor,
            [
                events.Note(send_id=i, account_id=a, kind=decision, reason="decided", by_name=who)
                for i, a in rows
            ],
        )
    return len(rows)


def _may_open(campaign_id: int) -> bool:
    return not Campaign.objects.filter(pk=campaign_id, status=Campaign.Status.CANCELED).exists()
