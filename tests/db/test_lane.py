"""One lane, stepped lot by lot between the real database and the real sink."""

from __future__ import annotations

import math
import time
import uuid
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.db import DEFAULT_DB_ALIAS, OperationalError, connection, connections
from django.db.models.functions import Now
from django.test import override_settings

from campaigns import lifecycle
from sending import clock, desks, events, handover, lane_wire, lot, pauses, sql
from sending.answers import Answer, Stage
from sending.dispatcher import Dispatcher
from sending.lanes import Lane
from sending.limits.admission import Admission
from sending.models import Send, TransportPause
from sending.queue import Claimed
from sending.ready import Ready
from sending.shared import Shared
from sending.smtp_transaction import Transaction
from sending.sql.pauses import ERRORS
from sending.transports import SMTPSession, TransportFailure
from subscribers.conf import SMTP_BACKEND
from tests.crash.conftest import Sink, wait_until

from .rows import LEASE, assert_identity, campaign_to, held, kinds_of, row, status_of, take

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def relay(tmp_path: Path) -> Iterator[Sink]:
    sink = Sink(tmp_path / "sink.jsonl", [])
    sink.start()
    options = {"host": "127.0.0.1", "port": sink.port}
    transports = {"default": {"BACKEND": SMTP_BACKEND, "OPTIONS": options}}
    with override_settings(SENDONCE={**settings.SENDONCE, "TRANSPORTS": transports}):
        yield sink
    sink.stop()


@pytest.fixture
def lane(relay: Sink, monkeypatch: pytest.MonkeyPatch) -> Iterator[Lane]:
    # Whatever this machine's pace: it is not far away, and its lots do not shrink.
    monkeypatch.setattr(lot, "FAR", math.inf)
    monkeypatch.setattr(lot, "TARGET_SECONDS", 1e6)
    shared = Shared(
        lanes=1, lot_limit=20, lease=LEASE, margin=10, freshness=5, doubt_wait=600, poll=1
    )  # fmt: skip
    made = Lane(0, shared)
    made.size.size = 10  # one lot is what a test puts in
    yield made
    shared.stopping.set()
    shared.abandon.set()
    made.sessions.close()
    shared.pool.close()


def give(lane: Lane, *sends: Send) -> list[Claimed]:
    """These rows wait for the lane, as a claim of this process left them."""
    rows = [held(send) for send in sends]
    lane.shared.ready.put(("default", r) for r in rows)
    return rows


def recipients(relay: Sink) -> list[str]:
    """Everybody the sink heard of, accepted or not."""
    return [entry["recipient"] for entry in relay.accepted()]


def assert_back(*sends: Send) -> None:
    """Never started: queued, the attempt refunded."""
    for send in sends:
        send.refresh_from_db()
        assert (send.status, send.attempts, send.claim_token) == ("queued", 0, None)
        assert send.handed_at is None


def assert_has_nothing(lane: Lane) -> None:
    assert lane.hand.current() is None
    assert lane.shared.ready.held() == []
    assert lane.step(timeout=0) is False, "and takes nothing up again"


def test_a_lot_is_handed_over_sent_and_settled(lane: Lane, relay: Sink) -> None:
    campaign = campaign_to(0)
    sends = [row(campaign, "claimed") for _ in range(3)]
    give(lane, *sends)
    assert lane.step(timeout=0)
    assert recipients(relay) == [send.email for send in sends]
    for send in sends:
        send.refresh_from_db()
        assert (send.status, send.attempts) == ("sent", 1)
        assert send.sent_at is not None
    assert lane.shared.tally.counts()["sent"] == 3
    assert_has_nothing(lane)


# --- a hand-over that was not acknowledged ---------------------------------------------------


@pytest.fixture
def warning_at_hand_over() -> Iterator[None]:
    """PostgreSQL warns at the hand-over's COMMIT, as when a wait for a standby is canceled."""
    with connection.cursor() as cursor:
        cursor.execute(
            """CREATE FUNCTION warn_at_hand_over() RETURNS trigger LANGUAGE plpgsql AS $$
            BEGIN RAISE WARNING 'canceling wait for synchronous replication'; RETURN NULL; END $$;
            """
            f"CREATE CONSTRAINT TRIGGER warn_at_hand_over AFTER UPDATE ON {sql.SEND}"
            " DEFERRABLE INITIALLY DEFERRED FOR EACH ROW WHEN (NEW.status = 'sending')"
            " EXECUTE FUNCTION warn_at_hand_over()"
        )
    yield
    with connection.cursor() as cursor:
        cursor.execute(
            f"DROP TRIGGER warn_at_hand_over ON {sql.SEND}; DROP FUNCTION warn_at_hand_over()"
        )


@pytest.mark.usefixtures("warning_at_hand_over")
def test_after_a_commit_with_a_warning_nothing_reaches_the_relay(lane: Lane, relay: Sink) -> None:
    campaign = campaign_to(0)
    sends = [row(campaign, "claimed") for _ in range(3)]
    give(lane, *sends)
    assert lane.step(timeout=0)
    assert recipients(relay) == []
    assert_back(*sends)
    assert_has_nothing(lane)


