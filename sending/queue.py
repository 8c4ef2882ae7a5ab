"""Claiming: open rows become this worker's, a few of each campaign at a time.

The statement is ``sending.sql.CLAIM_QUEUED``.
"""

from __future__ import annotations

import json
import logging
import secrets
from collections.abc import Collection, Container
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from django.db import connection, transaction

from . import clock, sql, statements
from .outcomes import MAX_ATTEMPTS

log = logging.getLogger("sendonce.sender")


@dataclass(slots=True, eq=False)
class Claimed:
    """A row this process holds. ``trusted_until`` is on ``sending.clock``: after it the lease
    may have run out in the database, and the message must not be started."""

    id: int
    token: UUID
    account_id: int
    campaign_id: int | None
    subscriber_id: int | None
    email: str
    email_lower: str
    job_id: str
    content_id: int
    context: dict[str, Any] | None
    attributes: dict[str, Any] | None
    #: The account's transport, as the claim read it: never looked up elsewhere, where an
    #: account that is new could be missing and its mail take another's road.
    alias: str
    trusted_until: float
    #: Hand-overs made so far, this one included; known once it is handed over.
    attempts: int = 0
    #: The account's own waits in seconds (empty: the usual ones), and its limit of attempts.
    retry_waits: list[int] = field(default_factory=list)
    max_attempts: int = MAX_ATTEMPTS
    #: What the message is made of, where that was fixed at an earlier hand-over.
    frozen: dict[str, Any] | None = None
    #: Above 0: this hand-over repeats one in doubt, under the same key.
    replays: int = 0
    #: How often staff asked for it again after it had failed.
    repeats: int = 0


