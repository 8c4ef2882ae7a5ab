"""What an operator types at 3 a.m., and what comes back."""

from __future__ import annotations

import getpass
import io
import json
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.utils import timezone

from campaigns.models import Campaign
from sending import plain_table, status_text, story, story_text
from sending import status as facts
from sending.ledger import STATUSES
from sending.management.commands import sender_status
from sending.models import DeliveryEvent, RateLimit, Send, TransportPause, Worker
from sending.remaining import Watcher
from sending.shared import Shared
from subscribers.addresses import erased_hashes
from tests.factories import (
    AccountFactory,
    CampaignFactory,
    SegmentFactory,
    SendFactory,
    StaffFactory,
    SubscriberFactory,
    SuppressionFactory,
    WorkerFactory,
)

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def in_haste(monkeypatch: pytest.MonkeyPatch) -> None:
    """The status takes its rates from looks that are closer together."""
    monkeypatch.setattr(sender_status, "SAMPLE_S", 0.01)


def run(*arguments: str) -> str:
    out = io.StringIO()
    call_command(*arguments, stdout=out)
    return out.getvalue()


def refused(*arguments: str, code: int) -> str:
    """The one line with which the command refuses."""
    with pytest.raises(CommandError) as caught:
        run(*arguments)
    assert caught.value.returncode == code
    assert "\n" not in str(caught.value)
    return str(caught.value)


def campaign_with(counts: dict[str, int], *, audience: int | None = None, **given: Any) -> Campaign:
    """A campaign with so many rows per trait of ``SendFactory``; ``queued`` is none."""
    campaign = CampaignFactory.create(
        **{"sending": True, "built_at": timezone.now(), **given},
        audience=sum(counts.values()) if audience is None else audience,
    )
    for trait, number in counts.items():
        traits = {} if trait == "queued" else {trait: True}
        SendFactory.create_batch(number, campaign=campaign, **traits)
    return campaign


ONE_OF_EACH = {
    "queued": 1,
    "claimed": 1,
    "handed_over": 1,
    "retry": 1,
    "sent": 1,
    "bounced": 1,
    "failed": 1,
    "suppressed": 1,
    "in_doubt": 1,
    "canceled": 1,
}


# --- ledger ----------------------------------------------------------------------------------


def test_the_ledger_of_nothing() -> None:
    CampaignFactory.create()
    assert run("ledger") == "No campaign has started yet.\n"
    assert json.loads(run("ledger", "--json")) == []


def test_the_ledger_shows_every_status_and_the_identity() -> None:
    campaign = campaign_with(ONE_OF_EACH)
    data = json.loads(run("ledger", "--campaign", str(campaign.pk), "--json"))
    assert data == [
        {
            "campaign": campaign.pk,
            "name": campaign.name,
            "status": "sending",
            "built": True,
            **dict.fromkeys(STATUSES, 1),
            "audience": 10,
            "difference": 0,
            "holds": True,
        }
    ]
    lines = run("ledger", "--campaign", str(campaign.pk)).splitlines()
    shown = {line[:12].strip(): line[12:].split()[0] for line in lines if line.startswith("  ")}
    words = {str(Send.Status(status).label): "1" for status in STATUSES}
    assert words.items() <= shown.items()
    assert (shown["rows"], shown["people"], shown["difference"]) == ("10", "10", "0")
    assert "every recipient is accounted for" in lines[-1]


def test_the_ledger_of_all_has_a_line_each() -> None:
    first, second = campaign_with({"sent": 3}), campaign_with(ONE_OF_EACH)
    lines = run("ledger").splitlines()
    cells = dict(zip(lines[0].split("  "), lines[0].split("  "), strict=True))
    assert "in doubt" in {cell.strip() for cell in cells}
    assert lines[1].split()[0] == str(first.pk)
    # people, open (queued, claimed, sending, retry), sent, ..., difference
    assert lines[2].split()[-9:] == ["10", "4", "1", "1", "1", "1", "1", "1", "0"]
    assert lines[2].split()[0] == str(second.pk)
    assert lines[-1] == "Every recipient is accounted for."


