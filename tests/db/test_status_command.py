"""``sender_status``: who works, what waits, how fast it goes."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from datetime import timedelta

import pytest
from django.utils import timezone

from sending import alive, plain_table, status_text
from sending import status as facts
from sending.management.commands import sender_status
from sending.models import DeliveryEvent, RateLimit, Send, TransportPause, Worker
from subscribers.database_clock import database_time
from tests.factories import AccountFactory, CampaignFactory, SendFactory, WorkerFactory

from .commands import campaign_with, run

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def in_haste(monkeypatch: pytest.MonkeyPatch) -> None:
    """The status takes its rates from looks that are closer together."""
    monkeypatch.setattr(sender_status, "SAMPLE_S", 0.01)


def test_the_status_of_nothing() -> None:
    lines = run("sender_status").splitlines()
    assert lines[0].startswith("SENDERS: none alive")
    assert json.loads(run("sender_status", "--json"))["campaigns"] == []


def test_workers_are_alive_ended_or_lost() -> None:
    now = timezone.now()
    WorkerFactory.create(host="alive", seen=now)
    WorkerFactory.create(host="ended", seen=now, ended=now)
    lost = WorkerFactory.create(host="lost", seen=now - timedelta(seconds=60), lanes=3)
    WorkerFactory.create(host="forgotten", seen=now - timedelta(days=3))
    old = WorkerFactory.create(host="holding", seen=now - timedelta(days=3))
    SendFactory.create_batch(2, handed_over=True, worker=lost)
    SendFactory.create(claimed=True, worker=old)
    found = {fact.host: (fact.state, fact.holds) for fact in facts.workers(database_time())}
    assert found == {
        "alive": ("alive", 0),
        "ended": ("ended", 0),
        "lost": ("lost", 2),
        "holding": ("lost", 1),
    }
    assert run("sender_status").startswith("SENDERS: 1 alive\n")


def test_sessions_of_lanes_are_shown_where_somebody_has_several() -> None:
    now = timezone.now()
    WorkerFactory.create(host="plain", pid=1, seen=now, lanes=8)
    assert run("sender_status").splitlines()[1].split()[2] == "lanes"
    WorkerFactory.create(host="wide", pid=2, seen=now, lanes=8, sessions_a_lane=4)
    head, *rows = (re.split(" {2,}", line) for line in run("sender_status").splitlines()[1:4])
    shown = {row[1]: row[head.index("lanes x sessions")] for row in rows}
    assert shown == {"plain:1": "8 x 1", "wide:2": "8 x 4"}
    told = json.loads(run("sender_status", "--json"))["workers"]
    assert [worker["sessions_a_lane"] for worker in told] == [1, 4]


@pytest.mark.parametrize(("seconds", "state"), [(0, "alive"), (10, "alive"), (11, "lost")])
def test_a_worker_is_alive_for_ten_seconds(seconds: int, state: str) -> None:
    now = timezone.now()
    assert alive.worker_state(None, now - timedelta(seconds=seconds), now) == state
    assert alive.worker_state(now, now - timedelta(seconds=seconds), now) == "ended"


def test_the_status_tells_what_each_campaign_waits_for() -> None:
    now = timezone.now()
    running = campaign_with({"queued": 2, "sent": 3, "retry": 1, "in_doubt": 1})
    waiting = campaign_with({"sent": 1, "retry": 2})
    paused = CampaignFactory.create(paused=True, status_reason="paused by ann")
    later = CampaignFactory.create(approved=True, scheduled_for=now + timedelta(hours=3))
    drafted = CampaignFactory.create(status_reason="edited after it was approved")
    CampaignFactory.create(name="a plain draft")
    CampaignFactory.create(sent=True, name="long over", finished_at=now - timedelta(days=2))
    data = json.loads(run("sender_status", "--json"))
    found = {fact["id"]: fact for fact in data["campaigns"]}
    assert set(found) == {running.pk, waiting.pk, paused.pk, later.pk, drafted.pk}
    counted = found[running.pk]
    assert (counted["audience"], counted["done"], counted["open"]) == (7, 4, 3)
    assert (counted["queued"], counted["retry"], counted["in_doubt"]) == (2, 1, 1)
    assert found[later.pk]["done"] is None
    text = run("sender_status")
    assert "paused by ann" in text
    assert "edited after it was approved" in text
    assert "starts in 3 h" in text
    assert re.search(r"next retry in \d+ (s|min)", text)


NEXT = "waits: transport default is paused"


@pytest.mark.parametrize(
    ("counts", "alive", "paused", "rate", "words"),
    [
        ({"queued": 2}, True, "everybody", None, NEXT),
        ({"queued": 2}, True, "everybody", 5.0, NEXT),
        ({"queued": 2}, True, "the account", None, f"{NEXT} for shop"),
        ({"queued": 2}, True, "another account", 2.0, "about 1 s left"),
        ({"queued": 2}, True, "another transport", 2.0, "about 1 s left"),
        ({"queued": 2}, False, "everybody", None, f"{NEXT}, and no sender is alive"),
        ({"queued": 2}, False, "", None, "waits for a sender"),
        ({"queued": 2}, True, "", 0.0, "waits for a sender"),
        ({"queued": 2, "handed_over": 1}, True, "", 0.0, "waits for the relay's answers"),
        ({"queued": 2}, True, "", None, "being sent"),
        ({"retry": 2}, True, "", 0.0, "next retry in "),
        ({"retry": 2}, False, "", None, "waits for a sender; next retry in "),
        ({"sent": 2}, False, "everybody", None, "finishes when a sender runs"),
        ({"sent": 2}, True, "everybody", None, ""),
    ],
)
def test_a_campaign_that_does_not_move_says_what_it_waits_for(
    counts: dict[str, int], alive: bool, paused: str, rate: float | None, words: str
) -> None:
    now = timezone.now()
    account = AccountFactory.create(slug="shop")
    campaign_with(counts, account=account)
    WorkerFactory.create(seen=now if alive else now - timedelta(minutes=1))
    if paused:
        whose = {"the account": account, "another account": AccountFactory.create()}.get(paused)
        alias = "other" if paused == "another transport" else "default"
        TransportPause.objects.create(
            alias=alias, account=whose, stage="connect", reason="refused", probe_at=now
        )
    seen = facts.status()
    (campaign,) = seen.campaigns
    step = status_text.next_step(replace(campaign, rate=rate), seen)
    assert step.startswith(words)
    assert bool(step) == bool(words)
    assert words.endswith(" ") or step == words


def test_the_status_tells_doubt_by_campaign_and_reason() -> None:
    campaign = campaign_with({})
    SendFactory.create_batch(2, campaign=campaign, in_doubt=True, reason="worker_lost")
    SendFactory.create(campaign=campaign, in_doubt=True, reason="timeout")
    SendFactory.create(
        transactional=True, subscriber=None, email="a@example.org", in_doubt=True, reason="timeout"
    )
    found = [(fact.campaign, fact.reason, fact.rows) for fact in facts.doubts()]
    assert found == [
        (campaign.pk, "worker_lost", 2),
        (campaign.pk, "timeout", 1),
        (None, "timeout", 1),
    ]
    assert "held for evidence or a person" in run("sender_status")


def test_the_status_tells_why_a_transport_is_paused_and_when_it_is_tried() -> None:
    account = AccountFactory.create()
    later = timezone.now() + timedelta(seconds=50)
    TransportPause.objects.create(
        alias="default", stage="auth", code=535, reason="535 5.7.8 bad password", probe_at=later
    )
    TransportPause.objects.create(
        alias="default", account=account, stage="mail", reason="553 sender", probe_at=later
    )
    text = run("sender_status")
    assert "TRANSPORTS PAUSED" in text
    assert "535 5.7.8 bad password" in text
    assert "everybody" in text
    assert account.slug in text
    assert [fact.account for fact in facts.pauses()] == [None, account.slug]


def test_the_latest_failures_are_grouped_by_reason() -> None:
    send = SendFactory.create()
    for number in range(3):
        DeliveryEvent.objects.create(
            send=send, account=send.account, kind="failed", reason="policy", code=550,
            text=f"5.7.1 blocked, {number}",
        )  # fmt: skip
    DeliveryEvent.objects.create(send=send, account=send.account, kind="sent", reason="accepted")
    DeliveryEvent.objects.create(
        send=send, account=send.account, kind="bounced", reason="address_dead",
        at=timezone.now() - timedelta(days=2),
    )  # fmt: skip
    found = facts.failures(database_time())
    assert [(f.kind, f.reason, f.events, f.latest) for f in found] == [
        ("failed", "policy", 3, "550 5.7.1 blocked, 2")
    ]


@pytest.mark.parametrize(
    ("each", "limit", "looks", "rate"),
    [(0, None, 5, 0), (1, None, 5, 1), (4, None, 3, 4), (20, None, 1, 20), (4, 0.5, 3, 0.5)],
)
def test_a_rate_is_looked_for_until_it_says_something(
    monkeypatch: pytest.MonkeyPatch, each: int, limit: float | None, looks: int, rate: float
) -> None:
    campaign = campaign_with({"queued": 30})
    WorkerFactory.create()
    if limit is not None:
        RateLimit.objects.create(key="transport:default", usual=limit, rate=limit)
    clock = [0.0]

    def sleep(seconds: float) -> None:
        clock[0] += 1.0
        done = Send.objects.filter(campaign=campaign, status="queued").values("pk")[:each]
        Send.objects.filter(pk__in=list(done.values_list("pk", flat=True))).update(
            status="canceled"
        )

    monkeypatch.setattr(sender_status, "sleep", sleep)
    monkeypatch.setattr(sender_status, "monotonic", lambda: clock[0])
    (found,) = sender_status.look().campaigns
    assert clock[0] == looks
    assert found.rate == pytest.approx(rate)


def test_nothing_is_looked_at_twice_where_nothing_can_move(monkeypatch: pytest.MonkeyPatch) -> None:
    def never(seconds: float) -> None:
        raise AssertionError("it waited")

    monkeypatch.setattr(sender_status, "sleep", never)
    campaign_with({"queued": 3})
    sender_status.look()
    WorkerFactory.create()
    pause = TransportPause.objects.create(alias="default", probe_at=timezone.now())
    sender_status.look()
    pause.delete()
    with pytest.raises(AssertionError, match="it waited"):
        sender_status.look()
    later = timezone.now() + timedelta(hours=1)
    Send.objects.update(status="retry", next_attempt_at=later)
    sender_status.look()


def test_a_rate_is_taken_from_two_looks() -> None:
    campaign = campaign_with({"queued": 4, "sent": 1})
    before = facts.campaigns(database_time())[0]
    Send.objects.filter(campaign=campaign, status="queued").update(status="canceled")
    after = facts.campaigns(database_time())[0]
    assert facts.rate(before, after, 2.0) == pytest.approx(2.0)
    assert facts.rate(after, before, 2.0) is None


def test_a_long_list_is_whole_as_json_and_says_as_text_what_it_leaves_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(plain_table, "MOST", 2)
    now = timezone.now()
    first = CampaignFactory.create(name="runs longest", sending=True)
    over = CampaignFactory.create(name="is over", sent=True)
    later = CampaignFactory.create(name="runs too", paused=True)
    for campaign in (first, over, later):
        SendFactory.create(campaign=campaign, in_doubt=True)
        SendFactory.create(campaign=campaign, retry=True)
    for number in range(3):
        WorkerFactory.create(seen=now)
        TransportPause.objects.create(
            alias=f"relay{number}", stage="auth", reason="bad password", probe_at=now
        )
        DeliveryEvent.objects.create(account=first.account, kind="failed", reason=f"r{number}")
    data = json.loads(run("sender_status", "--json"))
    assert [fact["id"] for fact in data["campaigns"]] == [first.pk, over.pk, later.pk]
    kinds = ("workers", "campaigns", "pauses", "doubts", "failures")
    assert [len(data[kind]) for kind in kinds] == [
        Worker.objects.count(), 3, 3, 3, 3
    ]  # fmt: skip
    text = run("sender_status")
    section = text[text.index("CAMPAIGNS") : text.index("TO RETRY")]
    assert "runs longest" in section
    assert "runs too" in section
    assert "is over" not in section
    assert section.rstrip().endswith("and 1 more; --json has all of them")
    assert text.count("and 1 more; --json") >= len(kinds) - 1, "retries too, workers are more"


def test_failures_say_how_far_back_they_were_looked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    send, now = SendFactory.create(), timezone.now()
    for minutes in (50, 30, 3):
        DeliveryEvent.objects.create(
            send=send, account=send.account, kind="failed", reason="policy",
            at=now - timedelta(minutes=minutes),
        )  # fmt: skip
    assert "LATEST FAILURES (within a day)" in run("sender_status")
    monkeypatch.setattr(facts, "EVENTS", 2)
    seen = facts.status()
    assert [fact.events for fact in seen.failures] == [2]
    assert seen.failures_since == now - timedelta(minutes=30)
    assert "LATEST FAILURES (of the last 30 min; " in run("sender_status")
