"""Replays: a hand-over in doubt, repeated under its key while the provider deduplicates it."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.db.models.functions import Now
from django.utils import timezone

from campaigns import lifecycle
from campaigns.models import Campaign
from sending import doubt, ledger
from sending.answers import Answer, Outcome, Reason, Stage, Verdict
from sending.handover import give_back, hand_over
from sending.models import Send
from sending.queue import Claimed
from sending.rescue import rescue_expired
from sending.settle import Settlement, decide, settle
from subscribers.models import Account
from tests.claimed_rows import claimed_row

from .rows import ANSWERS, campaign_to, kinds_of, row, take, told

VIA = "default:0123456789abcdef"
WINDOW = 600.0
MADE_OF = {"date": "2026-01-01T09:00:00+00:00", "context": {"name": "N° 1"}}
UNKNOWN = Verdict(Outcome.IN_DOUBT, Reason.TIMEOUT)
LOST = Answer(Stage.HTTP, None, "", "timed out")


def _campaign(policy: str = "hold") -> Campaign:
    campaign = campaign_to(0)
    Account.objects.filter(pk=campaign.account_id).update(in_doubt_policy=policy)
    Campaign.objects.filter(pk=campaign.pk).update(built_at=Now())
    return campaign


def _claim(campaign: Campaign) -> Claimed:
    (claimed,) = take([campaign.pk], 1)
    claimed.frozen = claimed.frozen or dict(MADE_OF)
    return claimed


def _hand_over(claimed: Claimed, *, via: str = VIA, window: float = WINDOW) -> list[Claimed]:
    return hand_over([claimed], lease=60, via=via, window=window).go


def _settle(claimed: Claimed, answer: Answer, verdict: Verdict, **more: Any) -> None:
    settle([decide(claimed, answer, verdict, jitter=0.5, **more)], doubt_wait=600)


def _in_doubt(campaign: Campaign) -> Send:
    """A row whose first hand-over over a deduplicating transport is in doubt."""
    send = row(campaign)
    claimed = _claim(campaign)
    assert _hand_over(claimed)
    _settle(claimed, LOST, UNKNOWN, replay_wait=60)
    return _due(send)


def _due(send: Send) -> Send:
    """The wait before the next replay is over."""
    Send.objects.filter(pk=send.pk, settle_at__isnull=False).update(
        settle_at=Now() - timedelta(seconds=1)
    )
    return _fresh(send)


def _fresh(send: Send) -> Send:
    send.refresh_from_db()
    return send


def _replayed(campaign: Campaign) -> Claimed:
    """The row's replay, handed over."""
    assert doubt.apply_policies() == 1
    claimed = _claim(campaign)
    assert claimed.replays > 0
    assert _hand_over(claimed) == [claimed]
    return claimed


# --- what is fixed at the first hand-over ----------------------------------------------------


@pytest.mark.django_db
def test_the_first_hand_over_fixes_what_the_message_is_made_of() -> None:
    campaign = _campaign()
    send = row(campaign)
    first = _claim(campaign)
    assert _hand_over(first)
    assert (_fresh(send).frozen, send.via) == (MADE_OF, VIA)
    assert send.replay_until is not None
    again = Verdict(Outcome.RETRY, Reason.THROTTLED)
    _settle(first, Answer(Stage.HTTP, 429, "", "slow down", retry_after=0.001), again)
    Send.objects.update(next_attempt_at=Now() - timedelta(seconds=1))
    second = _claim(campaign)
    assert second.frozen == MADE_OF
    second.frozen = {"date": "another"}
    assert _hand_over(second)
    assert _fresh(send).frozen == MADE_OF


@pytest.mark.django_db
def test_nothing_is_fixed_for_a_transport_that_does_not_deduplicate() -> None:
    campaign = _campaign()
    send = row(campaign)
    claimed = _claim(campaign)
    assert _hand_over(claimed, window=0.0)
    assert (_fresh(send).frozen, send.replay_until, send.via) == (None, None, VIA)
    _settle(claimed, LOST, UNKNOWN)
    assert _fresh(send).settle_at is None
    assert doubt.apply_policies() == 0