@pytest.mark.parametrize("moment", ["before it was done", "after it was done"])
def test_after_a_commit_whose_connection_died_nothing_reaches_the_relay(
    moment: str, lane: Lane, relay: Sink, monkeypatch: pytest.MonkeyPatch
) -> None:
    campaign = campaign_to(0)
    sends = [row(campaign, "claimed") for _ in range(3)]
    give(lane, *sends)
    hand_over, record = handover.hand_over, events.record
    found: list[str] = []

    def dying_record(cursor: Any, notes: list[events.Note]) -> None:
        record(cursor, notes)
        if moment.startswith("before") and not found:
            found.append("killed")
            _kill_session(cursor)

    def dying_hand_over(*given: Any, **more: Any) -> Any:
        hand_over(*given, **more)
        found.append(status_of(sends[0]))
        with connection.cursor() as cursor:
            _kill_session(cursor)
            with pytest.raises(OperationalError) as caught:
                cursor.execute("SELECT 1")
        raise caught.value from None

    monkeypatch.setattr(events, "record", dying_record)
    if moment.startswith("after"):
        monkeypatch.setattr(desks, "hand_over", dying_hand_over)
    assert lane.step(timeout=0)
    assert found == (["killed"] if moment.startswith("before") else ["sending"])
    assert recipients(relay) == []
    assert_back(*sends)
    assert_has_nothing(lane)


def _kill_session(cursor: Any) -> None:
    cursor.execute("SELECT pg_backend_pid()")
    (pid,) = cursor.fetchone()
    other = connections.create_connection(DEFAULT_DB_ALIAS)
    try:
        with other.cursor() as killer:
            killer.execute("SELECT pg_terminate_backend(%s, 5000)", [pid])
    finally:
        other.close()


# --- rows whose lease has run out ------------------------------------------------------------


def test_a_row_whose_lease_is_not_trusted_any_more_is_not_sent(lane: Lane, relay: Sink) -> None:
    campaign = campaign_to(0)
    stale, taken, fresh = (row(campaign, "claimed") for _ in range(3))
    rows = give(lane, stale, taken, fresh)
    rows[0].trusted_until = rows[1].trusted_until = clock.now() - 0.001
    other = uuid.uuid4()
    Send.objects.filter(pk=taken.pk).update(claim_token=other)  # rescued, and claimed again
    assert lane.step(timeout=0)
    assert recipients(relay) == [fresh.email]
    assert status_of(fresh) == "sent"
    assert_back(stale)
    taken.refresh_from_db()
    assert (taken.status, taken.claim_token) == ("claimed", other), "it is another worker's"
    assert_has_nothing(lane)


def test_a_lease_that_runs_out_within_the_lot_ends_it(
    lane: Lane, relay: Sink, monkeypatch: pytest.MonkeyPatch
) -> None:
    campaign = campaign_to(0)
    sends = [row(campaign, "claimed") for _ in range(3)]
    give(lane, *sends)
    transaction = SMTPSession.transaction

    def suspended(self: SMTPSession, *given: Any) -> Transaction:
        said = yield from transaction(self, *given)
        # The machine slept: the clock that leases go by did not.
        later = clock.now() + 2 * LEASE
        monkeypatch.setattr(clock, "now", lambda: later)
        return said

    monkeypatch.setattr(SMTPSession, "transaction", suspended)
    assert lane.step(timeout=0)
    assert recipients(relay) == [sends[0].email]
    assert status_of(sends[0]) == "sent"
    assert_back(*sends[1:])
    assert_has_nothing(lane)


# --- a fault of our own ----------------------------------------------------------------------


def _fault_at(number: int, monkeypatch: pytest.MonkeyPatch) -> list[SMTPSession]:
    """The ``number``-th send has a bug; returns the session of every send, it included."""
    calls: list[SMTPSession] = []
    transaction = SMTPSession.transaction

    def buggy(self: SMTPSession, *given: Any) -> Transaction:
        calls.append(self)
        if len(calls) == number:
            raise RuntimeError("a bug")
        return (yield from transaction(self, *given))

    monkeypatch.setattr(SMTPSession, "transaction", buggy)
    return calls


def test_a_fault_leaves_the_row_on_the_wire_in_doubt_and_gives_the_others_back(
    lane: Lane, relay: Sink, monkeypatch: pytest.MonkeyPatch
) -> None:
    campaign = campaign_to(0)
    sends = [row(campaign, "claimed") for _ in range(4)]
    calls = _fault_at(2, monkeypatch)
    give(lane, *sends)
    with pytest.raises(RuntimeError, match="a bug"):
        lane.step(timeout=0)
    assert [status_of(send) for send in sends] == ["sent", "in_doubt", "queued", "queued"]
    assert recipients(relay) == [sends[0].email]
    assert_back(*sends[2:])
    assert kinds_of(sends[1]) == ["in_doubt"]
    sends[1].refresh_from_db()
    assert "RuntimeError: a bug" in sends[1].answer_text
    assert_has_nothing(lane)
    assert len(calls) == 2
    assert_identity_of_rows(sends)


