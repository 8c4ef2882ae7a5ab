"""Plain aligned text."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from sending.plain_table import ago, duration, short, table, width


def test_numbers_stand_to_the_right_and_words_to_the_left() -> None:
    lines = table(["name", "rows", "rate"], [["a", 1234567, 0.5], ["long name", 1, None]])
    assert lines == [
        "name            rows  rate",
        "a          1,234,567   0.5",
        "long name          1     -",
    ]


def test_a_column_with_any_word_is_words() -> None:
    assert table(["x"], [["abc"], [1]]) == ["x", "abc", "1"]


def test_wide_and_combining_letters_keep_the_columns() -> None:
    lines = table(["name", "n"], [["李小明", 1], ["น้ำ", 2], ["abc", 3]])
    assert {width(line) for line in lines} == {9}


def test_a_cell_cannot_break_the_line_or_reach_the_terminal() -> None:
    assert table(["x"], [["a\r\nb\x1b[31m"]])[1] == "a b [31m"


def test_only_a_header() -> None:
    assert table(["id", "name"], []) == ["id  name"]


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (-1, "0 s"),
        (0.4, "0 s"),
        (119, "119 s"),
        (120, "2 min"),
        (7199, "2 h"),
        (3600 * 5 + 1200, "5 h 20 min"),
        (86400 * 2, "2 d"),
        (86400 * 2 + 3600 * 4, "2 d 4 h"),
    ],
)
def test_durations_are_as_exact_as_somebody_waiting_needs(seconds: float, words: str) -> None:
    assert duration(seconds) == words


def test_ago_and_to_come() -> None:
    now = datetime(2026, 1, 31, tzinfo=UTC)
    assert ago(now - timedelta(seconds=90), now) == "90 s ago"
    assert ago(now + timedelta(seconds=30), now) == "in 30 s"


@pytest.mark.parametrize(
    ("text", "limit", "cut"),
    [("abc", 3, "abc"), ("abcdefg", 6, "abc..."), ("a\n b", 10, "a b"), ("", 3, "")],
)
def test_short(text: str, limit: int, cut: str) -> None:
    assert short(text, limit) == cut
