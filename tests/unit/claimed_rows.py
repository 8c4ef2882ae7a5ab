"""A row as a claim gives it to a sender."""

from __future__ import annotations

from uuid import uuid4

from sending.queue import Claimed


def claimed_row(row_id: int, *, alias: str = "relay", campaign_id: int | None = 1) -> Claimed:
    return Claimed(
        id=row_id,
        token=uuid4(),
        account_id=1,
        campaign_id=campaign_id,
        subscriber_id=row_id,
        email=f"p{row_id}@example.org",
        email_lower=f"p{row_id}@example.org",
        job_id=f"job-{row_id}",
        content_id=1,
        context=None,
        attributes=None,
        alias=alias,
        trusted_until=0.0,
    )
