"""The last look before the network, its durable commit, and giving back what never started."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.db import OperationalError, connection, transaction
from django.db.models.functions import Now
from django.utils import timezone

from campaigns.models import Campaign
from sending import build, events, sql
from sending.connections import LOST, Unacknowledged
from sending.handover import Handed, give_back, hand_over
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

from .racing import Race
from .rows import LEASE, assert_identity, campaign_to, held, kinds_of, row, status_of, take

OLD = uuid.UUID("0ddba115-0000-4000-8000-000000000001")


def _hand_over(*sends: Send) -> Handed:
    return hand_over([held(s) for s in sends], lease=LEASE)


def _person(send: Send) -> Subscriber:
    assert send.subscriber is not None
    return send.subscriber


def _set_campaign(send: Send, status: str) -> None:
    Campaign.objects.filter(sends=send).update(status=status)


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
    assert _hand_over(send).go[0].attempts == 4


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
    "deleted": (lambda s: _person(s).delete(), "erased", "suppressed"),
    "paused": (lambda s: _set_campaign(s, "paused"), "not_sending", "queued"),
    "canceled": (lambda s: _set_campaign(s, "canceled"), "canceled", "canceled"),
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
    assert _hand_over(send).withheld == {send.pk: finding}
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
    _set_campaign(send, "paused")
    _hand_over(send)
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
    assert len(_hand_over(send).go) == 1


@pytest.mark.django_db
def test_somebody_who_was_erased_and_came_back_does_not_get_it_again() -> None:
    """The blanked row holds the campaign's one message to that address by its hash."""
    campaign = campaign_to(0)
    before, again = row(campaign, "sent"), row(campaign, "claimed")
    Send.objects.filter(job_id=before.job_id).update(
        email=None, subscriber=None, email_hash=erased_hashes(str(again.email))[-1]
    )
    elsewhere = row(campaign_to(0), "claimed", email=again.email)
    handed = _hand_over(again, elsewhere)
    assert handed.withheld == {again.pk: "erased"}
    assert [r.id for r in handed.go] == [elsewhere.pk]


@pytest.mark.django_db
def test_unsubscribe_stops_the_next_hand_over_of_a_half_sent_campaign() -> None:
    campaign = campaign_to(0)
    sends = [row(campaign, "claimed") for _ in range(3)]
    unsubscribe(_person(sends[1]), evidence="a link")
    handed = _hand_over(*sends)
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
    assert _hand_over(send).withheld == ({send.pk: "suppressed"} if stops else {})
    assert status_of(send) == ("suppressed" if stops else "sending")


@pytest.mark.django_db
def test_a_transactional_message_dies_at_its_expiry() -> None:
    live = SendFactory.create(transactional=True, claimed=True)
    late = SendFactory.create(
        transactional=True, claimed=True, expires=timezone.now() - timedelta(seconds=1)
    )
    handed = _hand_over(live, late)
    assert [r.id for r in handed.go] == [live.pk]
    assert handed.withheld == {late.pk: "expired"}
    assert (status_of(late), kinds_of(late)) == ("failed", ["failed"])


@pytest.mark.django_db
def test_a_transactional_message_needs_no_subscriber() -> None:
    send = SendFactory.create(transactional=True, claimed=True, subscriber=None,
                              email="guest@example.org")  # fmt: skip
    assert len(_hand_over(send).go) == 1


# --- the commit ------------------------------------------------------------------------------