@pytest.mark.parametrize(("audience", "words"), [(4, "people have no row"), (2, "no person")])
def test_a_ledger_that_does_not_add_up_exits_1(audience: int, words: str) -> None:
    campaign_with({"sent": 1})
    broken = campaign_with({"sent": 3}, audience=audience)
    out = io.StringIO()
    with pytest.raises(CommandError) as caught:
        call_command("ledger", stdout=out)
    assert caught.value.returncode == 1
    assert str(caught.value) == f"the ledger does not add up for campaign {broken.pk}"
    assert words in out.getvalue()
    assert "Every recipient" not in out.getvalue()
    refused("ledger", "--campaign", str(broken.pk), "--json", code=1)


@pytest.mark.parametrize("given", ["99", "x", "-1", "1.5", "", "9" * 30, "٣"])
def test_an_unknown_campaign_exits_2(given: str) -> None:
    assert refused("ledger", f"--campaign={given}", code=2) == f"there is no campaign {given!r}"


# --- sender_status ---------------------------------------------------------------------------


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
    found = {fact.host: (fact.state, fact.holds) for fact in facts.workers(facts.database_time())}
    assert found == {
        "alive": ("alive", 0),
        "ended": ("ended", 0),
        "lost": ("lost", 2),
        "holding": ("lost", 1),
    }
    assert run("sender_status").startswith("SENDERS: 1 alive\n")


@pytest.mark.parametrize(("seconds", "state"), [(0, "alive"), (10, "alive"), (11, "lost")])
def test_a_worker_is_alive_for_ten_seconds(seconds: int, state: str) -> None:
    now = timezone.now()
    assert facts.worker_state(None, now - timedelta(seconds=seconds), now) == state
    assert facts.worker_state(now, now - timedelta(seconds=seconds), now) == "ended"


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
    assert "next retry in 3" in text


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
        ({"sent": 2}, False, "everybody", None, ""),
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
    found = facts.failures(facts.database_time())
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
    before = facts.campaigns(facts.database_time())[0]
    Send.objects.filter(campaign=campaign, status="queued").update(status="canceled")
    after = facts.campaigns(facts.database_time())[0]
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


# --- one address -----------------------------------------------------------------------------


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
    assert "is nobody's subscriber" in text
    assert "(erased)" in text
    assert "SENT" in text


def test_the_story_as_data() -> None:
    send = SendFactory.create(in_doubt=True, reason="timeout")
    data = json.loads(run("sender_status", "--address", str(send.email), "--json"))
    assert [(c["status"], c["reason"]) for c in data["chapters"]] == [("in_doubt", "timeout")]


# --- resolve_doubt ---------------------------------------------------------------------------


def statuses(campaign: Campaign) -> dict[str, int]:
    found: dict[str, int] = {}
    for status in Send.objects.filter(campaign=campaign).values_list("status", flat=True):
        found[status] = found.get(status, 0) + 1
    return found


def test_treat_as_sent_says_how_many_and_who() -> None:
    StaffFactory.create(username="ann")
    campaign = campaign_with({"in_doubt": 3, "failed": 1, "sent": 1})
    out = run(
        "resolve_doubt", "--campaign", str(campaign.pk), "--treat-as-sent", "--by", "ann"
    )  # fmt: skip
    assert out == "3 rows treated as sent.\n"
    assert statuses(campaign) == {"sent": 4, "failed": 1}
    assert set(DeliveryEvent.objects.values_list("kind", "by_name")) == {("treat_as_sent", "ann")}