@dataclass(slots=True)
class Rotation:
    """Which campaigns are asked for rows, in which order, and beyond which id.

    A campaign that gave fewer rows than it was asked for is dry until the next round, so that
    a thousand empty ones do not make the claim small for the one that is full.
    """

    marks: dict[int, int] = field(default_factory=dict)
    order: list[int] = field(default_factory=list)
    dry: set[int] = field(default_factory=set)

    def refresh(self, campaigns: list[int]) -> None:
        """A new round: these campaigns are open now; none is dry; each keeps its mark."""
        known = set(campaigns)
        self.order = [c for c in self.order if c in known]
        self.order += [c for c in campaigns if c not in set(self.order)]
        self.marks = {c: self.marks.get(c, 0) for c in self.order}
        self.dry = set()

    def turn(self, total: int, skip: Container[int] = ()) -> tuple[list[int], list[int], int]:
        """``(campaigns, marks, rows of each)`` for a claim of ``total`` rows; the order moves
        on, so that with fewer rows than campaigns all are reached in turn. Campaigns to
        ``skip`` are not asked this time."""
        asked = [c for c in self.order if c not in self.dry and c not in skip]
        if not asked:
            return [], [], 0
        chosen = asked[:total]
        self.order = [c for c in self.order if c not in set(chosen)] + chosen
        each = -(-total // len(chosen))
        return chosen, [self.marks[c] for c in chosen], each

    def took(self, chosen: list[int], rows: list[Claimed], limit: int) -> None:
        """Move the marks by what a claim of at most ``limit`` rows brought. A campaign that
        came back empty starts again from 0, since rows behind its mark may have been given
        back; one that was empty from 0 is dry."""
        count: dict[int, int] = dict.fromkeys(chosen, 0)
        for row in rows:
            if row.campaign_id is not None and row.campaign_id in count:
                count[row.campaign_id] += 1
                self.marks[row.campaign_id] = max(self.marks[row.campaign_id], row.id)
        if len(rows) >= limit:
            return  # the limit may have cut off the later ones: nobody is known to be empty
        for campaign, n in count.items():
            if n == 0 and self.marks[campaign] > 0:
                self.marks[campaign] = 0  # look once more from the start before it counts as dry
            elif n == 0:
                self.dry.add(campaign)


def claim(
    rotation: Rotation,
    *,
    worker_id: int,
    total: int,
    lease: float,
    margin: float,
    blocked: list[int],
    closed: Collection[str] = (),
    transactional: bool = True,
    skip: Container[int] = (),
) -> list[Claimed]:
    """Claim up to ``total`` rows: transactional first, then retries due, then queued.

    ``lease`` and ``margin`` are seconds; ``blocked`` are ids of accounts whose transport is
    paused, ``closed`` the paused transports themselves, ``skip`` campaigns to leave out. Makes one
    short transaction; the rows are this worker's when it has committed.
    """
    asked_at = clock.now()
    common = {"worker": worker_id, "lease": lease, "digits": secrets.token_hex(8)}
    found: list[tuple[Any, ...]] = []
    chosen, marks, each = rotation.turn(total, skip)
    with transaction.atomic(), statements.cursor() as cursor:
        cursor.execute(sql.RELAXED)
        if transactional:
            cursor.execute(
                sql.CLAIM_TRANSACTIONAL,
                {**common, "total": total, "blocked": blocked, "closed": list(closed)},
            )
            found += cursor.fetchall()
        if chosen and len(found) < total:
            cursor.execute(
                sql.CLAIM_RETRY,
                {**common, "campaigns": chosen, "each": each, "total": total - len(found)},
            )
            found += cursor.fetchall()
        queued: list[tuple[Any, ...]] = []
        limit = total - len(found)
        if chosen and limit > 0:
            cursor.execute(
                sql.CLAIM_QUEUED,
                {
                    **common,
                    "campaigns": chosen,
                    "marks": marks,
                    "each": each,
                    "total": limit,
                },
            )
            queued = cursor.fetchall()
    trusted = asked_at + lease - margin
    others, fresh = _rows(found, trusted), _rows(queued, trusted)
    if chosen and limit > 0:
        rotation.took(chosen, fresh, limit)
    return others + fresh


def _rows(found: list[tuple[Any, ...]], trusted_until: float) -> list[Claimed]:
    attributes = _decoded([r[10] for r in found])
    return [_row(r, given, trusted_until) for r, given in zip(found, attributes, strict=True)]


def _row(r: tuple[Any, ...], attributes: Any, trusted_until: float) -> Claimed:
    row_id, token, account, campaign, subscriber, email, lowered, job, content = r[:9]
    return Claimed(
        id=row_id,
        token=token,
        account_id=account,
        campaign_id=campaign,
        subscriber_id=subscriber,
        email=email,
        email_lower=lowered,
        job_id=job,
        content_id=content,
        context=_json(r[9]),
        attributes=attributes,
        alias=r[11],
        frozen=_json(r[12]),
        replays=r[13],
        retry_waits=r[14],
        max_attempts=r[15],
        repeats=r[16],
        trusted_until=trusted_until,
    )


def _decoded(values: list[Any]) -> list[Any]:
    """``_json`` of each, in one call where nothing is wrong with any: that is most of its price."""
    try:
        decoded = json.loads(f"[{','.join(['null' if v is None else v for v in values])}]")
        if len(decoded) == len(values):
            return list(decoded)
    except (ValueError, TypeError, RecursionError):
        pass
    return [_json(value) for value in values]


def _json(value: Any) -> Any:
    # Django's cursors hand jsonb out as text; its model field would load it.
    if not isinstance(value, str):
        return value
    try:
        return json.loads(value)
    except RecursionError:
        return value  # nested too deeply: its own message fails, by being no mapping
    except ValueError:
        # A number longer than Python turns into one (4,300 digits): one row's attribute must not
        # keep those that were claimed with it waiting for their lease, again and again.
        return json.loads(value, parse_int=str)


def renew(rows: list[Claimed], *, lease: float, margin: float) -> int:
    """Extend the leases of rows still ours; returns how many were. Rows that were rescued
    meanwhile keep their old ``trusted_until`` and so are not started any more."""
    asked_at = clock.now()
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(sql.RELAXED)
        cursor.execute(
            sql.RENEW,
            {"ids": [r.id for r in rows], "tokens": [r.token for r in rows], "lease": lease},
        )
        kept = {row_id for (row_id,) in cursor.fetchall()}
    for row in rows:
        if row.id in kept:
            row.trusted_until = asked_at + lease - margin
    return len(kept)
