"""Outcomes of the current hand-over, how they are decided, and what cancel makes of them."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db.models.functions import Now
from django.utils import timezone

from campaigns import lifecycle
from sending import build, ledger
from sending.answers import Answer, Outcome, Reason, Stage, Verdict
from sending.handover import hand_over
from sending.models import DeliveryEvent, Send
from sending.settle import decide, settle

from .handed import OLD
from .rows import ANSWERS, LEASE, assert_identity, campaign_to, held, kinds_of, row, take, told
from .settled import OTHERS, settle_one

# --- the current hand-over -------------------------------------------------------------------


@pytest.mark.django_db
@pytest.mark.parametrize("outcome", ["sent", *OTHERS])
@pytest.mark.parametrize("state", ["sending", "in_doubt"])
def test_the_outcome_of_the_current_hand_over(state: str, outcome: str) -> None:
    send = row(campaign_to(0), state)
    token = send.claim_token
    effective = settle_one(send, outcome)
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
    assert settle_one(send, "retry", delay=120.0)
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


# --- canceled campaigns ----------------------------------------------------------------------


@pytest.mark.django_db
@pytest.mark.parametrize("outcome", ["sent", *OTHERS])
@pytest.mark.parametrize("doubted", [False, True])
def test_outcomes_after_cancel(outcome: str, doubted: bool) -> None:
    campaign = campaign_to(0)
    send = row(campaign, "sending", doubt_tokens=[OLD] if doubted else [])
    lifecycle.cancel(campaign)
    assert settle_one(send, outcome)
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
    assert settle_one(send, "in_doubt")
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
    assert settle_one(send, "in_doubt")
    db_now = Send.objects.annotate(db_now=Now()).get().db_now
    assert (send.settle_at is not None) is waits
    if send.settle_at is not None:
        assert timedelta(seconds=500) < send.settle_at - db_now <= timedelta(seconds=600)
        assert settle_one(send, "retry"), "a late answer ends the wait"
        assert Send.objects.filter(status="retry", settle_at=None).exists()


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
