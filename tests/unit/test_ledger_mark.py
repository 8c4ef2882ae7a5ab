"""When the mark moves, up to which every change is rolled up."""

from __future__ import annotations

import pytest

from sending.counters import Mark, next_mark

STEP = 10


def mark(rolled_up: int, noted: int, *, free: bool = True) -> Mark:
    return Mark(below=rolled_up, rolled_up=rolled_up, noted=noted, free=free)


@pytest.mark.parametrize(
    ("found", "highest", "expected"),
    [
        (Mark(), 0, None),
        (Mark(), 9, None),
        (Mark(), 10, (0, 10)),
        (mark(50, 50), 0, None),
        (mark(50, 50), 59, None),
        (mark(50, 50), 60, (50, 60)),
        (mark(50, 50, free=False), 60, (50, 60)),
        # Noted: up to there, once those who wrote then have ended.
        (mark(50, 60, free=False), 0, None),
        (mark(50, 60, free=False), 900, None),
        (mark(50, 60), 0, (60, 60)),
        (mark(50, 60), 69, (60, 60)),
        (mark(50, 60), 70, (60, 70)),
        # Not believed.
        (Mark(below=0, rolled_up=50, noted=60, free=True), 70, (0, 0)),
        (Mark(below=0, rolled_up=50, noted=50), 0, (0, 0)),
    ],
)
def test_next_mark(found: Mark, highest: int, expected: tuple[int, int] | None) -> None:
    assert next_mark(found, highest, step=STEP) == expected
