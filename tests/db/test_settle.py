"""Outcomes: the token's fence, what overwrites what, and what is written with it."""

from __future__ import annotations

import uuid
from datetime import timedelta
from typing import Any

import pytest
from django.db import OperationalError, connection
from django.db.models.functions import Now
from django.utils import timezone

from campaigns import lifecycle
from campaigns.models import Campaign
from sending import build, events, ledger
from sending.answers import Answer, Outcome, Reason, Stage, Verdict
from sending.handover import hand_over
from sending.models import DeliveryEvent, Send
from sending.settle import Journal, decide, not_written, refused_here, settle
from subscribers.models import Suppression
from subscribers.suppression import is_suppressed

from .racing import Race
from .rows import (
    ANSWERS,
    LEASE,
    assert_identity,
    campaign_to,
    held,
    kinds_of,
    row,
    status_of,
    take,
    told,
)

OLD = uuid.UUID("0ddba115-0000-4000-8000-000000000001")
OTHERS = ["retry", "bounced", "failed", "in_doubt"]
STATUSES = list(Send.Status.values)


def _settle(send: Send, outcome: str, *, token: uuid.UUID | None = None, **more: Any) -> bool:
    """Whether the outcome took effect."""
    became = settle([told(held(send, token=token), outcome, **more)], doubt_wait=600)
    send.refresh_from_db()
    return bool(became)


# --- the current hand-over -------------------------------------------------------------------


@pytest.mark.django_db
@pytest.mark.parametrize("outcome", ["sent", *OTHERS])
@pytest.mark.parametrize("state", ["sending", "in_doubt"])
def test_the_outcome_of_the_current_hand_over(state: str, outcome: str) -> None:
    send = row(campaign_to(0), state)
    token = send.claim_token
    effective = _settle(send, outcome)
    assert effective is not (state == outcome == "in_doubt")
    assert (send.status, send.lease_until, send.settle_at) == (
        outcome,
        None if effective else send.lease_until,
        None,
    )
    if not effective:
        return
    said = ANSWERS[outcome]
    assert (send.answer_stage, send.answer_code) == (said.stage, said.code)
    assert (send.answer_enhanced, send.answer_text) == (said.enhanced, said.text)
    assert send.claim_token == (token if outcome in ("sent", "in_doubt") else None)
    if outcome == "sent":
        assert send.sent_at is not None
        assert (send.provider_message_id, send.reason) == ("4711", "")
        assert kinds_of(send) == []
    else:
        assert kinds_of(send) == [outcome]
        event = DeliveryEvent.objects.get()
        assert (event.stage, event.code, event.enhanced) == (
            said.stage,
            said.code,
            said.enhanced,
        )
        assert (event.text, event.reason, event.attempt) == (said.text, send.reason, 1)


@pytest.mark.django_db
def test_a_retry_falls_due_after_its_delay() -> None:
    send = row(campaign_to(0), "sending")
    assert _settle(send, "retry", delay=120.0)
    db_now = Send.objects.annotate(db_now=Now()).get().db_now
    assert send.next_attempt_at is not None
    assert timedelta(seconds=60) < send.next_attempt_at - db_now <= timedelta(seconds=120)
    assert send.attempts == 1


@pytest.mark.django_db
@pytest.mark.parametrize("outcome", ["sent", *OTHERS])
def test_writing_an_outcome_again_changes_nothing(outcome: str) -> None:
    send = row(campaign_to(0), "sending")
    settlement = told(held(send), outcome)
    assert settle([settlement], doubt_wait=0) == {send.pk: outcome}
    before = Send.objects.filter(pk=send.pk).values().get()
    assert settle([settlement], doubt_wait=0) == {}
    assert Send.objects.filter(pk=send.pk).values().get() == before
    assert DeliveryEvent.objects.count() == (outcome != "sent")


@pytest.mark.django_db
def test_nothing_to_settle_is_nothing() -> None:
    assert settle([], doubt_wait=0) == {}


