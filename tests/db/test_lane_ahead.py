"""Half a lot is handed over while the other half is on the wire."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Any

import pytest
from django.db import OperationalError, connection

from campaigns import lifecycle
from campaigns.gate import key
from campaigns.models import Campaign
from sending import desks, handover, lot
from sending.answers import Answer, Stage
from sending.lanes import Lane
from sending.models import Send
from sending.shared import POOL_SIZE
from sending.smtp_transaction import Transaction
from sending.transports import SMTPSession, TransportFailure
from tests.crash.conftest import Sink, wait_until

from .rows import campaign_to, row, status_of
from .test_lane import assert_back, assert_has_nothing, give, lane, recipients, relay

__all__ = ["lane", "relay"]  # fixtures

pytestmark = pytest.mark.django_db(transaction=True)

LOT = 4


@pytest.fixture
def campaign() -> Campaign:
    return campaign_to(0)


def be_far(lane: Lane, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lot, "FAR", 0.0)
    lane.size.size = lane.size.limit = LOT
    lane.size.seconds_each = 0.001
    lane.shared.limits.refresh()  # there are none


@pytest.fixture
def sends(lane: Lane, campaign: Campaign, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Send]]:
    """Rows of two and a half lots wait, for a relay that is slow enough."""
    be_far(lane, monkeypatch)
    made = [row(campaign, "claimed") for _ in range(10)]
    give(lane, *made)
    yield made
    # A hand-over that nobody waited for any more.
    wait_until(lambda: lane.shared.pool._idle.qsize() == POOL_SIZE, "the last hand-over", 15)


def at_send(
    monkeypatch: pytest.MonkeyPatch, number: int, act: Callable[[], Any]
) -> Callable[[], int]:
    """``act`` while the message of this number (from 1) is on the wire; returns how many were."""
    count = 0
    transaction = SMTPSession.transaction

    def sending(session: SMTPSession, *given: Any) -> Transaction:
        nonlocal count
        count += 1
        if count == number:
            act()
        return (yield from transaction(session, *given))

    monkeypatch.setattr(SMTPSession, "transaction", sending)
    return lambda: count


def sending_now() -> int:
    return Send.objects.filter(status="sending").count()


def test_the_next_half_is_handed_over_meanwhile_and_never_more_than_a_lot(
    lane: Lane, relay: Sink, sends: list[Send], monkeypatch: pytest.MonkeyPatch
) -> None:
    handed: list[int] = []
    transaction = SMTPSession.transaction

    def watching(session: SMTPSession, *given: Any) -> Transaction:
        wait_until(lambda: sending_now() == LOT or len(handed) >= 8, "the next half", 15)
        handed.append(sending_now())
        return (yield from transaction(session, *given))

    monkeypatch.setattr(SMTPSession, "transaction", watching)
    while lane.step(timeout=0):
        pass
    # Before each message, with what came of the half before it committed.
    assert handed == [LOT] * 8 + [2] * 2
    assert recipients(relay) == [send.email for send in sends]
    assert [status_of(send) for send in sends] == ["sent"] * 10
    assert lane.shared.tally.counts()["sent"] == 10
    assert_has_nothing(lane)


def test_a_stop_returns_what_was_handed_over_meanwhile(
    lane: Lane, relay: Sink, sends: list[Send], monkeypatch: pytest.MonkeyPatch
) -> None:
    at_send(monkeypatch, 1, lane.shared.stopping.set)
    assert lane.step(timeout=0)
    assert recipients(relay) == [sends[0].email]
    assert status_of(sends[0]) == "sent"
    assert_back(*sends[1:4])
    assert lane.hand.ahead is None
    assert lane.hand.current() is None


def test_a_relay_that_goes_down_gets_none_of_it(
    lane: Lane, relay: Sink, sends: list[Send], monkeypatch: pytest.MonkeyPatch
) -> None:
    def down() -> None:
        raise TransportFailure(Answer(Stage.MAIL, 550, "5.7.1", "your host is blocked"))

    at_send(monkeypatch, 2, down)
    assert lane.step(timeout=0)
    assert recipients(relay) == [sends[0].email]
    assert_back(*sends[1:4])
    assert lane.hand.ahead is None


@pytest.mark.parametrize("moment", ["before", "after"])
def test_an_end_of_the_connection_at_that_hand_over(
    moment: str,
    lane: Lane,
    relay: Sink,
    sends: list[Send],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    calls: list[int] = []

    def dying(*given: Any, **more: Any) -> Any:
        calls.append(len(given[0]))
        if len(calls) == 3:  # the one that brings what came of the first half
            if moment == "after":
                handover.hand_over(*given, **more)
            raise OperationalError("server closed the connection unexpectedly")
        return handover.hand_over(*given, **more)

    monkeypatch.setattr(desks, "hand_over", dying)
    assert lane.step(timeout=0)
    assert lane.step(timeout=0)
    assert calls == [2, 2, 2]
    assert recipients(relay) == [send.email for send in sends[:4]]
    assert status_of(sends[0]) == status_of(sends[1]) == "sent"
    assert_back(*sends[4:6])
    while lane.step(timeout=0):
        pass
    assert [status_of(send) for send in sends[:4]] == ["sent"] * 4
    assert_has_nothing(lane)


def test_a_pause_of_the_campaign_lets_nothing_more_be_handed_over(
    lane: Lane,
    relay: Sink,
    campaign: Campaign,
    sends: list[Send],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def pausing() -> None:
        wait_until(lambda: sending_now() == LOT, "the next half", 15)
        lifecycle.pause(campaign)

    at_send(monkeypatch, 1, pausing)
    while lane.step(timeout=0):
        pass
    assert len(recipients(relay)) == LOT, "what had been handed over when pause returned"
    assert [status_of(send) for send in sends] == ["sent"] * 4 + ["queued"] * 6
    assert_has_nothing(lane)


def test_a_gate_that_is_held_keeps_no_lane_that_hands_over_meanwhile(
    lane: Lane, relay: Sink, campaign: Campaign, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is only claimed goes back without the gate, and once."""
    be_far(lane, monkeypatch)
    held = campaign_to(0)
    of = [campaign] * 2 + [held] * 2 + [campaign] * 2
    sends = [row(one, "claimed") for one in of]
    give(lane, *sends)
    late = threading.Timer(20, lane.shared.abandon.set)  # else it would wait for ever
    late.start()
    with closing(connection.copy()) as staff:
        staff.cursor().execute("SELECT pg_advisory_lock(%s)", [key(held.pk)])
        while lane.step(timeout=0):
            pass
    late.cancel()
    assert [status_of(send) for send in sends] == ["sent"] * 2 + ["queued"] * 2 + ["sent"] * 2
    assert_back(*sends[2:4])
    assert len(recipients(relay)) == 4
    assert_has_nothing(lane)


