"""A test that is asked for twice at once, and one that meets an erasure."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client

from campaigns import test_sends
from campaigns.models import Campaign, Content
from sending.models import Send
from subscribers.models import AuditEvent, Subscriber
from subscribers.rights.acts import erase_person
from tests.db.racing import Halt, Race
from tests.factories import CampaignFactory, StaffFactory, SubscriberFactory

from .campaign_pages import url

pytestmark = pytest.mark.django_db(transaction=True)

KEY = "0123456789abcdef" * 2


@pytest.fixture
def campaign() -> Campaign:
    found: Campaign = CampaignFactory.create()
    SubscriberFactory.create(
        account=found.account,
        segments=[found.segments.get()],
        email="ann@example.org",
        attributes={"first_name": "Ann"},
    )
    return found


@pytest.fixture
def asking(campaign: Campaign) -> Callable[..., Any]:
    """``asking()``: a browser that posts the form; each has a client of its own."""
    user = StaffFactory.create(superuser=True)

    def post(to: str = "a@example.org b@example.org") -> Any:
        client = Client()
        client.force_login(user)
        return client.post(url("test", campaign.pk), {"key": KEY, "addresses": to})

    return post


def halt_before_commit(race: Race, monkeypatch: pytest.MonkeyPatch) -> Halt:
    halt = race.halt()
    monkeypatch.setattr(test_sends, "_record", halt.behind(test_sends._record))
    return halt


def test_two_clicks_at_once_are_one_test(
    asking: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    with Race() as race:
        halt = halt_before_commit(race, monkeypatch)
        first = race.start_to(halt, asking)
        second = race.start(asking)
        second.wait_until_blocked()
        halt.released.set()
        assert first.result().url == second.result().url
    assert Send.objects.count() == 2
    assert Content.objects.count() == 1
    assert AuditEvent.objects.filter(verb="campaign.test").count() == 2


def test_the_same_form_with_other_addresses_at_once_is_refused(
    asking: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    with Race() as race:
        halt = halt_before_commit(race, monkeypatch)
        first = race.start_to(halt, asking)
        second = race.start(lambda: asking("c@example.org"))
        second.wait_until_blocked()
        halt.released.set()
        assert first.result().status_code == 302
        answer = second.result()
    assert answer.status_code == 200
    assert "has sent another test already" in answer.content.decode()
    assert Send.objects.count() == 2


def test_an_erasure_waits_and_finds_what_the_test_took_along(
    campaign: Campaign, asking: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    with Race() as race:
        halt = halt_before_commit(race, monkeypatch)
        first = race.start_to(halt, asking)
        second = race.start(
            lambda: erase_person(campaign.account, "ann@example.org", reason="asked for")
        )
        second.wait_until_blocked()
        halt.released.set()
        first.result()
        second.result()
    assert not Subscriber.objects.exists()
    assert list(Send.objects.values_list("context", flat=True)) == [{}, {}]
    assert set(Send.objects.values_list("email", flat=True)) == {"a@example.org", "b@example.org"}


def test_after_an_erasure_there_is_nobody_to_show_it_as(
    campaign: Campaign, asking: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    with Race() as race:
        halt = race.halt()
        # It has read the person, and has yet to hold them.
        monkeypatch.setattr(test_sends, "marked", halt.behind(test_sends.marked))
        first = race.start_to(halt, asking)
        erase_person(campaign.account, "ann@example.org", reason="asked for")
        halt.released.set()
        answer = first.result()
    assert "was deleted meanwhile" in answer.content.decode()
    assert not Send.objects.exists()
