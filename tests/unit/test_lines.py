"""Rows that wait for a permit: in order, a few at a time, and none is lost."""

from __future__ import annotations

import random
import threading

import pytest

from sending import clock
from sending.limits.lines import FORGET, Lines
from sending.limits.spreading import LONGEST, first_after, waits
from sending.queue import Claimed
from sending.ready import Ready
from tests.claimed_rows import claimed_row

KEY = "transport:relay"


class Time:
    """The clock, moved by hand."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 1000.0
        monkeypatch.setattr(clock, "now", lambda: self.now)

    def passes(self, seconds: float) -> None:
        self.now += seconds


@pytest.fixture
def time(monkeypatch: pytest.MonkeyPatch) -> Time:
    return Time(monkeypatch)


def _ids(rows: list[Claimed]) -> list[int]:
    return [row.id for row in rows]


def test_a_few_at_a_time_when_it_is_time(time: Time) -> None:
    lines = Lines()
    lines.pace(KEY, time.now + 2.0, 2)
    lines.add((claimed_row(n), KEY) for n in (1, 2, 3))
    assert (lines.due(), lines.next_due()) == ([], 1002.0)
    time.passes(2.0)
    assert _ids(lines.due()) == [1, 2]
    assert lines.due() == [], "until the lane that tries knows more"
    assert lines.length(KEY) == 1
    lines.pace(KEY, time.now, 2)
    assert _ids(lines.due()) == [3]
    assert (lines.next_due(), lines.standing()) == (None, [])


def test_a_lane_that_never_comes_back_does_not_stop_the_line(time: Time) -> None:
    lines = Lines()
    lines.add((claimed_row(n), KEY) for n in (1, 2))
    assert _ids(lines.due()) == [1]
    time.passes(1.0)
    assert _ids(lines.due()) == [2]


def test_who_is_refused_again_takes_the_old_place(time: Time) -> None:
    lines, first, second = Lines(), claimed_row(1), claimed_row(2)
    lines.add([(first, KEY)])
    time.passes(1.0)
    lines.add([(second, KEY)])
    assert lines.due() == [first]
    assert lines.waited(first)
    lines.add([(first, KEY)])
    lines.pace(KEY, time.now, 2)
    assert lines.due() == [first, second]
    lines.leave([first, second])
    assert not lines.waited(first)


def test_transactional_messages_come_first(time: Time) -> None:
    lines = Lines()
    lines.add([(claimed_row(1), KEY), (claimed_row(2, campaign_id=None), KEY)])
    lines.pace(KEY, time.now, 5)
    assert _ids(lines.due()) == [2, 1]


def test_sooner_only_ever_shortens_the_wait(time: Time) -> None:
    lines = Lines()
    lines.add([(claimed_row(1), KEY)])
    lines.pace(KEY, time.now + 60, 1)
    lines.sooner(KEY, time.now + 90)
    assert lines.next_due() == time.now + 60
    lines.sooner(KEY, time.now + 5)
    assert lines.next_due() == time.now + 5
    lines.sooner("transport:other", time.now)


def test_what_never_came_back_is_forgotten(time: Time) -> None:
    lines, gone, stays = Lines(), claimed_row(1), claimed_row(2)
    lines.add([(gone, KEY), (stays, KEY)])
    assert lines.due() == [gone]
    time.passes(FORGET + 1)
    lines.tidy()
    assert (lines.waited(gone), lines.waited(stays)) == (False, True)


def test_lanes_get_what_is_due_before_all_the_rest(time: Time) -> None:
    lines = Lines()
    ready = Ready(lines=lines)
    ready.put(
        [
            ("relay", claimed_row(1)),
            ("relay", claimed_row(2)),
            ("relay", claimed_row(9, campaign_id=None)),
        ]
    )
    taken = ready.take(2, 0)
    assert taken is not None
    assert _ids(taken[1]) == [9, 1]
    lines.pace(KEY, time.now + 1, 5)
    ready.wait([(taken[1][1], KEY)])
    assert _ids(ready.held()) == [1, 2, 9], "still claimed, leases renewed"
    assert ready.waiting() == 1
    ready.put([("relay", claimed_row(10, campaign_id=None))])
    time.passes(1)
    taken = ready.take(3, 0)
    assert taken is not None
    assert _ids(taken[1]) == [10, 1, 2]


def test_a_waiting_row_is_not_in_the_way_of_others(time: Time) -> None:
    lines = Lines()
    lines.pace(KEY, time.now + 60, 1)
    ready = Ready(lines=lines)
    row = claimed_row(1)
    ready.put([("relay", row)])
    ready.take(1, 0)
    ready.wait([(row, KEY)])
    assert ready.take(1, 0) is None
    assert ready.crowded(1) == set()
    ready.put([("relay", claimed_row(2))])
    taken = ready.take(5, 0)
    assert taken is not None
    assert _ids(taken[1]) == [2]


def test_drain_takes_back_what_waits_for_a_permit_too() -> None:
    ready = Ready()
    ready.put([("one", claimed_row(1, alias="one"))])
    ready.wait(
        [(claimed_row(2, alias="one"), "account:1"), (claimed_row(3, alias="two"), "domain:x")]
    )
    assert sorted(_ids(ready.drain("one"))) == [1, 2]
    assert _ids(ready.drain()) == [3]


def test_a_lane_that_waits_wakes_up_when_the_line_opens() -> None:
    lines = Lines()
    ready, got = Ready(lines=lines), []
    lane = threading.Thread(target=lambda: got.append(ready.take(5, 10)))
    lane.start()
    lines.pace(KEY, clock.now() + 0.05, 1)
    ready.wait([(claimed_row(1), KEY)])
    lane.join(5)
    assert not lane.is_alive()
    assert got[0] is not None
    assert _ids(got[0][1]) == [1]


# --- those that the line has no room for -----------------------------------------------------


@pytest.mark.parametrize(
    ("room", "rate", "seconds"), [(100, 10.0, 8.5), (4, 10.0, 1.0), (4, 1 / 60, 238.5)]
)
def test_they_are_back_before_the_line_is_through(room: int, rate: float, seconds: float) -> None:
    assert first_after(room, rate) == pytest.approx(seconds)


def test_a_backlog_is_spread_as_fast_as_the_limit_takes_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(random, "uniform", lambda low, high: (low + high) / 2)
    assert waits(4, 12.0, 2.0) == pytest.approx([10.0, 10.5, 11.0, 11.5])
    assert waits(4, 1.5, 2.0) == pytest.approx([1.0, 1.0, 1.0, 1.0])


def test_nobody_is_put_off_for_longer_than_a_quarter_of_an_hour() -> None:
    late = sorted(waits(5000, LONGEST, 20.0))
    assert late[0] >= LONGEST / 2
    assert late[-1] <= LONGEST
    assert late[2500] == pytest.approx(LONGEST * 0.75, rel=0.1), "not all at once"
