"""The accounting identity: every recipient is in exactly one state, and all are counted.

``audience = queued + claimed + sending + retry + sent + bounced + failed + suppressed +
in_doubt + canceled``, where ``audience`` is counted from the people (see ``sql.CHUNK_INSERT``
and ``sql.SWEEP``), not from the rows. Rows that were pruned go on counting (``sending.pruning``).
"""

from __future__ import annotations

from dataclasses import dataclass, field

from django.db import connection

from campaigns.models import Campaign

from . import sql
from .models import Counted, Send
from .recount import Drift

STATUSES: tuple[str, ...] = tuple(Send.Status.values)

#: Somebody may still get it without a person deciding so (doubt with a policy aside).
OPEN = ("queued", "claimed", "sending", "retry")


@dataclass(frozen=True, slots=True)
class Balance:
    """One campaign's count. ``difference`` is people without a row (positive) or rows without
    a person (negative); 0 when the identity holds. ``archived``: how many of each of ``counts``
    were pruned, statuses with none left out. ``drift``: where the counters that pages show
    (``sending.counters``) are wrong."""

    campaign_id: int
    counts: dict[str, int]
    audience: int
    built: bool
    archived: dict[str, int] = field(default_factory=dict)
    drift: list[Drift] = field(default_factory=list)

    @property
    def difference(self) -> int:
        return self.audience - sum(self.counts.values())

    @property
    def holds(self) -> bool:
        return self.difference == 0


def balance(campaign_id: int) -> Balance:
    """Count a campaign's rows and compare its counters with them, in one statement, so in one
    snapshot.

    Raises ``Campaign.DoesNotExist``.
    """
    with connection.cursor() as cursor:
        cursor.execute(sql.COUNTS, {"campaign": campaign_id})
        rows = cursor.fetchall()
    if not rows:
        raise Campaign.DoesNotExist(f"there is no campaign {campaign_id}")
    counts = dict.fromkeys(STATUSES, 0)
    pruned: dict[str, int] = {}
    drift = []
    for _, _, status, reason, here, archived, counter in rows:
        if status is None:
            continue
        counts[status] = counts.get(status, 0) + here + archived
        if archived:
            pruned[status] = pruned.get(status, 0) + archived
        if counter != here + archived:
            drift.append(Drift(Counted.ROWS, status, reason, here + archived, counter))
    return Balance(
        campaign_id,
        counts,
        audience=rows[0][0],
        built=rows[0][1],
        archived=pruned,
        drift=sorted(drift, key=lambda d: (d.status, d.reason)),
    )


def counts(campaign: Campaign) -> dict[str, int]:
    """``{status: rows, ..., "audience": people}``, counted from the rows in one statement. Fast
    and as exact: ``sending.counters``.

    While the build runs, ``audience`` is the people counted so far.
    """
    return counts_by_id(campaign.pk)


def counts_by_id(campaign_id: int) -> dict[str, int]:
    found = balance(campaign_id)
    return {**found.counts, "audience": found.audience}


def has_open_rows(campaign_id: int) -> bool:
    """Is any row queued, claimed, sending, in retry, or in doubt with a policy to settle it?"""
    with connection.cursor() as cursor:
        cursor.execute(sql.OPEN_ROWS, {"campaign": campaign_id})
        row = cursor.fetchone()
    return bool(row and row[0])
