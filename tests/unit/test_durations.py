"""How long sending takes, from limits and from how fast it went."""

from __future__ import annotations

import pytest

from sending.durations import Bound, estimate, span_words

ACCOUNT = Bound("account Example", 1000 / 3600, 5000, hourly=True)
GOOGLE = Bound("mailboxes at google", 0.1, 3000)


@pytest.mark.parametrize(
    ("people", "bounds", "lately", "seconds", "bound_by", "words"),
    [
        (0, [ACCOUNT], 5.0, 0, "", "Nobody would get it."),
        (5000, [], None, None, "", "Nothing limits it here: how long it takes depends on the relay "
         "and on the senders."),
        (5000, [ACCOUNT], None, 18000, "account Example",
         "About 5 hours at least: the limit of account Example is 1,000 an hour."),
        (5000, [ACCOUNT, GOOGLE], None, 30000, "mailboxes at google",
         "About 8 hours at least: the limit of mailboxes at google is 360 an hour, and 3,000 of "
         "them are there."),
        (5000, [ACCOUNT], 50.0, 18000, "account Example",
         "About 5 hours at least: the limit of account Example is 1,000 an hour."),
        (5000, [ACCOUNT], 0.1, 50000, "",
         "About 14 hours, if it goes as fast as it did lately (360 an hour)."),
        (5000, [], 50.0, 100, "",
         "About 2 minutes, if it goes as fast as it did lately (50 a second)."),
        (10, [Bound("transport default", 5.0, 10, slowed=True)], None, 2, "transport default",
         "Less than a minute: the limit of transport default is 5 a second, because the other side "
         "asked to slow down."),
    ],
)  # fmt: skip
def test_estimates(
    people: int, bounds: list[Bound], lately: float | None, seconds: float | None,
    bound_by: str, words: str,
) -> None:  # fmt: skip
    found = estimate(people, bounds, lately)
    assert found.seconds == (None if seconds is None else pytest.approx(seconds))
    assert (found.bound_by, found.words) == (bound_by, words)


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0, "less than a minute"),
        (59, "less than a minute"),
        (60, "about 1 minute"),
        (300, "about 5 minutes"),
        (5399, "about 90 minutes"),
        (5400, "about 2 hours"),
        (86_400, "about 24 hours"),
        (200_000, "about 2 days"),
        (1e9, "about 11,574 days"),
    ],
)
def test_spans(seconds: float, words: str) -> None:
    assert span_words(seconds) == words
