"""How the values of a file write numbers and days, where they show it beyond doubt."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

_COMMA = re.compile(r"-?(?:\d+,(?:\d{1,2}|\d{4,})|\d{1,3}(?:[. \u00a0\u202f']\d{3})+,\d+)\Z")
_POINT = re.compile(r"-?(?:\d+\.(?:\d{1,2}|\d{4,})|\d{1,3}(?:[, \u00a0\u202f']\d{3})+\.\d+)\Z")
_NUMBER = re.compile(r"-?\d+(?:[., \u00a0\u202f']\d+)*\Z")
_DAY = re.compile(r"(\d{1,2})([./-])\s?(\d{1,2})\2\s?\d{4}\Z")


def find_decimal(columns: Iterable[Sequence[str]]) -> tuple[str, list[str]]:
    """``(decimal mark, notes)``: the comma where numbers have one and none has a point."""
    comma = point = False
    for column in columns:
        values = [cell.strip() for cell in column if cell.strip()]
        if values and all(_NUMBER.match(value) for value in values):
            comma = comma or any(_COMMA.match(value) for value in values)
            point = point or any(_POINT.match(value) for value in values)
    if comma and not point:
        return ",", ["Numbers are read with a decimal comma."]
    return ".", []


def find_date_order(columns: Iterable[Sequence[str]]) -> tuple[str, list[str]]:
    """``(date_order, notes)``; ``ymd``: no days, ISO 8601, or it can't be told."""
    day_first = month_first = dotted = seen = False
    for column in columns:
        values = [cell.strip() for cell in column if cell.strip()]
        days = [_DAY.match(value) for value in values]
        if not values or not all(days):
            continue
        for day in days:
            if day is not None:
                seen = True
                day_first = day_first or int(day[1]) > 12
                month_first = month_first or int(day[3]) > 12
                dotted = dotted or day[2] == "."
    if month_first and not day_first:
        return "mdy", ["Days are read with the month first."]
    # Nobody writes the month first and dots behind it.
    if not month_first and (day_first or dotted):
        return "dmy", ["Days are read with the day first."]
    if seen:
        return "ymd", ["Days could be read in two ways; say whether the day or the month is first."]
    return "ymd", []
