"""Campaigns in every status, and the verbs that move them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from campaigns import lifecycle
from campaigns.editing import edit
from campaigns.models import Campaign
from tests.factories import CampaignFactory, StaffFactory

STATUSES = list(Campaign.Status.values)
VERBS: dict[str, Callable[[Campaign, Any], object]] = {
    "approve": lambda campaign, by: lifecycle.approve(campaign, by=by),
    "withdraw": lambda campaign, by: lifecycle.withdraw(campaign, by=by),
    "pause": lambda campaign, by: lifecycle.pause(campaign, by=by),
    "resume": lambda campaign, by: lifecycle.resume(campaign, by=by),
    "cancel": lambda campaign, by: lifecycle.cancel(campaign, by=by),
    "edit": lambda campaign, by: edit(
        campaign, version=campaign.version, values={"name": "Renamed"}, by=by
    ),
}


def in_status(status: str, **fields: Any) -> Campaign:
    trait = {} if status == "draft" else {status: True}
    campaign: Campaign = CampaignFactory.create(**trait, **{"readers": 1, **fields})
    return campaign


def approved(**fields: Any) -> Campaign:
    """A campaign that was really approved, so that its digest is right; due at once."""
    campaign: Campaign = CampaignFactory.create(**{"readers": 1, **fields})
    return lifecycle.approve(campaign, by=StaffFactory.create())


def stored(campaign: Campaign) -> Campaign:
    return Campaign.objects.get(pk=campaign.pk)
