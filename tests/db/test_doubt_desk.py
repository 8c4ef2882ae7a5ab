"""The doubt desk's pages: what is in doubt, whose it is to see, and how much is asked for it."""

from __future__ import annotations

from copy import copy
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import Permission
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from sending import doubt_desk
from sending.models import DeliveryEvent, ProviderEvent, Send
from sending.sql import doubt_desk as statements
from sending.transports import transport
from tests.factories import CampaignFactory, SendFactory

from .admin_pages import member_client
from .doubtful import DESK, confirmed, doubtful, of, post, said
from .watched import viewer

pytestmark = pytest.mark.django_db


# --- what is shown ---------------------------------------------------------------------------


def test_the_desk_tells_each_campaign_its_reasons_and_what_is_likely_right(
    superuser_client: Client,
) -> None:
    campaign = CampaignFactory.create(sent=True, name="Spring", account__timezone="Asia/Tokyo")
    doubtful(3, campaign)
    doubtful(1, campaign, reason="worker_lost")
    SendFactory.create(campaign=campaign, sent=True)
    CampaignFactory.create(sent=True, name="Nothing doubtful here")
    single = SendFactory.create(transactional=True, in_doubt=True, reason="timeout")
    page = superuser_client.get(DESK)
    told = {one["name"]: one for one in page.context["doubts"]}
    assert list(told) == ["Single messages", "Spring"]
    assert told["Spring"]["rows"] == 4
    assert [(g["name"], g["rows"], g["likely"]) for g in told["Spring"]["groups"]] == [
        ("Connection lost", 3, "Treat as sent"),
        ("Sender stopped", 1, ""),
    ]
    text = page.content.decode()
    assert "JST" in text
    assert f"campaign={campaign.pk}&amp;reason=worker_lost" in text
    assert single.email not in text


def test_an_empty_desk_says_so(superuser_client: Client) -> None:
    assert "Nothing is in doubt." in superuser_client.get(DESK).content.decode()


def test_what_happens_by_itself_is_told_by_group(superuser_client: Client) -> None:
    soon, window = timezone.now() + timedelta(minutes=3), timezone.now() + timedelta(hours=3)
    campaign = CampaignFactory.create(sending=True, account__in_doubt_policy="assume_sent")
    doubtful(1, campaign, settle_at=soon)
    doubtful(1, campaign, settle_at=soon, replay_until=window)
    doubtful(1, campaign)
    text = superuser_client.get(of(campaign)).content.decode()
    assert "Treated as sent by itself" in text
    assert "Repeated by itself under its key, which can&#x27;t deliver it twice, until" in text
    assert "Held: it waits for evidence, or for your decision." in text


def test_a_row_shows_its_evidence(superuser_client: Client) -> None:
    (send,) = doubtful(1, answer_text="<lost>", replays=2, via="default:1", attempts=1)
    DeliveryEvent.objects.create(send=send, account=send.account, kind="deferred", stage="webhook")
    assert send.campaign is not None
    text = superuser_client.get(of(send.campaign)).content.decode()
    assert "&lt;lost&gt;" in text
    assert ", after the whole message: &lt;lost&gt;" in text
    assert "repeated 2 times" in text
    assert "delayed, the provider goes on trying" in text
    assert "over transport default" in text


def test_what_was_said_is_not_told_twice(superuser_client: Client) -> None:
    (send,) = doubtful(1, answer_text="connection lost")
    assert send.campaign is not None
    text = superuser_client.get(of(send.campaign)).content.decode()
    assert "Connection lost, after the whole message" in text
    assert "connection lost</td>" not in text
    assert "message: connection lost" not in text


def test_a_transport_that_is_not_configured_here_is_called_so(superuser_client: Client) -> None:
    (send,) = doubtful(1, via="demo:1", attempts=1)
    assert send.campaign is not None
    text = superuser_client.get(of(send.campaign)).content.decode()
    assert "over transport demo, which is not configured here" in text
    assert "attempt 1, over transport demo" in text


