"""A lane with several sessions: a message is under way in each, and each row is told its own
answer."""

from __future__ import annotations

import threading
import time
from typing import Any

import pytest
from django.conf import settings
from django.test import override_settings

from campaigns.models import Campaign
from sending import clock, lane_sessions, smtp_wire
from sending.lanes import Lane
from sending.models import Send, TransportPause
from sending.sessions import Session, SMTPSession
from sending.smtp_dialogue import Timeouts
from sending.transports import Transport
from tests.crash.relay import GREETING, OK, Relay

from .abreast import (
    GONE,
    NOBODY,
    SESSIONS,
    Gathering,
    announcing,
    assert_each_once,
    campaign,
    every_way,
    gathering,
    is_open,
    relay,
    rows,
    sends,
    several,
    statuses,
    through,
    way,
)
from .rows import status_of
from .test_lane import assert_has_nothing, lane

__all__ = ["campaign", "gathering", "lane", "relay", "sends", "several", "way"]  # fixtures

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("several")]


# --- several at once -------------------------------------------------------------------------


@every_way
@pytest.mark.parametrize("count", [3, 5, 9])
def test_so_many_are_under_way_at_once_and_each_is_told_its_own_answer(
    count: int, lane: Lane, relay: Relay, gathering: Gathering, campaign: Campaign
) -> None:
    sends = rows(lane, campaign, count)
    gathering.answers = {
        str(sends[1].email): "451 4.2.0 later",
        str(sends[2].email): NOBODY,
        str(sends[-1].email): "250 2.0.0 Ok: queued as Q9",
    }
    told = ["sent", "retry", "bounced", *["sent"] * 6][:count]
    if count == 3:
        told[2] = "sent"
    assert lane.step(timeout=0)
    assert not gathering.missed, "the first was answered only when three had come"
    assert statuses(sends) == told
    assert sorted(gathering.came) == sorted(str(send.email) for send in sends)
    assert relay.connections == SESSIONS
    sends[-1].refresh_from_db()
    assert "Q9" in sends[-1].answer_text
    assert lane.shared.tally.counts()["sent"] == told.count("sent")
    assert_has_nothing(lane)


@announcing
def test_a_refused_recipient_is_told_by_itself(
    lane: Lane, relay: Relay, gathering: Gathering, sends: list[Send]
) -> None:
    refused = {str(send.email) for send in sends[1::3]}
    gathering.size = 1
    relay.at_rcpt = lambda recipient: NOBODY if recipient in refused else OK
    assert lane.step(timeout=0)
    assert statuses(sends) == ["sent", "bounced", "sent"] * 3
    assert len(relay.named) == 9
    assert relay.connections == SESSIONS


def test_the_next_lot_goes_by_the_same_sessions(
    lane: Lane, relay: Relay, campaign: Campaign, sends: list[Send]
) -> None:
    assert lane.step(timeout=0)
    more = rows(lane, campaign, 4)
    assert lane.step(timeout=0)
    assert_each_once(relay, [*sends, *more])
    assert relay.connections == SESSIONS


# --- where there is one session --------------------------------------------------------------


def test_no_session_is_opened_for_which_there_is_no_message(
    lane: Lane, relay: Relay, gathering: Gathering, campaign: Campaign
) -> None:
    gathering.size = 2
    sends = rows(lane, campaign, 2)
    assert lane.step(timeout=0)
    assert statuses(sends) == ["sent", "sent"]
    assert (relay.connections, gathering.missed) == (2, False)


def test_a_limit_of_connections_leaves_each_lane_one(
    lane: Lane, relay: Relay, gathering: Gathering, sends: list[Send]
) -> None:
    gathering.size = 1
    with through(relay.port, connections=5):
        lane.shared.limits.refresh(1)
        lane.shared.doors._shares = None  # the slots are another matter
        assert lane.step(timeout=0)
        assert_each_once(relay, sends)
    assert relay.connections == 1


