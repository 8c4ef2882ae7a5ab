"""The outcomes of one lot, written by the hand-over of the next."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest
from django.db import OperationalError, connection, transaction

from campaigns import gate
from campaigns.models import Campaign
from sending import desks, handover
from sending.answers import Answer, Stage
from sending.handover import hand_over
from sending.lanes import Lane
from sending.models import Send
from sending.smtp_transaction import Transaction
from sending.transports import SMTPSession
from tests.crash.conftest import Sink, wait_until

from .racing import Race
from .rows import LEASE, campaign_to, held, row, status_of, told
from .test_lane import assert_back, assert_has_nothing, give, lane, recipients, relay

__all__ = ["lane", "relay"]  # fixtures

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def campaign() -> Campaign:
    return campaign_to(0)


@pytest.fixture
def sessions() -> int:
    """Of the lane."""
    return 1


@pytest.fixture
def two_lots(lane: Lane, campaign: Campaign, sessions: int) -> tuple[list[Send], list[Send]]:
    """Rows of two lots wait; the first was sent, and what came of it is not written yet."""
    lane.size.size = lane.size.limit = 2
    lane.shared.sessions = sessions
    lane.shared.limits.refresh()  # there are none
    first, second = ([row(campaign, "claimed") for _ in range(2)] for _ in range(2))
    give(lane, *first, *second)
    assert lane.step(timeout=0)
    assert [status_of(send) for send in first] == ["sending", "sending"]
    return first, second


def spy_writes(lane: Lane, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Which transactions the lane asks for."""
    seen: list[str] = []

    def watched(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def calling(*given: Any, **more: Any) -> Any:
            seen.append(name)
            return function(*given, **more)

        return calling

    for name in ("hand_over", "settle"):
        monkeypatch.setattr(desks, name, watched(name, getattr(desks, name)))
    return seen


def test_the_next_hand_over_writes_them(
    lane: Lane, relay: Sink, two_lots: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = two_lots
    seen = spy_writes(lane, monkeypatch)
    assert lane.hand.current() is not None, "a stop finds them"
    assert lane.step(timeout=0)
    # Nothing waits any more: what came of the second is written at once.
    assert seen == ["hand_over", "settle"]
    assert [status_of(send) for send in (*first, *second)] == ["sent"] * 4
    assert len(recipients(relay)) == 4
    assert lane.shared.tally.counts()["sent"] == 4
    assert len(lane.shared.journal.kept()) == 4
    assert_has_nothing(lane)


def test_when_another_lane_took_the_next_they_are_written_at_once(
    lane: Lane, two_lots: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, _ = two_lots
    taken = lane.shared.ready.drain()
    assert lane.step(timeout=0) is False
    assert [status_of(send) for send in first] == ["sent", "sent"]
    assert lane.hand.current() is None
    assert lane.shared.ready.held() == taken


def test_a_stop_writes_them(lane: Lane, two_lots: Any) -> None:
    first, second = two_lots
    lane.shared.stopping.set()
    lane.run()
    assert [status_of(send) for send in first] == ["sent", "sent"]
    assert [status_of(send) for send in second] == ["claimed", "claimed"], "the worker's to return"


def test_a_shutdown_that_waits_no_longer_writes_them(lane: Lane, two_lots: Any) -> None:
    first, _ = two_lots
    lot = lane.hand.current()
    assert lot is not None
    lane.hand.conclude(lot, "the sender was stopped")
    assert [status_of(send) for send in first] == ["sent", "sent"]


def test_a_decision_about_their_campaign_is_waited_for_before_the_next_lot(
    lane: Lane, relay: Sink, campaign: Campaign, two_lots: Any
) -> None:
    first, second = two_lots
    with Race() as race:
        with transaction.atomic(), connection.cursor() as cursor:
            gate.enter_exclusive(cursor, campaign.pk)
            stepping = race.start(lambda: lane.step(timeout=0))
            wait_until(lambda: not stepping.is_alive() or stepping.pid > 0, "the lane to begin", 15)
            threading.Event().wait(0.3)
            assert stepping.is_alive(), "it waits for the gate, with its outcomes"
            assert len(recipients(relay)) == 2, "and hands nothing over"
        assert stepping.result()
    assert [status_of(send) for send in first] == ["sent", "sent"]
    assert_back(*second)
    assert_has_nothing(lane)


@pytest.mark.parametrize("moment", ["before", "after"])
def test_an_end_of_the_connection_loses_neither(
    moment: str, lane: Lane, relay: Sink, two_lots: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = two_lots
    calls = []

    def dying(*given: Any, **more: Any) -> Any:
        calls.append(moment)
        if moment == "after":
            handover.hand_over(*given, **more)
        raise OperationalError("server closed the connection unexpectedly")

    monkeypatch.setattr(desks, "hand_over", dying)
    assert lane.step(timeout=0)
    assert calls == [moment]
    assert [status_of(send) for send in first] == ["sent", "sent"]
    assert_back(*second)
    assert len(recipients(relay)) == 2
    assert_has_nothing(lane)


def test_a_fault_before_the_next_hand_over_writes_them(
    lane: Lane, two_lots: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = two_lots

    def fault(*_: Any, **__: Any) -> Any:
        raise RuntimeError("a bug")

    monkeypatch.setattr(lane.shared.composer, "compose", fault)
    with pytest.raises(RuntimeError, match="a bug"):
        lane.step(timeout=0)
    assert [status_of(send) for send in first] == ["sent", "sent"]
    assert_back(*second)
    assert_has_nothing(lane)


@pytest.mark.parametrize(("sessions", "used_up"), [(1, 0), (2, 0), (2, 1)])
def test_a_session_that_is_used_up_makes_them_wait_for_nothing(
    used_up: int, lane: Lane, two_lots: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """To open another may take minutes."""
    first, _ = two_lots
    lane.sessions.abreast("default")[used_up].close()
    found: list[str] = []
    opening = SMTPSession.open

    def slowly(session: SMTPSession, *patience: float | None) -> None:
        found.extend(status_of(send) for send in first)
        opening(session, *patience)

    monkeypatch.setattr(SMTPSession, "open", slowly)
    assert lane.step(timeout=0)
    assert found[:2] == ["sent", "sent"]


def test_a_refusal_is_never_carried(
    lane: Lane, campaign: Campaign, monkeypatch: pytest.MonkeyPatch
) -> None:
    lane.size.size = lane.size.limit = 2
    answers = [Answer(Stage.DOT, 250, "", "ok"), Answer(Stage.RCPT, 550, "5.1.1", "no such user")]

    def answering(*_: Any) -> Transaction:
        yield
        return answers.pop(0)

    monkeypatch.setattr(SMTPSession, "transaction", answering)
    good, bad = row(campaign, "claimed"), row(campaign, "claimed")
    give(lane, good, bad, row(campaign, "claimed"))
    assert lane.step(timeout=0)
    assert (status_of(good), status_of(bad)) == ("sent", "bounced")


# --- the statement's side ----------------------------------------------------------------------


def test_both_are_committed_or_neither(campaign: Campaign) -> None:
    before, now = row(campaign, "sending"), row(campaign, "claimed")
    accepted = [told(held(before), "sent")]
    with transaction.atomic():
        hand_over([held(now)], lease=LEASE, accepted=accepted)
        transaction.set_rollback(True)
    assert (status_of(before), status_of(now)) == ("sending", "claimed")
    handed = hand_over([held(now)], lease=LEASE, accepted=accepted)
    assert (handed.became, [r.id for r in handed.go]) == ({before.pk: "sent"}, [now.pk])
    assert (status_of(before), status_of(now)) == ("sent", "sending")


def test_a_row_that_came_back_under_another_token_is_accepted_and_not_handed_over(
    campaign: Campaign,
) -> None:
    """It was rescued into doubt, asked for again and claimed while its acceptance was unwritten."""
    send = row(campaign, "sending")
    old = held(send)
    again = row(campaign, "claimed")
    Send.objects.filter(pk=again.pk).update(doubt_tokens=[old.token])
    accepted = told(held(again, token=old.token), "sent")
    handed = hand_over([held(again)], lease=LEASE, accepted=[accepted])
    assert (handed.became, handed.go) == ({again.pk: "sent"}, [])
    assert status_of(again) == "sent"
