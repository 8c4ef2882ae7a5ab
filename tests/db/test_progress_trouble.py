"""What servers said about a campaign lately, beside a flood of other events of its account."""

from __future__ import annotations

import pytest
from django.db import connection

from sending import progress_page
from sending.models import DeliveryEvent
from sending.sql import watching
from tests.factories import CampaignFactory, SendFactory

pytestmark = pytest.mark.django_db


def test_a_flood_of_deliveries_and_suppressions_hides_no_trouble(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(progress_page, "EVENTS", 3)
    campaign = CampaignFactory.create(sending=True)
    send = SendFactory.create(campaign=campaign, sent=True)
    DeliveryEvent.objects.create(send=send, account=campaign.account, kind="retry", code=451)
    for kind in ("suppressed", "delivered", "complained", "unsubscribed"):
        for _ in range(4):
            DeliveryEvent.objects.create(send=send, account=campaign.account, kind=kind)
    assert [event[0] for event in progress_page._events(campaign)] == ["retry"]


def test_it_is_found_by_the_index_of_trouble() -> None:
    campaign = CampaignFactory.create(sending=True)
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL enable_seqscan = off")
        cursor.execute("SET LOCAL enable_sort = off")
        given = {"account": campaign.account_id, "campaign": campaign.pk, "limit": 10}
        cursor.execute(f"EXPLAIN {watching.LATEST_EVENTS}", given)
        plan = "\n".join(line for (line,) in cursor.fetchall())
    assert "sendonce_event_trouble" in plan