def test_who_may_only_look_is_not_asked_to_decide(superuser_client: Client) -> None:
    campaign = doubtful(2)[0].campaign
    assert campaign is not None
    doubtful(1, campaign, reason="worker_lost")
    looks = viewer(campaign.account, "view_send")
    for page in (DESK, of(campaign)):
        text = looks.get(page).content.decode()
        assert "or for somebody&#x27;s decision." in text
        for words in ("your decision", "waits for you", "or you, settle"):
            assert words not in text, words
    assert "or for your decision." in superuser_client.get(DESK).content.decode()
    assert "Show these 2<" in looks.get(of(campaign)).content.decode()
    assert "Show this one<" in looks.get(of(campaign)).content.decode()


def test_sending_again_is_called_safe_only_where_the_provider_still_knows_the_key(
    superuser_client: Client, settings: Any
) -> None:
    settings.SENDONCE = {
        **settings.SENDONCE,
        "TRANSPORTS": {"default": {"BACKEND": "anymail.backends.resend.EmailBackend"}},
    }
    campaign = CampaignFactory.create(sending=True)
    hour = timezone.now() + timedelta(hours=1)
    via = transport("default").via
    given = {"settle_at": hour, "replay_until": hour}
    (safe,) = doubtful(1, campaign, via=via, **given)
    doubtful(1, campaign, via="default:other-login", **given)
    doubtful(1, campaign, via=via, replay_until=timezone.now() - timedelta(hours=1))
    assert list(doubt_desk.harmless(Send.objects.all(), timezone.now())) == [safe]
    rows, _ = doubt_desk.page_of(Send.objects.all(), timezone.now())
    assert [row.harmless for row in rows] == [True, False, False]
    asked = post(superuser_client, of(campaign), which="all").content.decode()
    assert "gets it twice" in asked
    assert "recognises 1 of them" in asked


def test_events_that_wait_to_be_read_are_told(superuser_client: Client) -> None:
    doubtful(1)
    ProviderEvent.objects.create(event_id="a", esp="Test", kind="delivered", at=timezone.now())
    assert "1 event of mail providers waits" in superuser_client.get(DESK).content.decode()


# --- bounds ------------------------------------------------------------------------------------


def test_no_page_asks_more_with_more_rows(superuser_client: Client) -> None:
    campaign = CampaignFactory.create(sent=True)
    doubtful(1, campaign)
    superuser_client.get(DESK)  # what is asked once per process
    counts: list[list[int]] = []
    for _ in range(2):
        doubtful(3 if not counts else 27, campaign)
        for _ in range(0 if not counts else 10):
            doubtful(1)
        numbers = []
        for where in (DESK, of(campaign), of(campaign, reason="connection_lost")):
            with CaptureQueriesContext(connection) as queries:
                superuser_client.get(where)
            numbers.append(len(queries))
        with CaptureQueriesContext(connection) as queries:
            post(superuser_client, of(campaign), which="all")
        counts.append([*numbers, len(queries)])
    assert counts[0] == counts[1]


