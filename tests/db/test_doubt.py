"""Deciding about doubt: by staff, and by an account's policy once the wait is over."""

from __future__ import annotations

import uuid
from datetime import timedelta

import pytest
from django.utils import timezone

from campaigns import lifecycle
from campaigns.models import Campaign
from sending import doubt, sql
from sending.doubt import SEND_AGAIN, TREAT_AS_SENT, apply_policies, resolve
from sending.handover import hand_over
from sending.models import DeliveryEvent, Send
from sending.settle import settle
from subscribers.suppression import suppress
from tests.factories import SendFactory, StaffFactory

from .rows import (
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
STATUSES = list(Send.Status.values)


def _sent_campaign() -> Campaign:
    campaign = campaign_to(0, status="sent")
    return campaign


# --- by a person -----------------------------------------------------------------------------


@pytest.mark.django_db
def test_send_again_queues_the_row_and_remembers_the_hand_over_in_doubt() -> None:
    campaign, by = campaign_to(0), StaffFactory.create()
    send = row(campaign, "in_doubt", attempts=4, doubt_tokens=[OLD])
    token = send.claim_token
    assert resolve([send], SEND_AGAIN, by=by) == 1
    send.refresh_from_db()
    assert (send.status, send.attempts, send.claim_token) == ("queued", 0, None)
    assert send.doubt_tokens == [OLD, token]
    assert (send.settle_at, send.next_attempt_at, send.reason) == (None, None, "")
    event = DeliveryEvent.objects.get()
    assert (event.kind, event.by_name) == (SEND_AGAIN, by.get_username())


@pytest.mark.django_db
def test_treat_as_sent_closes_the_row_with_the_time_of_its_hand_over() -> None:
    campaign, by = campaign_to(0), StaffFactory.create()
    send = row(campaign, "in_doubt")
    assert resolve([send], TREAT_AS_SENT, by=by) == 1
    send.refresh_from_db()
    assert (send.status, send.sent_at, send.reason) == ("sent", send.handed_at, "treated_as_sent")
    assert kinds_of(send) == [TREAT_AS_SENT]


@pytest.mark.django_db
@pytest.mark.parametrize("failed", [False, True])
@pytest.mark.parametrize("decision", [SEND_AGAIN, TREAT_AS_SENT])
@pytest.mark.parametrize("status", STATUSES)
def test_rows_in_other_states_are_left_as_they_are(
    status: str, decision: str, failed: bool
) -> None:
    send = row(campaign_to(0), status)
    takes = status == "in_doubt" or (failed and status == "failed" and decision == SEND_AGAIN)
    assert resolve([send], decision, failed=failed) == takes
    if not takes:
        assert (status_of(send), kinds_of(send)) == (status, [])


@pytest.mark.django_db
def test_a_failed_row_is_sent_again_on_request() -> None:
    campaign = _sent_campaign()
    send = row(campaign, "failed", attempts=5)
    assert resolve([send], SEND_AGAIN, failed=True) == 1
    send.refresh_from_db()
    assert (send.status, send.attempts, send.doubt_tokens) == ("queued", 0, [])
    campaign.refresh_from_db()
    assert campaign.status == "sending"


@pytest.mark.django_db
def test_another_decision_is_an_error() -> None:
    with pytest.raises(ValueError, match="'forget' is no decision"):
        resolve([], "forget")


@pytest.mark.django_db
@pytest.mark.parametrize("decision", [SEND_AGAIN, TREAT_AS_SENT])
@pytest.mark.parametrize("status", ["sending", "paused", "sent", "canceled"])
def test_what_a_decision_does_to_the_campaign(status: str, decision: str) -> None:
    campaign = campaign_to(0, status=status)
    send = row(campaign, "in_doubt")
    Campaign.objects.filter(pk=campaign.pk).update(audience=1)
    took = resolve([send], decision, by=StaffFactory.create())
    campaign.refresh_from_db()
    opens = decision == SEND_AGAIN and status != "canceled"
    assert took == (1 if opens or decision == TREAT_AS_SENT else 0)
    assert campaign.status == ("sending" if opens and status == "sent" else status)
    if opens and status == "sent":
        assert campaign.finished_at is None
        assert "1 rows to be sent again" in campaign.status_reason
    assert_identity(campaign)


@pytest.mark.django_db
def test_a_campaign_that_was_reopened_finishes_again() -> None:
    campaign = _sent_campaign()
    send = row(campaign, "in_doubt")
    resolve([send], SEND_AGAIN)
    assert lifecycle.finish(campaign) is False
    (claimed,) = take([campaign.pk], 5)
    (going,) = hand_over([claimed], lease=LEASE).go
    settle([told(going, "sent")], doubt_wait=0)
    assert lifecycle.finish(campaign) is True


@pytest.mark.django_db
def test_rows_of_several_campaigns_and_of_none_are_decided_at_once() -> None:
    sends = [row(campaign_to(0), "in_doubt"), row(campaign_to(0), "in_doubt")]
    sends.append(SendFactory.create(transactional=True, in_doubt=True, doubt_tokens=[]))
    assert resolve(sends, SEND_AGAIN) == 3
    assert {status_of(s) for s in sends} == {"queued"}


@pytest.mark.django_db
def test_a_repeat_to_somebody_suppressed_meanwhile_is_held() -> None:
    campaign = campaign_to(0)
    send = row(campaign, "in_doubt")
    token = send.claim_token
    resolve([send], SEND_AGAIN)
    suppress(send.account, str(send.email), "complaint")
    (claimed,) = take([campaign.pk], 5)
    assert hand_over([claimed], lease=LEASE).withheld == {send.pk: "suppressed"}
    send.refresh_from_db()
    assert (send.status, send.claim_token, send.doubt_tokens) == ("in_doubt", token, [])


@pytest.mark.django_db
@pytest.mark.parametrize("at", ["queued", "claimed", "sending", "retry"])
def test_the_acceptance_of_the_first_hand_over_ends_the_repeat(at: str) -> None:
    campaign = campaign_to(0)
    send = row(campaign, "in_doubt")
    first = held(send)
    resolve([send], SEND_AGAIN)
    if at != "queued":
        (claimed,) = take([campaign.pk], 5)
        if at != "claimed":
            (claimed,) = hand_over([claimed], lease=LEASE).go
        if at == "retry":
            settle([told(claimed, "retry")], doubt_wait=0)
    assert status_of(send) == at
    assert settle([told(first, "sent")], doubt_wait=0) == {send.pk: "sent"}
    if at == "sending":
        assert settle([told(claimed, "failed")], doubt_wait=0) == {}
    assert status_of(send) == "sent"


# --- by policy -------------------------------------------------------------------------------


def _in_doubt(policy: str, *, due: bool = True, status: str = "sending") -> Send:
    campaign = campaign_to(0, status=status)
    campaign.account.in_doubt_policy = policy
    campaign.account.save()
    wait = timedelta(seconds=-1 if due else 60)
    return row(campaign, "in_doubt", settle_at=timezone.now() + wait)


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("policy", "becomes"),
    [("resend", "queued"), ("assume_sent", "sent"), ("hold", "in_doubt")],
)
def test_a_policy_settles_doubt_whose_wait_is_over(policy: str, becomes: str) -> None:
    send, waiting = _in_doubt(policy), _in_doubt(policy, due=False)
    assert apply_policies() == 1
    assert (status_of(send), status_of(waiting)) == (becomes, "in_doubt")
    assert DeliveryEvent.objects.get().by_name == ("" if policy == "hold" else f"policy {policy}")
    send.refresh_from_db()
    assert send.settle_at is None
    assert apply_policies() == 0


