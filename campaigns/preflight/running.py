"""Preflight of one campaign."""

from __future__ import annotations

from datetime import datetime

from ..models import Campaign
from .checklist import look
from .findings import Report
from .gathering import gather


def run(
    campaign: Campaign, *, scheduled_for: datetime | None = None, now: datetime | None = None
) -> Report:
    """Look at a campaign as it is in memory, and at its people and its account's campaigns as
    they are stored; nothing is changed.

    ``scheduled_for`` overrides the campaign's own, and where both are empty it would start now.
    ``now`` is the database's time, read where it is not given. Raises no error of the content's.
    """
    facts = gather(campaign, scheduled_for, now)
    return Report(
        checks=look(facts),
        audience=facts.audience,
        compiled=facts.material.compiled if facts.material is not None else None,
        duration=facts.duration,
    )
