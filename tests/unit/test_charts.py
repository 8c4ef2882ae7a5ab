"""Bars and columns: whole, in bounds, and with something to see of everything that is there."""

from __future__ import annotations

import math
from itertools import pairwise

import pytest

from sending.charts import (
    BOTTOM,
    HEIGHT,
    LEAST,
    LEFT,
    RIGHT,
    WIDTH,
    Columns,
    ceiling,
    columns,
    compact,
    stack,
)

HUGE = 10**12


@pytest.mark.parametrize("numbers", [[], [("sent", 0)], [("sent", 0), ("failed", 0)]])
def test_a_bar_of_nobody_has_no_parts(numbers: list[tuple[str, int]]) -> None:
    assert stack(numbers) == []


def test_one_status_of_all_is_the_whole_bar() -> None:
    (only,) = stack([("queued", 0), ("sent", 10_000_000), ("failed", 0)])
    assert (only.kind, only.x, only.width) == ("sent", 0, 100)


@pytest.mark.parametrize(
    "numbers",
    [
        (1, 1),
        (3, 0, 7),
        (10_000_000, 1),
        (HUGE, 1, 1, 1, 1, 1, 1, 1, 1, 1),
        (1, HUGE, 1, HUGE, 1),
        (5, -3, 5),
    ],
)
def test_the_parts_fill_the_bar_and_none_is_too_thin(numbers: tuple[int, ...]) -> None:
    parts = stack([(str(place), number) for place, number in enumerate(numbers)])

    assert [part.number for part in parts] == [number for number in numbers if number > 0]
    assert parts[0].x == 0
    for part, after in pairwise(parts):
        assert math.isclose(part.x + part.width, after.x, abs_tol=0.005)
    assert math.isclose(parts[-1].x + parts[-1].width, 100, abs_tol=0.005)
    assert min(part.width for part in parts) >= LEAST - 0.001


def test_parts_that_are_wide_enough_keep_their_share() -> None:
    assert [part.width for part in stack([("a", 25), ("b", 75)])] == [25, 75]


# --- columns ---------------------------------------------------------------------------------


def in_bounds(chart: Columns) -> bool:
    floor = HEIGHT - BOTTOM
    return all(
        rect.x >= LEFT - 0.1
        and rect.x + rect.width <= WIDTH - RIGHT + 0.1
        and rect.y >= 0
        and rect.y + rect.height <= floor + 0.2
        for rect in chart.rects
    )


@pytest.mark.parametrize(
    "rows",
    [
        [[1]],
        [[HUGE]],
        [[0], [HUGE], [1]],
        [[n] for n in range(48)],
        [[1, HUGE, 1]],
        [[-5, 3, 0]],
    ],
)
def test_columns_stay_within_the_drawing(rows: list[list[int]]) -> None:
    chart = columns(rows, [str(n) for n in range(len(rows[0]))])

    assert in_bounds(chart)
    assert len(chart.rects) == sum(number > 0 for row in rows for number in row)
    assert all(rect.height >= 2 for rect in chart.rects)


def test_columns_without_a_number_have_no_rectangles() -> None:
    assert columns([[0, 0], [0, 0]], ["a", "b"]).rects == ()
    assert columns([], ["a"]) == columns([], ["a"])
    assert columns([], ["a"]).labels == ()


def test_the_highest_column_is_as_high_as_its_number() -> None:
    small, high = columns([[50], [100]], ["sent"]).rects
    assert math.isclose(high.height, 2 * small.height, abs_tol=0.2)
    assert columns([[100]], ["sent"]).ticks[-1].label == "100"


def test_parts_of_a_column_stand_on_each_other() -> None:
    lower, upper = columns([[40, 60]], ["a", "b"]).rects
    assert math.isclose(upper.y + upper.height, lower.y, abs_tol=0.2)


@pytest.mark.parametrize(("count", "labels"), [(0, 0), (1, 1), (2, 2), (4, 4), (5, 4), (48, 4)])
def test_few_columns_are_told_below(count: int, labels: int) -> None:
    chart = columns([[1]] * count, ["sent"])
    places = [label.place for label in chart.labels]
    assert len(places) == labels
    assert places == sorted(set(places))
    assert not places or (places[0] == 0 and places[-1] == count - 1)


@pytest.mark.parametrize(
    ("most", "top"),
    [(0, 1), (1, 1), (2, 2), (3, 4), (7, 8), (9, 10), (10, 10), (11, 20), (99, 100), (101, 200),
     (2_345, 4_000), (HUGE, HUGE)],
)  # fmt: skip
def test_a_chart_ends_with_a_round_number(most: int, top: int) -> None:
    assert ceiling(most) == top


@pytest.mark.parametrize(
    ("number", "text"),
    [(0, "0"), (950, "950"), (1000, "1k"), (1500, "1.5k"), (20_000, "20k"), (4_000_000, "4M"),
     (HUGE, "1000G")],
)  # fmt: skip
def test_numbers_beside_an_axis_are_short(number: int, text: str) -> None:
    assert compact(number) == text
