"""The hand-over: the last look before the network, committed durably. And giving back.

``hand_over`` returns the rows that may be sent, now; anything else that happens (an exception,
a missing row) means: send nothing of it. No transaction is open when it returns.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Sequence
from dataclasses import dataclass, field
from uuid import UUID

from django.db import connection, transaction

from campaigns.gate import try_shared
from subscribers.addresses import erased_hashes_of

from . import events, sql, statements
from .connections import Busy, acknowledged
from .queue import Claimed
from .reopening import reopen_for_row
from .settle import Settlement, accept
from .statements import array
from .withheld import WITHHELD

log = logging.getLogger("sendonce.sender")

_OPENED = ("queued", "retry")


@dataclass(slots=True)
class Handed:
    """``go``: to be sent now, in order of id. ``withheld``: id -> what the check found."""

    go: list[Claimed] = field(default_factory=list)
    withheld: dict[int, str] = field(default_factory=dict)
    #: Not looked at, since somebody decides about their campaign just now; still claimed.
    busy: list[Claimed] = field(default_factory=list)
    #: What ``accepted`` became: send id -> status, of those that took effect.
    became: dict[int, str] = field(default_factory=dict)

    def split(self, lots: Sequence[Sequence[Claimed]]) -> list[Handed]:
        """What it says about each of ``lots``, which it is about together."""
        if len(lots) == 1:
            return [self]
        lot_of = {row.id: n for n, lot in enumerate(lots) for row in lot}
        parts = [Handed() for _ in lots]
        for row in self.go:
            parts[lot_of[row.id]].go.append(row)
        for row in self.busy:
            parts[lot_of[row.id]].busy.append(row)
        for row_id, finding in self.withheld.items():
            parts[lot_of[row_id]].withheld[row_id] = finding
        return parts


def hand_over(
    rows: Sequence[Claimed],
    *,
    lease: float,
    via: str = "",
    window: float = 0.0,
    accepted: Sequence[Settlement] = (),
    hurried: bool = False,
) -> Handed:
    """``claimed -> sending`` for those of ``rows`` that may still get it.

    One READ COMMITTED transaction with a durable commit: gates, row locks, and then, in a
    second statement with a fresh snapshot, check and compare-and-set. Rows that may not go
    become what the check found (suppressed, canceled, queued again). Rows that are no longer
    ours are in neither list.

    ``via`` names the transport and its credentials, ``window`` is for how many seconds it
    deduplicates (0: not at all); then what each row's message is made of (``Claimed.frozen``) is
    fixed with the hand-over, so that it can be repeated byte for byte.

    ``accepted``: acceptances of the lots before, written in the same transaction, so that they are
    committed when the next lots are, at the price of one commit.

    Raises ``connections.Busy`` when a decision about a campaign of ``accepted`` is under way:
    nothing was written or handed over then. Raises ``connections.Unacknowledged`` when the commit
    was not cleanly acknowledged and ``django.db.Error`` subclasses when the database failed: the
    rows' state is unknown then, they must be given back by token and ``accepted`` written again.
    """
    handed = Handed()
    with acknowledged(connection), transaction.atomic(), statements.cursor() as cursor:
        cursor.execute(f"{sql.DURABLE}; {sql.HURRIED}" if hurried else sql.DURABLE)
        campaigns = {r.campaign_id for r in rows} | {told.campaign_id for told in accepted}
        closed = try_shared(cursor, (c for c in campaigns if c is not None))
        if any(told.campaign_id in closed for told in accepted):
            raise Busy("a decision about the campaign is under way")
        handed.busy = [r for r in rows if r.campaign_id in closed]
        lot = sorted((r for r in rows if r.campaign_id not in closed), key=lambda r: r.id)
        ids = array(r.id for r in lot)
        hashes = erased_hashes_of(r.email_lower or "" for r in lot)
        locked = [*(r.id for r in lot), *(told.send_id for told in accepted)]
        cursor.execute(sql.LOCK_ROWS, {"ids": array(locked)})
        if accepted:
            handed.became = accept(cursor, accepted)
        cursor.execute(
            sql.HAND_OVER,
            {
                "ids": ids,
                "tokens": array(r.token for r in lot),
                "hashes": array(",".join(keyed) for keyed in hashes),
                "frozen": array(map(_frozen, lot) if window > 0 else [None] * len(lot)),
                "lease": lease,
                "via": via,
                "window": window,
            },
        )
        answers = cursor.fetchall()
        by_token = {r.token: r for r in lot}
        events.record(
            cursor,
            [
                events.Note(
                    send_id=by_token[token].id,
                    account_id=by_token[token].account_id,
                    kind=status,
                    stage="local",
                    reason=finding,
                    text=WITHHELD[finding],
                )
                for token, finding, _, status in answers
                if finding not in ("go", "not_sending")
            ],
        )
    for token, finding, attempts, _ in answers:
        row = by_token[token]
        if finding == "go":
            row.attempts = attempts
            handed.go.append(row)
        else:
            handed.withheld[row.id] = finding
    handed.go.sort(key=lambda r: r.id)
    return handed


def _frozen(row: Claimed) -> str | None:
    return None if row.frozen is None else json.dumps(row.frozen)


def give_back(rows: Sequence[Claimed]) -> int:
    """Return rows that were certainly never started; their attempt is refunded.

    By token, from ``claimed``, ``sending`` or (after a rescue) ``in_doubt``: safe to repeat,
    and right whether the hand-over before it had committed or not. Returns how many were ours.
    Raises ``connections.Busy`` when a decision about the campaign is under way; what was merely
    claimed has gone back all the same.
    """
    if not rows:
        return 0
    lot = sorted(rows, key=lambda r: r.id)
    # Claimed and queued are both open, and a cancel closes both: no gate is needed for that.
    returned = _return(lot, from_claimed=True)
    rest = [r for r in lot if r.token not in returned]
    return len(returned) + (len(_return(rest, from_claimed=False)) if rest else 0)


def _return(lot: list[Claimed], *, from_claimed: bool) -> set[UUID]:
    ids = array(r.id for r in lot)
    with transaction.atomic(), statements.cursor() as cursor:
        cursor.execute(sql.DURABLE)
        if not from_claimed:
            campaigns = [r.campaign_id for r in lot if r.campaign_id is not None]
            if try_shared(cursor, campaigns):
                raise Busy("a decision about the campaign is under way")
        cursor.execute(sql.LOCK_ROWS, {"ids": ids})
        cursor.execute(
            sql.GIVE_BACK,
            {
                "ids": ids,
                "tokens": array(r.token for r in lot),
                "statuses": ["claimed"] if from_claimed else ["sending", "in_doubt"],
            },
        )
        returned = cursor.fetchall()
        late = {
            c for _, _, c, status, was, *_ in returned if was == "in_doubt" and status in _OPENED
        }
        for campaign_id in sorted(late - {None}):
            reopen_for_row(campaign_id)
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
                for row_id, account_id, _, status, _, reason, _ in returned
                if status not in _OPENED
            ],
        )
    return {token for *_, token in returned}
