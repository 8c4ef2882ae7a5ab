"""How fast to go on after a complaint, and how that ends."""

from __future__ import annotations

import pytest

from sending import clock
from sending.limits.complaints import LONGEST_CLOSED, closed_for
from sending.limits.slow_rates import SLOWEST, SPAN, Observed, faster, first_slow_down, slower


@pytest.mark.parametrize(
    ("rate", "after"),
    [(20.0, 10.0), (1.0, 0.5), (0.03, SLOWEST), (SLOWEST, SLOWEST)],
)
def test_slower(rate: float, after: float) -> None:
    assert slower(rate) == pytest.approx(after)


@pytest.mark.parametrize(
    ("rate", "usual", "ceiling", "after"),
    [
        (8.0, 20.0, None, 10.0),
        (16.0, 20.0, None, None),
        (19.0, 20.0, None, None),
        (8.0, None, 40.0, 10.0),
        (32.0, None, 40.0, None),
        (8.0, None, None, None),
        (SLOWEST, 1.0, None, SLOWEST * 1.25),
    ],
)
def test_faster(
    rate: float, usual: float | None, ceiling: float | None, after: float | None
) -> None:
    assert faster(rate, usual, ceiling) == (None if after is None else pytest.approx(after))


@pytest.mark.parametrize(
    ("observed", "rate", "ceiling"),
    [(40.0, 20.0, 160.0), (1.0, 0.5, 4.0), (0.01, 0.5, 4.0), (0.0, 0.5, 4.0)],
)
def test_first_slow_down(observed: float, rate: float, ceiling: float) -> None:
    assert first_slow_down(observed) == (rate, ceiling)


def test_every_slow_down_ends() -> None:
    rate, ceiling = first_slow_down(200.0)
    for _ in range(20):
        rate = slower(rate)
    steps = 0
    raised: float | None = rate
    while raised is not None:
        rate, raised, steps = raised, faster(raised, None, ceiling), steps + 1
    assert ceiling / 1.25 <= rate < ceiling
    assert steps < 60


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
