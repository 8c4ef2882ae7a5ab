"""Whoever leaves by a link of a campaign is counted there, once, and leaves whatever happens."""

from __future__ import annotations

from collections.abc import Callable
from unittest import mock

import pytest
from django.db import connection, transaction
from django.test import Client
from django.urls import reverse

from campaigns.models import Campaign
from sending.models import DeliveryEvent, Send
from sending.reporting import report
from subscribers.models import Subscriber
from subscribers.tokens import Kind, make_token
from tests.factories import CampaignFactory

from .racing import Racer
from .rows import campaign_to, row
from .tracked import tell

pytestmark = pytest.mark.django_db


@pytest.fixture
def send() -> Send:
    return row(campaign_to(0), "sent")


def post(send: Send, kind: Kind, campaign: int | None) -> None:
    assert send.subscriber_id is not None
    url = reverse("sendonce:link", args=[make_token(kind, send.subscriber_id, campaign)])
    data = {"action": "leave"} if kind == Kind.PREFERENCES else {}
    assert Client().post(url, data).status_code == 200


def status_of(send: Send) -> str:
    assert send.subscriber_id is not None
    return Subscriber.objects.get(pk=send.subscriber_id).status


def campaign_of(send: Send) -> Campaign:
    assert send.campaign is not None
    return send.campaign


def counted(campaign_id: int | None) -> int:
    assert campaign_id is not None
    campaign = Campaign.objects.get(pk=campaign_id)
    return next(one.number for one in report(campaign).told if one.kind == "unsubscribed")


@pytest.mark.parametrize("kind", [Kind.UNSUBSCRIBE, Kind.PREFERENCES])
def test_leaving_by_a_link_is_counted_once(send: Send, kind: Kind) -> None:
    post(send, kind, send.campaign_id)
    post(send, kind, send.campaign_id)
    post(send, Kind.UNSUBSCRIBE, send.campaign_id)

    event = DeliveryEvent.objects.get(send=send)
    assert (event.kind, event.reason) == ("unsubscribed", "by_link")
    assert counted(send.campaign_id) == 1


def test_leaving_by_a_link_of_no_campaign_is_nobodys(send: Send) -> None:
    post(send, Kind.UNSUBSCRIBE, None)
    assert status_of(send) == "unsubscribed"
    assert not DeliveryEvent.objects.exists()
    assert counted(send.campaign_id) == 0


def test_whoever_had_left_before_did_not_leave_by_it(send: Send) -> None:
    post(send, Kind.UNSUBSCRIBE, None)
    post(send, Kind.UNSUBSCRIBE, send.campaign_id)
    assert counted(send.campaign_id) == 0


def test_only_the_campaign_of_the_link_counts_it(send: Send) -> None:
    other = CampaignFactory.create(account=send.account, sending=True)
    row(other, "sent", subscriber=send.subscriber)
    post(send, Kind.UNSUBSCRIBE, other.pk)
    assert (counted(other.pk), counted(send.campaign_id)) == (1, 0)


def test_whom_the_provider_tells_of_too_is_counted_once(send: Send) -> None:
    post(send, Kind.UNSUBSCRIBE, send.campaign_id)
    assert tell(send, "unsubscribed", "unsubscribed") == ["applied", "applied"]
    assert counted(send.campaign_id) == 1
    # They came back, and left once more by a link of the same campaign.
    Subscriber.objects.update(status="confirmed", unsubscribed_at=None)
    campaign = campaign_of(send)
    other = row(campaign, "sent")
    tell(other, "unsubscribed")
    Subscriber.objects.update(status="confirmed", unsubscribed_at=None)
    post(other, Kind.UNSUBSCRIBE, other.campaign_id)
    assert counted(send.campaign_id) == 2
    by_hour: int = sum(hour.unsubscribed for hour in report(campaign).hours)
    assert by_hour == 2
    reasons = DeliveryEvent.objects.order_by("pk").values_list("reason", flat=True)
    assert list(reasons) == ["by_link", "again", "again", "", "again"]


@pytest.mark.parametrize("kind", ["complained", "delivered"])
def test_what_a_provider_tells_twice_of_one_person_is_counted_once(send: Send, kind: str) -> None:
    tell(send, kind)
    tell(send, kind)
    campaign = campaign_of(send)
    tell(row(campaign, "sent"), kind)
    found = {one.kind: one.number for one in report(campaign).told}
    assert found[kind] == 2


def test_leaving_does_not_depend_on_the_row(send: Send) -> None:
    Send.objects.all().delete()
    post(send, Kind.UNSUBSCRIBE, send.campaign_id)
    assert status_of(send) == "unsubscribed"


def test_leaving_does_not_fail_with_the_count(send: Send, caplog: pytest.LogCaptureFixture) -> None:
    with mock.patch("sending.unsubscriptions.statements.UNSUBSCRIBED", "SELECT 1 / 0"):
        post(send, Kind.UNSUBSCRIBE, send.campaign_id)
    assert status_of(send) == "unsubscribed"
    assert "not counted in its report" in caplog.text
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1")


@pytest.mark.django_db(transaction=True)
def test_two_clicks_at_once_are_one() -> None:
    send = row(campaign_to(0), "sent")
    with transaction.atomic():
        # Both wait for the person, and go on one after the other.
        assert send.subscriber_id is not None
        Subscriber.objects.select_for_update().get(pk=send.subscriber_id)
        racers = [Racer(lambda: post(send, Kind.UNSUBSCRIBE, send.campaign_id)) for _ in range(2)]
        for racer in racers:
            racer.start()
            racer.wait_until_blocked()
    for racer in racers:
        racer.result()
    assert DeliveryEvent.objects.filter(kind="unsubscribed").count() == 1
    assert counted(send.campaign_id) == 1


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("first", ["link", "provider"])
def test_who_leaves_by_a_link_while_the_provider_tells_it_is_counted_once(first: str) -> None:
    send = row(campaign_to(0), "sent")
    ways: dict[str, Callable[[], object]] = {
        "link": lambda: post(send, Kind.UNSUBSCRIBE, send.campaign_id),
        "provider": lambda: tell(send, "unsubscribed"),
    }
    racers = [Racer(ways[way]) for way in sorted(ways, key=lambda way: way != first)]
    with transaction.atomic():
        # Both wait for the person, and go on one after the other.
        assert send.subscriber_id is not None
        Subscriber.objects.select_for_update().get(pk=send.subscriber_id)
        for racer in racers:
            racer.start()
            racer.wait_until_blocked()
    for racer in racers:
        racer.result()
    assert counted(send.campaign_id) == 1


@pytest.mark.django_db(transaction=True)
def test_a_row_that_is_pruned_at_this_moment_stops_nobody_from_leaving() -> None:
    send = row(campaign_to(0), "sent")
    with transaction.atomic():
        Send.objects.filter(pk=send.pk).delete()
        racer = Racer(lambda: post(send, Kind.UNSUBSCRIBE, send.campaign_id))
        racer.start()
        racer.wait_until_blocked()
    racer.result()
    assert status_of(send) == "unsubscribed"
    assert not DeliveryEvent.objects.exists()


@pytest.mark.django_db(transaction=True)
def test_who_did_not_leave_is_not_counted() -> None:
    """Whatever ends the session before the commit takes the event with it."""
    send = row(campaign_to(0), "sent")
    with transaction.atomic():
        post(send, Kind.UNSUBSCRIBE, send.campaign_id)
        transaction.set_rollback(True)
    assert status_of(send) == "confirmed"
    assert counted(send.campaign_id) == 0
