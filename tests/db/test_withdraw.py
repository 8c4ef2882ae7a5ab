"""Closing rows: what a cancel left behind, and what a leaver had coming."""

from __future__ import annotations

import uuid

import pytest
from django.db import OperationalError, transaction
from django.utils import timezone

from campaigns import hooks, lifecycle
from campaigns.models import Campaign
from sending import withdraw
from sending.models import DeliveryEvent, Send
from sending.withdraw import cancel_rows, finish_cancels, withdraw_leavers
from subscribers.consent import unsubscribe
from subscribers.models import Subscriber
from tests.factories import MembershipFactory, SegmentFactory, SendFactory

from .racing import Race
from .rows import assert_identity, campaign_to, held, kinds_of, row, status_of, take

OLD = uuid.UUID("0ddba115-0000-4000-8000-000000000001")


# --- cancel ----------------------------------------------------------------------------------


@pytest.mark.django_db
@pytest.mark.parametrize("state", ["queued", "retry", "claimed"])
def test_what_is_open_is_canceled_and_says_so(state: str) -> None:
    campaign = campaign_to(0, status="canceled")
    send = row(campaign, state)
    assert cancel_rows(campaign.pk) == 1
    send.refresh_from_db()
    assert (send.status, send.reason) == ("canceled", "canceled")
    assert (send.claim_token, send.lease_until, send.worker_id) == (None, None, None)
    assert kinds_of(send) == ["canceled"]
    assert cancel_rows(campaign.pk) == 0


@pytest.mark.django_db
@pytest.mark.parametrize("state", ["queued", "retry", "claimed"])
def test_a_repeat_of_doubt_is_in_doubt_again_after_cancel(state: str) -> None:
    campaign = campaign_to(0, status="canceled")
    older = uuid.uuid4()
    send = row(campaign, state, doubt_tokens=[older, OLD], handed_at=timezone.now())
    assert cancel_rows(campaign.pk) == 1
    send.refresh_from_db()
    assert (send.status, send.claim_token, send.doubt_tokens) == ("in_doubt", OLD, [older])
    assert kinds_of(send) == ["in_doubt"]


