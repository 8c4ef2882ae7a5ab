"""What ends one of a lane's sessions, or its lot, while messages are under way in others: nobody
twice, nobody lost."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import pytest
from django.db import connections

from campaigns.models import Campaign
from sending import clock, lane_wire
from sending.lanes import Lane
from sending.models import Send
from tests.crash.relay import GREETING, OK, Relay

from .abreast import (
    BLOCKED,
    GONE,
    NOBODY,
    SESSIONS,
    WAYS,
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
from .rows import LEASE, kinds_of, take
from .test_lane import assert_back, assert_has_nothing, lane

__all__ = ["campaign", "gathering", "lane", "relay", "sends", "several", "way"]  # fixtures

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("several")]


# --- sessions that end -----------------------------------------------------------------------


def nth(number: int, answer: str) -> Callable[[str], str]:
    """This is the answer of that number (from 1), all others are as they should be."""
    count = 0
    lock = threading.Lock()

    def answering(_: str) -> str:
        nonlocal count
        with lock:
            count += 1
            return answer if count == number else OK

    return answering


@pytest.mark.parametrize("way", ["one by one", "pipelined", "back to back"], indirect=True)
@pytest.mark.parametrize("number", [SESSIONS + 1, SESSIONS + 2])
@pytest.mark.parametrize("answer", [GONE, "421 4.3.2 closing"])
def test_a_session_that_ends_before_a_message_loses_nobody(
    answer: str, number: int, lane: Lane, relay: Relay, gathering: Gathering, sends: list[Send]
) -> None:
    relay.at_mail = nth(number, answer)
    assert lane.step(timeout=0)
    assert not gathering.missed
    assert_each_once(relay, sends)
    assert relay.connections == SESSIONS, "the others go on, and nobody waits for a new one"
    assert_has_nothing(lane)


@announcing
@pytest.mark.parametrize(
    ("at_fourth", "options"),
    [
        (OK, {}),
        (GONE, {}),
        (OK, {"messages_per_connection": 2}),  # all the others are used up
    ],
)
def test_a_message_whose_answer_is_long_in_coming_keeps_nobody_of_its_lot_waiting(
    at_fourth: str,
    options: dict[str, int],
    lane: Lane,
    relay: Relay,
    gathering: Gathering,
    sends: list[Send],
    way: str,
) -> None:
    """And what came of the others is in the database meanwhile; back to back the one whose envelope
    went out with that message waits for it."""
    others = 7 if way == "back to back" else 8
    seen: list[tuple[str, int]] = []

    def at_dot(recipient: str) -> str | None:
        answer = gathering(recipient)  # so that the fourth to begin is of a session that was used
        if recipient == sends[0].email:
            deadline = time.monotonic() + 20
            while statuses(sends).count("sent") < others and time.monotonic() < deadline:
                time.sleep(0.1)
            seen.append((statuses(sends)[0], statuses(sends).count("sent")))
            connections.close_all()
        return answer

    relay.at_mail, relay.at_dot = nth(SESSIONS + 1, at_fourth), at_dot
    with through(relay.port, **options, **WAYS[way][1]):
        assert lane.step(timeout=0)
    assert seen == [("sending", others)]
    assert_each_once(relay, sends)
    assert_has_nothing(lane)


@announcing
def test_what_a_fresh_session_says_is_about_its_own_message(
    lane: Lane, relay: Relay, gathering: Gathering, sends: list[Send]
) -> None:
    gathering.size = 1
    relay.at_mail = nth(1, GONE)
    assert lane.step(timeout=0)
    assert sorted(statuses(sends)) == ["retry"] + ["sent"] * 8
    assert len(relay.accepted) == len(set(relay.accepted)) == 8
    assert_has_nothing(lane)


@every_way
@pytest.mark.parametrize(("answer", "became"), [(GONE, "in_doubt"), ("421 4.3.2 closing", "retry")])
def test_a_session_that_ends_after_the_end_of_a_message_is_about_that_one(
    answer: str,
    became: str,
    lane: Lane,
    relay: Relay,
    gathering: Gathering,
    sends: list[Send],
) -> None:
    gathering.answers = {str(sends[0].email): answer}
    assert lane.step(timeout=0)
    assert not gathering.missed
    assert statuses(sends) == [became, *["sent"] * 8]
    assert sorted(relay.accepted) == sorted(str(send.email) for send in sends[1:])
    assert_has_nothing(lane)


@every_way
@pytest.mark.parametrize("most", [1, 2])
def test_sessions_that_are_used_up_are_replaced(
    most: int, lane: Lane, relay: Relay, sends: list[Send], way: str
) -> None:
    with through(relay.port, messages_per_connection=most, **WAYS[way][1]):
        assert lane.step(timeout=0)
    assert_each_once(relay, sends)
    assert relay.connections >= 9 // most
    assert_has_nothing(lane)


def test_where_none_can_be_opened_again_one_refusal_is_enough(
    lane: Lane, relay: Relay, gathering: Gathering, sends: list[Send], way: str
) -> None:
    relay.greeting = lambda number: GREETING if number <= SESSIONS else "554 5.7.1 no more"
    with through(relay.port, messages_per_connection=1, **WAYS[way][1]):
        assert lane.step(timeout=0)
    assert not gathering.missed
    assert statuses(sends[:3]) == ["sent"] * 3
    assert_back(*sends[3:])
    assert relay.connections == SESSIONS + 1


def test_one_that_opens_again_into_silence_keeps_the_others_waiting_for_a_moment(
    lane: Lane,
    relay: Relay,
    gathering: Gathering,
    sends: list[Send],
    way: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Not for the minutes that the relay itself is waited for."""
    monkeypatch.setattr(lane_wire, "EXTRA_PATIENCE", 0.5)
    relay.greeting_delay = lambda number: 600.0 if number == SESSIONS + 2 else 0.0
    with through(relay.port, messages_per_connection=2, **WAYS[way][1]):
        assert lane.step(timeout=0)
    assert_each_once(relay, sends)
    assert relay.connections >= SESSIONS + 2
    assert_has_nothing(lane)


