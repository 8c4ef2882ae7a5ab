"""How many lanes one transport may occupy."""

from __future__ import annotations

import pytest

from sending.doors import allowed
from sending.queue import Claimed
from sending.ready import Ready
from sending.worker import lanes_of_one


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


@pytest.mark.parametrize(
    ("lanes", "transports", "most"),
    [(8, 1, 8), (8, 2, 7), (8, 3, 6), (8, 20, 4), (1, 1, 1), (1, 3, 1), (2, 2, 1), (3, 2, 2)],
)
def test_lanes_of_one_transport(lanes: int, transports: int, most: int) -> None:
    assert lanes_of_one(lanes, transports) == most


def test_a_transport_at_its_limit_leaves_the_lane_to_another() -> None:
    ready = Ready(most_lanes=1)
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
