"""How many lanes one transport may occupy."""

from __future__ import annotations

import pytest

from sending.doors import allowed
from sending.queue import Claimed
from sending.ready import Ready, Shares


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
    ready.put([("slow", _row(1)), ("slow", _row(2))])
    assert ready.take(1, 0) is not None
    assert ready.take(1, 0) is None
    ready.put([("quick", _row(3))])
    taken = ready.take(1, 0)
    assert taken is not None
    assert taken[0] == "quick"
    ready.done("slow")
    taken = ready.take(1, 0)
    assert taken is not None
    assert taken[0] == "slow"


def _row(number: int) -> Claimed:
    import uuid

    return Claimed(
        id=number,
        token=uuid.uuid4(),
        account_id=1,
        campaign_id=1,
        subscriber_id=number,
        email="a@example.org",
        email_lower="a@example.org",
        job_id=str(number),
        content_id=1,
        context=None,
        attributes=None,
        alias="relay",
        trusted_until=0.0,
    )