@pytest.mark.django_db
def test_a_lot_of_mixed_outcomes_is_one_step() -> None:
    campaign = campaign_to(6)
    build.build(campaign.pk, size=10)
    rows = hand_over(take([campaign.pk], 6), lease=LEASE).go
    outcomes = ["sent", "retry", "bounced", "failed", "in_doubt", "sent"]
    became = settle([told(r, o) for r, o in zip(rows, outcomes, strict=True)], doubt_wait=0)
    assert became == {r.id: o for r, o in zip(rows, outcomes, strict=True)}
    counts = ledger.counts(campaign)
    assert counts["sent"] == 2
    assert [counts[o] for o in OTHERS] == [1, 1, 1, 1]
    assert_identity(campaign)


@pytest.mark.django_db
def test_each_outcome_of_one_row_is_noted_with_its_own_answer() -> None:
    """The journal may hold two outcomes of one row, of two hand-overs of it."""
    send = row(campaign_to(0), "sending")
    current = told(held(send), "failed")
    older = told(held(send, token=OLD), "retry")
    for pair in ([current, older], [older, current]):
        Send.objects.filter(pk=send.pk).update(status="sending", claim_token=current.token,
                                               lease_until=timezone.now())  # fmt: skip
        DeliveryEvent.objects.all().delete()
        assert settle(pair, doubt_wait=0) == {send.pk: "failed"}
        assert DeliveryEvent.objects.get().code == 554


# --- the fence -------------------------------------------------------------------------------


@pytest.mark.django_db
@pytest.mark.parametrize("outcome", ["sent", *OTHERS])
@pytest.mark.parametrize("status", STATUSES)
def test_a_strange_token_changes_nothing(status: str, outcome: str) -> None:
    send = row(campaign_to(0), status)
    assert not _settle(send, outcome, token=uuid.uuid4())
    assert send.status == status
    assert not Suppression.objects.exists()
    assert not DeliveryEvent.objects.exists()


@pytest.mark.django_db
@pytest.mark.parametrize("status", [s for s in STATUSES if s != "sent"])
def test_an_acceptance_of_an_earlier_hand_over_ends_the_row(status: str) -> None:
    campaign = campaign_to(0)
    send = row(campaign, status, doubt_tokens=[uuid.uuid4(), OLD])
    if status == "canceled":
        Campaign.objects.filter(pk=campaign.pk).update(status="canceled")
    assert _settle(send, "sent", token=OLD)
    assert (send.status, send.lease_until) == ("sent", None)
    assert send.sent_at is not None
    assert take([campaign.pk], 5) == [], "no further hand-over"


@pytest.mark.django_db
def test_an_acceptance_that_comes_during_a_repeat_bars_its_hand_over() -> None:
    send = row(campaign_to(0), "claimed", doubt_tokens=[OLD])
    repeat = held(send)
    assert _settle(send, "sent", token=OLD)
    handed = hand_over([repeat], lease=LEASE)
    assert (handed.go, handed.withheld) == ([], {})
    assert status_of(send) == "sent"


@pytest.mark.django_db
def test_a_second_acceptance_does_not_move_the_first() -> None:
    send = row(campaign_to(0), "sending", doubt_tokens=[OLD])
    assert _settle(send, "sent", token=OLD)
    first = send.sent_at
    assert not _settle(send, "sent")
    assert send.sent_at == first


@pytest.mark.django_db
@pytest.mark.parametrize("outcome", OTHERS)
@pytest.mark.parametrize("status", STATUSES)
def test_any_other_late_word_about_an_earlier_hand_over_is_not_heard(
    status: str, outcome: str
) -> None:
    send = row(campaign_to(0), status, doubt_tokens=[OLD])
    assert not _settle(send, outcome, token=OLD)
    assert (send.status, send.doubt_tokens) == (status, [OLD])


@pytest.mark.django_db
@pytest.mark.parametrize("outcome", OTHERS)
@pytest.mark.parametrize("known", ["sent", "bounced", "failed", "canceled", "suppressed"])
def test_a_late_word_does_not_overwrite_knowledge(known: str, outcome: str) -> None:
    token = uuid.uuid4()
    send = row(campaign_to(0), known, claim_token=token)
    assert not _settle(send, outcome, token=token)
    assert send.status == known


