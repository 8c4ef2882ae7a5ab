"""Events as a provider tells them of a row, stored and applied."""

from __future__ import annotations

import uuid
from itertools import count
from typing import Any

from django.utils import timezone

from sending import installation
from sending.handover import hand_over
from sending.models import ProviderEvent, Send, WebhookCount
from sending.queue import Claimed
from sending.tracking import inbox as tracking
from subscribers.models import Suppression

from .rows import LEASE, campaign_to, row, take

DEAD = "550 5.1.1 no such user"
TOKEN = uuid.UUID("0ddba115-0000-4000-8000-000000000002")

_NUMBERS = count(1)


def event_of(send: Send, kind: str, **fields: Any) -> ProviderEvent:
    """An unsaved event of this kind about ``send``, from a provider with metadata."""
    given: dict[str, Any] = {
        "event_id": f"Test:{next(_NUMBERS)}",
        "esp": "Test",
        "kind": kind,
        "job_id": send.job_id,
        "installation": installation.tag(),
        "message_id": f"m-{send.pk}",
        "recipient": send.email or "",
        "at": timezone.now(),
        "text": "",
    }
    return ProviderEvent(**(given | fields))


def tell(send: Send, *kinds: str, **fields: Any) -> list[str]:
    """Store and apply such events, in this order and at once; returns the results."""
    events = [event_of(send, kind, **fields) for kind in kinds]
    # Stored one by one: within one insert, the ids follow the order of the event ids.
    for event in events:
        tracking.store([event])
    tracking.apply_waiting()
    send.refresh_from_db()
    return [result_of(event) for event in events]


def result_of(event: ProviderEvent) -> str:
    stored = ProviderEvent.objects.get(event_id=event.event_id)
    return stored.result if stored.applied_at else "waiting"


def counts() -> dict[str, int]:
    return {f"{c.esp} {c.what}": c.count for c in WebhookCount.objects.all()}


def suppressions() -> list[tuple[str | None, str]]:
    """Addresses and reasons, in order of the address."""
    return list(Suppression.objects.order_by("email").values_list("email", "reason"))


def doubted(status: str) -> Send:
    """A row that is open although an earlier hand-over of it is in doubt."""
    more = {"handed_at": timezone.now(), "attempts": 1, "doubt_tokens": [TOKEN]}
    return row(campaign_to(0), status, **more)


def handed() -> tuple[Send, Claimed]:
    """A row as a worker has just handed it over, and what the worker holds of it."""
    campaign = campaign_to(0)
    send = row(campaign)
    (claimed,) = take([campaign.pk], 1)
    assert hand_over([claimed], lease=LEASE).go == [claimed]
    send.refresh_from_db()
    return send, claimed