@pytest.mark.django_db
def test_what_is_withheld_fixes_nothing() -> None:
    campaign = _campaign()
    send = row(campaign)
    claimed = _claim(campaign)
    lifecycle.pause(campaign)
    assert not _hand_over(claimed)
    assert (_fresh(send).frozen, send.via, send.replay_until) == (None, "", None)


# --- the replay ------------------------------------------------------------------------------


@pytest.mark.django_db
def test_a_doubt_is_replayed_after_the_answer_time_out_and_settled() -> None:
    campaign = _campaign()
    send = row(campaign)
    first = _claim(campaign)
    assert _hand_over(first)
    _settle(first, LOST, UNKNOWN, replay_wait=60)
    assert _fresh(send).status == "in_doubt"
    assert send.settle_at is not None
    assert timedelta(seconds=50) < send.settle_at - timezone.now() < timedelta(seconds=70)
    assert doubt.apply_policies() == 0
    assert not lifecycle.finish(campaign), "a doubt that is to be replayed is open"

    _due(send)
    replay = _replayed(campaign)
    assert replay.frozen == MADE_OF
    settle([told(replay, "sent")], doubt_wait=600)
    assert (_fresh(send).status, send.frozen, send.replay_until) == ("sent", None, None)
    assert kinds_of(send) == ["in_doubt", "replay"]
    assert ledger.counts(campaign)["sent"] == 1


@pytest.mark.django_db
def test_the_first_hand_overs_answer_still_counts_during_the_replay() -> None:
    campaign = _campaign()
    send = row(campaign)
    first = _claim(campaign)
    assert _hand_over(first)
    _settle(first, LOST, UNKNOWN, replay_wait=60)
    _due(send)
    replay = _replayed(campaign)
    settle([told(first, "sent")], doubt_wait=600)
    assert _fresh(send).status == "sent"
    settle([told(replay, "failed")], doubt_wait=600)
    assert _fresh(send).status == "sent"


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("outcome", "again"), [("retry", True), ("failed", False), ("bounced", False)]
)
def test_a_replays_refusal_says_nothing_of_the_hand_over_in_doubt(
    outcome: str, again: bool
) -> None:
    campaign = _campaign()
    send = _in_doubt(campaign)
    token = send.claim_token
    replay = _replayed(campaign)
    _settle(replay, ANSWERS[outcome], Verdict(Outcome(outcome), Reason.ADDRESS_DEAD))
    assert (_fresh(send).status, send.claim_token, send.doubt_tokens) == ("in_doubt", token, [])
    assert (send.settle_at is not None) is again
    assert not campaign.account.suppressions.exists()


@pytest.mark.django_db
def test_a_replay_without_an_answer_is_replayed_again_and_spends_no_attempts() -> None:
    campaign = _campaign()
    send = _in_doubt(campaign)
    for times in range(1, 9):
        replay = _replayed(campaign)
        assert replay.replays == times
        _settle(replay, LOST, UNKNOWN, replay_wait=60)
        assert _due(send).status == "in_doubt"
    assert send.replays == 8
    assert len(send.doubt_tokens) == 8


@pytest.mark.django_db
def test_a_replay_that_never_started_goes_back_and_is_a_replay_still() -> None:
    campaign = _campaign()
    send = _in_doubt(campaign)
    replay = _replayed(campaign)
    assert give_back([replay]) == 1
    assert (_fresh(send).status, send.replays, len(send.doubt_tokens)) == ("retry", 1, 1)
    assert _hand_over(_claim(campaign))


# --- where it would not be harmless ----------------------------------------------------------


