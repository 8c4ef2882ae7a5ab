"""What a bucket holds, and who gets its tokens."""

from __future__ import annotations

import pytest

from sending.limits.token_buckets import Bucket, batch, burst, grant, refilled


@pytest.mark.parametrize("rate", [1 / 60, 0.5, 1.0, 10.0, 100.0, 5000.0])
@pytest.mark.parametrize("window", [1.0, 2.5, 60.0, 3600.0])
def test_no_window_of_a_second_or_more_holds_more_than_5_percent_too_many(
    rate: float, window: float
) -> None:
    """A full bucket at the beginning, and all that flows in."""
    assert burst(rate) + rate * window <= rate * window * 1.05 + 1 + 1e-9


@pytest.mark.parametrize(
    ("rate", "tokens"), [(1 / 60, 1), (10.0, 1), (79.0, 1), (80.0, 2), (200.0, 5), (1000.0, 25)]
)
def test_what_is_worth_waiting_for_fits_into_the_bucket(rate: float, tokens: int) -> None:
    assert batch(rate) == tokens
    assert tokens <= burst(rate)


@pytest.mark.parametrize(
    ("tokens", "elapsed", "rate", "now"),
    [
        (0.0, 0.05, 10.0, 0.5),
        (0.0, 100.0, 10.0, 1.5),  # never more than the burst
        (1.0, 0.0, 10.0, 1.0),
        (1.0, -5.0, 10.0, 1.0),  # the clock was set back: nothing is taken away
        (50.0, 1.0, 10.0, 1.5),  # the rate was lower than this yesterday
    ],
)
def test_refilled(tokens: float, elapsed: float, rate: float, now: float) -> None:
    assert refilled(tokens, elapsed, rate) == pytest.approx(now)


@pytest.mark.parametrize(
    ("bucket", "tokens", "seconds"),
    [
        (Bucket(10.0, 1.0), 1, 0.0),
        (Bucket(10.0, 0.5), 1, 0.05),
        (Bucket(10.0, 0.5), 2, 0.15),
        (Bucket(0.5, 0.0, closed_for=30.0), 1, 32.0),
        (Bucket(10.0, 1.5, closed_for=30.0), 1, 30.0),
    ],
)
def test_wait(bucket: Bucket, tokens: int, seconds: float) -> None:
    assert bucket.wait(tokens) == pytest.approx(seconds)


def test_seen_in_the_future_it_is_closed() -> None:
    bucket = Bucket.seen(10.0, 1.5, -20.0)
    assert (bucket.gives, bucket.closed_for, bucket.idle) == (False, 20.0, 0.0)
    bucket = Bucket.seen(10.0, 0.0, 20.0)
    assert (bucket.gives, bucket.closed_for, bucket.idle) == (True, 0.0, 20.0)


T, A, D = "transport:x", "account:1", "domain:google"


@pytest.mark.parametrize(
    ("wanted", "tokens", "answers", "left"),
    [
        ([[T], [T], [T]], {T: 2.5}, [None, None, T], {T: 0.5}),
        ([[], [T]], {T: 0.0}, [None, T], {T: 0.0}),
        ([[T, "domain:none"]], {T: 1.0}, [None], {T: 0.0}),
        # What the one refuses costs the other nothing, and whoever comes later may have it.
        ([[T, D], [T]], {T: 1.0, D: 0.0}, [D, None], {T: 0.0, D: 0.0}),
        ([[T, A, D], [T, A]], {T: 5.0, A: 1.0, D: 1.0}, [None, A], {T: 4.0, A: 0.0, D: 0.0}),
        ([[T, D]], {T: 0.5, D: 0.0}, [D], {T: 0.5, D: 0.0}),  # the longer wait is told
    ],
)
def test_grant(
    wanted: list[list[str]],
    tokens: dict[str, float],
    answers: list[str | None],
    left: dict[str, float],
) -> None:
    buckets = {key: Bucket(10.0, count) for key, count in tokens.items()}
    assert grant(wanted, buckets) == answers
    assert {key: bucket.tokens for key, bucket in buckets.items()} == left
    assert sum(b.taken for b in buckets.values()) == sum(tokens.values()) - sum(left.values())


def test_a_closed_bucket_gives_nothing_it_has() -> None:
    buckets = {T: Bucket(10.0, 1.0, closed_for=5.0)}
    assert grant([[T]], buckets) == [T]
    assert buckets[T].tokens == 1.0
