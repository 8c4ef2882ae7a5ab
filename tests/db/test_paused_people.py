"""People who take a pause: no campaign reaches them until it is over, and every row says so."""

from __future__ import annotations

import uuid
from datetime import timedelta

import pytest
from django.db import connection
from django.utils import timezone

from campaigns.models import Campaign
from sending import build as builder
from sending.build import build
from sending.handover import hand_over
from sending.models import DeliveryEvent, Send
from sending.withdraw import withdraw_leavers
from sending.withheld import WITHHELD
from subscribers.consent import pause, resume
from subscribers.models import Subscriber
from subscribers.suppression import suppress
from tests.factories import SendFactory, SubscriberFactory

from .handed import hand_over_rows
from .racing import Race
from .rows import LEASE, assert_identity, campaign_to, held, kinds_of, member, row, status_of, take

DAY = timedelta(days=1)


def _built(campaign: Campaign) -> dict[str, tuple[str, str]]:
    build(campaign.pk, size=100)
    rows = Send.objects.filter(campaign=campaign)
    return {str(s.email): (s.status, s.reason) for s in rows}


def _takes_a_pause(send: Send, *, over: bool = False) -> None:
    at = timezone.now() - DAY if over else timezone.now() + DAY
    Subscriber.objects.filter(sends=send).update(paused_until=at)


# --- before the build ------------------------------------------------------------------------


@pytest.mark.django_db
def test_the_build_gives_them_a_row_that_says_why() -> None:
    campaign = campaign_to(1)
    person = member(campaign, paused_until=timezone.now() + DAY)
    over = member(campaign, paused_until=timezone.now() - DAY)
    both = member(campaign, paused_until=timezone.now() + DAY)
    suppress(campaign.account, both.email, "complaint")
    rows = _built(campaign)
    assert rows[person.email] == ("suppressed", "paused")
    assert rows[both.email] == ("suppressed", "suppressed"), "the stronger reason is told"
    assert rows[over.email] == ("queued", "")
    told = DeliveryEvent.objects.get(send__email=person.email)
    assert (told.kind, told.stage, told.reason) == ("suppressed", "local", "paused")
    assert told.text == "the person paused their mail for a while"
    assert_identity(campaign)
    campaign.refresh_from_db()
    assert campaign.audience == 4


@pytest.mark.django_db
def test_so_does_the_closing_sweep(monkeypatch: pytest.MonkeyPatch) -> None:
    campaign = campaign_to(1)
    assert builder.build_chunk(campaign.pk, size=100) is not None
    campaign.refresh_from_db()
    Campaign.objects.filter(pk=campaign.pk).update(audience_cursor=10**9)
    late = member(campaign, paused_until=timezone.now() + DAY)
    assert _built(campaign)[late.email] == ("suppressed", "paused")
    assert kinds_of(Send.objects.get(email=late.email)) == ["suppressed"]
    assert_identity(campaign)


@pytest.mark.django_db
def test_the_database_s_clock_says_when_a_pause_is_over() -> None:
    campaign = campaign_to(0)
    person = member(campaign)
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE sendonce_subscribers_subscriber SET paused_until = clock_timestamp()"
            " WHERE id = %s",
            [person.pk],
        )
    assert _built(campaign)[person.email] == ("queued", "")


# --- before the claim ------------------------------------------------------------------------


@pytest.mark.django_db
@pytest.mark.parametrize("status", ["sending", "paused"])
@pytest.mark.parametrize("state", ["queued", "retry"])
def test_a_pause_closes_what_is_open_at_once(state: str, status: str) -> None:
    campaign = campaign_to(0, status=status)
    send, other = row(campaign, state), row(campaign, state)
    _takes_a_pause(send)
    _takes_a_pause(other, over=True)
    assert withdraw_leavers([send.subscriber_id or 0, other.subscriber_id or 0]) == 1
    send.refresh_from_db()
    assert (send.status, send.reason, kinds_of(send)) == ("suppressed", "paused", ["suppressed"])
    assert status_of(other) == state


@pytest.mark.django_db
def test_the_verb_does_it_once_it_has_committed(
    django_capture_on_commit_callbacks: pytest.FixtureRequest,
) -> None:
    campaign = campaign_to(0)
    send = row(campaign)
    assert send.subscriber is not None
    with django_capture_on_commit_callbacks(execute=True):  # type: ignore[operator]
        pause(send.subscriber, timezone.now() + DAY)
    assert (status_of(send), kinds_of(send)) == ("suppressed", ["suppressed"])


