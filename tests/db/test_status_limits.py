"""``sender_status`` at 3 a.m.: what holds mail back, what waits, what nobody could read."""

from __future__ import annotations

import io
import json
from datetime import timedelta
from typing import Any

import pytest
from django.core.management import call_command
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from sending import status as facts
from sending import status_limits, status_text
from sending.models import (
    CampaignHealth,
    DeliveryEvent,
    ProviderEvent,
    RateLimit,
    TransportPause,
    WebhookCount,
)
from subscribers.database_clock import database_time
from tests.factories import AccountFactory, CampaignFactory, SendFactory, WorkerFactory

pytestmark = pytest.mark.django_db


def run(*arguments: str) -> str:
    out = io.StringIO()
    call_command("sender_status", *arguments, stdout=out)
    return out.getvalue().replace("\u00a0", " ")


def data() -> Any:
    return json.loads(run("--json"))


def section(text: str, title: str) -> str:
    """From ``title`` to the next blank line."""
    return text[text.index(title) :].split("\n\n")[0]


def test_nothing_is_said_of_what_is_as_it_should_be() -> None:
    RateLimit.objects.create(key="transport:default", usual=4, rate=4)
    now = timezone.now()
    ProviderEvent.objects.create(event_id="a", esp="X", kind="delivered", at=now, applied_at=now)
    campaign = CampaignFactory.create(sending=True)
    CampaignHealth.objects.create(campaign=campaign, accepted=9)
    DeliveryEvent.objects.create(account=campaign.account, kind="retry", reason="greylisted")
    text = run()
    for title in ("SLOWED", "PROVIDER EVENTS", "WEBHOOKS", "UNCLASSIFIED", "BRAKES", "IN DOUBT"):
        assert title not in text, title


def test_slowed_limits_say_how_fast_they_are_and_why() -> None:
    account = AccountFactory.create(name="City Theatre")
    now = timezone.now()
    RateLimit.objects.create(
        key=f"account:{account.pk}", usual=1, rate=0.25, reason="429 Too Many Requests",
        slowed_at=now - timedelta(minutes=5),
    )  # fmt: skip
    RateLimit.objects.create(
        key="domain:google", rate=0.5, reason="421 4.7.28 unusual rate",
        slowed_at=now - timedelta(minutes=3), updated=now + timedelta(hours=1),
    )  # fmt: skip
    lines = section(run(), "SLOWED DOWN").splitlines()
    assert len(lines) == 4
    assert "account City Theatre" in lines[2]
    for words in ("900 an hour", "3,600 an hour", "5 min ago", "429 Too Many Requests"):
        assert words in lines[2]
    assert "mailboxes at google" in lines[3]
    assert "none, until " in lines[3]
    assert "no limit" in lines[3]
    found = data()["limits"]
    assert [(f["key"], f["rate"], f["usual"]) for f in found] == [
        (f"account:{account.pk}", 0.25, 1.0),
        ("domain:google", 0.5, None),
    ]


def test_the_brakes_are_told_for_campaigns_that_have_something_to_tell() -> None:
    campaign = CampaignFactory.create(sending=True, name="Spring")
    CampaignHealth.objects.create(
        campaign=campaign, accepted=475, bounced=25, complained=2, in_a_row=3, refused=3
    )
    quiet = CampaignFactory.create(sending=True, name="Quiet")
    CampaignHealth.objects.create(campaign=quiet, accepted=100)
    told = section(run(), "BRAKES")
    assert "Spring" in told
    assert "Quiet" not in told
    for words in ("25 (4.97 %)", "5 %", "2 (0.42 %)", "0.1 %"):
        assert words in told, words
    healths = {fact["id"]: fact["health"] for fact in data()["campaigns"]}
    assert healths[campaign.pk]["in_a_row"] == 3
    assert healths[campaign.pk]["bounce_rate"] == pytest.approx(100 * 25 / 503)
    assert healths[quiet.pk]["bounce_rate"] == 0


def test_a_brake_that_paused_a_campaign_says_why_and_when_instead_of_its_counts() -> None:
    campaign = CampaignFactory.create(paused=True, name="Spring", status_reason="20 in a row")
    at = timezone.now() - timedelta(minutes=5)
    CampaignHealth.objects.create(
        campaign=campaign, refused=20, in_a_row=0,
        base={"trip": "20 in a row", "trips": 1, "tripped_at": at.isoformat()},
    )  # fmt: skip
    text = run()
    told = section(text, "PAUSED BY A BRAKE")
    assert "5 min ago" in told
    assert "20 in a row" in told
    assert "BRAKES" not in text
    assert text.index("PAUSED BY A BRAKE") < text.index("CAMPAIGNS")
    CampaignHealth.objects.update(base={"trip": "20 in a row", "trips": 1})
    assert "20 in a row" in section(run(), "PAUSED BY A BRAKE"), "the time is not known"
    campaign.status_reason = "paused by ann"
    campaign.save()
    assert "PAUSED BY A BRAKE" not in run()