def _synchronous_commit() -> str:
    with connection.cursor() as cursor:
        cursor.execute("SHOW synchronous_commit")
        return str(cursor.fetchone()[0])


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("act", ["hand over", "give back"])
def test_the_commit_is_durable_and_the_setting_does_not_leak(
    act: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    send = row(campaign_to(0), "claimed")
    inside: list[str] = []
    record = events.record

    def spying(cursor: Any, notes: Any) -> None:
        inside.append(_synchronous_commit())
        record(cursor, notes)

    monkeypatch.setattr(events, "record", spying)
    with connection.cursor() as cursor:
        cursor.execute("SET synchronous_commit = off")
        cursor.execute("SHOW lock_timeout")
        (lock_timeout,) = cursor.fetchone()
    try:
        if act == "hand over":
            assert len(_hand_over(send).go) == 1
        else:
            assert give_back([held(send)]) == 1
        assert inside == ["on"]
        assert _synchronous_commit() == "off", "as the session had it"
        with connection.cursor() as cursor:
            cursor.execute("SHOW lock_timeout")
            assert cursor.fetchone() == (lock_timeout,)
        assert not connection.in_atomic_block
        assert connection.connection.info.transaction_status.name == "IDLE"
    finally:
        connection.close()


@pytest.fixture
def warning_at_commit(transactional_db: None) -> Iterator[None]:
    """PostgreSQL warns at COMMIT, as it does when a wait for the standby is canceled."""
    with connection.cursor() as cursor:
        cursor.execute(
            """CREATE FUNCTION warn_at_commit() RETURNS trigger LANGUAGE plpgsql AS $$
            BEGIN RAISE WARNING 'canceling wait for synchronous replication'; RETURN NULL; END $$;
            """
            f"CREATE CONSTRAINT TRIGGER warn_at_commit AFTER UPDATE ON {sql.SEND}"
            " DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION warn_at_commit()"
        )
    yield
    with connection.cursor() as cursor:
        cursor.execute(f"DROP TRIGGER warn_at_commit ON {sql.SEND}; DROP FUNCTION warn_at_commit()")


@pytest.mark.usefixtures("warning_at_commit")
def test_a_commit_that_came_back_with_a_warning_sends_nothing() -> None:
    send = row(campaign_to(0), "claimed")
    rows = [held(send)]
    with pytest.raises(Unacknowledged, match="synchronous replication"):
        hand_over(rows, lease=LEASE)
    assert issubclass(Unacknowledged, LOST)
    assert status_of(send) == "sending", "it committed all the same; the worker can't know"
    assert give_back(rows) == 1
    send.refresh_from_db()
    assert (send.status, send.attempts, send.handed_at) == ("queued", 0, None)


@pytest.mark.usefixtures("warning_at_commit")
def test_a_warning_is_forgotten_with_its_transaction() -> None:
    first = row(campaign_to(0), "claimed")
    with pytest.raises(Unacknowledged):
        _hand_over(first)
    with connection.cursor() as cursor:
        cursor.execute(f"ALTER TABLE {sql.SEND} DISABLE TRIGGER warn_at_commit")
    assert len(_hand_over(row(campaign_to(0), "claimed")).go) == 1


@pytest.mark.django_db(transaction=True)
def test_a_session_that_dies_before_the_commit_sends_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    campaign = campaign_to(0)
    send = row(campaign, "claimed")
    rows = [held(send)]
    with Race() as race:
        halt = race.halt()
        monkeypatch.setattr(events, "record", halt.behind(events.record))
        handing = race.start_to(halt, lambda: hand_over(rows, lease=LEASE))
        handing.kill_backend()
        halt.released.set()
        with pytest.raises(LOST):
            handing.result()
    assert status_of(send) == "claimed"
    assert give_back(rows) == 1
    send.refresh_from_db()
    assert (send.status, send.attempts) == ("queued", 0)


@pytest.mark.django_db(transaction=True)
def test_a_lost_answer_to_commit_can_be_given_back_too() -> None:
    """The other state in which an unacknowledged commit may have left the row."""
    campaign = campaign_to(0)
    send = row(campaign, "claimed", next_attempt_at=timezone.now(), attempts=1)
    rows = [held(send)]
    hand_over(rows, lease=LEASE)
    assert give_back(rows) == 1
    send.refresh_from_db()
    assert (send.status, send.attempts) == ("retry", 1)
    assert give_back(rows) == 0, "safe to repeat"


@pytest.mark.django_db(transaction=True)
def test_a_give_back_waits_for_a_commit_that_is_still_under_way(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The client gave up on COMMIT, the server has not: the row's lock orders the two."""
    send = row(campaign_to(0), "claimed")
    rows = [held(send)]
    with Race() as race:
        halt = race.halt()
        monkeypatch.setattr(events, "record", halt.behind(events.record))
        handing = race.start_to(halt, lambda: hand_over(rows, lease=LEASE))
        returning = race.start(lambda: give_back(rows))
        returning.wait_until_blocked()
        halt.released.set()
        handing.result()
        assert returning.result() == 1
    send.refresh_from_db()
    assert (send.status, send.attempts) == ("queued", 0)


@pytest.mark.django_db(transaction=True)
def test_a_hand_over_does_not_wait_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    send = row(campaign_to(0), "claimed")
    monkeypatch.setattr(sql, "DURABLE", sql.DURABLE.replace("10s", "50ms"))
    with Race() as race, transaction.atomic():
        Send.objects.select_for_update().get(pk=send.pk)
        with pytest.raises(OperationalError, match="lock timeout"):
            race.start(lambda: _hand_over(send)).result()
    assert status_of(send) == "claimed"


# --- give back -------------------------------------------------------------------------------


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
    _set_campaign(send, "canceled")
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