@pytest.mark.django_db
def test_doubt_without_a_time_is_held_whatever_the_policy() -> None:
    send = _in_doubt("resend")
    Send.objects.update(settle_at=None)
    assert apply_policies() == 0
    assert status_of(send) == "in_doubt"


@pytest.mark.django_db
def test_a_policy_opens_a_campaign_that_was_sent() -> None:
    send = _in_doubt("resend", status="sent")
    assert apply_policies() == 1
    assert send.campaign is not None
    send.campaign.refresh_from_db()
    assert send.campaign.status == "sending"


@pytest.mark.django_db
def test_doubt_in_canceled_campaigns_does_not_keep_others_waiting(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What a policy can't do must not fill its look at what is due, again and again."""
    monkeypatch.setattr(sql, "DOUBT_DUE", sql.DOUBT_DUE.replace("LIMIT 1000", "LIMIT 1"))
    stuck = _in_doubt("resend", status="canceled")
    waiting = _in_doubt("resend")
    assert stuck.pk < waiting.pk
    assert apply_policies() == 1
    assert (status_of(stuck), status_of(waiting)) == ("in_doubt", "queued")


@pytest.mark.django_db
def test_an_answer_between_the_look_and_the_decision_wins(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    send = _in_doubt("resend")
    decide = doubt._decide

    def late(*args: object, **options: object) -> int:
        settle([told(held(send), "sent")], doubt_wait=0)
        return decide(*args, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(doubt, "_decide", late)
    assert apply_policies() == 0
    assert status_of(send) == "sent"
