"""A style is read in linear time, whatever is in it."""

from __future__ import annotations

from time import process_time

import pytest

from campaigns.preflight.sight import Sight


@pytest.mark.parametrize("font", ["1", "1.", " 1", "1 ", ".1", "1/", "0 a"])
def test_a_long_font(font: str) -> None:
    started = process_time()
    Sight().inside("p", {"style": f"font:{font * (20_000 // len(font))}"})
    assert process_time() - started < 2