@pytest.mark.parametrize("gathered", [1, SESSIONS])
def test_what_was_accepted_is_written_before_all_sessions_are_opened_again(
    gathered: int,
    lane: Lane,
    relay: Relay,
    gathering: Gathering,
    sends: list[Send],
    way: str,
) -> None:
    """Which may take as long as the relay's time-outs are."""
    gathering.size = gathered
    lane.shared.sessions = gathered
    seen: list[int] = []

    def greeting(number: int) -> str:
        if number == gathered + 1:
            seen.append(statuses(sends).count("sent"))
            connections.close_all()
        return GREETING

    relay.greeting = greeting
    with through(relay.port, messages_per_connection=2, **WAYS[way][1]):
        assert lane.step(timeout=0)
    assert seen == [2 * gathered]
    assert_each_once(relay, sends)
    assert_has_nothing(lane)


def test_no_more_are_opened_again_than_there_are_messages(
    lane: Lane, relay: Relay, campaign: Campaign, way: str
) -> None:
    sends = rows(lane, campaign, 4)
    with through(relay.port, messages_per_connection=1, **WAYS[way][1]):
        assert lane.step(timeout=0)
    assert_each_once(relay, sends)
    assert relay.connections == SESSIONS + 1


# --- a relay that is out of order ------------------------------------------------------------


