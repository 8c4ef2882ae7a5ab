"""A campaign that was canceled while it was built: that is why, whatever happened later."""

from __future__ import annotations

from datetime import UTC, timedelta
from typing import Any

import pytest
from django.utils import timezone

from campaigns import lifecycle
from campaigns.models import Campaign
from sending.why_not import look, sentence
from subscribers.models import Membership, Subscriber
from tests.factories import CampaignFactory, MembershipFactory, SegmentFactory, SubscriberFactory

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize(
    ("left", "person"),
    [(True, {}), (False, {"status": "unsubscribed"}), (False, {"status": "pending"})],
)
def test_what_came_after_the_cancel_is_no_reason(left: bool, person: dict[str, Any]) -> None:
    segment = SegmentFactory.create()
    campaign = CampaignFactory.create(account=segment.account, sending=True)
    campaign.segments.add(segment)
    Campaign.objects.filter(pk=campaign.pk).update(built_at=None)
    someone = SubscriberFactory.create(account=segment.account)
    MembershipFactory.create(segment=segment, subscriber=someone)
    campaign.refresh_from_db()
    lifecycle.cancel(campaign)
    if left:
        Membership.objects.update(left_at=timezone.now() + timedelta(seconds=1))
    if person:
        moment = {"unsubscribed_at": timezone.now()} if person["status"] == "unsubscribed" else {}
        Subscriber.objects.filter(pk=someone.pk).update(**person, **moment)
    someone.refresh_from_db()
    campaign = Campaign.objects.get(pk=campaign.pk)
    told = sentence(look(campaign, someone.email, someone, sees_all=True), UTC)
    assert "canceled before its audience was counted whole" in told
    assert "before the audience was counted" not in told