@pytest.mark.django_db
def test_a_repeat_of_doubt_stays_in_doubt() -> None:
    old = uuid.uuid4()
    send = row(campaign_to(0), "retry", doubt_tokens=[old])
    _takes_a_pause(send)
    assert withdraw_leavers([send.subscriber_id or 0]) == 1
    send.refresh_from_db()
    assert (send.status, send.reason, send.claim_token) == ("in_doubt", "paused", old)


@pytest.mark.django_db
def test_who_has_also_left_or_unsubscribed_is_told_to_have() -> None:
    campaign = campaign_to(0)
    left, gone = row(campaign), row(campaign)
    for send in (left, gone):
        _takes_a_pause(send)
    assert left.subscriber is not None
    left.subscriber.memberships.update(left_at=timezone.now())
    Subscriber.objects.filter(sends=gone).update(status="unsubscribed")
    withdraw_leavers([left.subscriber_id or 0, gone.subscriber_id or 0])
    reasons = dict(Send.objects.values_list("pk", "reason"))
    assert reasons == {left.pk: "left", gone.pk: "unsubscribed"}


# --- between claim and hand-over -------------------------------------------------------------


@pytest.mark.django_db
def test_the_hand_over_finds_it_and_says_so() -> None:
    campaign = campaign_to(0)
    send = row(campaign)
    (claimed,) = take([campaign.pk], 1)
    _takes_a_pause(send)
    handed = hand_over([claimed], lease=LEASE)
    assert (handed.go, handed.withheld) == ([], {send.pk: "paused"})
    send.refresh_from_db()
    assert (send.status, send.reason, send.claim_token) == ("suppressed", "paused", None)
    told = DeliveryEvent.objects.get(send=send)
    assert (told.kind, told.reason, told.text) == ("suppressed", "paused", WITHHELD["paused"])


@pytest.mark.django_db
def test_a_repeat_of_doubt_is_in_doubt_again_at_the_hand_over() -> None:
    old = uuid.uuid4()
    send = row(campaign_to(0), "claimed", doubt_tokens=[old], handed_at=timezone.now())
    _takes_a_pause(send)
    assert hand_over_rows(send).withheld == {send.pk: "paused"}
    send.refresh_from_db()
    assert (send.status, send.claim_token, send.doubt_tokens) == ("in_doubt", old, [])


@pytest.mark.django_db
def test_a_pause_that_is_over_keeps_nothing_back() -> None:
    send = row(campaign_to(0), "claimed")
    _takes_a_pause(send, over=True)
    assert [r.id for r in hand_over_rows(send).go] == [send.pk]


@pytest.mark.django_db(transaction=True)
def test_a_pause_on_another_connection_counts_up_to_the_checking_statement(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    campaign = campaign_to(0)
    send = row(campaign, "claimed")
    person = send.subscriber
    assert person is not None
    with Race() as race:
        halt = race.halt()
        monkeypatch.setattr("sending.handover.try_shared", halt.behind(lambda *_: set()))
        handing = race.start_to(halt, lambda: hand_over([held(send)], lease=LEASE))
        pause(person, timezone.now() + DAY)
        halt.released.set()
        assert handing.result().withheld == {send.pk: "paused"}
    assert status_of(send) == "suppressed"


# --- the end of a pause ----------------------------------------------------------------------


@pytest.mark.django_db
def test_the_end_of_a_pause_brings_no_row_back() -> None:
    campaign = campaign_to(0)
    person = member(campaign, paused_until=timezone.now() + DAY)
    assert builder.build_chunk(campaign.pk, size=100) is not None
    assert resume(person)
    assert _built(campaign)[person.email] == ("suppressed", "paused")
    assert_identity(campaign)


@pytest.mark.django_db
def test_a_message_to_one_person_is_not_stopped_by_a_pause() -> None:
    person = SubscriberFactory.create(paused_until=timezone.now() + DAY)
    send = SendFactory.create(
        transactional=True, account=person.account, subscriber=person, claimed=True
    )
    assert [r.id for r in hand_over_rows(send).go] == [send.pk]
