"""The durable commit of a hand-over, and its failures."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from django.db import OperationalError, connection, transaction
from django.utils import timezone

from sending import events, sql
from sending.connections import LOST, Unacknowledged
from sending.handover import give_back, hand_over
from sending.models import Send
from subscribers.consent import unsubscribe
from subscribers.database_clock import database_time

from .handed import hand_over_rows
from .racing import Race
from .rows import LEASE, campaign_to, held, row, status_of


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
            assert len(hand_over_rows(send).go) == 1
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
        hand_over_rows(first)
    with connection.cursor() as cursor:
        cursor.execute(f"ALTER TABLE {sql.SEND} DISABLE TRIGGER warn_at_commit")
    assert len(hand_over_rows(row(campaign_to(0), "claimed")).go) == 1


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
            race.start(lambda: hand_over_rows(send)).result()
    assert status_of(send) == "claimed"


@pytest.mark.django_db(transaction=True)
def test_the_moment_on_record_is_that_of_the_look(monkeypatch: pytest.MonkeyPatch) -> None:
    """An opt-out that committed behind the look comes too late, and is not before the hand-over."""
    send = row(campaign_to(0), "claimed")
    assert send.subscriber is not None
    before, after = sql.HAND_OVER.split("    FROM lot\n")
    stop = "(SELECT pg_advisory_xact_lock(id) FROM lot)"
    monkeypatch.setattr(sql, "HAND_OVER", f"{before}    FROM {stop} stopped, lot\n{after}")
    with Race() as race, connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_lock(%s)", [send.pk])
        handing = race.start(lambda: hand_over_rows(send))
        handing.wait_until_blocked()
        unsubscribe(send.subscriber, evidence="a test")
        opted_out = database_time()
        cursor.execute("SELECT pg_advisory_unlock(%s)", [send.pk])
        assert len(handing.result().go) == 1
    send.refresh_from_db()
    assert send.handed_at is not None
    assert send.handed_at < opted_out