def test_a_backend_that_takes_no_bytes_has_one_session(
    lane: Lane, sends: list[Send], mailoutbox: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[object] = []
    session = Transport.session
    monkeypatch.setattr(
        Transport,
        "session",
        lambda road: made.append(road) or session(road),  # type: ignore[func-returns-value]
    )
    entry = {"BACKEND": "django.core.mail.backends.locmem.EmailBackend"}
    with override_settings(SENDONCE={**settings.SENDONCE, "TRANSPORTS": {"default": entry}}):
        assert lane.step(timeout=0)
    assert statuses(sends) == ["sent"] * 9
    assert (len(mailoutbox), len(made)) == (9, 1)


def test_messages_that_need_permits_go_one_at_a_time(
    lane: Lane,
    relay: Relay,
    gathering: Gathering,
    sends: list[Send],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    gathering.size = 1
    under_way: list[int] = []
    relay.at_rcpt = lambda _: under_way.append(len(current_wire(lane))) or OK  # type: ignore[func-returns-value]
    monkeypatch.setattr(lane.shared.limits, "concerns", lambda alias, rows: True)
    assert lane.step(timeout=0)
    assert_each_once(relay, sends)
    assert relay.accepted == [send.email for send in sends]
    assert under_way == [1] * 9
    assert relay.connections == 1, "none is opened that would not be used"


def current_wire(lane: Lane) -> list[int]:
    lot = lane.hand.current()
    return list(lot.on_wire) if lot is not None else []


def _timeouts(session: Session) -> Timeouts:
    assert isinstance(session, SMTPSession)
    assert session._backend._session is not None
    return session._backend._session.timeouts


# --- a further session that is refused -------------------------------------------------------


@pytest.mark.parametrize("greeting", ["421 4.7.0 too many connections", "554 5.7.1 no", GONE])
def test_a_further_session_that_is_refused_costs_nothing(
    greeting: str,
    lane: Lane,
    relay: Relay,
    gathering: Gathering,
    campaign: Campaign,
    sends: list[Send],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    gathering.size = 1
    relay.greeting = lambda number: GREETING if number == 1 else greeting
    assert lane.step(timeout=0)
    assert relay.connections == 2, "after one that is refused no other is tried"
    more = rows(lane, campaign, 9)
    assert lane.step(timeout=0)
    assert_each_once(relay, [*sends, *more])
    assert relay.connections == 2, "not asked again so soon"
    assert lane.shared.pauses.is_clear
    assert lane.shared.makes_do() == ["default allows no more mail sessions, going on with fewer"]
    assert not TransportPause.objects.exists()

    relay.greeting = lambda number: GREETING
    later = clock.now() + lane_sessions.FEWER + 1
    monkeypatch.setattr(clock, "now", lambda: later)
    last = rows(lane, campaign, 9)
    assert lane.step(timeout=0)
    assert statuses(last) == ["sent"] * 9
    assert is_open(lane) == [True] * SESSIONS
    assert lane.shared.makes_do() == []
    assert [_timeouts(session).command for session in lane.sessions.abreast("default")] == [
        300.0
    ] * SESSIONS, "less patience is for opening alone"


def test_a_further_connection_that_is_refused_costs_nothing(
    lane: Lane, relay: Relay, gathering: Gathering, sends: list[Send]
) -> None:
    gathering.size = 1

    def only_one(number: int) -> str:
        relay.stop_listening()
        return GREETING

    relay.greeting = only_one
    assert lane.step(timeout=0)
    assert_each_once(relay, sends)
    assert is_open(lane) == [True, False]
    assert lane.shared.pauses.is_clear


def test_a_further_session_that_is_met_with_silence_is_not_waited_for_as_the_relay_is(
    lane: Lane,
    relay: Relay,
    gathering: Gathering,
    sends: list[Send],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Its own time-outs are half a minute for connecting, and five for the greeting."""
    gathering.size = 1
    monkeypatch.setattr(lane_sessions, "EXTRA_PATIENCE", 0.5)
    relay.greeting_delay = lambda number: 0.0 if number == 1 else 600.0
    caplog.set_level("INFO", logger="sendonce.sender")
    assert lane.step(timeout=0)
    assert_each_once(relay, sends)
    assert relay.connections == 2
    (said,) = [r for r in caplog.records if getattr(r, "event", "") == "session_refused"]
    assert (said.stage, said.reason) == ("greeting", "timed out")  # type: ignore[attr-defined]
    assert len(lane.sessions.abreast("default")) == 1


# --- a relay that hesitates ------------------------------------------------------------------


@announcing
def test_who_is_heard_first_goes_on_first(
    lane: Lane,
    relay: Relay,
    gathering: Gathering,
    sends: list[Send],
    way: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The first is answered when the end of another has come, whose recipient was taken late."""
    monkeypatch.setattr(smtp_wire, "TICK", 30.0)
    gathering.size = 1
    # The last of those that start at once: back to back there is one announced behind each.
    late = str(sends[4 if way == "back to back" else 2].email)
    waits, ended = threading.Event(), threading.Event()

    def at_rcpt(recipient: str) -> str:
        if recipient == late:
            waits.wait(10)
            time.sleep(0.5)  # so that the lane has turned to the others
        return OK

    def at_dot(recipient: str) -> str | None:
        if recipient == sends[0].email:
            waits.set()
            gathering.missed = not ended.wait(10)
        elif recipient == late:
            ended.set()
        return gathering(recipient)

    relay.at_rcpt, relay.at_dot = at_rcpt, at_dot
    assert lane.step(timeout=0)
    assert not gathering.missed
    assert_each_once(relay, sends)


@announcing
def test_who_is_answered_late_holds_nobody_up(
    lane: Lane, relay: Relay, gathering: Gathering, sends: list[Send], way: str
) -> None:
    """In its session another message may be announced; all others go."""
    gathering.size = 1
    others = 7 if way == "back to back" else 8
    answered = threading.Event()

    def late(recipient: str) -> str | None:
        if recipient == sends[0].email:
            answered.wait(10)
            gathering.missed = len(relay.accepted) < others
        elif len(relay.accepted) == others - 1:
            answered.set()
        return gathering(recipient)

    relay.at_dot = late
    assert lane.step(timeout=0)
    assert not gathering.missed
    assert_each_once(relay, sends)


# --- sessions that have nothing to do --------------------------------------------------------


def test_all_are_closed_politely_when_there_was_nothing_to_do_for_long(
    lane: Lane, relay: Relay, sends: list[Send], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert lane.step(timeout=0)
    lane.sessions.rest()
    assert is_open(lane) == [True] * SESSIONS
    monkeypatch.setattr(lane_sessions, "IDLE_CLOSE", -1.0)
    lane.sessions.rest()
    assert is_open(lane) == []
    assert relay.quits == SESSIONS


def test_all_are_closed_when_another_transport_needs_the_slot(
    lane: Lane, relay: Relay, sends: list[Send], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert lane.step(timeout=0)
    monkeypatch.setattr(lane.shared.doors, "to_close", lambda *_: ["default"])
    lane.sessions.begin("other")
    assert is_open(lane) == []
    assert relay.quits == SESSIONS


def test_what_the_lot_before_left_is_written_before_further_sessions_are_opened(
    lane: Lane,
    relay: Relay,
    gathering: Gathering,
    campaign: Campaign,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """To open one may take minutes."""
    gathering.size = 1
    lane.size.size = 1
    first, *others = rows(lane, campaign, 4)
    assert lane.step(timeout=0)
    assert status_of(first) == "sending", "the next hand-over would write it"
    found: list[str] = []
    opening = SMTPSession.open

    def watched(session: SMTPSession, *patience: float | None) -> None:
        found.append(status_of(first))
        opening(session, *patience)

    monkeypatch.setattr(SMTPSession, "open", watched)
    lane.size.size = 3
    assert lane.step(timeout=0)
    assert found == ["sent"] * 2
    assert_each_once(relay, [first, *others])
