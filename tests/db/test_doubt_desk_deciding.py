"""Deciding at the doubt desk: asked first, in batches, on record, and told what came of it."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import Permission
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from campaigns.models import Campaign
from sending import doubt_decisions
from sending.admin.pages import moment_of
from sending.models import DeliveryEvent, Send
from subscribers.models import AuditEvent
from tests.factories import CampaignFactory, SendFactory

from .admin_pages import member_client
from .doubtful import DESK, confirmed, doubtful, of, post, said

pytestmark = pytest.mark.django_db


def test_ticked_rows_are_asked_about_then_decided_and_on_record() -> None:
    chosen, left = doubtful(2, CampaignFactory.create(sent=True))
    campaign = chosen.campaign
    assert campaign is not None
    client, user = member_client(campaign.account)
    asked = post(client, of(campaign), send=[chosen.pk])
    text = asked.content.decode()
    assert "1 message</h2>" in text
    assert chosen.email in text
    assert "gets it twice" in text
    assert "is sending again until" in text
    chosen.refresh_from_db()
    assert chosen.status == Send.Status.IN_DOUBT

    done = confirmed(client, of(campaign), send=[chosen.pk])
    assert said(done) == ["1 of 1 message to be sent again."]
    assert done["Location"] == of(campaign)
    chosen.refresh_from_db()
    left.refresh_from_db()
    assert (chosen.status, left.status) == (Send.Status.QUEUED, Send.Status.IN_DOUBT)
    campaign.refresh_from_db()
    assert campaign.status == Campaign.Status.SENDING
    event = AuditEvent.objects.get(verb="send.send_again")
    assert (event.by, event.account, event.from_address) == (user, campaign.account, "127.0.0.1")
    assert event.detail == {"chosen": 1, "decided": 1, "campaigns": [campaign.pk]}
    assert DeliveryEvent.objects.get(kind="send_again").by_name == user.get_username()


def test_all_of_a_reason_in_batches(
    superuser_client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(doubt_decisions, "BATCH", 2)
    campaign = CampaignFactory.create(sent=True)
    doubtful(5, campaign)
    (other,) = doubtful(1, campaign, reason="worker_lost")
    where = of(campaign, reason="connection_lost")
    data = {"which": "all", "decision": "treat_as_sent"}
    asked = post(superuser_client, where, **data)
    assert asked.context["number"] == 5
    done = confirmed(superuser_client, where, **data)
    assert said(done) == ["5 of 5 messages treated as sent."]
    assert done["Location"] == DESK
    assert set(Send.objects.exclude(pk=other.pk).values_list("status", "reason")) == {
        ("sent", "treated_as_sent")
    }
    other.refresh_from_db()
    assert other.status == Send.Status.IN_DOUBT
    decided = [event.detail["decided"] for event in AuditEvent.objects.order_by("pk")]
    assert decided == [2, 2, 1]


def test_when_the_time_of_a_request_is_over_the_page_goes_on(
    superuser_client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(doubt_decisions, "BATCH", 2)
    monkeypatch.setattr(doubt_decisions.decide_all, "__kwdefaults__", {"after": 0, "budget": 0.0})
    campaign = CampaignFactory.create(sent=True)
    doubtful(5, campaign)
    data: dict[str, Any] = {"which": "all"}
    page = confirmed(superuser_client, of(campaign), **data)
    for left in (3, 1):
        assert page.status_code == 200
        assert page.context["number"] == left
        assert "What is decided stays decided" in page.content.decode()
        # What came back in doubt since is not what was asked about.
        Send.objects.filter(status="queued").update(
            status="in_doubt", claim_token="0" * 32, handed_at=timezone.now()
        )
        data |= {"asked": page.context["asked"], "after": page.context["after"]}
        page = post(superuser_client, of(campaign), confirmed="yes", **data)
    page = page if page.status_code == 302 else post(
        superuser_client, of(campaign), confirmed="yes",
        **data | {"after": page.context["after"]},
    )  # fmt: skip
    assert page.status_code == 302
    assert DeliveryEvent.objects.filter(kind="send_again").count() == 5


def test_single_messages_are_decided_by_account(superuser_client: Client) -> None:
    sends = [SendFactory.create(transactional=True, in_doubt=True) for _ in range(2)]
    done = confirmed(
        superuser_client, f"{DESK}?campaign=none", which="all", decision="treat_as_sent"
    )
    assert said(done) == ["2 of 2 messages treated as sent."]
    events = AuditEvent.objects.filter(verb="send.treat_as_sent")
    assert {event.account for event in events} == {send.account for send in sends}
    assert {event.subject for event in events} == {"single messages"}


@pytest.mark.parametrize(
    ("data", "words"),
    [
        ({}, "tick the messages to decide about"),
        ({"send": ["x", "-1"]}, "tick the messages to decide about"),
        ({"decision": "delete", "which": "all"}, "choose what to do"),
    ],
)
def test_what_was_not_said_is_asked_for(
    superuser_client: Client, data: dict[str, Any], words: str
) -> None:
    (send,) = doubtful(1)
    assert send.campaign is not None
    answer = post(superuser_client, of(send.campaign), **data)
    assert answer["Location"] == of(send.campaign)
    assert words in said(answer)[0]


@pytest.mark.parametrize("asked", ["", "yesterday", "2026-01-01T00:00:00"])
def test_without_the_moment_of_asking_it_is_asked_again(
    superuser_client: Client, asked: str
) -> None:
    (send,) = doubtful(1)
    assert send.campaign is not None
    page = post(superuser_client, of(send.campaign), which="all", confirmed="yes", asked=asked)
    assert page.status_code == 200
    send.refresh_from_db()
    assert send.status == Send.Status.IN_DOUBT


def test_a_canceled_campaign_is_closed_but_not_sent_again(superuser_client: Client) -> None:
    campaign = CampaignFactory.create(canceled=True, started_at=timezone.now())
    (send,) = doubtful(1, campaign)
    assert 'value="send_again"' not in superuser_client.get(of(campaign)).content.decode()
    refused = post(superuser_client, of(campaign), which="all")
    assert "the campaign is canceled" in said(refused)[0]
    done = confirmed(superuser_client, of(campaign), send=[send.pk], decision="treat_as_sent")
    assert said(done) == ["1 of 1 message treated as sent."]


def test_canceled_between_the_page_and_the_decision_is_told(superuser_client: Client) -> None:
    (send,) = doubtful(1, CampaignFactory.create(sending=True))
    campaign = send.campaign
    assert campaign is not None
    asked = post(superuser_client, of(campaign), send=[send.pk]).context["asked"]
    Campaign.objects.update(status="canceled")
    answer = post(superuser_client, of(campaign), send=[send.pk], asked=asked, confirmed="yes")
    assert "the campaign is canceled, nothing of it is sent again" in said(answer)[0]
    assert not AuditEvent.objects.exists()


def test_what_settled_itself_meanwhile_is_told(superuser_client: Client) -> None:
    campaign = CampaignFactory.create(sent=True)
    arrived, dead, again, still = doubtful(4, campaign)
    ids = [send.pk for send in (arrived, dead, again, still)]
    asked = post(superuser_client, of(campaign), send=ids).context["asked"]
    Send.objects.filter(pk=arrived.pk).update(status="sent", sent_at=timezone.now())
    Send.objects.filter(pk=dead.pk).update(status="bounced")
    Send.objects.filter(pk=again.pk).update(handed_at=timezone.now() + timedelta(seconds=1))
    answer = post(superuser_client, of(campaign), send=ids, asked=asked, confirmed="yes")
    assert said(answer)[0] == "1 of 4 messages to be sent again."
    assert set(said(answer)[1:]) == {
        "1 left as before: it became known meanwhile that it arrived.",
        "1 left as before: it became known meanwhile that the address is dead.",
        "1 left as before: sent again meanwhile and in doubt anew, look at it first.",
    }


def test_nothing_left_to_decide_is_said(superuser_client: Client) -> None:
    (send,) = doubtful(1)
    assert send.campaign is not None
    Send.objects.update(status="sent", sent_at=timezone.now())
    page = post(superuser_client, of(send.campaign), send=[send.pk])
    assert "Nothing left to decide" in page.content.decode()
    assert "No message is in doubt here" in superuser_client.get(of(send.campaign)).content.decode()


def test_the_campaigns_page_leads_to_the_desk() -> None:
    (send,) = doubtful(1)
    campaign = send.campaign
    assert campaign is not None
    client, user = member_client(campaign.account)
    page = reverse("admin:sendonce_campaigns_campaign_change", args=[campaign.pk])
    assert "Doubt desk (1)" in client.get(page).content.decode()
    for codename in ("view_send", "change_send"):
        user.user_permissions.remove(Permission.objects.get(codename=codename))
    assert "Doubt desk (" not in client.get(page).content.decode()
    Send.objects.update(status="sent", sent_at=timezone.now())
    client, _ = member_client(campaign.account)
    assert "Doubt desk (" not in client.get(page).content.decode()


def test_a_moment_that_is_none_is_none() -> None:
    assert moment_of("2026-01-01T00:00:00+00:00") is not None
