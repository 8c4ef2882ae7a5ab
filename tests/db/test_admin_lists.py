"""The lists of the admin at scale: no query per row, no count of everything, no bad filter."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from campaigns.models import Approval
from sending.models import DeliveryEvent, Installation, Send, TransportPause
from subscribers import paging
from subscribers.models import Account, Subscriber
from tests.db.admin_pages import OURS, member_client, url
from tests.factories import (
    AccountFactory,
    CampaignFactory,
    ContentFactory,
    MembershipFactory,
    SegmentFactory,
    SendFactory,
    SubscriberFactory,
    SuppressionFactory,
    WorkerFactory,
)

pytestmark = pytest.mark.django_db

# --- lists at scale ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "model",
    [m for m in OURS if m not in {Installation, TransportPause, Account}],
    ids=lambda m: m.__name__,
)
def test_a_list_makes_no_query_per_row(model: type[Any]) -> None:
    account = AccountFactory.create()
    client, _ = member_client(account, AccountFactory.create())

    def queries() -> int:
        with CaptureQueriesContext(
            connection,
        ) as caught:
            assert client.get(url(model, "changelist")).status_code == 200
        return len(caught)

    def more(n: int) -> None:
        segment = SegmentFactory.create(account=account)
        campaign = CampaignFactory.create(account=account, segments=[segment])
        content = ContentFactory.create(account=account)
        for person in SubscriberFactory.create_batch(n, account=account, segments=[segment]):
            send = SendFactory.create(campaign=campaign, subscriber=person)
            DeliveryEvent.objects.create(send=send, account=account, kind="retry")
            SuppressionFactory.create(account=account)
            WorkerFactory.create()
            SegmentFactory.create(account=account)
            CampaignFactory.create(account=account, segments=[segment])
            Approval.objects.create(
                campaign=campaign,
                by_name="x",
                at=timezone.now(),
                digest="0" * 64,
                scheduled_for=timezone.now(),
                content=content,
            )

    more(3)
    queries()
    few = queries()
    more(6)
    assert queries() == few


def test_a_list_counts_no_further_than_it_pages(
    superuser_client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(paging.BoundedPaginator, "limit", 5)
    account = AccountFactory.create()
    SubscriberFactory.create_batch(7, account=account)
    with CaptureQueriesContext(connection) as caught:
        answer = superuser_client.get(url(Subscriber, "changelist"))
    assert "5+ subscribers" in " ".join(answer.content.decode().split())
    counting = [q["sql"] for q in caught if "COUNT(" in q["sql"] and "LIMIT" not in q["sql"]]
    assert counting == []


def test_search_finds_the_beginning_of_an_address_in_any_case(superuser_client: Client) -> None:
    found = SubscriberFactory.create(email="Ann.Lee@example.org")
    SubscriberFactory.create(email="joann.lee@example.org")
    answer = superuser_client.get(url(Subscriber, "changelist"), {"q": "ANN."})
    assert list(answer.context["cl"].result_list) == [found]


@pytest.mark.parametrize("value", ["x", "-1", "9" * 40, "1'", "\u0661"])
@pytest.mark.parametrize(
    ("model", "name"),
    [(Subscriber, "account"), (Subscriber, "segment"), (Send, "campaign")],
)
def test_a_filter_survives_what_is_no_id(
    superuser_client: Client, model: type[Any], name: str, value: str
) -> None:
    answer = superuser_client.get(url(model, "changelist"), {name: value})
    assert answer.status_code == 200
    assert list(answer.context["cl"].result_list) == []


def test_filters_narrow_the_list(superuser_client: Client) -> None:
    segment = SegmentFactory.create()
    inside = SubscriberFactory.create(account=segment.account, segments=[segment])
    gone = SubscriberFactory.create(account=segment.account)
    MembershipFactory.create(segment=segment, subscriber=gone, left=True)
    send = SendFactory.create(subscriber__segments=[])
    for model, query, rows in (
        (Subscriber, {"segment": segment.pk}, [inside]),
        (Subscriber, {"account": segment.account_id}, [gone, inside]),
        (Send, {"campaign": send.campaign_id}, [send]),
        (Send, {"status__exact": "sent"}, []),
    ):
        answer = superuser_client.get(url(model, "changelist"), query)
        assert list(answer.context["cl"].result_list) == rows
