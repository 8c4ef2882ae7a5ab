"""Where the bars of a segment's history stand."""

from __future__ import annotations

from datetime import date, timedelta

import pytest

from subscribers.segments.chart import HEIGHT, WIDTH, draw
from subscribers.segments.numbers import Move


def moves(*numbers: tuple[int, int, int]) -> list[Move]:
    return [Move(date(2026, 1, 1) + timedelta(days=n), *one) for n, one in enumerate(numbers)]


def test_joins_stand_on_the_line_and_leaves_hang_from_it() -> None:
    chart = draw(moves((8, 2, 5), (0, 0, 0), (5, 0, 0)))
    assert [bar.kind for bar in chart.bars] == ["joined", "left", "joined"]
    first, left, last = chart.bars
    assert first.y + first.height == pytest.approx(chart.zero, abs=0.2)
    assert left.y == chart.zero
    # One scale for both: ten joined are twice five left.
    assert first.height == pytest.approx(2 * left.height, abs=0.2)
    assert last.height == pytest.approx(left.height, abs=0.2)
    assert first.x < last.x


@pytest.mark.parametrize(
    "numbers",
    [
        [(1, 0, 0)] * 30,
        [(0, 0, 1)] * 26,
        [(1_000_000, 0, 1), (1, 0, 1_000_000)],
        [(3, 1, 2)],
    ],
)
def test_every_bar_is_inside_and_can_be_seen(numbers: list[tuple[int, int, int]]) -> None:
    for bar in draw(moves(*numbers)).bars:
        assert 0 <= bar.x < bar.x + bar.width <= WIDTH
        assert 0 <= bar.y < bar.y + bar.height <= HEIGHT
        assert bar.height >= 1.5


def test_nothing_happened() -> None:
    assert draw(moves((0, 0, 0))).bars == ()
    assert draw([]).bars == ()
