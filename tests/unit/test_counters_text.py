"""What ``ledger`` says of counters that are wrong."""

from __future__ import annotations

import pytest

from sending.counters_text import drift_block, mended
from sending.models import Counted
from sending.recount import Drift

ROWS, EVENTS = Counted.ROWS, Counted.EVENTS


def test_each_counter_that_is_wrong_has_a_line() -> None:
    lines = drift_block(
        7, [Drift(ROWS, "in_doubt", "", 3, 2), Drift(EVENTS, "delivered", "x", 1000, 1200)]
    )
    assert lines[0].startswith("The counters of campaign 7 are wrong.")
    assert lines[2].split() == ["in", "doubt", "rows", "-", "2", "3", "1"]
    assert lines[3].split() == ["delivered", "events", "x", "1,200", "1,000", "-200"]
    assert "ledger --rebuild --campaign 7" in lines[4]


@pytest.mark.parametrize(
    ("added", "said"),
    [
        ([], ""),
        ([(ROWS, "sent", "", 2)], "counters of campaign 7 mended: +2 sent"),
        (
            [(ROWS, "in_doubt", "no_answer", -1200), (EVENTS, "soft_bounce", "", 1)],
            "counters of campaign 7 mended: -1,200 in doubt (no_answer), +1 soft bounce events",
        ),
    ],
)
def test_what_was_mended(added: list[tuple[int, str, str, int]], said: str) -> None:
    assert mended(7, added) == said
