"""The size of a lot follows the relay's pace."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sending.lot import TARGET_SECONDS, LotSize


def _after(limit: int, each: float, lots: int) -> list[int]:
    """The sizes over so many lots of messages that take ``each`` seconds."""
    lot, sizes = LotSize(limit), []
    for _ in range(lots):
        lot.observe(lot.size * each, lot.size)
        sizes.append(lot.size)
    return sizes


def test_an_unknown_relay_is_met_with_one_message() -> None:
    assert LotSize(20).size == 1


def test_a_fast_relay_gets_the_limit_after_five_good_lots() -> None:
    assert _after(20, each=0.001, lots=6) == [2, 4, 8, 16, 20, 20]


@pytest.mark.parametrize(
    ("each", "size"), [(0.001, 20), (0.05, 20), (0.1, 10), (0.3, 3), (0.9, 1), (5.0, 1), (600, 1)]
)
def test_a_steady_relay_gets_what_fits_the_target(each: float, size: int) -> None:
    assert _after(20, each, lots=12)[-1] == size


@pytest.mark.parametrize(
    ("limit", "each", "portion"),
    [(20, 0.001, 20), (20, 0.0099, 20), (20, 0.011, 10), (20, 0.04, 10), (5, 0.06, 2),
     (20, 0.3, 1), (20, 0.9, 1), (1, 0.04, 1)],
)  # fmt: skip
def test_a_lot_that_takes_long_is_handed_over_in_halves(
    limit: int, each: float, portion: int
) -> None:
    """A hand-over is not waited for then; of two portions there are no more rows than of a lot."""
    lot = LotSize(limit)
    for _ in range(12):
        lot.observe(lot.size * each, lot.size)
    assert lot.portion == portion
    assert lot.size >= 2 * portion or not lot.goes_ahead


@pytest.mark.parametrize(
    ("each", "size", "portion"),
    [(0.001, 20, 20), (0.2, 12, 6), (0.9, 3, 3), (5.0, 3, 3), (600, 3, 3)],
)
def test_a_slow_relay_gets_a_message_in_each_session(each: float, size: int, portion: int) -> None:
    """So many take no longer than one. A half of a lot is never too small for that, and no half
    has a last round of one or two."""
    lot = LotSize(20)
    for _ in range(40):
        at_once = min(3, lot.portion)
        lot.observe(lot.portion * each / at_once, lot.portion, 3)
    assert (lot.size, lot.portion) == (size, portion)


def test_sessions_make_no_lot_greater_than_the_limit() -> None:
    lot = LotSize(2)
    for _ in range(5):
        lot.observe(5.0, 2, 3)
    assert lot.size == 2


def test_where_there_are_fewer_sessions_than_before_fewer_are_handed_over() -> None:
    lot = LotSize(20)
    for _ in range(5):
        lot.observe(5.0, 3, 3)
    assert lot.size == 3
    lot.observe(15.0, 3, 1)
    assert lot.size == 1


def test_a_relay_that_becomes_slow_is_believed_at_once() -> None:
    lot = LotSize(20)
    for _ in range(8):
        lot.observe(lot.size * 0.01, lot.size)
    assert lot.size == 20
    lot.observe(20 * 2.0, 20)
    assert lot.size == 1


def test_one_hiccup_of_a_relay_is_forgotten() -> None:
    lot = LotSize(20)
    for _ in range(8):
        lot.observe(lot.size * 0.01, lot.size)
    lot.observe(20 * 0.03, 20)
    assert lot.size == 20
    lot.observe(3.0, 1)
    assert lot.size == 1
    for _ in range(40):
        lot.observe(lot.size * 0.01, lot.size)
    assert lot.size == 20


@pytest.mark.parametrize("messages", [0, -1])
def test_a_lot_without_a_message_says_nothing(messages: int) -> None:
    lot = LotSize(20)
    lot.observe(10.0, messages)
    assert (lot.size, lot.seconds_each) == (1, None)


@given(
    limit=st.integers(1, 50),
    lots=st.lists(st.tuples(st.floats(0, 700), st.integers(0, 50)), max_size=30),
)
def test_the_size_stays_between_one_and_the_limit_and_at_most_doubles(
    limit: int, lots: list[tuple[float, int]]
) -> None:
    lot = LotSize(limit)
    for seconds, messages in lots:
        before = lot.size
        lot.observe(seconds, messages)
        assert 1 <= lot.size <= min(limit, before * 2)


def test_a_full_lot_of_a_steady_relay_is_done_well_within_its_freshness() -> None:
    """A hand-over is only good for five seconds."""
    for each in (0.001, 0.01, 0.1, 0.5, 0.99):
        assert _after(20, each, lots=12)[-1] * each <= TARGET_SECONDS
