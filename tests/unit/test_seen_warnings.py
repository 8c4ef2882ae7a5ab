"""When a warning is the one that an approver saw."""

from __future__ import annotations

import pytest

from campaigns.admin.seen_warnings import all_seen, carried, token
from campaigns.preflight import Finding

LACK = "{} people of 10,000 lack {{{{ city }}}}"
LATE = "It will be done about {} (Europe/Paris), not by 2 July 2026, 10:00 (Europe/Paris)"
TAKES = "{} at least: the limit of account Example is 500 an hour."


def warning(title: str, detail: str = "", code: str = "fields.missing") -> Finding:
    return Finding(code, "warning", title, detail)


@pytest.mark.parametrize(
    ("shown", "now", "seen"),
    [
        (LACK.format("3"), LACK.format("3"), True),
        (LACK.format("3"), LACK.format("3,000"), False),
        (LACK.format("3"), LACK.format("6"), True),
        (LACK.format("3"), LACK.format("7"), False),
        (LACK.format("3,000"), LACK.format("5,999"), True),
        (LACK.format("3,000"), LACK.format("6,000"), False),
        (LACK.format("3,000"), LACK.format("1,500"), False),
        ("1 person of 9 lacks {{ city }}", "2 people of 9 lack {{ city }}", True),
        ("0 people", "3 people", True),
        # Words, and numbers that are a part of them.
        (LACK.format("3"), "3 people of 10,000 lack {{ town }}", False),
        ("3 people lack {{ line_2 }}", "3 people lack {{ line_3 }}", False),
        ("“Issue 5” went out on 1 May", "“Issue 6” went out on 1 May", False),
        ("The link http://10.0.0.1/ is not https", "The link http://10.0.0.2/ is not https", False),
        # Moments: an hour, over midnight too.
        (LATE.format("2 July 2026, 23:30"), LATE.format("3 July 2026, 00:20"), True),
        (LATE.format("2 July 2026, 23:30"), LATE.format("3 July 2026, 00:31"), False),
        (LATE.format("2 July 2026, 23:30"), LATE.format("in many years"), False),
        # Spans: of time, not of a unit.
        (TAKES.format("About 80 minutes"), TAKES.format("About 2 hours"), True),
        (TAKES.format("About 2 days"), TAKES.format("About 4 days"), False),
        (TAKES.format("Less than a minute"), TAKES.format("About 5 minutes"), True),
        (TAKES.format("Less than a minute"), TAKES.format("About 1 hour"), False),
    ],
)
def test_what_was_seen_is_the_same_but_for_its_numbers(shown: str, now: str, seen: bool) -> None:
    assert all_seen([warning(now)], carried([warning(shown)])) is seen
    assert all_seen([warning("x", now)], carried([warning("x", shown)])) is seen


def test_each_has_to_be_there_and_others_do_no_harm() -> None:
    many = [warning(LACK.format(n), code=f"a.{n}") for n in (1, 100, 10_000)]
    page = carried(many)
    assert all_seen(many[:1], page)
    assert all_seen([], "")
    assert not all_seen([*many, warning("Another")], page)
    assert not all_seen([warning(many[0].title)], page)  # of another kind


@pytest.mark.parametrize(
    "posted", ["", "fields.missing", "~~", "fields.missing~~n3", "{}", "{},n1", "{}x", "{}~"]
)
def test_what_no_page_carries_was_not_seen(posted: str) -> None:
    real = token(warning("Nobody 3"))
    made_up = posted.replace("{}", real.replace("n3", "nan") if posted == "{}" else real)
    assert not all_seen([warning("Nobody 3")], made_up)


@pytest.mark.parametrize("number", ["nan", "inf", "-inf"])
def test_what_is_no_number_is_none_that_was_seen(number: str) -> None:
    found = warning(LACK.format("3,000"))
    words, _, numbers = token(found).rpartition("~")
    assert not all_seen([found], f"{words}~{','.join('n' + number for _ in numbers.split(','))}")
