"""Tests of a campaign: what is queued, to whom it is refused, and that it is counted nowhere."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from campaigns import hooks, lifecycle
from campaigns.models import Campaign, Content
from sending import build, ledger
from sending.models import Send
from subscribers.models import AuditEvent, Subscriber
from subscribers.rights.acts import erase_person
from tests.factories import (
    AccountFactory,
    CampaignFactory,
    SubscriberFactory,
    SuppressionFactory,
    WorkerFactory,
)

from .campaign_pages import boss, campaign, client_with, said, url
from .test_preview_pages import searching

__all__ = ["boss", "campaign"]
pytestmark = pytest.mark.django_db

Status = Send.Status
KEY = "0123456789abcdef" * 2


def post(client: Client, campaign: Campaign, to: str = "tester@example.org", **more: Any) -> Any:
    """Sends the form as a browser does; ``key=None``: with the key of a form made for it."""
    values = {"key": KEY, "addresses": to, **more}
    return client.post(url("test", campaign.pk), values)


def data(**given: Any) -> dict[str, Any]:
    """What the one test that fits goes out with."""
    found = Send.objects.get(**given).context
    assert found is not None
    return dict(found)


def errors(answer: Any) -> str:
    form = answer.context["form"]
    return " ".join(reason for reasons in form.errors.values() for reason in reasons)


def test_the_form_is_for_ones_own_address(boss: Client, campaign: Campaign) -> None:
    answer = boss.get(url("test", campaign.pk))
    form = answer.context["form"]
    assert form["addresses"].value().endswith("@example.org")
    assert re.fullmatch(r"[0-9a-f]{32}", form["key"].value())
    assert form["key"].value() != boss.get(url("test", campaign.pk)).context["form"]["key"].value()
    assert "no-store" in answer.headers["Cache-Control"]


def test_a_test_is_a_message_without_campaign(boss: Client, campaign: Campaign) -> None:
    answer = post(boss, campaign, "a@example.org, b@example.org")
    assert answer.url == url("test_result", campaign.pk, KEY)
    one, two = Send.objects.order_by("pk")
    assert (one.email, two.email) == ("a@example.org", "b@example.org")
    assert one.job_id == f"message:{campaign.account_id}:test:{campaign.pk}.{KEY}.0"
    assert (one.campaign_id, one.subscriber_id, one.status) == (None, None, Status.QUEUED)
    assert one.content_id == two.content_id
    assert one.expires is not None
    assert timedelta(minutes=59) < one.expires - timezone.now() < timedelta(minutes=61)
    content = Content.objects.get()
    assert content.subject == '[Test] Spring, {{ first_name|default:"dear reader" }}'
    shown = data(pk=one.pk)
    assert shown.pop("unsubscribe_url").endswith("/u/test")
    assert shown == {"first_name": "Ann"}


def test_its_content_is_the_campaigns_as_it_would_be_approved(
    boss: Client, campaign: Campaign
) -> None:
    campaign.from_name, campaign.reply_to = "Somebody", "answers@example.org"
    campaign.save()
    post(boss, campaign)
    tested = Content.objects.get()
    lifecycle.approve(campaign, by=None)
    campaign.refresh_from_db()
    real = campaign.content
    assert real is not None
    for name in ("preheader", "html", "text", "from_email", "from_name", "reply_to"):
        assert getattr(tested, name) == getattr(real, name), name
    assert tested.subject == f"[Test] {real.subject}"
    assert tested.account_fields == real.account_fields


def test_it_is_counted_nowhere(boss: Client) -> None:
    running = CampaignFactory.create()
    SubscriberFactory.create(account=running.account, segments=[running.segments.get()])
    lifecycle.approve(running, by=None)
    assert lifecycle.due(running)
    build.build(running.pk, size=10)
    before = ledger.counts(running)
    post(boss, running, "tester@example.org")
    assert Send.objects.filter(campaign=None).count() == 1
    assert ledger.counts(running) == before
    assert lifecycle.finish(running) is False


def test_a_double_click_sends_once(boss: Client, campaign: Campaign) -> None:
    first = post(boss, campaign, "a@example.org b@example.org")
    again = post(boss, campaign, "a@example.org b@example.org")
    assert again.url == first.url
    assert "sent before" in said(again)
    assert Send.objects.count() == 2
    assert AuditEvent.objects.count() == 2
    assert LogEntry.objects.count() == 1


def test_one_form_stands_for_one_test(boss: Client, campaign: Campaign) -> None:
    post(boss, campaign, "a@example.org")
    again = post(boss, campaign, "b@example.org")
    assert "sent before" in said(again)
    assert Send.objects.get().email == "a@example.org"
    post(boss, campaign, "b@example.org", key="f" * 32)
    assert Send.objects.count() == 2


@pytest.mark.parametrize("key", ["", "x", "../" * 5, "0" * 31, "0" * 33])
def test_a_key_that_no_form_had_sends_nothing(boss: Client, campaign: Campaign, key: str) -> None:
    answer = post(boss, campaign, key=key)
    assert answer.url == url("test", campaign.pk)
    assert not Send.objects.exists()


def test_each_address_is_recorded(boss: Client, campaign: Campaign) -> None:
    post(boss, campaign, "a@example.org b@example.org")
    acts = list(AuditEvent.objects.order_by("pk"))
    assert [(act.verb, act.subject) for act in acts] == [
        ("campaign.test", "a@example.org"),
        ("campaign.test", "b@example.org"),
    ]
    assert acts[0].account_id == campaign.account_id
    assert acts[0].by_name
    assert acts[0].detail["campaign"] == campaign.pk
    assert "Sent a test to 2 addresses." in LogEntry.objects.get().get_change_message()


# --- what is refused -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("reason", "told"),
    [
        ("hard_bounce", "is dead: mail to it came back"),
        ("complaint", "called our mail spam"),
        ("unsubscribed", "has unsubscribed"),
        ("manual", "staff have put it on the list"),
    ],
)
@pytest.mark.parametrize("everywhere", [False, True])
def test_suppressed_addresses_are_refused_with_the_reason(
    boss: Client, campaign: Campaign, reason: str, told: str, everywhere: bool
) -> None:
    SuppressionFactory.create(
        account=None if everywhere else campaign.account, email="dead@example.org", reason=reason
    )
    answer = post(boss, campaign, "ok@example.org DEAD@example.org")
    assert answer.status_code == 200
    assert "DEAD@example.org is" in errors(answer)
    assert told.partition(": ")[2] in errors(answer)
    assert not Send.objects.exists()
    assert not AuditEvent.objects.exists()


def test_what_another_account_suppressed_stands_in_no_ones_way(
    boss: Client, campaign: Campaign
) -> None:
    SuppressionFactory.create(account=AccountFactory.create(), email="a@example.org")
    SuppressionFactory.create(
        account=campaign.account,
        email="a@example.org",
        reason="hard_bounce",
        expires=timezone.now() - timedelta(days=1),
    )
    assert post(boss, campaign, "a@example.org").status_code == 302


@pytest.mark.parametrize(
    ("to", "told"),
    [
        ("", "Say to which addresses"),
        ("nonsense", "nonsense: "),
        (" ".join(f"a{n}@example.org" for n in range(11)), "10 addresses at most"),
        ("x" * 6000, "at most 5000 characters"),
    ],
)
def test_bad_addresses_are_told(boss: Client, campaign: Campaign, to: str, told: str) -> None:
    answer = post(boss, campaign, to)
    assert told in errors(answer)
    assert not Send.objects.exists()


def test_a_body_that_can_t_be_compiled_is_told(boss: Client, campaign: Campaign) -> None:
    Campaign.objects.update(body="{% for x in y %}")
    answer = post(boss, campaign)
    assert "Body, line 1, column 1" in errors(answer)
    assert not Send.objects.exists()


def test_without_a_sender_installed_nothing_is_sent(
    boss: Client, campaign: Campaign, monkeypatch: pytest.MonkeyPatch
) -> None:
    for hook in (hooks.send_tests, hooks.test_states):
        monkeypatch.setattr(hook, "_filled", None)
    assert "Nothing is installed here that sends." in errors(post(boss, campaign))


# --- as whom ---------------------------------------------------------------------------------


def test_it_is_shown_as_whoever_was_asked_for(boss: Client, campaign: Campaign) -> None:
    SubscriberFactory.create(
        account=campaign.account, email="zoe@example.org", attributes={"first_name": "Zoe"}
    )
    post(boss, campaign, words="zoe")
    assert data()["first_name"] == "Zoe"


def test_as_nobody_all_fields_are_empty(boss: Client, campaign: Campaign) -> None:
    post(boss, campaign, nobody="on", words="ignored")
    assert "first_name" not in data()


def test_who_is_not_found_is_told(boss: Client, campaign: Campaign) -> None:
    SubscriberFactory.create(email="stranger@example.org")
    answer = post(boss, campaign, words="stranger")
    assert "No address begins with stranger." in errors(answer)
    assert not Send.objects.exists()


def test_without_the_right_to_see_people_it_is_nobodys(campaign: Campaign) -> None:
    SubscriberFactory.create(
        account=campaign.account, email="zoe@example.org", attributes={"first_name": "Zoe"}
    )
    client = client_with(campaign.account, "view_campaign", "test_campaign")
    post(client, campaign, words="zoe")
    assert "first_name" not in data()


def test_an_erasure_empties_the_tests_that_were_made_of_somebody(
    boss: Client, campaign: Campaign
) -> None:
    person = Subscriber.objects.get()
    other = SubscriberFactory.create(account=campaign.account, email="zoe@example.org")
    post(boss, campaign)
    post(boss, campaign, key="f" * 32, words=other.email)
    erase_person(campaign.account, person.email, reason="asked for", by_name="staff")
    first, second = Send.objects.order_by("pk")
    assert data(pk=first.pk) == {}
    assert data(pk=second.pk)["first_name"] == other.attributes["first_name"]
    # It is the tester's address, of whom nothing is forgotten.
    assert first.email == "tester@example.org"


# --- what came of it -------------------------------------------------------------------------


def trials(client: Client, campaign: Campaign) -> list[tuple[str, str]]:
    answer = client.get(url("test_result", campaign.pk, KEY))
    return [(trial.status, trial.told) for trial in answer.context["trials"]]


def test_without_a_running_sender_the_page_says_so(boss: Client, campaign: Campaign) -> None:
    post(boss, campaign)
    assert trials(boss, campaign) == [
        ("queued", "It waits, because no sender is alive; run_sender starts one.")
    ]


def test_the_page_tells_the_answers(boss: Client, campaign: Campaign) -> None:
    WorkerFactory.create()
    post(boss, campaign, " ".join(f"{n}@example.org" for n in "abcde"))
    page = boss.get(url("test_result", campaign.pk, KEY))
    assert page.context["waiting"] == 5
    now = timezone.now()
    answers: list[tuple[str, dict[str, Any]]] = [
        ("sent", {"sent_at": now, "answer_code": 250, "answer_text": "2.0.0 Ok"}),
        ("bounced", {"answer_code": 550, "answer_text": "no such user", "reason": "bad"}),
        ("failed", {"reason": "expired"}),
        ("suppressed", {"reason": "suppressed"}),
    ]
    for number, (status, more) in enumerate(answers):
        Send.objects.filter(job_id__endswith=f"{KEY}.{number}").update(status=status, **more)
    page = boss.get(url("test_result", campaign.pk, KEY))
    told = [trial.told for trial in page.context["trials"]]
    assert told[0] == "The relay accepted it: 250 2.0.0 Ok."
    assert "550 no such user" in told[1]
    assert told[2] == "No sender took it within an hour; it is not sent any more."
    assert told[3] == "Not handed over: the address is suppressed."
    assert page.context["waiting"] == 1
    assert "data-poll" in page.content.decode()
    Send.objects.filter(status="queued").update(status="sent", sent_at=now)
    state = boss.get(url("test_state", campaign.pk, KEY)).content.decode()
    assert "data-poll" not in state
    assert "<html" not in state


def test_ten_addresses_ask_no_more_than_one(boss: Client, campaign: Campaign) -> None:
    def queries(key: str) -> int:
        with CaptureQueriesContext(connection) as seen:
            boss.get(url("test_result", campaign.pk, key))
        return len(seen)

    post(boss, campaign)
    post(boss, campaign, " ".join(f"a{n}@example.org" for n in range(10)), key="f" * 32)
    boss.get(url("test_result", campaign.pk, KEY))
    assert queries("f" * 32) == queries(KEY)


# --- who may ---------------------------------------------------------------------------------


def test_a_test_needs_its_own_permission(campaign: Campaign) -> None:
    editor = client_with(campaign.account, "view_campaign", "change_campaign")
    assert editor.get(url("test", campaign.pk)).status_code == 403
    assert post(editor, campaign).status_code == 403
    tester = searching(campaign.account, "view_campaign", "test_campaign")
    assert tester.get(url("test", campaign.pk)).status_code == 200
    assert post(tester, campaign).status_code == 302
    only = client_with(campaign.account, "test_campaign")
    assert only.get(url("test", campaign.pk)).status_code == 403


def test_a_member_of_another_account_finds_nothing(boss: Client, campaign: Campaign) -> None:
    post(boss, campaign)
    stranger = client_with(AccountFactory.create(), "view_campaign", "test_campaign")
    for answer in (
        stranger.get(url("test", campaign.pk)),
        post(stranger, campaign, key="f" * 32),
        stranger.get(url("test_result", campaign.pk, KEY)),
        stranger.get(url("test_state", campaign.pk, KEY)),
    ):
        assert answer.status_code in (302, 404)
        assert "tester" not in answer.content.decode()
    assert Send.objects.count() == 1


def test_a_test_of_another_campaign_is_not_found(boss: Client, campaign: Campaign) -> None:
    post(boss, campaign)
    other = CampaignFactory.create(account=campaign.account)
    for key in (KEY, "f" * 32, "x"):
        assert boss.get(url("test_result", other.pk, key)).status_code == 404
    assert boss.get(url("test_result", campaign.pk, "f" * 32)).status_code == 404


@pytest.mark.parametrize("status", ["approved", "sending", "sent", "canceled"])
def test_whatever_its_status_the_frozen_content_is_tested(boss: Client, status: str) -> None:
    frozen = CampaignFactory.create(**{status: True}, content__text="As it was approved")
    assert post(boss, frozen).status_code == 302
    tested = Content.objects.exclude(pk=frozen.content_id).get()
    assert tested.text == "As it was approved"