def test_what_waited_too_long_is_handed_over_again(
    lane: Lane, relay: Sink, sends: list[Send], monkeypatch: pytest.MonkeyPatch
) -> None:
    lane.shared.freshness = 0.3
    at_send(monkeypatch, 2, lambda: time.sleep(0.5))
    assert lane.step(timeout=0)
    assert lane.step(timeout=0)
    assert recipients(relay) == [send.email for send in sends[:2]]
    assert_back(*sends[2:4])


@pytest.mark.parametrize("is_handed", [False, True])
def test_a_shutdown_that_waits_no_longer_accounts_for_both(
    is_handed: bool, lane: Lane, sends: list[Send], monkeypatch: pytest.MonkeyPatch
) -> None:
    found: list[list[str]] = []

    def concluding() -> None:
        if is_handed:
            wait_until(lambda: sending_now() == LOT, "the next half", 15)
        lane.shared.stopping.set()
        current = lane.hand.current()
        assert current is not None
        lane.hand.conclude(current, "the sender was stopped")
        found.append([status_of(send) for send in sends[:4]])

    at_send(monkeypatch, 2, concluding)
    assert lane.step(timeout=0)
    assert found == [["sent", "in_doubt", "queued", "queued"]]
    # The answer that came after all is written; nothing else is taken up.
    assert [status_of(send) for send in sends[:4]] == ["sent", "sent", "queued", "queued"]


def test_a_fault_of_ours_returns_it(
    lane: Lane, relay: Sink, sends: list[Send], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fault() -> None:
        raise RuntimeError("a bug")

    at_send(monkeypatch, 2, fault)
    with pytest.raises(RuntimeError, match="a bug"):
        lane.step(timeout=0)
    assert [status_of(send) for send in sends[:4]] == ["sent", "in_doubt", "queued", "queued"]
    assert recipients(relay) == [sends[0].email]
    assert lane.hand.ahead is None
    assert lane.hand.current() is None


def test_a_row_that_is_locked_keeps_no_other_lane_waiting(
    lane: Lane, sends: list[Send], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its own lane writes it, when it has nothing else to do."""
    tried: list[str] = []

    def locked(*given: Any, hurried: bool = False, **more: Any) -> Any:
        tried.append(f"{len(given[0])} {'hurried' if hurried else 'alone'}")
        if hurried and len(tried) == 2:
            with connection.cursor() as cursor:
                cursor.execute(
                    "DO $$ BEGIN RAISE EXCEPTION 'lock timeout' USING ERRCODE = '55P03'; END $$"
                )
        return handover.hand_over(*given, hurried=hurried, **more)

    monkeypatch.setattr(desks, "hand_over", locked)
    assert lane.step(timeout=0)
    assert tried == ["2 hurried", "2 hurried", "2 alone"]
    assert [status_of(send) for send in sends[:4]] == ["sending"] * 4
