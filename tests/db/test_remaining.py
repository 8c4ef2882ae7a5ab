"""How much is left to send, as it is counted while senders work."""

from __future__ import annotations

import pytest
from django.utils import timezone

from campaigns.models import Campaign
from sending.models import Send
from sending.remaining import Watcher
from sending.shared import Shared
from tests.factories import CampaignFactory

from .commands import ONE_OF_EACH, campaign_with

pytestmark = pytest.mark.django_db


@pytest.mark.django_db(transaction=True)
def test_what_is_left_is_counted_on_a_borrowed_connection() -> None:
    shared = Shared(
        lanes=1, lot_limit=1, lease=60, margin=10, freshness=5, doubt_wait=600, poll=1
    )  # fmt: skip
    try:
        watcher = Watcher(shared, every=2.0)
        assert watcher.count().total == 0
        campaign = campaign_with(ONE_OF_EACH)
        campaign_with({"queued": 5}, sending=False, paused=True)
        found = watcher.count()
        assert (found.total, found.open, found.waiting) == (10, 4, 1)
        assert not found.building
        Send.objects.filter(campaign=campaign).delete()
        Campaign.objects.filter(pk=campaign.pk).update(status="sent", finished_at=timezone.now())
        found = watcher.count()
        assert (found.total, found.open) == (10, 0), "it finished in this stretch of work"
        assert watcher.count().total == 0, "the next stretch begins at nothing"
        CampaignFactory.create(sending=True, audience=3)
        assert watcher.count().building
    finally:
        shared.pool.close()
