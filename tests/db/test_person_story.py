"""One person's story as a page: everything that is known, whose it is to see, bounded."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import urlencode

import pytest
from django.contrib.auth.models import Permission
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone

from campaigns.models import Campaign
from sending import person_story
from sending.models import ArchivedCount, DeliveryEvent, Send
from subscribers.addresses import erased_hashes
from subscribers.models import Account, Membership, MembershipChange, Subscriber
from tests.factories import (
    AccountFactory,
    AuditEventFactory,
    CampaignFactory,
    MembershipChangeFactory,
    SegmentFactory,
    SendFactory,
    SignupFactory,
    SubscriberFactory,
    SuppressionFactory,
)

from .admin_pages import member_client

pytestmark = pytest.mark.django_db

STORY = reverse("admin:sendonce_sending_send_story")
ANN = "ann@example.org"


def ask(client: Client, q: str = ANN, **more: Any) -> Any:
    return client.get(f"{STORY}?{urlencode({'q': q, **more})}")


def titles(page: Any) -> list[str]:
    return [one["entry"].title for one in page.context["entries"]]


def ago(**some: int) -> datetime:
    return timezone.now() - timedelta(**some)


@pytest.fixture
def shop() -> Account:
    account: Account = AccountFactory.create(slug="shop", timezone="Asia/Tokyo")
    return account


@pytest.fixture
def ann(shop: Account) -> Subscriber:
    person: Subscriber = SubscriberFactory.create(
        account=shop, email="Ann@example.org", consent_source="the fair"
    )
    Subscriber.objects.update(created=ago(days=90), confirmed_at=ago(days=89))
    return person


def test_all_that_is_known_stands_in_the_order_of_time(
    superuser_client: Client, shop: Account, ann: Subscriber
) -> None:
    segment = SegmentFactory.create(account=shop, name="Friends")
    Membership.objects.create(segment=segment, subscriber=ann)
    Membership.objects.update(joined_at=ago(days=80), left_at=ago(days=20))
    MembershipChangeFactory.create(
        segment=segment, subscriber=ann, kind=MembershipChange.Kind.LEFT, at=ago(days=20)
    )
    spring = CampaignFactory.create(account=shop, name="Spring", sent=True)
    SendFactory.create(
        campaign=spring, subscriber=ann, sent=True, handed_at=ago(days=60), sent_at=ago(days=60)
    )
    summer = CampaignFactory.create(account=shop, name="Summer", sent=True)
    dead = SendFactory.create(
        campaign=summer, subscriber=ann, bounced=True, handed_at=ago(days=30),
        reason="address_dead", answer_text="no such user",
    )  # fmt: skip
    DeliveryEvent.objects.create(
        send=dead, account=shop, kind="bounced", stage="rcpt", code=550, text="no such user",
        attempt=1, at=ago(days=30),
    )  # fmt: skip
    entry = SuppressionFactory.create(account=shop, email=ANN, reason="hard_bounce")
    type(entry).objects.update(created=ago(days=29))
    SendFactory.create(
        transactional=True, account=shop, email=ANN, sent=True,
        job_id=f"message:{shop.pk}:receipt:1", sent_at=ago(days=10), handed_at=ago(days=10),
    )  # fmt: skip
    AuditEventFactory.create(
        account=shop, verb="suppression.release", subject="Ann@Example.org", at=ago(days=5)
    )
    page = ask(superuser_client)
    assert titles(page) == [
        "Staff released the address from suppression",
        "Single message (receipt)",
        "Left Friends",
        "Suppressed",
        "Campaign Summer",
        "Campaign Spring",
        "Joined Friends",
        "Confirmed",
        "Added as a subscriber",
    ]
    text = page.content.decode()
    assert "Asia/Tokyo" in text
    assert "The address is dead (address dead): 550 5.1.1 no such user." in text
    assert "Consent: the fair." in text
    assert reverse("admin:sendonce_sending_send_change", args=[dead.pk]) in text


def test_signups_and_a_change_of_address(
    superuser_client: Client, shop: Account, ann: Subscriber
) -> None:
    SignupFactory.create(account=shop, email=ANN, requested_at=ago(days=95))
    SignupFactory.create(
        account=shop, email=ANN, kind="address", former_email="old@example.org",
        subscriber=ann, requested_at=ago(days=3), confirmed_at=ago(days=2),
    )  # fmt: skip
    spring = CampaignFactory.create(account=shop, sent=True)
    SendFactory.create(
        campaign=spring, subscriber=ann, email="old@example.org", sent=True, sent_at=ago(days=9)
    )
    page = ask(superuser_client)
    assert titles(page)[:3] == [
        "Changed their address", "Asked to change their address", f"Campaign {spring.name}",
    ]  # fmt: skip
    text = page.content.decode()
    assert "From old@example.org to ann@example.org." in text
    assert "To their address of then, old@example.org." in text


def test_an_erased_person_is_known_by_the_hash(superuser_client: Client, shop: Account) -> None:
    SuppressionFactory.create(account=shop, erased_email=ANN, reason="erased")
    SendFactory.create(
        campaign=CampaignFactory.create(account=shop, sent=True, name="Spring"),
        subscriber=None, email=None, email_hash=erased_hashes(ANN)[0], sent=True,
        job_id="campaign:x:1",
    )  # fmt: skip
    page = ask(superuser_client)
    assert set(titles(page)) == {"Erased", "Campaign Spring"}
    assert "Nobody&#x27;s subscriber in this account (any more)." in page.content.decode()


def test_beginnings_are_listed_and_lead_to_the_story(
    superuser_client: Client, ann: Subscriber
) -> None:
    SubscriberFactory.create(email="anna@example.org")
    SuppressionFactory.create(email="annika@example.org")
    page = ask(superuser_client, "ANN")
    told = [(match.email, match.what) for match, _ in page.context["matches"]]
    assert told == [
        ("Ann@example.org", "subscriber"),
        ("anna@example.org", "subscriber"),
        ("annika@example.org", "suppressed"),
    ]
    page = superuser_client.get(page.context["matches"][0][1])
    assert page.context["story"].person == ann
    assert "Type at least three characters" in ask(superuser_client, "an").content.decode()
    assert "No address that begins so" in ask(superuser_client, "zoe").content.decode()
    unknown = ask(superuser_client, "zoe@example.org", account=ann.account_id)
    assert "Nothing is known of this address here" in unknown.content.decode()


def test_an_address_of_two_accounts_asks_which(superuser_client: Client, ann: Subscriber) -> None:
    SubscriberFactory.create(email=ANN)
    page = ask(superuser_client)
    assert len(page.context["matches"]) == 2
    assert ask(superuser_client, account=ann.account_id).context["story"].person == ann


def test_whether_campaigns_reach_them_is_said(superuser_client: Client, ann: Subscriber) -> None:
    assert "Confirmed: campaigns reach them." in ask(superuser_client).content.decode()
    Subscriber.objects.update(paused_until=timezone.now() + timedelta(days=1))
    text = ask(superuser_client).content.decode()
    assert "No campaign reaches them. They paused their mail until" in text
    Subscriber.objects.update(paused_until=ago(days=1), status="unsubscribed")
    SuppressionFactory.create(account=ann.account, email=ANN)
    text = ask(superuser_client).content.decode()
    assert "Suppressed. Unsubscribed. No campaign reaches them." in text
    assert "They paused" not in text


def test_a_percent_sign_is_no_wildcard(superuser_client: Client, ann: Subscriber) -> None:
    for hostile in ("%", "%%%", "_nn", "an%", "\\nn", "\x00", "'", "a" * 5000):
        page = ask(superuser_client, hostile)
        assert page.status_code == 200
        assert not page.context.get("matches")


# --- whose it is -------------------------------------------------------------------------------


def test_another_accounts_people_are_not_there(ann: Subscriber) -> None:
    client, _ = member_client(AccountFactory.create())
    SuppressionFactory.create(account=ann.account, email="annoyed@example.org")
    spring = CampaignFactory.create(account=ann.account, sent=True, name="Spring")
    SendFactory.create(campaign=spring, subscriber=None, email="gone@example.org", sent=True,
                       job_id="campaign:x:2")  # fmt: skip
    for q in (ANN, "ann", "gone@example.org"):
        for more in ({}, {"account": ann.account_id}, {"campaign": spring.pk}):
            page = ask(client, q, **more)
            assert page.status_code == 200
            assert "Nobody" in page.content.decode()
            assert "Spring" not in page.content.decode()


def test_ones_own_page_tells_nothing_of_another_accounts_campaign(ann: Subscriber) -> None:
    client, _ = member_client(ann.account)
    theirs = CampaignFactory.create(sent=True, name="Secret spring")
    page = ask(client, campaign=theirs.pk)
    assert page.context["answer"] is None
    assert "Secret spring" not in page.content.decode()


def test_a_global_suppression_keeps_its_reason_from_an_accounts_staff(
    superuser_client: Client, ann: Subscriber
) -> None:
    SuppressionFactory.create(account=None, email=ANN, reason="manual", evidence="a lawyer wrote")
    client, _ = member_client(ann.account)
    text = ask(client).content.decode()
    assert "Suppressed for all accounts" in text
    assert "a lawyer wrote" not in text
    assert "a lawyer wrote" in ask(superuser_client).content.decode()


@pytest.mark.parametrize(
    "without", [("view_send", "change_send"), ("view_subscriber",)], ids=["sends", "people"]
)
def test_it_takes_both_permissions(ann: Subscriber, without: tuple[str, ...]) -> None:
    client, user = member_client(ann.account)
    assert ask(client).status_code == 200
    person = reverse("admin:sendonce_subscribers_subscriber_change", args=[ann.pk])
    assert STORY in client.get(person).content.decode()
    user.user_permissions.remove(*Permission.objects.filter(codename__in=without))
    assert ask(client).status_code == 403
    if "view_subscriber" not in without:
        assert STORY not in client.get(person).content.decode()
    assert Client().get(STORY).status_code == 302


def test_what_staff_did_takes_its_own_permission(ann: Subscriber) -> None:
    AuditEventFactory.create(account=ann.account, verb="person.export", subject=ANN)
    client, user = member_client(ann.account)
    assert "Staff exported what is known of them" in titles(ask(client))
    user.user_permissions.remove(Permission.objects.get(codename="view_auditevent"))
    assert "Staff exported what is known of them" not in titles(ask(client))


# --- bounds --------------------------------------------------------------------------------------


def test_pages_of_a_long_story_leave_nothing_out_and_tell_nothing_twice(
    superuser_client: Client, ann: Subscriber, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(person_story, "PAGE", 3)
    for number in range(8):
        campaign = CampaignFactory.create(account=ann.account, sent=True, name=f"No {number}")
        SendFactory.create(
            campaign=campaign, subscriber=ann, sent=True, handed_at=ago(days=50 - number),
            sent_at=ago(days=50 - number),
        )  # fmt: skip
        AuditEventFactory.create(
            account=ann.account, verb="subscriber.change", subject=ANN,
            at=ago(days=50 - number, hours=-1),
        )  # fmt: skip
    page = ask(superuser_client)
    told = titles(page)
    while page.context["older"]:
        page = superuser_client.get(page.context["older"])
        told += titles(page)
    changed = "Staff changed the subscriber"
    assert told == [
        *(title for n in range(7, -1, -1) for title in (changed, f"Campaign No {n}")),
        "Confirmed",
        "Added as a subscriber",
    ]


@pytest.mark.parametrize(("page_of", "most"), [(2, 300), (30, 2), (3, 1), (1, 3)])
def test_pages_are_exact_where_times_are_equal_or_out_of_order(
    superuser_client: Client, ann: Subscriber, monkeypatch: pytest.MonkeyPatch,
    page_of: int, most: int,
) -> None:  # fmt: skip
    """Every fact on exactly one page, wherever the pages end."""
    account = ann.account
    for number, days in enumerate((50, 20, 20, 40, 20, 30)):
        made = CampaignFactory.create(account=account, sent=True, name=f"No {number}")
        at = datetime(2026, 3, 1, tzinfo=UTC) - timedelta(days=days)
        SendFactory.create(campaign=made, subscriber=ann, sent=True, handed_at=at, sent_at=at)
        for verb in ("subscriber.change", "person.export"):
            AuditEventFactory.create(account=account, verb=verb, subject=ANN, at=at)
        segment = SegmentFactory.create(account=account, name=f"Of {number}")
        member = Membership.objects.create(segment=segment, subscriber=ann)
        Membership.objects.filter(pk=member.pk).update(joined_at=at, left_at=at)
        signup = SignupFactory.create(account=account, email=ANN)
        type(signup).objects.filter(pk=signup.pk).update(requested_at=at, confirmed_at=at)
    waits = CampaignFactory.create(account=account, sending=True, name="Waits")
    Campaign.objects.filter(pk=waits.pk).update(started_at=None)
    SendFactory.create(campaign=waits, subscriber=ann)
    whole = Counter(all_of(superuser_client))
    assert len(whole) > 30
    monkeypatch.setattr(person_story, "PAGE", page_of)
    monkeypatch.setattr(person_story, "MOST", most)
    assert Counter(all_of(superuser_client)) == whole


def all_of(client: Client) -> list[tuple[Any, ...]]:
    """What all pages tell, one after the other."""
    page = ask(client)
    told = list(page.context["entries"])
    while page.context["older"]:
        page = client.get(page.context["older"])
        told += page.context["entries"]
        assert len(told) < 200
    return [(e.at, e.title, e.send) for e in (one["entry"] for one in told)]


@pytest.mark.parametrize("mark", ["", "x", "2026-01-01", "2026-01-01T00:00:00+00:00_1", "_1_1",
                                  f"2026-01-01T00:00:00+00:00_1_{'9' * 40}",
                                  "2999-01-01T00:00:00+23:59_1_1",
                                  "0001-01-01T00:00:00+14:00_1_1",
                                  "9999-12-31T23:59:59-15:59_1_1"])  # fmt: skip
def test_an_end_that_is_none_shows_the_latest_page(
    superuser_client: Client, ann: Subscriber, mark: str
) -> None:
    assert "Added as a subscriber" in titles(ask(superuser_client, until=mark))


def test_no_page_asks_more_with_more_messages(superuser_client: Client, ann: Subscriber) -> None:
    counts = []
    for number in (3, 17):
        for _ in range(number):
            campaign = CampaignFactory.create(account=ann.account, sent=True)
            send = SendFactory.create(campaign=campaign, subscriber=ann, in_doubt=True)
            DeliveryEvent.objects.create(send=send, account=ann.account, kind="in_doubt")
        ask(superuser_client)
        with CaptureQueriesContext(connection) as queries:
            ask(superuser_client)
        counts.append(len(queries))
    assert counts[0] == counts[1]


def test_events_of_one_message_are_bounded(
    superuser_client: Client, ann: Subscriber, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(person_story, "EVENTS", 2)
    send = SendFactory.create(
        campaign=CampaignFactory.create(account=ann.account, sent=True), subscriber=ann, sent=True
    )
    for number in range(3):
        DeliveryEvent.objects.create(
            send=send, account=ann.account, kind="retry", text=f"number {number}",
            at=ago(minutes=10 - number),
        )  # fmt: skip
    text = ask(superuser_client).content.decode()
    assert "number 0" not in text
    assert "number 2" in text
    assert "Earlier events of this message" in text


# --- why not -----------------------------------------------------------------------------------


def why(client: Client, campaign: Any, q: str = ANN) -> str:
    page = ask(client, q, account=campaign.account_id, campaign=campaign.pk)
    return str(page.context["answer"]["sentence"])


def test_what_went_last_is_the_first_that_is_asked_about(
    superuser_client: Client, shop: Account, ann: Subscriber
) -> None:
    for name, begun in (("Later", 2), ("Last", 1), ("Draft", None)):
        made = CampaignFactory.create(account=shop, sent=begun is not None, name=name)
        if begun is not None:
            Campaign.objects.filter(pk=made.pk).update(started_at=ago(days=begun))
    page = ask(superuser_client, ANN, account=shop.pk)
    assert [one.name for one in page.context["campaigns"]][:3] == ["Last", "Later", "Draft"]


def test_why_they_did_not_get_it_is_answered_without_a_row(
    superuser_client: Client, shop: Account, ann: Subscriber
) -> None:
    friends = SegmentFactory.create(account=shop, name="Friends")
    press = SegmentFactory.create(account=shop, name="Press")
    campaign = CampaignFactory.create(
        account=shop, sent=True, segments=[friends], exclude_segments=[press]
    )
    assert why(superuser_client, campaign) == (
        "They did not get it: they are in none of the campaign's segments (Friends)."
    )
    member = Membership.objects.create(segment=friends, subscriber=ann)
    assert "they joined Friends on" in why(superuser_client, campaign)
    Membership.objects.filter(pk=member.pk).update(joined_at=ago(days=9))
    assert "Nothing that is known today says why" in why(superuser_client, campaign)
    barred = Membership.objects.create(segment=press, subscriber=ann)
    Membership.objects.filter(pk=barred.pk).update(joined_at=ago(days=9))
    assert "they are in Press, which the campaign leaves out" in why(superuser_client, campaign)
    ArchivedCount.objects.create(campaign=campaign, status="sent", number=3, at=timezone.now())
    assert "Nobody knows any more" in why(superuser_client, campaign)
    assert "nobody in this account has the address" in why(
        superuser_client, campaign, "who@example.org"
    )


def test_why_they_did_not_get_it_is_answered_by_the_row(
    superuser_client: Client, shop: Account, ann: Subscriber
) -> None:
    campaign = CampaignFactory.create(account=shop, sent=True)
    entry = SuppressionFactory.create(account=shop, email=ANN, reason="complaint")
    type(entry).objects.update(created=datetime.fromisoformat("2026-05-01T00:00:00Z"))
    send = SendFactory.create(campaign=campaign, subscriber=ann, suppressed=True)
    assert why(superuser_client, campaign) == (
        "They did not get it. Not handed over: the address is suppressed since 1 May 2026, 09:00 "
        "(complained)."
    )
    Send.objects.filter(pk=send.pk).update(email="old@example.org", status="sent",
                                           sent_at=timezone.now(), reason="")  # fmt: skip
    told = why(superuser_client, campaign)
    assert told.startswith("It was sent to them.")
    assert told.endswith("(Under the address that they had then.)")


def test_the_sends_own_page_leads_to_the_story(superuser_client: Client, ann: Subscriber) -> None:
    send = SendFactory.create(
        campaign=CampaignFactory.create(account=ann.account, sent=True), subscriber=ann, sent=True
    )
    text = superuser_client.get(
        reverse("admin:sendonce_sending_send_change", args=[send.pk])
    ).content.decode()
    assert f"{STORY}?q=Ann%40example.org&amp;account={ann.account_id}" in text
