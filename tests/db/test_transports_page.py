"""Transports and brakes on one page: whose they are, what is wrong, what can be lifted."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import Permission
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone

from campaigns.models import Campaign
from sending import transport_overview
from sending.admin import transports
from sending.models import CampaignHealth, RateLimit, TransportPause
from tests.factories import AccountFactory, CampaignFactory, WorkerFactory

from .admin_pages import member_client, url

pytestmark = pytest.mark.django_db

PAGE = reverse("admin:sendonce_sending_transportpause_overview")
SECRET = "hunter2"
TRIP = "21 of 300 addresses are dead (7 %; the account's limit is 5 %)"


@pytest.fixture(autouse=True)
def configured(settings: Any) -> None:
    smtp = "sending.smtp.EmailBackend"
    options = {"host": "relay.example.org", "port": 587, "username": "me", "password": SECRET}
    settings.SENDONCE = {
        **settings.SENDONCE,
        "TRANSPORTS": {
            "default": {"BACKEND": smtp, "OPTIONS": options, "RATE": 20, "CONNECTIONS": 10},
            "bulk": {
                "BACKEND": "anymail.backends.resend.EmailBackend",
                "OPTIONS": {"api_key": SECRET},
            },
            "broken": {"BACKEND": "no.such.Backend"},
        },
    }


def states(page: Any) -> dict[str, Any]:
    return {one["state"].fact.alias: one["state"] for one in page.context["transports"]}


def pause(**fields: Any) -> TransportPause:
    given = {"alias": "default", "stage": "connect", "reason": "refused", "failures": 3}
    found: TransportPause = TransportPause.objects.create(
        **{**given, "probe_at": timezone.now() + timedelta(minutes=1), **fields}
    )
    return found


def test_every_transport_with_its_kind_and_state_and_no_credentials(
    superuser_client: Client,
) -> None:
    WorkerFactory.create(sessions={"default": 3})
    WorkerFactory.create(sessions={"default": 4}, ended=timezone.now())
    shut = pause()
    running = CampaignFactory.create(sending=True, name="Spring")
    page = superuser_client.get(PAGE)
    found = states(page)
    assert list(found) == ["default", "broken", "bulk"]  # what is paused first
    assert found["default"].is_paused
    assert (found["default"].limit, found["default"].sessions) == ("20 a second", 3)
    assert found["default"].campaigns == [running]
    assert found["bulk"].fact.deduplicates
    assert found["broken"].fact.problem
    text = page.content.decode()
    assert SECRET not in text
    for words in (
        "relay.example.org:587",
        "It can&#x27;t be reached.",
        "Campaigns that wait",
        "Resend, over HTTP",
        "3 of 10 in use",
        "default: paused",
        "bulk: takes mail",
        reverse("admin:sendonce_sending_transportpause_delete", args=[shut.pk]),
    ):
        assert words in text, words


def test_an_alias_that_is_configured_no_more_says_so(superuser_client: Client) -> None:
    AccountFactory.create(transport="gone")
    found = states(superuser_client.get(PAGE))
    assert "no transport 'gone'" in found["gone"].fact.problem


def test_staff_see_their_accounts_transport_and_their_own_pauses() -> None:
    mine, theirs = AccountFactory.create(), AccountFactory.create(name="Theirs", transport="bulk")
    CampaignFactory.create(account=theirs, sending=True, name="Their campaign")
    shared = pause()
    own = pause(account=mine, stage="mail")
    pause(account=theirs, alias="default", stage="mail", reason="their reason")
    pause(alias="bulk")
    tripped = CampaignFactory.create(account=theirs, paused=True, status_reason=TRIP)
    CampaignHealth.objects.create(campaign=tripped, bounced=21, base={"trip": TRIP})
    client, user = member_client(mine)
    page = client.get(PAGE)
    assert list(states(page)) == ["default"]
    text = page.content.decode()
    for hidden in ("Theirs", "their reason", "Their campaign", TRIP[:20], "relay.example.org"):
        assert hidden not in text, hidden
    delete = "admin:sendonce_sending_transportpause_delete"
    assert reverse(delete, args=[own.pk]) in text
    assert reverse(delete, args=[shared.pk]) in text
    TransportPause.objects.filter(pk=shared.pk).update(stage="errors")
    assert reverse(delete, args=[shared.pk]) not in client.get(PAGE).content.decode()
    assert "Tell whoever runs the senders." in text  # none is alive
    user.user_permissions.remove(*Permission.objects.filter(codename__endswith="_transportpause"))
    assert client.get(PAGE).status_code == 403
    assert Client().get(PAGE).status_code == 302


def test_brakes_that_last_are_told_with_their_numbers(superuser_client: Client) -> None:
    at = timezone.now().isoformat()
    tripped = CampaignFactory.create(paused=True, status_reason=TRIP, name="Bad list")
    CampaignHealth.objects.create(
        campaign=tripped, accepted=279, bounced=21, base={"trip": TRIP, "tripped_at": at}
    )
    by_hand = CampaignFactory.create(paused=True, status_reason="paused by ann", name="By hand")
    CampaignHealth.objects.create(campaign=by_hand, base={"trip": TRIP})
    page = superuser_client.get(PAGE)
    assert [brake["campaign"] for brake in page.context["brakes"]] == [tripped]
    assert "21 (7.00" in page.content.decode()


def test_pauses_by_hand_do_not_take_the_place_of_a_brakes(
    superuser_client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transport_overview, "BRAKES", 2)
    tripped = CampaignFactory.create(paused=True, status_reason=TRIP)
    CampaignHealth.objects.create(campaign=tripped, base={"trip": TRIP})
    for base in ({}, {"trip": TRIP}, {"trip": "another"}):
        by_hand = CampaignFactory.create(paused=True, status_reason="paused by ann")
        CampaignHealth.objects.create(campaign=by_hand, base=base)
    page = superuser_client.get(PAGE)
    assert [brake["campaign"] for brake in page.context["brakes"]] == [tripped]


def test_slow_downs_are_listed_for_whom_they_concern(superuser_client: Client) -> None:
    now = timezone.now()
    mine = AccountFactory.create(name="Mine")
    for key in ("transport:default", "domain:google", f"account:{mine.pk}", "transport:bulk"):
        RateLimit.objects.create(key=key, usual=20, rate=5, slowed_at=now, reason="421 slow down")
    client, _ = member_client(mine)
    for who, seen in ((superuser_client, 4), (client, 2)):
        assert len(who.get(PAGE).context["slowed"]) == seen
    assert states(client.get(PAGE))["default"].limit == (
        "slowed down to 5 a second, usually 20 a second: 421 slow down"
    )


def test_a_try_at_once_leads_back_to_the_page(superuser_client: Client) -> None:
    shut = pause()
    answer = superuser_client.post(url(TransportPause, "delete", shut.pk), {"post": "yes"})
    assert answer["Location"] == PAGE
    assert "the next time at once" in superuser_client.get(PAGE).content.decode()
    assert PAGE in superuser_client.get(url(TransportPause, "changelist")).content.decode()


def test_what_is_not_named_is_counted_and_linked(
    superuser_client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, most in (("NAMED", 2), ("BRAKES", 1)):
        monkeypatch.setattr(transport_overview, name, most)
    monkeypatch.setattr(transports, "SLOWED", 1)
    mine = AccountFactory.create()
    for _ in range(3):
        CampaignFactory.create(sending=True, account=mine)
        tripped = CampaignFactory.create(paused=True, status_reason=TRIP)
        CampaignHealth.objects.create(campaign=tripped, base={"trip": TRIP})
        RateLimit.objects.create(
            key=f"account:{tripped.account_id}", rate=1, slowed_at=timezone.now()
        )
    CampaignFactory.create(sending=True, account__transport="bulk")
    page = superuser_client.get(PAGE)
    found = states(page)
    assert [(len(s.campaigns), s.more) for s in (found["default"], found["bulk"])] == [
        (2, 1),
        (1, 0),
    ]
    text = page.content.decode()
    for where, more in (
        (f"{url(Campaign, 'changelist')}?status__exact=sending", 1),
        (f"{url(Campaign, 'changelist')}?status__exact=paused", 2),
        (f"{url(RateLimit, 'changelist')}?slowed=yes", 2),
    ):
        assert f'<a href="{where}">{more} more</a>' in text


def test_a_sender_for_one_campaign_alone_is_said_to_be_one(superuser_client: Client) -> None:
    WorkerFactory.create(only_campaign=7)
    assert "was started for one campaign alone" in superuser_client.get(PAGE).content.decode()
    WorkerFactory.create()
    assert "campaign alone" not in superuser_client.get(PAGE).content.decode()


def test_no_page_asks_more_with_more_rows(superuser_client: Client) -> None:
    counts = []
    for number in (3, 27):
        for _ in range(number):
            campaign = CampaignFactory.create(sending=True)
            pause(account=campaign.account, stage="mail")
            health = CampaignFactory.create(paused=True, status_reason=TRIP)
            CampaignHealth.objects.create(campaign=health, base={"trip": TRIP})
            RateLimit.objects.create(
                key=f"account:{campaign.account_id}", rate=1, slowed_at=timezone.now()
            )
        superuser_client.get(PAGE)
        with CaptureQueriesContext(connection) as queries:
            superuser_client.get(PAGE)
        counts.append(len(queries))
    assert counts[0] == counts[1]
