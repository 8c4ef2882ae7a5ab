"""What a build has made of a campaign."""

from __future__ import annotations

from campaigns.models import Campaign
from sending import build
from sending.models import Send
from subscribers.models import Subscriber

from .rows import assert_identity


def rows_of(campaign: Campaign) -> dict[str | None, str]:
    """``{address: status}``."""
    return dict(Send.objects.filter(campaign=campaign).values_list("email", "status"))


def people_of(campaign: Campaign) -> list[Subscriber]:
    return list(Subscriber.objects.filter(account=campaign.account).order_by("id"))


def finish_build(campaign: Campaign, *, size: int = 100) -> None:
    build.build(campaign.pk, size=size)
    campaign.refresh_from_db()
    assert campaign.built_at is not None
    assert_identity(campaign)
