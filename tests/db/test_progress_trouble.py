"""What servers said about a campaign lately, beside a flood of other events of its account."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import connection
from django.db.models.functions import Now

from sending import counters, progress_page
from sending.models import DeliveryEvent, Send
from sending.sql import watching
from tests.db.racing import Racer
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


@pytest.mark.django_db(transaction=True)
def test_counters_and_rows_are_of_one_moment(monkeypatch: pytest.MonkeyPatch) -> None:
    campaign = CampaignFactory.create(sending=True, audience=2)
    SendFactory.create(campaign=campaign, retry=True)
    send = SendFactory.create(campaign=campaign)
    read = counters.with_campaign

    def and_then(campaign_id: int) -> Any:
        found = read(campaign_id)
        changed = Send.objects.filter(pk=send.pk)
        other = Racer(lambda: changed.update(status="retry", next_attempt_at=Now()))
        other.start()
        assert other.result() == 1
        return found

    monkeypatch.setattr(counters, "with_campaign", and_then)
    found = progress_page.progress(campaign)
    assert Send.objects.filter(status="retry").count() == 2
    assert found.counts["retry"] == sum(number for _, number in found.retries.buckets) == 1


def test_it_is_found_by_the_index_of_trouble() -> None:
    campaign = CampaignFactory.create(sending=True)
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL enable_seqscan = off")
        cursor.execute("SET LOCAL enable_sort = off")
        given = {"account": campaign.account_id, "campaign": campaign.pk, "limit": 10}
        cursor.execute(f"EXPLAIN {watching.LATEST_EVENTS}", given)
        plan = "\n".join(line for (line,) in cursor.fetchall())
    assert "sendonce_event_trouble" in plan