@pytest.mark.django_db
@pytest.mark.parametrize("trouble", ["window", "credentials", "message"])
def test_a_replay_that_could_deliver_twice_is_held(trouble: str) -> None:
    campaign = _campaign()
    send = _in_doubt(campaign)
    token = send.claim_token
    assert doubt.apply_policies() == 1
    if trouble == "window":
        Send.objects.update(replay_until=Now() - timedelta(seconds=1))
    elif trouble == "message":
        Send.objects.update(frozen=None)
    claimed = _claim(campaign)
    assert not _hand_over(claimed, via="default:other" if trouble == "credentials" else VIA)
    assert (_fresh(send).status, send.claim_token, send.settle_at) == ("in_doubt", token, None)
    assert send.reason == "held"
    assert doubt.apply_policies() == 0
    assert lifecycle.finish(campaign), "held doubt keeps no campaign open"


@pytest.mark.django_db
def test_who_unsubscribed_meanwhile_is_not_replayed() -> None:
    campaign = _campaign()
    send = _in_doubt(campaign)
    assert doubt.apply_policies() == 1
    assert send.subscriber is not None
    type(send.subscriber).objects.update(status="unsubscribed")
    assert not _hand_over(_claim(campaign))
    assert (_fresh(send).status, send.settle_at, send.reason) == ("in_doubt", None, "unsubscribed")


@pytest.mark.django_db
def test_the_window_counts_from_the_first_hand_over_in_doubt() -> None:
    campaign = _campaign()
    send = _in_doubt(campaign)
    until = send.replay_until
    replay = _replayed(campaign)
    assert _fresh(send).replay_until == until
    _settle(replay, LOST, UNKNOWN, replay_wait=60)
    assert _fresh(send).replay_until == until


@pytest.mark.django_db
def test_after_a_definite_refusal_the_window_begins_anew() -> None:
    campaign = _campaign()
    send = row(campaign)
    first = _claim(campaign)
    assert _hand_over(first)
    until = _fresh(send).replay_until
    _settle(first, ANSWERS["retry"], Verdict(Outcome.RETRY, Reason.THROTTLED))
    Send.objects.update(next_attempt_at=Now() - timedelta(seconds=1))
    assert _hand_over(_claim(campaign))
    assert until is not None
    assert _fresh(send).replay_until is not None
    assert send.replay_until > until  # type: ignore[operator]


@pytest.mark.django_db
def test_a_paused_campaigns_doubt_waits_and_does_not_hide_others() -> None:
    paused, running = _campaign(), _campaign()
    waiting, other = _in_doubt(paused), _in_doubt(running)
    lifecycle.pause(paused)
    assert doubt.apply_policies() == 1
    assert (_fresh(waiting).status, _fresh(other).status) == ("in_doubt", "retry")
    lifecycle.resume(paused)
    assert doubt.apply_policies() == 1
    assert _fresh(waiting).status == "retry"


@pytest.mark.django_db
def test_a_canceled_campaigns_doubt_stays() -> None:
    campaign = _campaign()
    send = _in_doubt(campaign)
    assert doubt.apply_policies() == 1
    lifecycle.cancel(campaign)
    assert (_fresh(send).status, send.claim_token is not None) == ("in_doubt", True)
    _due(send)
    assert doubt.apply_policies() == 0


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("policy", "becomes"), [("hold", "in_doubt"), ("resend", "queued"), ("assume_sent", "sent")]
)
def test_after_the_window_the_policy_decides(policy: str, becomes: str) -> None:
    campaign = _campaign(policy)
    send = _in_doubt(campaign)
    Send.objects.update(replay_until=Now() - timedelta(seconds=1))
    assert doubt.apply_policies() == 1
    assert (_fresh(send).status, send.settle_at) == (becomes, None)
    assert doubt.apply_policies() == 0


# --- a worker that is gone -------------------------------------------------------------------


