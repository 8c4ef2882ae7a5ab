"""The verbs of a campaign in the admin: its buttons and the list's actions."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.messages import get_messages
from django.test import Client

from campaigns.admin import CampaignAdmin
from campaigns.admin.verbs import VERBS, offered
from campaigns.models import Campaign
from sending.models import Send
from subscribers.models import AuditEvent
from tests.factories import CampaignFactory, SendFactory, StaffFactory

from . import campaign_pages
from .campaign_pages import Status, client_with, said, status_of, url

pytestmark = pytest.mark.django_db

campaign = campaign_pages.campaign
boss = campaign_pages.boss


STATES = ("draft", "approved", "sending", "paused", "sent", "canceled")
LEADS_TO = {
    ("approved", "withdraw"): "draft",
    ("approved", "cancel"): "canceled",
    ("sending", "pause"): "paused",
    ("sending", "cancel"): "canceled",
    ("paused", "resume"): "sending",
    ("paused", "cancel"): "canceled",
}
ENDS = {"withdraw": "draft", "pause": "paused", "resume": "sending", "cancel": "canceled"}


@pytest.mark.parametrize("verb", ["withdraw", "pause", "resume", "cancel"])
@pytest.mark.parametrize("state", STATES)
def test_a_verb_works_where_the_state_allows_it_and_says_no_elsewhere(
    boss: Client, state: str, verb: str
) -> None:
    campaign = CampaignFactory.create(**({} if state == "draft" else {state: True}))
    answer = boss.post(url(verb, campaign.pk))
    assert answer.headers["Location"] == url("change", campaign.pk)
    assert status_of(campaign) == LEADS_TO.get((state, verb), state)
    if (state, verb) in LEADS_TO:
        assert LogEntry.objects.get().object_id == str(campaign.pk)
        event = AuditEvent.objects.get()
        assert (event.verb, event.detail["campaign"]) == (f"campaign.{verb}", campaign.pk)
        assert (event.by_name, event.from_address) == (
            LogEntry.objects.get().user.username,
            "127.0.0.1",
        )
    else:
        (message,) = get_messages(answer.wsgi_request)
        assert str(message).startswith(f"{campaign}: ")
        if state == ENDS[verb]:
            assert f"{state} already, nothing was changed" in str(message)
            assert message.level_tag == "info"
        else:
            assert message.level_tag == "error"
        assert not LogEntry.objects.exists()
        assert not AuditEvent.objects.exists()


@pytest.mark.parametrize("state", STATES)
def test_only_what_the_state_allows_is_offered(boss: Client, state: str) -> None:
    campaign = CampaignFactory.create(**({} if state == "draft" else {state: True}))
    page = boss.get(url("change", campaign.pk)).content.decode()
    for verb in VERBS:
        shown = f'"{url(verb.name, campaign.pk)}"' in page
        assert shown is (state in verb.states), verb.name


@pytest.mark.parametrize(
    ("permissions", "names"),
    [
        (set(), []),
        ({"approve"}, ["withdraw"]),
        ({"control"}, ["cancel"]),
        ({"approve", "control"}, ["withdraw", "cancel"]),
    ],
)
def test_offers_follow_permissions(permissions: set[str], names: list[str]) -> None:
    assert [verb.name for verb in offered("approved", permissions)] == names


@pytest.mark.parametrize("verb", ["withdraw", "pause", "resume"])
def test_verbs_are_posts(boss: Client, verb: str) -> None:
    campaign = CampaignFactory.create(sending=True)
    for method in (boss.get, boss.head, boss.put, boss.delete):
        assert method(url(verb, campaign.pk)).status_code == 405
    assert status_of(campaign) == Status.SENDING


@pytest.mark.parametrize("verb", ["approve", "cancel"])
def test_looking_changes_nothing(boss: Client, campaign: Campaign, verb: str) -> None:
    assert boss.get(url(verb, campaign.pk)).status_code == 200
    assert boss.put(url(verb, campaign.pk)).status_code == 405
    assert status_of(campaign) == Status.DRAFT


@pytest.mark.parametrize("verb", [verb.name for verb in VERBS])
def test_a_post_from_elsewhere_is_refused(campaign: Campaign, verb: str) -> None:
    client = Client(enforce_csrf_checks=True)
    client.force_login(StaffFactory.create(superuser=True))
    assert client.post(url(verb, campaign.pk)).status_code == 403


@pytest.mark.parametrize("verb", [verb.name for verb in VERBS])
def test_a_verb_on_what_is_not_there(boss: Client, verb: str) -> None:
    for guessed in ("0", "9" * 30, "x", "1/../2"):
        assert boss.post(url(verb, guessed)).status_code == 302


@pytest.mark.parametrize(
    ("permission", "verbs"),
    [
        ("change_campaign", set()),
        ("approve_campaign", {"approve", "withdraw"}),
        ("control_campaign", {"pause", "resume", "cancel"}),
    ],
)
def test_each_verb_asks_for_its_own_permission(
    campaign: Campaign, permission: str, verbs: set[str]
) -> None:
    client = client_with(campaign.account, "view_campaign", permission)
    refused = {
        verb.name for verb in VERBS if client.post(url(verb.name, campaign.pk)).status_code == 403
    }
    assert refused == {verb.name for verb in VERBS} - verbs


def test_whoever_may_not_see_it_may_not_approve_it(campaign: Campaign) -> None:
    client = client_with(campaign.account, "approve_campaign", "control_campaign")
    for verb in VERBS:
        assert client.post(url(verb.name, campaign.pk)).status_code == 403


def act(client: Client, name: str, *campaigns: Campaign, **more: str) -> Any:
    data = {"action": name, "_selected_action": [c.pk for c in campaigns], **more}
    return client.post(url("changelist"), data)


def test_actions_do_what_they_can_and_say_what_they_could_not(boss: Client) -> None:
    sending, draft = CampaignFactory.create(sending=True), CampaignFactory.create()
    answer = act(boss, "pause_selected", sending, draft)
    assert (status_of(sending), status_of(draft)) == (Status.PAUSED, Status.DRAFT)
    (message,) = get_messages(answer.wsgi_request)
    assert str(message) == (
        f"Paused: {sending}. Not paused: {draft} (cannot pause: the campaign is draft, it would "
        "have to be sending)."
    )
    assert message.level_tag == "warning"
    assert AuditEvent.objects.get().subject == sending.name
    act(boss, "resume_selected", sending)
    assert status_of(sending) == Status.SENDING


def test_many_at_once_are_one_message(boss: Client) -> None:
    running = CampaignFactory.create_batch(30, sending=True)
    (message,) = get_messages(act(boss, "pause_selected", *running).wsgi_request)
    assert str(message).startswith("Paused: 30 campaigns, ")
    assert str(message).endswith(" and 25 more.")
    assert AuditEvent.objects.count() == LogEntry.objects.count() == 30


def test_an_action_asks_again_for_each_campaign(
    boss: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A host may allow one campaign and not the other."""
    mine, other = CampaignFactory.create_batch(2, sending=True)
    monkeypatch.setattr(
        CampaignAdmin, "has_control_permission", lambda self, request, obj=None: obj in (None, mine)
    )
    answer = act(boss, "pause_selected", mine, other)
    assert (status_of(mine), status_of(other)) == (Status.PAUSED, Status.SENDING)
    assert f"Not paused: {other} (you may not)" in said(answer)
    assert boss.post(url("pause", other.pk)).status_code == 403


def test_canceling_from_the_list_asks_and_cancels_the_rows(boss: Client) -> None:
    send = SendFactory.create()
    asked = act(boss, "cancel_selected", send.campaign)
    assert send.campaign.name in asked.content.decode()
    assert status_of(send.campaign) == Status.SENDING
    act(boss, "cancel_selected", send.campaign, confirmed="yes")
    send.refresh_from_db()
    assert (status_of(send.campaign), send.status) == (Status.CANCELED, Send.Status.CANCELED)


def test_actions_ask_for_the_permission(campaign: Campaign) -> None:
    sending = CampaignFactory.create(account=campaign.account, sending=True)
    client = client_with(campaign.account, "view_campaign", "change_campaign")
    act(client, "pause_selected", sending)
    act(client, "cancel_selected", sending, confirmed="yes")
    assert status_of(sending) == Status.SENDING
