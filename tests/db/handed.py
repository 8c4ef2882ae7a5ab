"""Rows before their hand-over, and the hand-over itself."""

from __future__ import annotations

import uuid

from campaigns.models import Campaign
from sending.handover import Handed, hand_over
from sending.models import Send

from .rows import LEASE, held

OLD = uuid.UUID("0ddba115-0000-4000-8000-000000000001")


def hand_over_rows(*sends: Send) -> Handed:
    return hand_over([held(s) for s in sends], lease=LEASE)


def set_campaign(send: Send, status: str) -> None:
    Campaign.objects.filter(sends=send).update(status=status)
