"""Which delimiter a CSV file has, and whether its first row holds names: judged over rows."""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Sequence

from .columns import has_email

DELIMITERS = (",", ";", "\t", "|")
_ROWS = 50
_ADDRESS = re.compile(r"[^\s@,;|<>\"]+@[^\s@,;|<>\"]+\.[^\s@,;|<>\"]+\Z")


def find_delimiter(sample: str, *, whole: bool) -> str:
    """The delimiter of the file that begins with ``sample`` (``whole``: it is all of the file).

    The one that leaves addresses alone in their cells, then the one that makes rows of equal
    width. A file of one column has none; then it is the comma.
    """
    return max(DELIMITERS, key=lambda delimiter: _score(sample, delimiter, whole))


def _score(sample: str, delimiter: str, whole: bool) -> tuple[float, float, int]:
    rows = _rows(sample, delimiter, whole)
    if not rows:
        return (0.0, 0.0, 0)
    width, times = Counter(len(row) for row in rows).most_common(1)[0]
    if width == 1 and len(rows[0]) == 1:
        return (0.0, 0.0, 0)
    clean = sum(has_address(row) for row in rows) + has_email(rows[0])
    return (clean / len(rows), times / len(rows), width)


def _rows(sample: str, delimiter: str, whole: bool) -> list[list[str]]:
    lines = sample.splitlines(keepends=True)
    rows: list[list[str]] = []
    try:
        for row in csv.reader(lines, delimiter=delimiter):
            if any(row):
                rows.append(row)
            if len(rows) > _ROWS:
                return rows[:_ROWS]
    except csv.Error:
        return rows
    # The last row may have been cut.
    return rows if whole or len(rows) < 2 else rows[:-1]


def has_address(cells: Sequence[str]) -> bool:
    """Is one of these cells an address and nothing else?"""
    return any(is_address(cell) for cell in cells)


def is_address(cell: str) -> bool:
    """Does this cell look like one address?"""
    return len(cell) < 400 and bool(_ADDRESS.match(cell.strip().lstrip("'")))


def holds_names(first: Sequence[str]) -> bool:
    """Does this first row hold the columns' names, rather than already a person?"""
    return not has_address(first)