def assert_identity_of_rows(sends: list[Send]) -> None:
    campaign = sends[0].campaign
    assert campaign is not None
    type(campaign).objects.filter(pk=campaign.pk).update(audience=len(sends))
    assert_identity(campaign)


def test_a_lane_goes_on_after_a_fault_and_does_not_repeat_it(
    lane: Lane, relay: Sink, monkeypatch: pytest.MonkeyPatch
) -> None:
    campaign = campaign_to(0)
    first, second = row(campaign, "claimed"), row(campaign, "claimed")
    calls = _fault_at(1, monkeypatch)
    give(lane, first)
    lane.start()
    try:
        wait_until(lambda: status_of(first) == "in_doubt", "the first to be in doubt", 15)
        give(lane, second)
        wait_until(lambda: status_of(second) == "sent", "the second to be sent", 15)
    finally:
        lane.shared.stopping.set()
        lane.join(15)
        calls[0].close()
    assert not lane.is_alive()
    assert (status_of(first), len(calls)) == ("in_doubt", 2)
    assert calls[0] is not calls[1], "the session is in an unknown state after a fault"
    assert recipients(relay) == [second.email]


# --- a relay that is out of order ------------------------------------------------------------


def test_a_probe_that_fails_for_the_relays_sake_spends_nobodys_attempt(
    lane: Lane, monkeypatch: pytest.MonkeyPatch
) -> None:
    full = Answer(Stage.DOT, 451, "4.3.0", "disk full")

    def out_of_order(session: SMTPSession, *given: Any) -> Transaction:
        yield
        raise TransportFailure(full)

    monkeypatch.setattr(SMTPSession, "transaction", out_of_order)
    campaign = campaign_to(0)
    first, second = row(campaign, "claimed"), row(campaign, "claimed")
    pauses.pause("default", None, full, stage=ERRORS, words="10 errors in a row")
    TransportPause.objects.update(probe_at=Now() - timedelta(seconds=1))
    lane.shared.pauses.refresh()
    give(lane, first, second)
    assert lane.step(timeout=0)
    assert_back(first, second)
    assert TransportPause.objects.exists(), "such an answer lifts nothing"
    assert lane.shared.ready.held() == []


# --- limits ----------------------------------------------------------------------------------


def test_permits_that_were_not_used_in_time_are_not_used_later(
    lane: Lane, relay: Sink, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A relay that stalls must not get what its limit had let through meanwhile all at once."""
    monkeypatch.setattr(lane_wire, "PERMIT_LASTS", 0.2)
    monkeypatch.setattr(lane.shared.limits, "concerns", lambda alias, rows: True)
    transaction = SMTPSession.transaction

    def stalling(session: SMTPSession, *given: Any) -> Transaction:
        time.sleep(0.4)
        return (yield from transaction(session, *given))

    monkeypatch.setattr(SMTPSession, "transaction", stalling)
    campaign = campaign_to(0)
    sends = [row(campaign, "claimed") for _ in range(3)]
    give(lane, *sends)
    assert lane.step(timeout=0)
    assert recipients(relay) == [sends[0].email], "one goes, whatever the time"
    assert_back(*sends[1:])
    assert_has_nothing(lane)


@pytest.mark.parametrize("verb", ["pause", "cancel"])
def test_rows_in_the_line_of_a_limit_leave_it_with_their_campaign(lane: Lane, verb: str) -> None:
    """They would wait there for hours, and take the permits of others of the same limit."""
    shared = lane.shared
    dispatcher = Dispatcher(shared, [lane])
    shared.worker_id = 1
    campaign, other = campaign_to(0), campaign_to(0)
    waiting, staying = row(campaign), row(other)
    shared.ready = Ready(lines=shared.limits.lines)
    claimed = take([campaign.pk, other.pk], 2)
    shared.ready.put((r.alias, r) for r in claimed)
    for r in shared.ready.drain():
        shared.ready.wait([(r, "account:1")])
    shared.limits.lines.pace("account:1", clock.now() + 3600, 1)

    getattr(lifecycle, verb)(campaign)
    dispatcher.step()
    assert status_of(waiting) == {"pause": "queued", "cancel": "canceled"}[verb]
    assert status_of(staying) == "claimed"
    assert [r.id for r in shared.ready.held()] == [staying.pk]


def test_a_probe_is_not_used_up_by_a_row_that_has_no_permit(
    lane: Lane, monkeypatch: pytest.MonkeyPatch
) -> None:
    shared = lane.shared
    (claimed,) = give(lane, row(campaign_to(0), "claimed"))
    pauses.pause("default", None, Answer(Stage.DOT, None), stage=ERRORS, words="errors")
    TransportPause.objects.update(probe_at=Now() - timedelta(seconds=1))
    shared.pauses.refresh()
    monkeypatch.setattr(shared.limits, "concerns", lambda alias, rows: True)
    monkeypatch.setattr(
        shared.limits, "admit", lambda alias, rows: Admission(waiting=[(claimed, "account:1")])
    )
    assert lane.step(timeout=0)
    shared.pauses.refresh()
    assert TransportPause.objects.get().failures == 1, "the probe was given back, unused"