@pytest.mark.django_db
def test_slices_take_everything(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(withdraw, "SLICE", 2)
    campaign, other = campaign_to(0, status="canceled"), campaign_to(0)
    for _ in range(5):
        row(campaign)
    left_alone = row(other)
    assert cancel_rows(campaign.pk) == 5
    assert status_of(left_alone) == "queued"


@pytest.mark.django_db(transaction=True)
def test_a_cancel_that_died_half_way_is_finished_by_a_worker(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    campaign = campaign_to(0)
    rows = [row(campaign), row(campaign, "retry")]

    def dies(campaign_id: int) -> int:
        raise OperationalError("the connection is gone")

    with monkeypatch.context() as dying:
        dying.setattr(hooks, "cancel_rows", dies)
        with pytest.raises(OperationalError):
            lifecycle.cancel(campaign)
    assert Campaign.objects.get(pk=campaign.pk).status == "canceled"
    assert {status_of(s) for s in rows} == {"queued", "retry"}
    assert finish_cancels() == 2
    assert {status_of(s) for s in rows} == {"canceled"}
    assert finish_cancels() == 0


@pytest.mark.django_db
@pytest.mark.parametrize("status", ["sending", "paused"])
def test_running_campaigns_are_none_of_its_business(status: str) -> None:
    send = row(campaign_to(0, status=status))
    assert finish_cancels() == 0
    assert status_of(send) == "queued"


@pytest.mark.django_db(transaction=True)
def test_a_claim_that_is_under_way_does_not_escape_the_cancel() -> None:
    campaign = campaign_to(0)
    send = row(campaign)
    with Race() as race:
        with transaction.atomic():
            assert len(take([campaign.pk], 1)) == 1
            canceling = race.start(lambda: lifecycle.cancel(campaign))
            canceling.wait_until_blocked()
        canceling.result()
    assert status_of(send) == "canceled"


# --- leavers ---------------------------------------------------------------------------------


def _leave(send: Send) -> None:
    assert send.subscriber is not None
    send.subscriber.memberships.update(left_at=timezone.now())


def _ids(*sends: Send) -> list[int]:
    return [s.subscriber_id for s in sends if s.subscriber_id is not None]


@pytest.mark.django_db
@pytest.mark.parametrize("status", ["sending", "paused"])
@pytest.mark.parametrize("state", ["queued", "retry"])
def test_the_open_rows_of_a_leaver_are_closed_at_once(state: str, status: str) -> None:
    campaign = campaign_to(0, status=status)
    send, other = row(campaign, state), row(campaign, state)
    _leave(send)
    assert withdraw_leavers(_ids(send, other)) == 1
    send.refresh_from_db()
    assert (send.status, send.reason, kinds_of(send)) == ("suppressed", "left", ["suppressed"])
    assert status_of(other) == state, "asked about, but still a member"


@pytest.mark.django_db
@pytest.mark.parametrize("state", ["claimed", "sending", "sent", "in_doubt", "failed"])
def test_other_rows_are_left_to_the_hand_over(state: str) -> None:
    send = row(campaign_to(0), state)
    _leave(send)
    assert withdraw_leavers(_ids(send)) == 0
    assert status_of(send) == state


@pytest.mark.django_db
def test_who_is_still_in_another_segment_of_the_campaign_stays() -> None:
    campaign = campaign_to(0)
    send = row(campaign)
    other = SegmentFactory.create(account=campaign.account)
    campaign.segments.add(other)
    _leave(send)
    MembershipFactory.create(segment=other, subscriber=send.subscriber)
    assert withdraw_leavers(_ids(send)) == 0


@pytest.mark.django_db
def test_a_leaver_with_a_repeat_of_doubt_is_in_doubt_again() -> None:
    send = row(campaign_to(0), "queued", doubt_tokens=[OLD], handed_at=timezone.now())
    _leave(send)
    assert withdraw_leavers(_ids(send)) == 1
    send.refresh_from_db()
    assert (send.status, send.claim_token, send.doubt_tokens) == ("in_doubt", OLD, [])


@pytest.mark.django_db
def test_a_transactional_message_is_not_withdrawn() -> None:
    send = SendFactory.create(transactional=True)
    Subscriber.objects.filter(pk=send.subscriber_id).update(status="unsubscribed")
    assert withdraw_leavers(_ids(send)) == 0
    assert status_of(send) == "queued"


@pytest.mark.django_db(transaction=True)
def test_unsubscribing_closes_what_is_queued_in_every_running_campaign() -> None:
    first = campaign_to(1)
    second = campaign_to(0)
    person = first.account.subscribers.get()
    Campaign.objects.filter(pk=second.pk).update(account=first.account)
    second.segments.set(first.segments.all())
    rows = [row(c, subscriber=person) for c in (first, Campaign.objects.get(pk=second.pk))]
    Campaign.objects.update(audience=1)
    unsubscribe(person, evidence="a link")
    assert {status_of(s) for s in rows} == {"suppressed"}
    assert set(DeliveryEvent.objects.values_list("reason", flat=True)) == {"unsubscribed"}
    for campaign in Campaign.objects.all():
        assert_identity(campaign)


@pytest.mark.django_db(transaction=True)
def test_a_row_that_is_claimed_meanwhile_is_left_to_the_hand_over() -> None:
    campaign = campaign_to(0)
    send = row(campaign)
    _leave(send)
    with Race() as race:
        with transaction.atomic():
            (claimed,) = take([campaign.pk], 1)
            withdrawing = race.start(lambda: withdraw_leavers(_ids(send)))
            withdrawing.wait_until_blocked()
        assert withdrawing.result() == 0
    assert status_of(send) == "claimed"
    send.refresh_from_db()
    assert claimed.token == held(send).token