@pytest.mark.parametrize(
    ("user", "by"),
    [
        ("maria", "maria at the command line"),
        ("\udcff" + "m" * 500, "?" + "m" * 99 + " at the command line"),
        (OSError("nobody"), "command line"),
        (KeyError("uid"), "command line"),
    ],
)
def test_whoever_types_it_is_remembered_by_the_systems_name(
    user: str | Exception, by: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def getuser() -> str:
        if isinstance(user, Exception):
            raise user
        return user

    monkeypatch.setattr(getpass, "getuser", getuser)
    campaign = campaign_with({"in_doubt": 1})
    run("resolve_doubt", "--campaign", str(campaign.pk), "--treat-as-sent")
    assert DeliveryEvent.objects.get().by_name == by


def test_rows_whose_sender_may_live_are_left_and_that_is_said() -> None:
    campaign = campaign_with({"in_doubt": 3})
    held = Send.objects.filter(campaign=campaign).first()
    assert held is not None
    Send.objects.filter(pk=held.pk).update(lease_until=timezone.now() + timedelta(minutes=1))
    out = run("resolve_doubt", "--campaign", str(campaign.pk), "--send-again")
    assert out == (
        "2 rows to be sent again.\n1 row left as before: "
        "the sender that held it may still live, try again in a minute.\n"
    )


def test_send_again_reopens_and_leaves_what_failed() -> None:
    campaign = campaign_with({"in_doubt": 1, "failed": 2}, sending=False, sent=True)
    out = run("resolve_doubt", "--campaign", str(campaign.pk), "--send-again")
    assert out == "1 row to be sent again.\n"
    assert statuses(campaign) == {"queued": 1, "failed": 2}
    campaign.refresh_from_db()
    assert campaign.status == "sending"
    out = run("resolve_doubt", "--campaign", str(campaign.pk), "--send-again", "--failed")
    assert out == "2 rows to be sent again.\n"
    assert statuses(campaign) == {"queued": 3}


def test_one_address_only() -> None:
    campaign = campaign_with({"in_doubt": 2, "sent": 1})
    chosen = Send.objects.filter(campaign=campaign, status="in_doubt").first()
    assert chosen is not None
    number = str(campaign.pk)
    assert chosen.email is not None
    out = run(
        "resolve_doubt", "--campaign", number, "--treat-as-sent", "--address", chosen.email.upper()
    )
    assert out == "1 row treated as sent.\n"
    chosen.refresh_from_db()
    assert chosen.status == "sent"
    out = run("resolve_doubt", "--campaign", number, "--treat-as-sent", "--address", chosen.email)
    assert out == "0 rows treated as sent.\n"


def test_a_dry_run_changes_nothing() -> None:
    campaign = campaign_with({"in_doubt": 2, "failed": 1})
    out = run("resolve_doubt", "--campaign", str(campaign.pk), "--send-again", "--dry-run")
    assert out == "2 rows to be sent again. Dry run: nothing was changed.\n"
    assert statuses(campaign) == {"in_doubt": 2, "failed": 1}


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "say one of --send-again and --treat-as-sent"),
        (["--send-again", "--treat-as-sent"], "say one of"),
        (["--treat-as-sent", "--failed"], "--failed goes with --send-again"),
        (["--treat-as-sent", "--by", "nobody"], "there is no user 'nobody'"),
        (["--treat-as-sent", "--address", "x@example.org"], "has no row for x@example.org"),
    ],
)
def test_bad_input_is_refused(arguments: list[str], words: str) -> None:
    campaign = campaign_with({"in_doubt": 1, "failed": 1})
    told = refused("resolve_doubt", "--campaign", str(campaign.pk), *arguments, code=2)
    assert words in told
    assert statuses(campaign) == {"in_doubt": 1, "failed": 1}


def test_the_campaign_must_be_named_and_known() -> None:
    assert "--campaign is missing" in refused("resolve_doubt", "--send-again", code=2)
    refused("resolve_doubt", "--send-again", "--campaign", "77", code=2)


def test_a_canceled_campaign_is_not_sent_again_but_may_be_closed() -> None:
    campaign = campaign_with({"in_doubt": 1}, sending=False, canceled=True)
    number = str(campaign.pk)
    told = refused("resolve_doubt", "--campaign", number, "--send-again", code=2)
    assert told == f"campaign {number} is canceled: nothing of it is sent again"
    assert run("resolve_doubt", "--campaign", number, "--treat-as-sent").startswith("1 row ")


# --- how much is left ------------------------------------------------------------------------


@pytest.mark.django_db(transaction=True)
def test_what_is_left_is_counted_on_a_borrowed_connection() -> None:
    shared = Shared(
        lanes=1, lot_limit=1, lease=60, margin=10, freshness=5, doubt_wait=600, poll=1
    )  # fmt: skip
    try:
        watcher = Watcher(shared, every=2.0)
        assert watcher.count().total == 0
        campaign = campaign_with(ONE_OF_EACH)
        campaign_with({"queued": 5}, sending=False, paused=True)
        found = watcher.count()
        assert (found.total, found.open, found.waiting) == (10, 4, 1)
        assert not found.building
        Send.objects.filter(campaign=campaign).delete()
        Campaign.objects.filter(pk=campaign.pk).update(status="sent", finished_at=timezone.now())
        found = watcher.count()
        assert (found.total, found.open) == (10, 0), "it finished in this stretch of work"
        assert watcher.count().total == 0, "the next stretch begins at nothing"
        CampaignFactory.create(sending=True, audience=3)
        assert watcher.count().building
    finally:
        shared.pool.close()