@announcing
def test_a_relay_that_refuses_everything_is_paused_and_the_others_answers_count(
    lane: Lane,
    relay: Relay,
    gathering: Gathering,
    sends: list[Send],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    told: list[str] = []
    monkeypatch.setattr(lane.shared, "pause", lambda *given: told.append(given[0]))
    gathering.size = 2
    gathering.answers = {str(send.email): NOBODY for send in sends}
    relay.at_mail = nth(2, BLOCKED)
    assert lane.step(timeout=0)
    assert not gathering.missed
    found = statuses(sends)
    # While the answer to RSET is waited for the others may begin one more each.
    assert set(found) == {"bounced", "queued"}
    assert 2 <= found.count("bounced") <= 2 * (SESSIONS - 1)
    assert_back(*(send for send, status in zip(sends, found, strict=True) if status == "queued"))
    assert told == ["default"]
    assert_has_nothing(lane)


def test_however_many_sessions_say_it_a_transport_is_paused_once(
    lane: Lane, relay: Relay, sends: list[Send], monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[str] = []
    monkeypatch.setattr(lane.shared, "pause", lambda *given: told.append(given[0]))
    relay.at_mail = lambda _: BLOCKED
    assert lane.step(timeout=0)
    assert_back(*sends)
    assert told == ["default"]


# --- what ends a lot -------------------------------------------------------------------------


def _stop(lane: Lane, patch: pytest.MonkeyPatch) -> None:
    lane.shared.stopping.set()


def _brake(lane: Lane, patch: pytest.MonkeyPatch) -> None:
    lane.shared.brake.urgent = True


def _sleep(lane: Lane, patch: pytest.MonkeyPatch) -> None:
    later = clock.now() + 2 * LEASE
    patch.setattr(clock, "now", lambda: later)


def _stall(lane: Lane, patch: pytest.MonkeyPatch) -> None:
    lane.shared.freshness = 0.0


def _close_limits(lane: Lane, patch: pytest.MonkeyPatch) -> None:
    patch.setattr(lane.shared.limits, "closed", lambda alias: True)


@announcing
@pytest.mark.parametrize("end", [_stop, _brake, _sleep, _stall, _close_limits])
def test_what_is_under_way_is_finished_and_nothing_else_starts(
    end: Callable[[Lane, pytest.MonkeyPatch], None],
    lane: Lane,
    relay: Relay,
    gathering: Gathering,
    sends: list[Send],
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        gathering.meanwhile = lambda: end(lane, patch)
        assert lane.step(timeout=0)
    assert not gathering.missed
    found = statuses(sends)
    assert found.count("sent") == len(relay.accepted) == SESSIONS
    left = [send for send, status in zip(sends, found, strict=True) if status != "sent"]
    assert_back(*left)
    assert [kinds_of(send) for send in left] == [[]] * 6
    assert lane.hand.current() is None

    # What was given back goes later, once.
    lane.shared.stopping.clear()
    lane.shared.freshness = 60
    lane.shared.ready.put((r.alias, r) for r in take([campaign_of(sends)], 9))
    while lane.step(timeout=0):
        pass
    assert_each_once(relay, sends)
    assert_has_nothing(lane)


def campaign_of(sends: list[Send]) -> int:
    campaign_id = sends[0].campaign_id
    assert campaign_id is not None
    return campaign_id


@announcing
def test_a_fault_of_ours_leaves_in_doubt_what_was_under_way_and_aborts_the_sessions(
    lane: Lane,
    relay: Relay,
    gathering: Gathering,
    sends: list[Send],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fault(*_: object) -> None:
        raise RuntimeError("a bug")

    monkeypatch.setattr(lane.wire.judge, "verdict", fault)
    with pytest.raises(RuntimeError, match="a bug"):
        lane.step(timeout=0)
    assert not gathering.missed
    found = statuses(sends)
    doubtful = [str(s.email) for s, status in zip(sends, found, strict=True) if status != "queued"]
    assert sorted(found) == ["in_doubt"] * SESSIONS + ["queued"] * 6
    assert sorted(doubtful) == sorted(gathering.came)
    assert_back(*(send for send in sends if send.email not in doubtful))
    assert is_open(lane) == [False] * SESSIONS
    assert relay.quits == 0, "nobody knows what that would be part of"
    assert_has_nothing(lane)


def test_a_shutdown_that_waits_no_longer_accounts_for_all_that_are_under_way(
    lane: Lane, relay: Relay, gathering: Gathering, sends: list[Send]
) -> None:
    def concluding() -> None:
        lane.shared.stopping.set()
        lot = lane.hand.current()
        assert lot is not None
        lane.hand.conclude(lot, "the sender was stopped")

    gathering.meanwhile = concluding
    assert lane.step(timeout=0)
    assert not gathering.missed
    found = statuses(sends)
    # The answers that came after all are written; nothing else is taken up.
    assert sorted(found) == ["queued"] * 6 + ["sent"] * SESSIONS
    told = [kinds_of(send) for send, is_now in zip(sends, found, strict=True) if is_now == "sent"]
    assert [kinds[0] for kinds in told] == ["in_doubt"] * SESSIONS
    assert_back(*(send for send, is_now in zip(sends, found, strict=True) if is_now == "queued"))