def test_pages_of_campaigns_and_of_rows(
    superuser_client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(doubt_desk, "CAMPAIGNS", 2)
    monkeypatch.setattr(doubt_desk, "ROWS", 2)
    campaigns = [doubtful(1)[0].campaign for _ in range(3)]
    first = superuser_client.get(DESK)
    assert [one["campaign"] for one in first.context["doubts"]] == campaigns[:0:-1]
    older = superuser_client.get(f"{DESK}?before={first.context['next']}")
    assert [one["campaign"] for one in older.context["doubts"]] == campaigns[:1]
    assert older.context["next"] is None

    campaign = CampaignFactory.create(sent=True)
    rows = doubtful(3, campaign)
    page = superuser_client.get(of(campaign))
    assert [row["send"] for row in page.context["rows"]] == rows[:2]
    page = superuser_client.get(of(campaign, after=str(page.context["next"])))
    assert [row["send"] for row in page.context["rows"]] == rows[2:]
    assert page.context["next"] is None


def test_what_is_not_counted_further_is_said(
    superuser_client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(doubt_desk, "COUNTED", 2)
    doubtful(3)
    assert "<strong>2 or more</strong>" in superuser_client.get(DESK).content.decode()


def test_the_questions_go_by_the_index_of_doubt() -> None:
    many: list[Send] = []
    campaign = CampaignFactory.create(sent=True)
    doubtful(2, campaign)
    SendFactory.create(transactional=True, in_doubt=True)
    for pattern in (
        SendFactory.create(campaign=campaign, sent=True),
        SendFactory.create(transactional=True, sent=True),
    ):
        for number in range(2000):
            pattern.pk, pattern.job_id = None, f"{pattern.job_id[:30]}:{number}"
            pattern.email, pattern.subscriber = f"{pattern.campaign_id}-{number}@example.org", None
            many.append(copy(pattern))
    Send.objects.bulk_create(many)
    asked: tuple[tuple[str, dict[str, Any]], ...]
    with connection.cursor() as cursor:
        cursor.execute(f"ANALYZE {Send._meta.db_table}")
        asked = (
            ("CAMPAIGNS_IN_DOUBT", {"accounts": [campaign.account_id], "before": None, "most": 9}),
            ("GROUPS_OF_CAMPAIGNS", {"ids": [campaign.pk], "most": 9}),
            ("GROUPS_OF_SINGLES", {"accounts": None, "most": 9}),
        )
        for statement, given in asked:
            cursor.execute(f"EXPLAIN {getattr(statements, statement)}", given)
            plan = "\n".join(line for (line,) in cursor.fetchall())
            assert "sendonce_send_in_doubt" in plan, statement
            assert "sendonce_send_campaign" not in plan, statement


# --- whose it is -------------------------------------------------------------------------------


def test_another_accounts_doubt_is_not_there() -> None:
    mine, theirs = doubtful(1)[0], doubtful(1)[0]
    single = SendFactory.create(transactional=True, in_doubt=True)
    assert mine.campaign is not None
    assert theirs.campaign is not None
    client, _ = member_client(mine.account)
    page = client.get(DESK)
    assert [one["campaign"] for one in page.context["doubts"]] == [mine.campaign]
    for where in (of(theirs.campaign), f"{DESK}?campaign=999999999", f"{DESK}?campaign=x"):
        for answer in (client.get(where), post(client, where, send=[theirs.pk])):
            assert answer.status_code == 302
            assert answer["Location"] == DESK
            assert set(said(answer)) == {"There is no such campaign."}
    assert client.get(f"{DESK}?campaign=none").context["rows"] == []
    # A forged form of one's own campaign names others' rows.
    answer = confirmed(client, of(mine.campaign), send=[mine.pk, theirs.pk, single.pk])
    assert "1 of 3 messages to be sent again." in said(answer)
    assert Send.objects.filter(status="in_doubt").count() == 2


def test_looking_and_deciding_are_permissions() -> None:
    (send,) = doubtful(1)
    assert send.campaign is not None
    client, user = member_client(send.account)
    user.user_permissions.remove(Permission.objects.get(codename="resolve_doubt"))
    page = client.get(of(send.campaign)).content.decode()
    assert "send_again" not in page
    assert 'type="checkbox"' not in page
    for data in ({}, {"confirmed": "yes", "asked": timezone.now().isoformat()}):
        assert post(client, of(send.campaign), send=[send.pk], **data).status_code == 403
    for codename in ("view_send", "change_send"):
        user.user_permissions.remove(Permission.objects.get(codename=codename))
    assert client.get(DESK).status_code == 403
    assert Client().get(DESK).status_code == 302
    send.refresh_from_db()
    assert send.status == Send.Status.IN_DOUBT


def test_a_look_changes_nothing(superuser_client: Client) -> None:
    (send,) = doubtful(1)
    assert send.campaign is not None
    query = of(send.campaign, decision="send_again", which="all", confirmed="yes")
    superuser_client.get(query)
    assert superuser_client.put(query).status_code == 405
    assert superuser_client.post(DESK).status_code == 405
    send.refresh_from_db()
    assert send.status == Send.Status.IN_DOUBT