@pytest.mark.django_db
@pytest.mark.parametrize("outcome", ["retry", "bounced", "failed", "in_doubt"])
def test_an_answer_without_a_hand_over_is_not_heard(outcome: str) -> None:
    send = row(campaign_to(0), "claimed")
    assert not _settle(send, outcome)
    assert send.status == "claimed"


@pytest.mark.django_db
def test_a_message_that_can_not_be_made_fails_from_its_claim() -> None:
    send = row(campaign_to(0), "claimed")
    said = Answer(Stage.LOCAL, None, "", "the message could not be made: no such filter")
    settle([refused_here(held(send), said)], doubt_wait=0)
    send.refresh_from_db()
    assert (send.status, send.attempts, send.reason) == ("failed", 0, Reason.REFUSED_LOCALLY)
    assert (kinds_of(send), send.answer_text) == (["failed"], said.text)


@pytest.mark.django_db
@pytest.mark.parametrize("policy", ["hold", "resend"])
def test_a_repeat_that_can_not_be_made_leaves_the_earlier_doubt(policy: str) -> None:
    campaign = campaign_to(0)
    type(campaign.account).objects.filter(pk=campaign.account_id).update(in_doubt_policy=policy)
    send = row(campaign, "claimed", doubt_tokens=[OLD], handed_at=timezone.now())
    said = Answer(Stage.LOCAL, None, "", "the message could not be made")
    settle([refused_here(held(send), said)], doubt_wait=0)
    send.refresh_from_db()
    assert (send.status, send.claim_token, send.doubt_tokens) == ("in_doubt", OLD, [])
    assert send.settle_at is None, "held: the policy would only fail the same way again"


# --- canceled campaigns ----------------------------------------------------------------------


@pytest.mark.django_db
@pytest.mark.parametrize("outcome", ["sent", *OTHERS])
@pytest.mark.parametrize("doubted", [False, True])
def test_outcomes_after_cancel(outcome: str, doubted: bool) -> None:
    campaign = campaign_to(0)
    send = row(campaign, "sending", doubt_tokens=[OLD] if doubted else [])
    lifecycle.cancel(campaign)
    assert _settle(send, outcome)
    if outcome != "retry":
        assert send.status == outcome
    elif doubted:
        assert (send.status, send.claim_token, send.doubt_tokens) == ("in_doubt", OLD, [])
    else:
        assert (send.status, send.claim_token) == ("canceled", None)
    assert kinds_of(send) == ([] if outcome == "sent" else [send.status])


@pytest.mark.django_db
@pytest.mark.parametrize("policy", ["resend", "assume_sent"])
def test_doubt_in_a_canceled_campaign_is_held(policy: str) -> None:
    campaign = campaign_to(0)
    campaign.account.in_doubt_policy = policy
    campaign.account.save()
    send = row(campaign, "sending")
    lifecycle.cancel(campaign)
    assert _settle(send, "in_doubt")
    assert (send.status, send.settle_at) == ("in_doubt", None)


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("policy", "waits"), [("hold", False), ("resend", True), ("assume_sent", True)]
)
def test_a_policy_waits_before_it_settles_doubt(policy: str, waits: bool) -> None:
    campaign = campaign_to(0)
    campaign.account.in_doubt_policy = policy
    campaign.account.save()
    send = row(campaign, "sending")
    assert _settle(send, "in_doubt")
    db_now = Send.objects.annotate(db_now=Now()).get().db_now
    assert (send.settle_at is not None) is waits
    if send.settle_at is not None:
        assert timedelta(seconds=500) < send.settle_at - db_now <= timedelta(seconds=600)
        assert _settle(send, "retry"), "a late answer ends the wait"
        assert Send.objects.filter(status="retry", settle_at=None).exists()


# --- what is suppressed with it --------------------------------------------------------------


