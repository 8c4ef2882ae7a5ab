"""Rows between the claim and the lanes: in order, in turn, and all of them accounted for."""

from __future__ import annotations

import threading

import pytest

from sending.queue import Claimed
from sending.ready import Ready
from tests.claimed_rows import claimed_row


def _ids(rows: list[Claimed]) -> list[int]:
    return [r.id for r in rows]


def _ready(**rows: list[Claimed]) -> Ready:
    ready = Ready()
    for alias, given in rows.items():
        ready.put((alias, r) for r in given)
    return ready


def test_rows_come_out_in_the_order_they_went_in() -> None:
    ready = _ready(relay=[claimed_row(n) for n in (3, 1, 2)])
    first = ready.take(2, 0)
    assert first is not None
    assert (first[0], _ids(first[1])) == ("relay", [3, 1])
    second = ready.take(2, 0)
    assert second is not None
    assert _ids(second[1]) == [2]
    assert ready.take(2, 0) is None


def test_a_lot_is_of_one_transport_and_transports_take_turns() -> None:
    ready = _ready(one=[claimed_row(n) for n in (1, 2, 3)], two=[claimed_row(n) for n in (11, 12)])
    taken = [ready.take(1, 0) for _ in range(5)]
    assert [(t[0], _ids(t[1])) for t in taken if t] == [
        ("one", [1]),
        ("two", [11]),
        ("one", [2]),
        ("two", [12]),
        ("one", [3]),
    ]


def test_what_was_taken_is_held_until_it_is_released() -> None:
    ready = _ready(relay=[claimed_row(1), claimed_row(2)])
    taken = ready.take(1, 0)
    assert taken is not None
    assert (ready.waiting(), _ids(ready.held())) == (1, [1, 2])
    ready.release(taken[1])
    assert _ids(ready.held()) == [2]
    ready.release(taken[1])


def test_a_release_lets_go_of_its_own_claim_only() -> None:
    """The row may have come back to this process under another token meanwhile."""
    old, new = claimed_row(1), claimed_row(1)
    ready = _ready(relay=[old])
    ready.put([("relay", new)])
    ready.release([old])
    assert ready.held() == [new]


def test_drain_takes_back_what_waits_and_keeps_what_is_in_hand() -> None:
    ready = _ready(one=[claimed_row(1), claimed_row(2)], two=[claimed_row(11)])
    ready.take(1, 0)
    assert _ids(ready.drain("one")) == [2]
    assert ready.waiting() == 1
    assert _ids(ready.drain()) == [11]
    assert ready.waiting() == 0
    assert _ids(ready.held()) == [1, 2, 11], "released by whoever gives them back"


def test_a_lane_that_waits_is_woken_by_the_next_row() -> None:
    ready, got = Ready(), []
    lane = threading.Thread(target=lambda: got.append(ready.take(5, 10)))
    lane.start()
    ready.put([("relay", claimed_row(1))])
    lane.join(10)
    assert got[0] is not None
    assert _ids(got[0][1]) == [1]


def test_the_dispatcher_is_woken_when_lanes_have_taken_enough() -> None:
    got = []
    ready = _ready(relay=[claimed_row(1), claimed_row(2)], other=[claimed_row(3), claimed_row(4)])
    crowded = ready.crowded(2)
    assert crowded == {"relay", "other"}

    def wait() -> None:
        ready.wait_for_room(crowded, 2, 10)
        got.append(ready.crowded(2))

    dispatcher = threading.Thread(target=wait)
    dispatcher.start()
    taken = ready.take(1, 0)
    dispatcher.join(10)
    assert taken is not None
    assert got == [crowded - {taken[0]}]


def test_many_lanes_share_the_rows_without_losing_or_doubling_one() -> None:
    ready, seen, lock = Ready(), [], threading.Lock()

    def lane() -> None:
        while (taken := ready.take(3, 0.2)) is not None:
            with lock:
                seen.extend(_ids(taken[1]))
            ready.release(taken[1])

    lanes = [threading.Thread(target=lane) for _ in range(6)]
    for thread in lanes:
        thread.start()
    for start in range(0, 300, 10):
        ready.put(("relay", claimed_row(n)) for n in range(start, start + 10))
    for thread in lanes:
        thread.join(10)
    seen += _ids(ready.drain())
    assert sorted(seen) == list(range(300))


def test_of_the_last_rows_a_lane_takes_its_share() -> None:
    ready = Ready()
    ready.put(("default", claimed_row(n)) for n in range(10))
    ready.shared_by = 4
    sizes = []
    while (taken := ready.take(20, 0)) is not None:
        sizes.append(len(taken[1]))
    assert sizes == [3, 2, 2, 1, 1, 1]
    ready.shared_by = 1
    ready.put(("default", claimed_row(n)) for n in range(10))
    taken = ready.take(20, 0)
    assert taken is not None
    assert len(taken[1]) == 10


def test_a_lane_may_have_more_of_what_it_has_in_hand() -> None:
    ready = _ready(a=[claimed_row(n) for n in range(1, 8)])
    assert _ids(ready.more("a", 3)) == [1, 2, 3]
    assert ready.more("b", 3) == []
    taken = ready.more("a", 2)
    ready.put_back("a", taken)
    assert _ids(ready.more("a", 9)) == [4, 5, 6, 7]
    assert len(ready.held()) == 7


def test_a_lane_has_no_more_while_another_transport_waits_for_its_turn() -> None:
    ready = _ready(a=[claimed_row(1), claimed_row(2)], b=[claimed_row(3)])
    assert ready.more("a", 2) == []


def test_a_lane_that_always_finds_more_lets_those_in_who_may_try_for_a_permit() -> None:
    """The others go on and on; nobody else would come to ask."""
    ready = _ready(relay=[claimed_row(n) for n in range(1, 8)])
    ready.wait([(claimed_row(9), "account:2")])
    assert _ids(ready.more("relay", 3)) == [9, 1, 2]


@pytest.mark.parametrize(("rows", "more"), [(6, 3), (3, 2), (2, 0)])
def test_of_the_last_rows_a_lane_has_no_more_than_its_share(rows: int, more: int) -> None:
    """The very last are for who has nothing to do."""
    ready = _ready(a=[claimed_row(n) for n in range(rows)])
    ready.shared_by = 2
    assert len(ready.more("a", 3)) == more
