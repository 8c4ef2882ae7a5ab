"""The last look before the network: what goes, what is withheld, whose row it is."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from datetime import timedelta

import pytest
from django.db.models.functions import Now
from django.utils import timezone

from sending.handover import hand_over
from sending.models import DeliveryEvent, Send
from subscribers.addresses import erased_hashes
from subscribers.consent import unsubscribe
from subscribers.models import Subscriber, Suppression
from subscribers.suppression import suppress
from tests.factories import (
    MembershipFactory,
    SegmentFactory,
    SendFactory,
    SubscriberFactory,
    SuppressionFactory,
)

from .handed import OLD, hand_over_rows, set_campaign
from .rows import LEASE, campaign_to, held, kinds_of, member, row, status_of


def _person(send: Send) -> Subscriber:
    assert send.subscriber is not None
    return send.subscriber


# --- go --------------------------------------------------------------------------------------


@pytest.mark.django_db
def test_what_may_go_is_marked_as_on_the_wire() -> None:
    campaign = campaign_to(0)
    second, first = row(campaign, "claimed"), row(campaign, "claimed")
    rows = [held(first), held(second)]
    handed = hand_over(rows, lease=LEASE)
    assert [r.id for r in handed.go] == sorted([first.pk, second.pk])
    assert handed.withheld == {}
    assert {r.attempts for r in handed.go} == {1}
    for send in Send.objects.annotate(db_now=Now()):
        assert (send.status, send.attempts) == ("sending", 1)
        assert send.worker_id is not None
        assert send.handed_at is not None
        assert send.lease_until is not None
        assert abs(send.lease_until - send.handed_at - timedelta(seconds=LEASE)) < timedelta(
            seconds=1
        )
        assert abs(send.handed_at - send.db_now) < timedelta(seconds=60)
    assert not DeliveryEvent.objects.exists()


@pytest.mark.django_db
def test_an_attempt_is_counted_on() -> None:
    send = row(campaign_to(0), "claimed", attempts=3, next_attempt_at=timezone.now())
    assert hand_over_rows(send).go[0].attempts == 4


# --- withheld --------------------------------------------------------------------------------


Change = Callable[[Send], object]
#: What happened to the row between its claim and its hand-over -> finding, status.
WITHHELD: dict[str, tuple[Change, str, str]] = {
    "suppressed by the account": (
        lambda s: suppress(s.account_id, str(s.email), "complaint"), "suppressed", "suppressed"),
    "suppressed for all": (
        lambda s: suppress(None, str(s.email), "manual"), "suppressed", "suppressed"),
    "suppressed in other letters": (
        lambda s: suppress(s.account_id, str(s.email).upper(), "manual"),
        "suppressed", "suppressed"),
    "an unsubscribe that knows the address only": (
        lambda s: suppress(s.account_id, str(s.email), "unsubscribed"),
        "suppressed", "suppressed"),
    "erased, by its hash": (
        lambda s: suppress(s.account_id, str(s.email), "erased"), "suppressed", "suppressed"),
    "erased for all": (
        lambda s: suppress(None, str(s.email), "erased"), "suppressed", "suppressed"),
    "erased, the row's address blanked": (
        lambda s: Send.objects.filter(pk=s.pk).update(
            email=None, email_hash=erased_hashes(str(s.email))[0]), "erased", "suppressed"),
    "unsubscribed": (
        lambda s: Subscriber.objects.filter(sends=s).update(status="unsubscribed"),
        "unsubscribed", "suppressed"),
    "back to pending": (
        lambda s: Subscriber.objects.filter(sends=s).update(status="pending"),
        "unsubscribed", "suppressed"),
    "left the segment": (
        lambda s: _person(s).memberships.update(left_at=timezone.now()), "left", "suppressed"),
    "membership deleted": (lambda s: _person(s).memberships.all().delete(), "left", "suppressed"),
    "takes a pause": (
        lambda s: Subscriber.objects.filter(sends=s).update(
            paused_until=timezone.now() + timedelta(days=1)), "paused", "suppressed"),
    "takes a pause and has left": (
        lambda s: (Subscriber.objects.filter(sends=s).update(
            paused_until=timezone.now() + timedelta(days=1)),
            _person(s).memberships.update(left_at=timezone.now())), "left", "suppressed"),
    "changed their address": (
        lambda s: Subscriber.objects.filter(sends=s).update(email="moved@example.org"),
        "moved", "suppressed"),
    "deleted": (lambda s: _person(s).delete(), "erased", "suppressed"),
    "paused": (lambda s: set_campaign(s, "paused"), "not_sending", "queued"),
    "canceled": (lambda s: set_campaign(s, "canceled"), "canceled", "canceled"),
}  # fmt: skip


@pytest.mark.django_db
@pytest.mark.parametrize("case", list(WITHHELD))
def test_what_may_not_go_becomes_what_the_check_found(case: str) -> None:
    change, finding, becomes = WITHHELD[case]
    campaign = campaign_to(0)
    send, other = row(campaign, "claimed"), row(campaign, "claimed")
    change(send)
    rows = [held(send), held(other)]
    handed = hand_over(rows, lease=LEASE)
    assert handed.withheld[send.pk] == finding
    if finding not in ("not_sending", "canceled"):
        assert [r.id for r in handed.go] == [other.pk], "the lot goes on"
    send.refresh_from_db()
    assert (send.status, send.attempts, send.handed_at) == (becomes, 0, None)
    assert (send.claim_token, send.lease_until, send.worker_id) == (None, None, None)
    if becomes == "queued":
        assert kinds_of(send) == []
    else:
        assert (kinds_of(send), send.reason) == ([becomes], finding)


@pytest.mark.django_db
@pytest.mark.parametrize("case", list(WITHHELD))
def test_a_repeat_that_may_not_go_is_in_doubt_again(case: str) -> None:
    """An earlier hand-over may have been accepted: "canceled" would say that nothing left."""
    change, finding, _ = WITHHELD[case]
    send = row(campaign_to(0), "claimed", doubt_tokens=[OLD], handed_at=timezone.now())
    change(send)
    assert hand_over_rows(send).withheld == {send.pk: finding}
    send.refresh_from_db()
    if finding == "not_sending":
        assert (send.status, send.claim_token, send.doubt_tokens) == ("queued", None, [OLD])
    else:
        assert (send.status, send.claim_token, send.doubt_tokens) == ("in_doubt", OLD, [])
        assert send.settle_at is None
        assert kinds_of(send) == ["in_doubt"]


@pytest.mark.django_db
def test_a_retry_of_a_paused_campaign_stays_a_retry() -> None:
    send = row(campaign_to(0), "claimed", attempts=1, next_attempt_at=timezone.now())
    set_campaign(send, "paused")
    hand_over_rows(send)
    send.refresh_from_db()
    assert (send.status, send.attempts) == ("retry", 1)
    assert send.next_attempt_at is not None


@pytest.mark.django_db
def test_what_does_not_concern_the_row_does_not_hold_it() -> None:
    campaign = campaign_to(0)
    send = row(campaign, "claimed")
    SuppressionFactory.create(
        account=send.account,
        email=send.email,
        reason=Suppression.Reason.HARD_BOUNCE,
        expires=timezone.now() - timedelta(seconds=1),
    )
    suppress(SubscriberFactory.create().account, str(send.email), "complaint")
    suppress(send.account, f"x{send.email}", "complaint")
    # In two segments of the campaign, and has left one of them.
    other = SegmentFactory.create(account=send.account)
    campaign.segments.add(other)
    MembershipFactory.create(segment=other, subscriber=send.subscriber, left=True)
    assert len(hand_over_rows(send).go) == 1


@pytest.mark.django_db
def test_somebody_who_was_erased_and_came_back_does_not_get_it_again() -> None:
    """The blanked row holds the campaign's one message to that address by its hash."""
    campaign = campaign_to(0)
    before, again = row(campaign, "sent"), row(campaign, "claimed")
    Send.objects.filter(job_id=before.job_id).update(
        email=None, subscriber=None, email_hash=erased_hashes(str(again.email))[-1]
    )
    other = campaign_to(0)
    elsewhere = row(other, "claimed", subscriber=member(other, email=again.email))
    handed = hand_over_rows(again, elsewhere)
    assert handed.withheld == {again.pk: "erased"}
    assert [r.id for r in handed.go] == [elsewhere.pk]