@pytest.mark.django_db
@pytest.mark.parametrize("outcome", ["sent", *OTHERS])
def test_only_a_dead_address_is_suppressed(outcome: str) -> None:
    send = row(campaign_to(0), "sending")
    _settle(send, outcome)
    assert is_suppressed(send.account, str(send.email)) is (outcome == "bounced")
    if outcome == "bounced":
        entry = Suppression.objects.get()
        assert (entry.account, entry.reason) == (send.account, "hard_bounce")
        assert "550 5.1.1 no such user" in entry.evidence


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("ends", [True, False], ids=["commits", "session dies"])
def test_a_bounce_and_its_suppression_are_one_transaction(
    ends: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    campaign = campaign_to(0)
    send = row(campaign, "sending")
    with Race() as race:
        halt = race.halt()
        # Events are noted last, after the suppression.
        monkeypatch.setattr(events, "record", halt.behind(events.record))
        settling = race.start_to(halt, lambda: settle([told(held(send), "bounced")], doubt_wait=0))
        assert status_of(send) == "sending"
        assert not Suppression.objects.exists()
        if not ends:
            settling.kill_backend()
        halt.released.set()
        if ends:
            assert settling.result() == {send.pk: "bounced"}
        else:
            with pytest.raises(OperationalError):
                settling.result()
    assert status_of(send) == ("bounced" if ends else "sending")
    assert Suppression.objects.exists() is ends
    assert DeliveryEvent.objects.exists() is ends


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(
    ("outcome", "durable", "setting"),
    [("sent", False, "off"), ("failed", False, "off"), ("bounced", False, "on"),
     ("failed", True, "on")],
)  # fmt: skip
def test_only_an_outcome_that_suppresses_must_be_durable_at_once(
    outcome: str, durable: bool, setting: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = row(campaign_to(0), "sending")
    send = row(campaign_to(0), "sending")
    inside: list[str] = []
    record = events.record

    def spying(cursor: Any, notes: Any) -> None:
        cursor.execute("SHOW synchronous_commit")
        inside.append(cursor.fetchone()[0])
        record(cursor, notes)

    monkeypatch.setattr(events, "record", spying)
    # Events are only noted for what was refused, so a refusal goes with every acceptance.
    lot = [told(held(send), outcome), told(held(other), "failed")]
    settle(lot, doubt_wait=0, durable=durable)
    assert inside == [setting]
    with connection.cursor() as cursor:
        cursor.execute("SHOW synchronous_commit")
        assert cursor.fetchone() == ("on",)


@pytest.mark.django_db(transaction=True)
def test_two_lots_that_suppress_the_same_people_do_not_wait_in_a_circle(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Two campaigns to the same dead addresses, their rows in opposite order of ids."""
    first = campaign_to(2)
    people = list(first.account.subscribers.order_by("id"))
    second = campaign_to(0)
    Campaign.objects.filter(pk=second.pk).update(account=first.account)
    second.refresh_from_db()
    second.segments.set(first.segments.all())
    forth = [row(first, "sending", subscriber=p) for p in people]
    back = [row(second, "sending", subscriber=p) for p in reversed(people)]
    with Race() as race:
        halt = race.halt()
        monkeypatch.setattr(events, "record", halt.behind(events.record))
        one = race.start_to(
            halt, lambda: settle([told(held(s), "bounced") for s in forth], doubt_wait=0)
        )
        two = race.start(lambda: settle([told(held(s), "bounced") for s in back], doubt_wait=0))
        two.wait_until_blocked()
        halt.released.set()
        assert len(one.result()) == len(two.result()) == 2
    assert Suppression.objects.count() == 2


# --- pure parts ------------------------------------------------------------------------------


@pytest.mark.django_db
@pytest.mark.parametrize("attempts", range(1, 7))
def test_a_transient_refusal_is_a_retry_until_the_attempts_are_spent(attempts: int) -> None:
    send = row(campaign_to(0), "sending")
    found = decide(
        held(send, attempts=attempts),
        ANSWERS["retry"],
        Verdict(Outcome.RETRY, Reason.GREYLISTED),
        jitter=0.5,
    )
    if attempts < 5:
        assert found.outcome == "retry"
        assert found.delay == pytest.approx([30, 120, 480, 1800][attempts - 1])
    else:
        assert (found.outcome, found.delay) == ("failed", 0.0)
    assert (found.reason, found.suppress) == ("greylisted", False)


@pytest.mark.django_db
def test_what_the_relay_asked_for_wins() -> None:
    send = row(campaign_to(0), "sending")
    said = Answer(Stage.HTTP, 429, "", "slow down", retry_after=77.0)
    found = decide(held(send), said, Verdict(Outcome.RETRY, Reason.THROTTLED))
    assert (found.outcome, found.delay) == ("retry", 77.0)


@pytest.mark.django_db
def test_the_journal_forgets_what_was_kept_before_a_durable_commit() -> None:
    send = row(campaign_to(0), "sending")
    journal = Journal()
    early, late = told(held(send), "sent"), told(held(send), "failed")
    journal.keep([early])
    before = journal.kept()
    journal.keep([late])
    journal.forget(before)
    assert journal.kept() == [late]
    journal.forget(before)
    assert journal.kept() == [late], "two beats at once forget nothing that neither has looked at"


# --- what a crash has lost -------------------------------------------------------------------

MINE = uuid.UUID("0ddba115-0000-4000-8000-000000000002")
#: (state of the row, where the hand-over's token is in it) -> outcomes that are lost then.
LOST_WHEN: dict[tuple[str, str], set[str]] = {
    # The row stands where the hand-over left it: whatever was written is gone.
    ("sending", "claim"): {"sent", *OTHERS},
    # Rescued since, or in doubt as it was told.
    ("in_doubt", "claim"): {"sent", "retry", "bounced", "failed"},
    # Claimed or handed over anew: the outcome that let it go was written.
    ("claimed", "elsewhere"): set(),
    ("sending", "elsewhere"): set(),
    ("in_doubt", "elsewhere"): set(),
    # Sent again after doubt: only an acceptance speaks of the earlier hand-over.
    ("queued", "doubt"): {"sent"},
    ("claimed", "doubt"): {"sent"},
    ("sending", "doubt"): {"sent"},
    ("retry", "doubt"): {"sent"},
    ("failed", "doubt"): {"sent"},
    # Written; a row that is sent keeps its token.
    ("sent", "claim"): set(),
    ("sent", "doubt"): set(),
    ("retry", "elsewhere"): set(),
    ("bounced", "elsewhere"): set(),
    ("failed", "elsewhere"): set(),
    ("canceled", "elsewhere"): set(),
}


@pytest.mark.django_db
@pytest.mark.parametrize("outcome", ["sent", *OTHERS])
@pytest.mark.parametrize(("state", "place"), LOST_WHEN)
def test_which_outcomes_the_ledger_does_not_show(state: str, place: str, outcome: str) -> None:
    fields: dict[str, Any] = {"doubt_tokens": [MINE] if place == "doubt" else []}
    if place == "claim":
        fields["claim_token"] = MINE
    send = row(campaign_to(0), state, **fields)
    said = told(held(send, token=MINE), outcome)
    lost = outcome in LOST_WHEN[state, place]
    assert not_written([said]) == ([said] if lost else [])
    # What counts as lost can be written, and is then lost no more: the beat comes to an end.
    if lost:
        assert settle([said], doubt_wait=0)
        assert not_written([said]) == []


@pytest.mark.django_db
def test_what_is_lost_is_found_among_the_rest_in_its_order() -> None:
    campaign = campaign_to(0)
    written, lost, gone = (row(campaign, "sending") for _ in range(3))
    lot = [told(held(s), "sent") for s in (lost, written, gone)]
    lot.append(told(held(lost), "in_doubt"))
    settle([lot[1]], doubt_wait=0)
    gone.delete()
    assert not_written(lot) == [lot[0], lot[3]]
    assert not_written([]) == []