def test_the_rates_are_those_since_the_campaign_was_resumed() -> None:
    campaign = CampaignFactory.create(sending=True)
    CampaignHealth.objects.create(
        campaign=campaign, accepted=1100, bounced=60, complained=4,
        base={"accepted": 1000, "bounced": 50, "complained": 3, "refused": 0},
    )  # fmt: skip
    found = status_limits.health([campaign.pk])[campaign.pk]
    assert found.bounced == 60
    assert found.bounce_rate == pytest.approx(100 * 10 / 110)
    assert found.complaint_rate == pytest.approx(100 * 1 / 1100)


def test_a_pause_tells_its_trouble_and_what_to_do() -> None:
    account = AccountFactory.create(slug="shop")
    later = timezone.now() + timedelta(minutes=1)
    TransportPause.objects.create(
        alias="default", account=account, stage="mail", code=553, reason="553", probe_at=later
    )
    TransportPause.objects.create(alias="bulk", stage="auth", code=535, probe_at=later)
    told = section(run(), "TRANSPORTS PAUSED")
    for words in (
        "the first try that works lifts the pause", "refuses the sender address",
        "default: Correct the sender address of shop", "refuses the login",
        "bulk: Correct the login in the settings",
    ):  # fmt: skip
        assert words in told, words


def test_provider_events_that_wait_are_counted_with_the_age_of_the_oldest() -> None:
    now = timezone.now()
    for minutes in (9, 3):
        ProviderEvent.objects.create(
            event_id=f"w{minutes}", esp="X", kind="delivered", at=now,
            received=now - timedelta(minutes=minutes),
        )  # fmt: skip
    ProviderEvent.objects.create(
        event_id="done", esp="X", kind="delivered", at=now, applied_at=now,
        received=now - timedelta(days=1),
    )  # fmt: skip
    line = section(run(), "PROVIDER EVENTS")
    assert line.startswith("PROVIDER EVENTS: 2 not applied yet, the oldest for 9 min")
    assert "none is alive" in line
    WorkerFactory.create()
    assert "none is alive" not in section(run(), "PROVIDER EVENTS")
    assert data()["webhooks"]["waiting"] == 2


def test_webhooks_out_of_order_are_summed_over_yesterday_and_today() -> None:
    today = database_time().date()
    for days, count in ((0, 5), (1, 2), (2, 99)):
        WebhookCount.objects.create(
            esp="Postmark", what="refused", day=today - timedelta(days=days), count=count
        )
    WebhookCount.objects.create(esp="Postmark", what="unknown_job", day=today, count=1)
    WebhookCount.objects.create(esp="Resend", what="of_a_new_kind", day=today, count=1)
    told = section(run(), "WEBHOOKS")
    for words in ("wrong or missing secret, refused with 403", "about messages that are not known"):
        assert words in told
    assert "of a new kind" in told
    odd = data()["webhooks"]["odd"]
    assert [(f["esp"], f["what"], f["times"]) for f in odd] == [
        ("Postmark", "refused", 7),
        ("Postmark", "unknown_job", 1),
        ("Resend", "of_a_new_kind", 1),
    ]


@pytest.mark.parametrize(
    ("campaign", "fields", "words"),
    [
        ("sending", {}, "held for evidence or a person"),
        ("sending", {"settle_at": 60}, "settled by policy from in "),
        ("sending", {"settle_at": 60, "replay_until": 3600}, "being replayed, at the latest until"),
        ("sending", {"settle_at": 60, "replay_until": -60}, "settled by policy from in "),
        ("sending", {"replay_until": 3600}, "held for evidence or a person"),
        (
            "paused",
            {"settle_at": 60, "replay_until": 3600},
            "replayed once the campaign is resumed, at the latest until",
        ),
    ],
)
def test_a_doubt_says_what_settles_it(campaign: str, fields: dict[str, int], words: str) -> None:
    now = timezone.now()
    SendFactory.create(
        in_doubt=True,
        campaign=CampaignFactory.create(**{campaign: True}),
        **{name: now + timedelta(seconds=seconds) for name, seconds in fields.items()},
    )
    assert words in section(run(), "IN DOUBT")


def test_doubts_that_are_replayed_are_told_apart_from_those_that_are_held() -> None:
    now = timezone.now()
    campaign = CampaignFactory.create(sending=True)
    until = [now + timedelta(minutes=minutes) for minutes in (10, 20)]
    for end in until:
        SendFactory.create(
            campaign=campaign, in_doubt=True, reason="timeout", settle_at=now, replay_until=end
        )
    # The window is still open, but nothing is to be replayed any more.
    SendFactory.create(campaign=campaign, in_doubt=True, reason="timeout", replay_until=until[1])
    found = [(fact.rows, fact.replayed_until) for fact in facts.doubts()]
    assert found == [(2, until[1]), (1, None)]


