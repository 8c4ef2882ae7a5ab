"""``sender_status --address``: the story of one address."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

import pytest
from django.utils import timezone

from sending import story, story_text
from sending.management.commands import sender_status
from sending.models import DeliveryEvent, Send
from subscribers.addresses import erased_hashes
from tests.factories import (
    AccountFactory,
    CampaignFactory,
    SegmentFactory,
    SendFactory,
    SubscriberFactory,
    SuppressionFactory,
)

from .commands import run

pytestmark = pytest.mark.django_db


def test_a_long_story_is_whole_as_json_and_says_as_text_what_it_leaves_out() -> None:
    person = SubscriberFactory.create(email="ann@example.org")
    for number in range(3):
        campaign = CampaignFactory.create(account=person.account, sent=True, name=f"No {number}")
        SendFactory.create(campaign=campaign, subscriber=person, sent=True)
    told = story.story("ann@example.org", most=2)
    assert ([chapter.name for chapter in told.chapters], told.older) == (["No 1", "No 2"], 1)
    lines = story_text.story_lines(told, timezone.now())
    assert "  and 1 older, not told here; --json has all of them" in lines
    for most in (3, 4, None):
        assert story.story("ann@example.org", most=most).older == 0
    assert not [line for line in run("sender_status", "--address", "ann@example.org").splitlines()
                if "older" in line]  # fmt: skip


def test_as_json_nobody_cuts_the_story(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int | None] = []

    def asking(address: str, *, most: int | None) -> story.Story:
        asked.append(most)
        return story.story(address, most=most)

    monkeypatch.setattr(sender_status, "story", asking)
    run("sender_status", "--address", "ann@example.org")
    run("sender_status", "--address", "ann@example.org", "--json")
    assert asked == [story.MOST, None]


def test_the_story_of_an_unknown_address() -> None:
    out = run("sender_status", "--address", "Who@EXAMPLE.org")
    assert out == "Nothing is known of Who@example.org: never imported, never sent to.\n"


@pytest.mark.parametrize(
    ("status", "suppressed", "words"),
    [
        ("pending", False, ["in shop: pending: gets no campaign until confirmed"]),
        ("unsubscribed", False, ["in shop: unsubscribed: gets no campaign until confirmed anew"]),
        ("confirmed", False, []),
        ("confirmed", True, ["in shop: suppressed (complaint): gets no campaign"]),
    ],
)
def test_the_story_says_why_nothing_was_made(
    status: str, suppressed: bool, words: list[str]
) -> None:
    account = AccountFactory.create(slug="shop")
    SubscriberFactory.create(account=account, email="ann@example.org", status=status)
    over = None if suppressed else timezone.now() - timedelta(days=1)
    SuppressionFactory.create(
        account=account, email="ann@example.org", reason="complaint", expires=over
    )
    text = run("sender_status", "--address", "ann@example.org")
    lines = [line.strip() for line in text.splitlines()]
    told = lines.index("No message was ever made for it.")
    assert lines[told + 1 :] == words


def test_the_story_says_who_takes_a_pause_and_no_longer_once_it_is_over() -> None:
    account = AccountFactory.create(slug="shop")
    person = SubscriberFactory.create(
        account=account,
        email="ann@example.org",
        paused_until=datetime(2999, 12, 31, 8, tzinfo=UTC),
    )
    words = "paused by their own wish: gets no campaign until 2999-12-31 08:00 UTC"
    lines = run("sender_status", "--address", "ann@example.org").splitlines()
    assert lines[2] == f"    {words}"
    assert lines[-1] == f"    in shop: {words}"
    person.paused_until = timezone.now() - timedelta(seconds=1)
    person.save()
    assert "pause" not in run("sender_status", "--address", "ann@example.org")


def test_the_story_says_why_somebody_did_not_get_it() -> None:
    account = AccountFactory.create(slug="shop")
    person = SubscriberFactory.create(
        account=account, email="Ann@example.org", segments=[SegmentFactory.create(account=account)]
    )
    SuppressionFactory.create(
        account=account, email="ann@example.org", reason="hard_bounce", evidence="550 no such user"
    )
    first = CampaignFactory.create(account=account, sent=True, name="First")
    second = CampaignFactory.create(account=account, sent=True, name="Second")
    bounced = SendFactory.create(
        campaign=first, subscriber=person, bounced=True, reason="address_dead",
        answer_text="5.1.1 no such user",
    )  # fmt: skip
    SendFactory.create(campaign=second, subscriber=person, suppressed=True)
    DeliveryEvent.objects.create(
        send=bounced, account=account, kind="bounced", stage="rcpt", code=550,
        text="5.1.1 no such user", reason="address_dead", attempt=1,
    )  # fmt: skip
    SendFactory.create()
    text = run("sender_status", "--address", "ANN@example.org")
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    assert lines[1].startswith("in shop: confirmed since ")
    assert lines[2].startswith("suppressed in shop since ")
    assert lines[2].endswith("(hard bounce): 550 no such user")
    assert lines[3] == (
        f"campaign {first.pk} (First, sent): BOUNCED. "
        "The address is dead (address dead): 550 5.1.1 no such user"
    )
    assert lines[4].endswith("bounced (address dead) attempt 1 at rcpt: 550 5.1.1 no such user")
    assert lines[5] == (
        f"campaign {second.pk} (Second, sent): SUPPRESSED. "
        "Not handed over: the address is suppressed."
    )
    assert len(lines) == 6


@pytest.mark.parametrize(
    ("trait", "words"),
    [
        ("queued", "It waits, because the campaign is paused."),
        ("claimed", "A sender has taken it"),
        ("handed_over", "the answer is awaited"),
        ("retry", "Refused for now, once, tried again in "),
        ("sent", "The relay accepted it at "),
        ("failed", "Refused (no reason kept), once"),
        ("in_doubt", "Handed over and no answer came (unknown); it may have arrived"),
        ("canceled", "The campaign was canceled before it was handed over."),
    ],
)
def test_the_story_explains_every_status(trait: str, words: str) -> None:
    campaign = CampaignFactory.create(paused=True)
    send = SendFactory.create(campaign=campaign, **({} if trait == "queued" else {trait: True}))
    assert words in run("sender_status", "--address", str(send.email))


def test_the_story_of_an_erased_person_is_found_by_the_hash() -> None:
    send = SendFactory.create(sent=True)
    email = str(send.email)
    digest = erased_hashes(email)[0]
    SuppressionFactory.create(account=send.account, erased_email=email)
    Send.objects.filter(pk=send.pk).update(email=None, email_hash=digest, subscriber=None)
    assert send.subscriber is not None
    send.subscriber.delete()
    text = run("sender_status", "--address", email)
    assert "erased person: a keyed hash is all that is kept" in text
    assert "nobody's subscriber" not in text
    assert "(erased)" in text
    assert "SENT" in text


def test_the_story_as_data() -> None:
    send = SendFactory.create(in_doubt=True, reason="timeout")
    data = json.loads(run("sender_status", "--address", str(send.email), "--json"))
    assert [(c["status"], c["reason"]) for c in data["chapters"]] == [("in_doubt", "timeout")]
