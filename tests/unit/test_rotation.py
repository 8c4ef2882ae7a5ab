"""Whose turn it is: campaigns in fair rotation, marks, and who is dry."""

from __future__ import annotations

import pytest

from sending.build import LARGEST_FACTOR, next_size
from sending.queue import Rotation, _decoded
from tests.claimed_rows import claimed_row


def _rotation(*campaigns: int) -> Rotation:
    rotation = Rotation()
    rotation.refresh(list(campaigns))
    return rotation


@pytest.mark.parametrize(
    ("campaigns", "total", "chosen", "each"),
    [
        ([], 20, [], 0),
        ([1], 20, [1], 20),
        ([1, 2], 20, [1, 2], 10),
        ([1, 2, 3], 20, [1, 2, 3], 7),
        ([1, 2, 3], 3, [1, 2, 3], 1),
        ([1, 2, 3], 2, [1, 2], 1),
    ],
)
def test_a_claim_asks_as_many_campaigns_as_it_has_rows_for(
    campaigns: list[int], total: int, chosen: list[int], each: int
) -> None:
    assert _rotation(*campaigns).turn(total) == (chosen, [0] * len(chosen), each)


def test_with_fewer_rows_than_campaigns_all_are_reached_in_turn() -> None:
    rotation = _rotation(1, 2, 3, 4, 5)
    turns = [rotation.turn(2)[0] for _ in range(5)]
    assert turns == [[1, 2], [3, 4], [5, 1], [2, 3], [4, 5]]


def test_the_first_place_goes_round_too() -> None:
    """A claim that is cut off early must not always favour the same one."""
    rotation = _rotation(1, 2, 3)
    rotation.turn(3)
    rotation.turn(1)
    assert rotation.turn(3)[0] == [2, 3, 1]


def test_marks_move_to_the_last_row_claimed() -> None:
    rotation = _rotation(1, 2)
    rotation.took(
        [1, 2],
        [
            claimed_row(5, campaign_id=1),
            claimed_row(9, campaign_id=1),
            claimed_row(7, campaign_id=2),
        ],
        limit=3,
    )
    assert rotation.marks == {1: 9, 2: 7}
    rotation.took([1, 2], [claimed_row(8, campaign_id=1)], limit=1)
    assert rotation.marks[1] == 9, "a mark never goes back by a row"


def test_a_campaign_that_came_back_empty_is_looked_through_once_more_then_dry() -> None:
    rotation = _rotation(1, 2)
    rotation.took([1, 2], [claimed_row(5, campaign_id=1), claimed_row(6, campaign_id=2)], limit=4)
    rotation.took([1, 2], [claimed_row(8, campaign_id=2)], limit=4)
    assert (rotation.marks[1], rotation.dry) == (0, set())
    rotation.took([1, 2], [claimed_row(9, campaign_id=2)], limit=4)
    assert rotation.dry == {1}
    assert rotation.turn(4)[0] == [2]


def test_nobody_is_dry_when_the_limit_may_have_cut_it_off() -> None:
    rotation = _rotation(1, 2)
    rotation.took([1, 2], [claimed_row(5, campaign_id=1), claimed_row(6, campaign_id=1)], limit=2)
    assert rotation.dry == set()


def test_when_all_are_dry_there_is_no_turn_until_the_next_round() -> None:
    rotation = _rotation(1)
    rotation.took([1], [], limit=4)
    assert rotation.turn(4) == ([], [], 0)
    rotation.refresh([1])
    assert rotation.turn(4)[0] == [1]


def test_a_new_round_keeps_marks_and_order_and_forgets_who_is_gone() -> None:
    rotation = _rotation(1, 2, 3)
    rotation.turn(1)
    rotation.took([2, 3], [claimed_row(5, campaign_id=2), claimed_row(6, campaign_id=3)], limit=9)
    rotation.refresh([1, 2, 4])
    assert rotation.marks == {1: 0, 2: 5, 4: 0}
    assert rotation.turn(9)[0] == [2, 1, 4]


def test_rows_of_others_do_not_move_a_mark() -> None:
    rotation = _rotation(1)
    rotation.took([1], [claimed_row(5, campaign_id=None), claimed_row(6, campaign_id=77)], limit=9)
    assert rotation.marks == {1: 0}


@pytest.mark.parametrize(
    ("size", "inserted", "becomes"),
    [
        (100, 0, 400),
        (100, 24, 400),
        (100, 25, 100),
        (100, 50, 100),
        (100, 51, 100),
        (400, 201, 100),
        (1600, 801, 400),
        (100 * LARGEST_FACTOR, 0, 100 * LARGEST_FACTOR),
        (5000, 5000, 1250),
    ],
)
def test_a_sparse_chunk_makes_the_next_one_wider(size: int, inserted: int, becomes: int) -> None:
    assert next_size(size, inserted, smallest=100) == becomes


@pytest.mark.parametrize(
    ("size", "inserted", "seconds", "becomes"),
    [
        (5000, 5000, 0.15, 2500),  # too long: half
        (900, 900, 5.0, 500),
        (500, 500, 5.0, 500),  # never less than that
        (100, 100, 5.0, 100),
        (5000, 0, 0.02, 20_000),  # sparse, and four times as much has time
        (5000, 0, 0.03, 5000),
        (2500, 2500, 0.045, 5000),  # the setting again as soon as it has time
        (2500, 2500, 0.055, 2500),
        (4000, 4000, 0.025, 5000),
        (20_000, 20_000, 0.05, 5000),
    ],
)
def test_a_chunk_that_takes_long_makes_the_next_one_smaller(
    size: int, inserted: int, seconds: float, becomes: int
) -> None:
    assert next_size(size, inserted, smallest=5000, seconds=seconds) == becomes


DEEP = "[" * 100_000 + "]" * 100_000


@pytest.mark.parametrize("odd", [DEEP, "1" * 5000, "null"])
def test_one_rows_attributes_keep_nobody_else_waiting(odd: str) -> None:
    first, second, third = _decoded(['{"a": 1}', odd, None])
    assert (first, third) == ({"a": 1}, None)
    assert second in (odd, None)
