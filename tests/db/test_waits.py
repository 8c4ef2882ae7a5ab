"""Why did it not leave yet? The cause is told on every page that somebody looks at."""

from __future__ import annotations

import io
from datetime import datetime, timedelta

import pytest
from django.core.management import call_command
from django.test import Client
from django.utils import timezone

from campaigns.models import Campaign
from sending import checks, status, status_limits, waits
from sending.models import RateLimit, Send, TransportPause, Worker
from subscribers.models import Account
from tests.db.admin_pages import url
from tests.factories import AccountFactory, CampaignFactory, SendFactory, WorkerFactory

pytestmark = pytest.mark.django_db

PAUSED = "transport away is paused, it can't be reached: [Errno 111] Connection refused"


@pytest.fixture
def send() -> Send:
    found: Send = SendFactory.create(
        campaign__account__transport="away", campaign__built_at=timezone.now()
    )
    WorkerFactory.create()
    return found


def away(**fields: object) -> TransportPause:
    return TransportPause.objects.create(
        **{
            "alias": "away",
            "stage": "connect",
            "reason": "[Errno 111] Connection refused",
            "probe_at": timezone.now() + timedelta(seconds=30),
            **fields,
        }
    )


def story(send: Send) -> str:
    out = io.StringIO()
    call_command("sender_status", "--address", str(send.email), stdout=out)
    return out.getvalue()


def page(client: Client, model: type, pk: int) -> str:
    text: str = client.get(url(model, "change", pk)).content.decode()
    return text.replace("&#x27;", "'").replace("&quot;", '"')


def test_whoever_waits_for_a_paused_transport_is_told_so(
    send: Send, superuser_client: Client
) -> None:
    away()
    for told in (
        story(send),
        page(superuser_client, Send, send.pk),
        page(superuser_client, Campaign, send.campaign_id or 0),
    ):
        assert PAUSED in told
        assert "the next try in " in told
        assert "waits for a sender" not in told


def test_nothing_is_said_to_wait_where_nothing_holds_it(
    send: Send, superuser_client: Client
) -> None:
    away(alias="another")
    assert "QUEUED. It waits for its turn; senders are at work." in story(send)
    assert "waits" not in page(superuser_client, Send, send.pk).split("<body")[1].lower()
    assert waits.of_campaign(send.campaign_id or 0) == ""


@pytest.mark.parametrize(
    ("cause", "words"),
    [
        ("no sender", "no sender is alive; run_sender starts one"),
        ("for another", "each sender that is alive was started for another campaign alone; run_"),
        ("for this one", ""),
        ("paused campaign", "the campaign is paused (20 refusals in a row)"),
        ("another's pause", ""),
        ("own pause", "transport away is paused for shop, it refuses the sender address: 553 no"),
        (
            "unknown alias",
            "transport away is paused, it is misconfigured: no transport 'away' in SENDONCE",
        ),
        ("shut limit", "transport away is limited to nothing before "),
    ],
)
def test_each_cause_has_its_words(send: Send, cause: str, words: str) -> None:
    account = send.account
    match cause:
        case "no sender":
            Worker.objects.update(seen=timezone.now() - timedelta(minutes=1))
        case "for another":
            Worker.objects.update(only_campaign=CampaignFactory.create(sending=True).pk)
        case "for this one":
            Worker.objects.update(only_campaign=send.campaign_id)
        case "paused campaign":
            Campaign.objects.update(status="paused", status_reason="20 refusals in a row")
        case "another's pause":
            away(account=AccountFactory.create(), stage="mail")
        case "own pause":
            Account.objects.filter(pk=account.pk).update(slug="shop")
            away(account=account, stage="mail", code=553, reason="553 no")
        case "unknown alias":
            away(reason="no transport 'away' in SENDONCE['TRANSPORTS'] (default)")
        case "shut limit":
            later = timezone.now() + timedelta(minutes=5)
            RateLimit.objects.create(key="transport:away", rate=1, updated=later)
    told = story(send)
    assert f"It waits, because {words}" in told if words else "because" not in told