@pytest.mark.django_db
def test_unsubscribe_stops_the_next_hand_over_of_a_half_sent_campaign() -> None:
    campaign = campaign_to(0)
    sends = [row(campaign, "claimed") for _ in range(3)]
    unsubscribe(_person(sends[1]), evidence="a link")
    handed = hand_over_rows(*sends)
    assert [r.id for r in handed.go] == [sends[0].pk, sends[2].pk]
    assert status_of(sends[1]) == "suppressed"


# --- whose row it is -------------------------------------------------------------------------


@pytest.mark.django_db
@pytest.mark.parametrize("state", ["queued", "sending", "sent", "in_doubt", "canceled"])
def test_a_row_that_is_no_longer_claimed_is_in_neither_list(state: str) -> None:
    send = row(campaign_to(0), state)
    token = send.claim_token or uuid.uuid4()
    handed = hand_over([held(send, token=token)], lease=LEASE)
    assert (handed.go, handed.withheld) == ([], {})
    assert status_of(send) == state


@pytest.mark.django_db
def test_another_workers_claim_is_not_ours() -> None:
    send = row(campaign_to(0), "claimed")
    handed = hand_over([held(send, token=uuid.uuid4())], lease=LEASE)
    assert (handed.go, handed.withheld) == ([], {})
    send.refresh_from_db()
    assert (send.status, send.attempts) == ("claimed", 0)


# --- transactional ---------------------------------------------------------------------------


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("reason", "stops"),
    [("unsubscribed", False), ("hard_bounce", True), ("complaint", True), ("manual", True),
     ("erased", True)],
)  # fmt: skip
@pytest.mark.parametrize("for_all", [False, True])
def test_an_unsubscribe_does_not_stop_a_transactional_message(
    reason: str, stops: bool, for_all: bool
) -> None:
    send = SendFactory.create(transactional=True, claimed=True)
    suppress(None if for_all else send.account, send.email, reason)
    assert hand_over_rows(send).withheld == ({send.pk: "suppressed"} if stops else {})
    assert status_of(send) == ("suppressed" if stops else "sending")


@pytest.mark.django_db
def test_a_transactional_message_dies_at_its_expiry() -> None:
    live = SendFactory.create(transactional=True, claimed=True)
    late = SendFactory.create(
        transactional=True, claimed=True, expires=timezone.now() - timedelta(seconds=1)
    )
    handed = hand_over_rows(live, late)
    assert [r.id for r in handed.go] == [live.pk]
    assert handed.withheld == {late.pk: "expired"}
    assert (status_of(late), kinds_of(late)) == ("failed", ["failed"])


@pytest.mark.django_db
def test_a_transactional_message_needs_no_subscriber() -> None:
    send = SendFactory.create(transactional=True, claimed=True, subscriber=None,
                              email="guest@example.org")  # fmt: skip
    assert len(hand_over_rows(send).go) == 1
