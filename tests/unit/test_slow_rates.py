"""How fast to go on after a complaint, and how that ends."""

from __future__ import annotations

import pytest

from sending import clock
from sending.limits.complaints import LONGEST_CLOSED, closed_for
from sending.limits.slow_rates import SLOWEST, SPAN, Observed, first_slow_down, slower


@pytest.mark.parametrize(
    ("rate", "after"),
    [(20.0, 10.0), (1.0, 0.5), (0.03, SLOWEST), (SLOWEST, SLOWEST)],
)
def test_slower(rate: float, after: float) -> None:
    assert slower(rate) == pytest.approx(after)


@pytest.mark.parametrize(
    ("observed", "rate", "ceiling"),
    [(40.0, 20.0, 160.0), (1.0, 0.5, 4.0), (0.01, 0.5, 4.0), (0.0, 0.5, 4.0)],
)
def test_first_slow_down(observed: float, rate: float, ceiling: float) -> None:
    assert first_slow_down(observed) == (rate, ceiling)


@pytest.mark.parametrize(
    ("retry_after", "seconds"),
    [
        (None, 0.0),
        (-5.0, 0.0),
        (float("nan"), 0.0),
        (float("inf"), 0.0),
        (30.0, 30.0),
        (1e9, LONGEST_CLOSED),
    ],
)
def test_closed_for(retry_after: float | None, seconds: float) -> None:
    assert closed_for(retry_after) == seconds


def test_what_was_sent_lately_is_observed(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 1000.0
    monkeypatch.setattr(clock, "now", lambda: now)
    seen = Observed()
    for _ in range(100):
        seen.count("domain:google", "transport:x")
        now += 0.1
    assert seen.rate("domain:google") == pytest.approx(10.0, rel=0.15)
    assert seen.rate("domain:other") == 0.0
    now += SPAN / 2
    assert 0.0 < seen.rate("transport:x") < 10.0
    now += 2 * SPAN
    assert seen.rate("transport:x") == 0.0
