"""Which rows of which runs a page of the list of sends is made of."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sending.admin.send_lists import Run, cut

RUNS = [Run("campaign_id", 9, 3), Run("campaign_id", 7, 2), Run("account_id", 1, 4)]


@pytest.mark.parametrize(
    ("bottom", "top", "parts"),
    [
        (0, 2, [(9, 0, 2)]),
        (0, 3, [(9, 0, 3)]),
        (2, 6, [(9, 2, 3), (7, 0, 2), (1, 0, 1)]),
        (3, 5, [(7, 0, 2)]),
        (6, 100, [(1, 1, 4)]),
        (9, 12, []),
        (0, 0, []),
    ],
)
def test_a_page_is_cut_from_the_runs(
    bottom: int, top: int, parts: list[tuple[int, int, int]]
) -> None:
    assert [(p.run.id, p.start, p.stop) for p in cut(RUNS, bottom, top)] == parts


@given(st.lists(st.integers(1, 7)), st.integers(0, 30), st.integers(0, 20))
def test_the_parts_are_a_slice_of_the_chain(sizes: list[int], bottom: int, length: int) -> None:
    chain = [(n, place) for n, size in enumerate(sizes) for place in range(size)]
    runs = [Run("campaign_id", n, size) for n, size in enumerate(sizes)]
    parts = cut(runs, bottom, bottom + length)
    rows = [(part.run.id, place) for part in parts for place in range(part.start, part.stop)]
    assert rows == chain[bottom : bottom + length]