@pytest.mark.parametrize("key", ["account", "domain"])
def test_a_limit_is_named_to_whoever_waits_for_it(
    send: Send, superuser_client: Client, key: str
) -> None:
    keys = {"account": f"account:{send.account_id}", "domain": "domain:example.org"}
    of = {"account": f"account {send.account.name}", "domain": "mailboxes at example.org"}
    RateLimit.objects.create(key=keys[key], usual=0.5, rate=0.5)
    words = f"{of[key]} is limited to 1,800 an hour"
    assert words in story(send)
    assert words in page(superuser_client, Send, send.pk)
    Send.objects.update(
        status="retry", reason="rate_limited", next_attempt_at=timezone.now(), attempts=0
    )
    assert f"because of a rate limit: {words}; the turn is due" in story(send)


def test_a_message_by_another_road_waits_for_that_one(send: Send) -> None:
    away()
    Send.objects.update(transport="default")
    assert "senders are at work" in story(send)
    away(alias="default")
    assert "transport default is paused" in story(send)


def test_a_retry_and_a_replay_tell_what_holds_them_too(send: Send) -> None:
    away()
    now = timezone.now()
    Send.objects.update(status="retry", next_attempt_at=now, reason="greylisted", attempts=1)
    assert f"tried again is due. It waits, because {PAUSED}" in story(send)
    SendFactory.create(
        campaign=send.campaign, email="doubt@example.org", in_doubt=True,
        settle_at=now, replay_until=now + timedelta(hours=1),
    )  # fmt: skip
    doubtful = Send.objects.get(email="doubt@example.org")
    assert f"at the latest. It waits, because {PAUSED}" in story(doubtful)


def test_an_approved_campaign_that_is_due_waits_for_a_sender() -> None:
    campaign = CampaignFactory.create(approved=True)
    Campaign.objects.update(scheduled_for=timezone.now() - timedelta(minutes=1))
    assert waits.of_campaign(campaign.pk) == "Waits: no sender is alive; run_sender starts one."
    WorkerFactory.create()
    assert waits.of_campaign(campaign.pk) == ""


def test_rows_that_wait_for_the_limit_of_a_provider_of_mailboxes_are_counted(send: Send) -> None:
    at = timezone.now() + timedelta(minutes=10)
    Send.objects.filter(pk=send.pk).update(status="sent", sent_at=at)
    for number, domain in enumerate(("gmail.com", "googlemail.com", "example.org")):
        SendFactory.create(
            campaign=send.campaign, email=f"p{number}@{domain}", retry=True, attempts=0,
            reason="rate_limited", next_attempt_at=at + timedelta(minutes=number),
        )  # fmt: skip
    RateLimit.objects.create(key="domain:google", usual=0.1, rate=0.1)
    RateLimit.objects.create(key=f"account:{send.account_id}", usual=0.1, rate=0.1)
    campaign = send.campaign
    assert campaign is not None
    (google, account) = status_limits.limited([campaign.pk])
    assert (google.of, google.rows, google.next_at, google.at_least) == (
        "mailboxes at google", 2, at, False,
    )  # fmt: skip
    assert (account.of, account.rows) == (f"account {send.account.name}", 1)
    assert "2 wait for the limit of mailboxes at google, the next in 10 min" in waits.of_campaign(
        campaign.pk
    )
    out = io.StringIO()
    call_command("sender_status", stdout=out)
    assert "2 for mailboxes at google, 1 for account" in out.getvalue()
    assert "2 wait for the limit of mailboxes at google" in out.getvalue()


def test_a_clock_that_was_read_before_shuts_no_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    now = timezone.now()
    RateLimit.objects.create(key="transport:a", rate=1, slowed_at=now, updated=now)

    def early() -> datetime:
        return now - timedelta(minutes=1)

    monkeypatch.setattr(status, "database_time", early)
    assert [limit.nothing_before for limit in status.status().limits] == [None]


def test_an_account_whose_transport_is_not_configured_is_a_warning() -> None:
    AccountFactory.create(slug="lost", transport="nowhere")
    AccountFactory.create(transport="default")
    found = checks.check_aliases(None, databases=["default"])
    assert [message.id for message in found] == ["sendonce.W003"]
    assert "The account lost sends by transport 'nowhere'" in found[0].msg
    assert checks.check_aliases(None) == []
