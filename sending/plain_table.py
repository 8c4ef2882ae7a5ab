"""Plain aligned text for terminals, logs and mails: no colour, no boxes, nothing to install."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timedelta

GAP = "  "
#: The most rows of one list; a status that scrolls is none.
MOST = 50
_BREAKS = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]+")


def table(
    header: Sequence[str], rows: Iterable[Sequence[object]], *, indent: str = ""
) -> list[str]:
    """Lines of aligned columns: numbers to the right with thousands, the rest to the left.

    ``None`` is shown as ``-``. A column is a number's when every cell of it is one or ``None``.
    """
    body = [list(row) for row in rows]
    numeric = [
        bool(body) and all(row[i] is None or _is_number(row[i]) for row in body)
        for i in range(len(header))
    ]
    cells = [list(header), *([_cell(value) for value in row] for row in body)]
    widths = [max(width(row[i]) for row in cells) for i in range(len(header))]
    return [
        indent
        + GAP.join(
            _padded(text, wide, right=right)
            for text, wide, right in zip(row, widths, numeric, strict=True)
        ).rstrip()
        for row in cells
    ]


def listed(header: Sequence[str], rows: Sequence[Sequence[object]]) -> Iterator[str]:
    """A table of the first ``MOST`` rows, indented, and how many more there are."""
    yield from table(header, rows[:MOST], indent="  ")
    if len(rows) > MOST:
        yield f"  and {len(rows) - MOST:,} more; --json has all of them"


def width(text: str) -> int:
    """Columns that ``text`` takes on a terminal (Unicode TR 11): a name may be in any script."""
    return len(text) if text.isascii() else sum(map(_columns, text))


def _columns(char: str) -> int:
    if unicodedata.category(char) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1


def _padded(text: str, wide: int, *, right: bool) -> str:
    space = " " * (wide - width(text))
    return space + text if right else text + space


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _cell(value: object) -> str:
    if value is None:
        return "-"
    if isinstance(value, float):
        return f"{value:,.1f}"
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}"
    return _BREAKS.sub(" ", str(value))


def short(text: str, limit: int) -> str:
    """``text`` on one line, at most ``limit`` characters."""
    line = " ".join(text.split())
    return line if len(line) <= limit else line[: max(0, limit - 3)] + "..."


def duration(seconds: float) -> str:
    """``42 s``, ``3 min``, ``5 h 20 min``, ``2 d 4 h``: as exact as somebody waiting needs it."""
    whole = max(0, round(seconds))
    if whole < 120:
        return f"{whole} s"
    minutes = round(whole / 60)
    if minutes < 120:
        return f"{minutes} min"
    hours, minutes = divmod(minutes, 60)
    if hours < 48:
        return f"{hours} h {minutes} min" if minutes else f"{hours} h"
    days, hours = divmod(hours, 24)
    return f"{days} d {hours} h" if hours else f"{days} d"


def ago(then: datetime, now: datetime) -> str:
    """``3 min ago``, or ``in 30 s`` when it is still to come."""
    passed: timedelta = now - then
    seconds = passed.total_seconds()
    return f"in {duration(-seconds)}" if seconds <= -0.5 else f"{duration(seconds)} ago"


def due(then: datetime, now: datetime) -> str:
    """``is due``, or ``in 30 s``."""
    return "is due" if then <= now else ago(then, now)
