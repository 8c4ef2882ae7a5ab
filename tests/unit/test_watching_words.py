"""What somebody who watches a campaign reads, from numbers alone."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from sending.ledger import STATUSES
from sending.watching_words import (
    MEANING,
    ORDER,
    Event,
    Mark,
    announcement,
    eta_words,
    group,
    identity,
    lines,
    rate_now,
    rate_since,
    read_mark,
    retries,
    share_words,
    step,
)

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)


def test_every_status_has_a_place_and_a_meaning() -> None:
    assert sorted(ORDER) == sorted(STATUSES) == sorted(MEANING)


@pytest.mark.parametrize(
    ("share", "text"),
    [
        (None, "-"),
        (0, "0\u00a0%"),
        (0.00001, "under 0.1\u00a0%"),
        (0.1, "0.1\u00a0%"),
        (43.21, "43.2\u00a0%"),
        (99.99999, "over 99.9\u00a0%"),
        (100, "100\u00a0%"),
    ],
)
def test_a_share_is_never_none_of_some_nor_all_of_less(share: float | None, text: str) -> None:
    assert share_words(share) == text


def test_shares_are_of_the_audience() -> None:
    found = {line.status: line.share for line in lines({"sent": 1, "queued": 3}, 4)}
    assert (found["sent"], found["queued"], found["failed"]) == (25, 75, 0)
    assert all(line.share is None for line in lines({}, 0))


@pytest.mark.parametrize(
    ("counts", "audience", "built", "holds", "words"),
    [
        ({"sent": 3}, 3, True, True, "Every recipient is accounted for: 3 of 3."),
        ({"sent": 3}, 3, False, True, "still being built"),
        ({"sent": 2}, 3, True, False, "1 of 3 recipients have no row"),
        ({"sent": 5}, 3, True, False, "2 rows more than the 3 recipients"),
        ({}, 0, True, True, "0 of 0"),
    ],
)
def test_the_identity_says_what_differs(
    counts: dict[str, int], audience: int, built: bool, holds: bool, words: str
) -> None:
    found, sentence = identity(counts, audience, built=built)
    assert found is holds
    assert words in sentence


# --- rates -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("ages", "whole", "per_second", "over"),
    [
        ([], True, 0, 10),
        ([None, None], True, 0, 10),
        # Slow: all rows of the last seconds are known.
        ([1, 2, 3, 40], False, 0.3, 10),
        ([1, 2, 3], True, 0.3, 10),
        # Fast: the last two thousand reach two seconds back.
        ([n / 1000 for n in range(1, 2001)], False, 1000, 2),
        # All in one moment: not a rate of infinity.
        ([0.001] * 100, False, 200, 0.5),
        # Nothing lately.
        ([600, 700], False, 0, 10),
    ],
)
def test_the_rate_of_now(
    ages: list[float | None], whole: bool, per_second: float, over: float
) -> None:
    found = rate_now(ages, whole=whole)
    assert found.per_second == pytest.approx(per_second)
    assert found.over == pytest.approx(over)


@pytest.mark.parametrize(
    ("before", "rate"),
    [
        (None, None),
        (Mark(900, 400), 6),
        (Mark(990, 940), None),  # too short ago
        (Mark(0, 0), None),  # too long ago
        (Mark(900, 1001), None),  # rows opened again
        (Mark(2000, 0), None),  # of the future
    ],
)
def test_the_rate_between_two_looks(before: Mark | None, rate: float | None) -> None:
    found = rate_since(before, Mark(1000, 1000))
    assert (found.per_second if found else None) == rate


@pytest.mark.parametrize(
    "text", ["", "1", "-", "a-b", "1.5.2-3", "-1--3", "1e9-3", "9" * 50, "١-٢"]
)
def test_what_is_no_mark_is_none(text: str) -> None:
    assert read_mark(text) is None


def test_a_mark_is_read_as_it_was_written() -> None:
    mark = Mark(1_772_366_400.5, 4711)
    assert read_mark(str(mark)) == mark


@pytest.mark.parametrize(
    ("counts", "rate", "words"),
    [
        ({"queued": 600}, 10, "about 60 s for 600 more at this rate"),
        ({"queued": 600, "retry": 1200}, 10, "; then 1,200 to be tried again"),
        ({"queued": 600}, 0, ""),
        ({"sent": 600}, 10, ""),
        ({"retry": 5}, 10, ""),
    ],
)
def test_how_long_it_takes(counts: dict[str, int], rate: float, words: str) -> None:
    found = eta_words(counts, rate, built=True)
    assert words in found
    assert bool(found) is bool(words)


def test_how_long_it_takes_is_less_sure_while_the_audience_grows() -> None:
    assert "longer as the audience grows" in eta_words({"queued": 1}, 1, built=False)


# --- retries and errors ----------------------------------------------------------------------


def test_retries_are_grouped_by_when_they_come() -> None:
    found = retries([-5, 0, 30, 60, 61, 3599, 3601, 90_000], 8, NOW)
    assert found.buckets == [
        ("due now", 2),
        ("within a minute", 2),
        ("within 10 minutes", 1),
        ("within an hour", 1),
        ("within 6 hours", 1),
        ("later", 1),
    ]
    assert not found.at_least


def test_retries_that_were_not_looked_at_are_told() -> None:
    found = retries([1, 2], 1_000_000, NOW)
    assert found.buckets == [("within a minute", 2), ("after these", 999_998)]
    assert found.at_least
    assert sum(number for _, number in found.buckets) == 1_000_000


def event(text: str, *, kind: str = "retry", code: int | None = 451, ago: int = 0) -> Event:
    return (kind, "rcpt", code, "4.7.1", text, "greylisted", True, NOW - timedelta(seconds=ago))


def test_answers_that_differ_in_numbers_are_one_line() -> None:
    found = group(
        [
            event("try again in 30 s, id A1B2"),
            event("no such user", kind="bounced", code=550, ago=1),
            event("try again in 60 s, id C3D4", ago=2),
        ]
    )
    assert [(one.times, one.kind, one.text) for one in found] == [
        (2, "retry", "try again in 30 s, id A1B2"),
        (1, "bounced", "no such user"),
    ]
    assert found[0].last == NOW


def test_answers_of_another_code_are_another_line() -> None:
    assert len(group([event("later"), event("later", code=421), event("later", code=None)])) == 3
    assert group([]) == []


# --- what is said aloud ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("counts", "audience", "far"),
    [
        ({}, 0, None),
        ({"queued": 100}, 100, 0),
        ({"sent": 9, "queued": 91}, 100, 0),
        ({"sent": 19, "queued": 81}, 100, 10),
        ({"sent": 99, "queued": 1}, 100, 90),
        ({"sent": 60, "in_doubt": 20, "suppressed": 20}, 100, 100),
        ({"sent": 9_999_999, "retry": 1}, 10_000_000, 90),
    ],
)
def test_only_tenths_are_said(counts: dict[str, int], audience: int, far: int | None) -> None:
    assert step(counts, audience) == far


def test_what_is_said_has_no_number_that_changes_all_the_time() -> None:
    assert announcement("Sending", 40, "") == "Sending. 40 percent done."
    assert announcement("Paused", None, "Reason: too many bounces.") == (
        "Paused. Reason: too many bounces."
    )
