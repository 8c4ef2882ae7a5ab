"""Giving back what never started."""

from __future__ import annotations

import uuid

import pytest
from django.utils import timezone

from sending import build
from sending.handover import give_back, hand_over
from subscribers.models import Subscriber

from .handed import OLD, set_campaign
from .rows import LEASE, assert_identity, campaign_to, held, kinds_of, row, status_of, take


@pytest.mark.django_db
@pytest.mark.parametrize("tried_before", [False, True], ids=["queued", "retry"])
@pytest.mark.parametrize("state", ["claimed", "sending", "in_doubt"])
def test_what_never_started_goes_back_with_its_attempt_refunded(
    state: str, tried_before: bool
) -> None:
    campaign = campaign_to(0)
    made = 2 if tried_before else 0
    send = row(
        campaign,
        state,
        attempts=made + (state != "claimed"),
        next_attempt_at=timezone.now() if tried_before else None,
        reason="worker_lost" if state == "in_doubt" else "",
    )
    assert give_back([held(send)]) == 1
    send.refresh_from_db()
    assert (send.status, send.attempts) == ("retry" if tried_before else "queued", made)
    assert (send.claim_token, send.lease_until, send.worker_id) == (None, None, None)
    assert (send.settle_at, send.reason) == (None, "")
    assert kinds_of(send) == []


@pytest.mark.django_db
@pytest.mark.parametrize("state", ["queued", "retry", "sent", "bounced", "failed", "suppressed",
                                   "canceled"])  # fmt: skip
def test_nothing_else_is_given_back(state: str) -> None:
    send = row(campaign_to(0), state)
    assert give_back([held(send, token=send.claim_token or uuid.uuid4())]) == 0
    assert status_of(send) == state


@pytest.mark.django_db
@pytest.mark.parametrize("state", ["claimed", "sending", "in_doubt"])
def test_a_give_back_needs_the_rows_token(state: str) -> None:
    send = row(campaign_to(0), state)
    assert give_back([held(send, token=uuid.uuid4())]) == 0
    assert status_of(send) == state


@pytest.mark.django_db
@pytest.mark.parametrize("doubted", [False, True])
@pytest.mark.parametrize("state", ["claimed", "sending", "in_doubt"])
def test_given_back_to_a_canceled_campaign_it_is_closed(state: str, doubted: bool) -> None:
    campaign = campaign_to(0)
    send = row(campaign, state, doubt_tokens=[OLD] if doubted else [], handed_at=timezone.now())
    set_campaign(send, "canceled")
    assert give_back([held(send)]) == 1
    send.refresh_from_db()
    if doubted:
        assert (send.status, send.claim_token, send.doubt_tokens) == ("in_doubt", OLD, [])
    else:
        assert (send.status, send.claim_token) == ("canceled", None)
    assert (kinds_of(send), send.reason) == ([send.status], "canceled")


@pytest.mark.django_db
def test_a_repeat_that_never_started_keeps_its_older_doubt() -> None:
    send = row(campaign_to(0), "sending", doubt_tokens=[OLD])
    assert give_back([held(send)]) == 1
    send.refresh_from_db()
    assert (send.status, send.doubt_tokens) == ("queued", [OLD])
    assert send.handed_at is not None


@pytest.mark.django_db
def test_giving_back_nothing_is_nothing() -> None:
    assert give_back([]) == 0


@pytest.mark.django_db
def test_the_identity_holds_through_hand_over_and_give_back() -> None:
    campaign = campaign_to(6)
    build.build(campaign.pk, size=10)
    rows = take([campaign.pk], 4)
    assert_identity(campaign)
    Subscriber.objects.filter(sends=rows[0].id).delete()
    handed = hand_over(rows, lease=LEASE)
    assert len(handed.go) == 3
    assert_identity(campaign)
    give_back(handed.go)
    assert_identity(campaign)