@pytest.mark.django_db
def test_a_lost_workers_hand_over_is_replayed_after_its_lease() -> None:
    campaign = _campaign()
    send = row(campaign)
    assert _hand_over(_claim(campaign))
    Send.objects.update(lease_until=Now() - timedelta(seconds=1))
    assert rescue_expired(doubt_wait=600) == 1
    assert _fresh(send).status == "in_doubt"
    assert send.settle_at is not None
    _due(send)
    Send.objects.update(lease_until=Now() + timedelta(seconds=60))
    assert doubt.apply_policies() == 0, "it may still be sending it"
    Send.objects.update(lease_until=Now() - timedelta(seconds=1))
    settle([told(_replayed(campaign), "sent")], doubt_wait=600)
    assert _fresh(send).status == "sent"


@pytest.mark.django_db
def test_a_person_may_ask_for_another_hand_over_after_the_window() -> None:
    campaign = _campaign()
    send = _in_doubt(campaign)
    Send.objects.update(replay_until=Now() - timedelta(seconds=1))
    assert doubt.resolve([send], doubt.SEND_AGAIN) == 1
    claimed = _claim(campaign)
    assert claimed.replays == 0
    assert _hand_over(claimed)
    _settle(claimed, ANSWERS["bounced"], Verdict(Outcome.BOUNCED, Reason.ADDRESS_DEAD))
    assert _fresh(send).status == "bounced", "its answer counts, it was asked for"


@pytest.mark.django_db
def test_what_failed_and_is_sent_again_is_another_message_to_the_provider() -> None:
    campaign = _campaign()
    send = row(campaign)
    claimed = _claim(campaign)
    assert _hand_over(claimed)
    _settle(claimed, ANSWERS["failed"], Verdict(Outcome.FAILED, Reason.POLICY))
    assert _fresh(send).status == "failed"
    assert doubt.resolve([send], doubt.SEND_AGAIN, failed=True) == 1
    assert (_fresh(send).repeats, send.frozen) == (1, None)
    assert take([campaign.pk], 1)[0].repeats == 1


@pytest.mark.django_db
def test_what_is_in_doubt_and_sent_again_keeps_its_key_and_its_words() -> None:
    campaign = _campaign()
    send = _in_doubt(campaign)
    assert doubt.resolve([send], doubt.SEND_AGAIN) == 1
    assert (_fresh(send).repeats, send.frozen) == (0, MADE_OF)


def test_a_replays_settlement_is_never_the_last_attempts() -> None:
    claimed = claimed_row(attempts=9, replays=4)
    later = Verdict(Outcome.RETRY, Reason.THROTTLED)
    found: Settlement = decide(claimed, Answer(Stage.HTTP, 429), later, jitter=0.5)
    assert (found.outcome, found.delay) == ("retry", 1800)


@pytest.mark.django_db
@pytest.mark.parametrize("how", ["given back", "refused"])
def test_a_row_with_nothing_in_doubt_is_no_replay_any_more(how: str) -> None:
    """A worker sleeps, its row is replayed and refused for now, and it wakes up and says that
    nothing was accepted: from here on the row's attempts count, or it would be tried for ever."""
    campaign = _campaign()
    send = row(campaign)
    first = _claim(campaign)
    assert _hand_over(first)
    Send.objects.update(lease_until=Now() - timedelta(seconds=1))
    assert rescue_expired(doubt_wait=600) == 1
    _due(send)
    later = Verdict(Outcome.RETRY, Reason.THROTTLED)
    _settle(_replayed(campaign), ANSWERS["retry"], later)
    assert (_fresh(send).status, send.claim_token) == ("in_doubt", first.token)
    if how == "given back":
        assert give_back([first]) == 1
    else:
        _settle(first, ANSWERS["retry"], later)
    assert (_fresh(send).replays, send.doubt_tokens) == (0, [])


@pytest.mark.django_db
def test_a_policy_sends_again_once() -> None:
    campaign = _campaign("resend")
    send = row(campaign)
    for becomes in ("queued", "in_doubt"):
        claimed = _claim(campaign)
        assert _hand_over(claimed, window=0.0)
        _settle(claimed, LOST, UNKNOWN)
        _due(send)
        assert doubt.apply_policies() == 1
        assert _fresh(send).status == becomes
    assert send.settle_at is None