@pytest.mark.parametrize(
    ("limits", "words"),
    [
        ({}, "being sent"),
        ({"account": 0.25, "transport": 5.0}, "limited to 900 an hour: 8 s left, or more"),
        ({"transport": 5.0}, "limited to 5 a second: 0 s left, or more"),
        ({"others": 0.25}, "being sent"),
    ],
)
def test_a_campaign_that_is_limited_says_so(limits: dict[str, float], words: str) -> None:
    send = SendFactory.create(campaign__built_at=timezone.now(), campaign__audience=2)
    SendFactory.create(campaign=send.campaign)
    WorkerFactory.create()
    keys = {
        "account": f"account:{send.account_id}", "transport": "transport:default",
        "others": "transport:other",
    }  # fmt: skip
    for name, rate in limits.items():
        RateLimit.objects.create(key=keys[name], usual=rate, rate=rate)
    seen = facts.status()
    assert status_text.next_step(seen.campaigns[0], seen) == words


def test_a_campaign_whose_limit_is_shut_says_until_when() -> None:
    SendFactory.create(campaign__built_at=timezone.now(), campaign__audience=1)
    WorkerFactory.create()
    until = timezone.now() + timedelta(minutes=5)
    RateLimit.objects.create(key="transport:default", rate=1, slowed_at=until, updated=until)
    seen = facts.status()
    step = status_text.next_step(seen.campaigns[0], seen)
    assert step == f"waits: transport default is limited to nothing before {until:%H:%M:%S} UTC"


# --- unclassified --------------------------------------------------------------------------------


def answered(times: int, text: str, *, ago: timedelta = timedelta(), **fields: Any) -> None:
    account = AccountFactory.create()
    for number in range(times):
        DeliveryEvent.objects.create(
            account=account,
            known=False,
            at=timezone.now() - ago,
            text=text.replace("*", f"4F{number}"),
            **{"kind": "failed", "stage": "dot", "code": 571, **fields},
        )


def test_unclassified_answers_are_counted_with_the_most_frequent_kinds() -> None:
    answered(3, "5.9.9 odd, ticket * <a*@example.org>")
    answered(2, "no thanks", stage="rcpt", code=553, kind="bounced")
    for kind in ("a", "b", "c", "d"):
        answered(1, f"once {kind}")
    answered(4, "long ago", ago=timedelta(days=2))
    text = section(run(), "UNCLASSIFIED ANSWERS")
    lines = text.splitlines()
    assert lines[0].startswith("UNCLASSIFIED ANSWERS: 9 within a day; no rule knows them")
    assert len(lines) == 2 + status_limits.EXAMPLES
    assert "571 5.9.9 odd, ticket 4F2 <a4F2@example.org>" in lines[2], "the latest of three"
    assert lines[3].split()[:3] == ["bounced", "rcpt", "2"]
    assert "long ago" not in text
    found = data()["unclassified"]
    assert (found["answers"], [f["times"] for f in found["examples"]]) == (9, [3, 2, 1, 1, 1])


def test_too_many_unclassified_answers_say_how_far_back_was_looked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    answered(1, "old", ago=timedelta(hours=2))
    answered(2, "new", ago=timedelta(minutes=5))
    monkeypatch.setattr(status_limits, "ANSWERS", 2)
    line = section(run(), "UNCLASSIFIED ANSWERS").splitlines()[0]
    assert "2 or more, looked at those of the last 5 min" in line


def test_answers_differ_by_their_words_and_not_by_their_numbers() -> None:
    alike = status_limits.without_numbers
    assert alike("queue 4F1 of <a@x.example> at 10:00") == alike(
        "queue 5G22 of <b@y.example> at 9:59"
    )
    assert alike("blocked by policy") != alike("blocked by list")


# --- failures ------------------------------------------------------------------------------------


def test_failures_are_found_among_what_providers_tell(monkeypatch: pytest.MonkeyPatch) -> None:
    send = SendFactory.create(sent=True)
    for kind in ("failed", *["delivered"] * 5, "hard_bounce", "opened"):
        DeliveryEvent.objects.create(send=send, account=send.account, kind=kind)
    now = database_time()
    assert {fact.kind for fact in facts.failures(now)} == {"failed", "hard_bounce"}
    monkeypatch.setattr(facts, "EVENTS", 7)
    assert {fact.kind for fact in facts.failures(now)} == {"hard_bounce"}


def test_the_status_asks_no_question_per_row() -> None:
    def queries() -> int:
        with CaptureQueriesContext(connection) as caught:
            facts.status()
        return len(caught)

    def more(n: int) -> None:
        now = timezone.now()
        for _ in range(n):
            send = SendFactory.create(in_doubt=True, campaign__account__transport="bulk")
            CampaignHealth.objects.create(campaign=send.campaign, bounced=1)
            account = send.account
            RateLimit.objects.create(key=f"account:{account.pk}", rate=1, slowed_at=now)
            TransportPause.objects.create(
                alias="default", account=account, stage="mail", probe_at=now
            )
            DeliveryEvent.objects.create(send=send, account=account, kind="failed", known=False)
            key = f"e{send.pk}"
            ProviderEvent.objects.create(event_id=key, esp="X", kind="delivered", at=now)
            WebhookCount.objects.create(esp=key, what="refused", day=now.date(), count=1)

    more(2)
    queries()
    few = queries()
    more(4)
    assert queries() == few
