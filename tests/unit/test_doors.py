"""How many lanes one transport may occupy."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import TypeVar, cast

import pytest

from sending.doors import Doors, allowed
from sending.limits.session_shares import SessionShares
from sending.ready import Ready, Shares
from sending.shared import Shared
from tests.claimed_rows import claimed_row

T = TypeVar("T")


@pytest.mark.parametrize(
    ("lanes", "paused", "works", "many"),
    [
        (8, True, False, 1),
        (8, True, True, 1),
        (8, False, True, 8),
        (8, False, False, 4),
        (3, False, False, 1),
        (1, False, False, 1),
    ],
)
def test_openings_at_once(lanes: int, paused: bool, works: bool, many: int) -> None:
    assert allowed(lanes, paused=paused, works=works) == many


ONLY, TWO, THREE = ["a"], ["a", "b"], ["a", "b", "c"]


@pytest.mark.parametrize(
    ("aliases", "busy", "works", "allowed"),
    [
        (ONLY, {"a": 7}, False, True),
        (TWO, {"a": 6}, True, True),
        (TWO, {"a": 7}, True, False),
        (TWO, {"a": 6}, False, True),
        (TWO, {"a": 1, "b": 6}, False, True),
        (THREE, {"a": 5}, False, True),
        (THREE, {"a": 6}, False, False),
        (THREE, {"a": 1, "b": 6}, False, False),
        (THREE, {"a": 1, "b": 6}, True, True),
        (THREE, {"b": 6, "c": 1}, False, True),
    ],
)
def test_one_more_lane(
    aliases: list[str], busy: dict[str, int], works: bool, allowed: bool
) -> None:
    shares = Shares(8, aliases, lambda alias: works)
    assert shares.allow("a", busy) is allowed


def test_one_lane_serves_any_number_of_transports_in_turn() -> None:
    shares = Shares(1, THREE, lambda alias: False)
    assert shares.allow("a", {})
    assert not shares.allow("a", {"a": 1})


def test_a_transport_at_its_limit_leaves_the_lane_to_another() -> None:
    ready = Ready(Shares(2, ["slow", "quick"], lambda alias: False))
    ready.put([("slow", claimed_row(1)), ("slow", claimed_row(2))])
    assert ready.take(1, 0) is not None
    assert ready.take(1, 0) is None
    ready.put([("quick", claimed_row(3))])
    taken = ready.take(1, 0)
    assert taken is not None
    assert taken[0] == "quick"
    ready.done("slow")
    taken = ready.take(1, 0)
    assert taken is not None
    assert taken[0] == "slow"


# --- sessions of a transport that allows only so many ----------------------------------------


class Allowance:
    """So many sessions; stands in for ``SessionShares``, which asks the database."""

    def __init__(self, opens: int, keeps: int | None = None) -> None:
        self.opens = opens
        self.kept = opens if keeps is None else keeps
        self.held: Callable[[], Mapping[str, int]] = dict

    def may_hold(self, alias: str) -> int | None:
        return self.opens if alias == "few" else None

    def keeps(self, alias: str) -> int | None:
        return self.kept if alias == "few" else None


def _doors(allowance: Allowance) -> Doors:
    return Doors(cast(SessionShares, allowance))


def _lanes(lanes: int = 4) -> Shared:
    return cast(Shared, SimpleNamespace(lanes=lanes))


class Others:
    """Threads that stay alive, one step each at a time: lanes beside the test's own."""

    def __init__(self, count: int) -> None:
        self.pools = [ThreadPoolExecutor(1) for _ in range(count)]

    def __enter__(self) -> Others:
        return self

    def __exit__(self, *_: object) -> None:
        for pool in self.pools:
            pool.shutdown()

    def __call__(self, number: int, step: Callable[[], T]) -> T:
        return self.pools[number].submit(step).result()


def test_a_lane_has_a_slot_as_long_as_its_session() -> None:
    allowance = Allowance(2)
    doors = _doors(allowance)
    with Others(2) as others:
        assert doors.take_slot("few")
        assert doors.take_slot("few"), "it is its own already"
        assert others(0, lambda: doors.take_slot("few"))
        assert not others(1, lambda: doors.take_slot("few"))
        assert others(1, lambda: doors.take_slot("many"))
        assert allowance.held() == {"few": 2}
        assert doors.has_slot("few")
        assert not others(1, lambda: doors.has_slot("few"))
        doors.closed("few")
        assert others(1, lambda: doors.take_slot("few"))
        assert not doors.take_slot("few")
    doors.closed("few")
    doors.closed("never")


def test_what_the_process_may_not_keep_is_closed_by_as_many_lanes() -> None:
    allowance = Allowance(3)
    doors = _doors(allowance)
    with Others(2) as others:
        assert doors.take_slot("few")
        assert all(others(n, lambda: doors.take_slot("few")) for n in range(2))
        assert doors.to_close(_lanes()) == []
        allowance.opens = allowance.kept = 2
        assert doors.to_close(_lanes()) == ["few"]
        assert others(0, lambda: doors.to_close(_lanes())) == [], "one is enough"
        assert allowance.held() == {"few": 3}, "not before it is closed"
        assert doors.to_close(_lanes()) == ["few"], "asked again before it has closed it"
        doors.closed("few")
        assert not doors.take_slot("few")
        allowance.opens = 0
        assert others(0, lambda: doors.to_close(_lanes())) == [], "it may keep what it has"


def test_a_lane_that_turns_to_another_transport_leaves_its_slot_to_those_without() -> None:
    doors = _doors(Allowance(1))
    assert doors.take_slot("few")
    assert doors.to_close(_lanes(4), "few") == []
    assert doors.to_close(_lanes(1), "many") == [], "there is nobody else"
    assert doors.to_close(_lanes(4), "many") == ["few"]
    spare = _doors(Allowance(2))
    assert spare.take_slot("few")
    assert spare.to_close(_lanes(4), "many") == [], "others can still have one"


def test_a_lot_goes_to_a_lane_that_may_have_a_session_for_it() -> None:
    doors = _doors(Allowance(1))
    ready = Ready(Shares(4, ["few", "many"], doors=doors))
    ready.put(
        [
            ("few", claimed_row(1)),
            ("few", claimed_row(2)),
            ("many", claimed_row(3)),
            ("many", claimed_row(4)),
        ]
    )
    with Others(2) as others:
        taken = others(0, lambda: ready.take(1, 0))
        assert taken is not None
        assert taken[0] == "few"
        taken = others(1, lambda: ready.take(1, 0))
        assert taken is not None
        assert taken[0] == "many"
        taken = others(1, lambda: ready.take(1, 0))
        assert taken is not None
        assert taken[0] == "many"
        assert others(1, lambda: ready.take(1, 0)) is None, "the only session is another lane's"
        ready.done("few")
        ready.put([("many", claimed_row(5))])
        taken = others(0, lambda: ready.take(1, 0))
        assert taken is not None
        assert taken[0] == "few", "it goes on with what it has"
