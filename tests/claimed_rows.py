"""A row as a claim gives it to a sender; it need not be in the database."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

from sending.queue import Claimed


def claimed_row(row_id: int = 1, **fields: Any) -> Claimed:
    """Of a campaign over the transport ``relay``, its lease run out; ``fields`` say otherwise."""
    email = fields.pop("email", f"p{row_id}@example.org")
    given: dict[str, Any] = {
        "token": uuid4(),
        "account_id": 1,
        "campaign_id": 1,
        "subscriber_id": row_id,
        "email_lower": email.lower(),
        "job_id": f"job-{row_id}",
        "content_id": 1,
        "context": None,
        "attributes": None,
        "alias": "relay",
        "trusted_until": 0.0,
    }
    return Claimed(id=row_id, email=email, **{**given, **fields})
