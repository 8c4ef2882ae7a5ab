"""When a message is tried again."""

from __future__ import annotations

import pytest

from sending.outcomes import retry_delay


def test_waits_grow_and_end() -> None:
    waits = [retry_delay(spent, jitter=0.5) for spent in range(1, 6)]
    assert waits == [30, 120, 480, 1800, None]
    assert [retry_delay(spent, jitter=0.5, limit=8) for spent in (5, 6, 7, 8)] == [
        3600, 3600, 3600, None,
    ]  # fmt: skip


def test_an_account_may_have_waits_of_its_own() -> None:
    waits = [retry_delay(spent, jitter=0.5, waits=[5, 60], limit=4) for spent in range(1, 5)]
    assert waits == [5, 60, 60, None]


def test_jitter_spreads_by_a_fifth() -> None:
    assert retry_delay(1, jitter=0.0) == pytest.approx(24)
    assert retry_delay(1, jitter=0.999999) == pytest.approx(36, rel=1e-3)


def test_retry_after_wins_within_a_day() -> None:
    assert retry_delay(1, retry_after=7, jitter=0.5) == 7
    assert retry_delay(4, retry_after=10**9, jitter=0.5) == 86400
    assert retry_delay(5, retry_after=7, jitter=0.5) is None
    for nonsense in (0, -5, float("nan"), float("inf")):
        assert retry_delay(1, retry_after=nonsense, jitter=0.5) == 30
