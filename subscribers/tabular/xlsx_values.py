"""What a cell of an ``.xlsx`` sheet says, as the text that a person sees or would write.

Whole numbers have no ``.0``, days are written as ISO 8601 has them, ``00000`` keeps the zeros of a
postal code. Pure; ECMA-376 part 1, 18.8.30 (number formats) and 18.17.4 (days).
"""

from __future__ import annotations

import re
from datetime import date, datetime, timedelta
from enum import Enum

_LAST_DAY = 2_958_465  # 9999-12-31
_ESCAPE = re.compile(r"_x([0-9A-Fa-f]{4})_")
_LITERAL = re.compile(r'"[^"]*"|\\.|_.|\*.|\[(?!h+\]|m+\]|s+\])[^\]]*\]', re.IGNORECASE)
_WHOLE = re.compile(r"-?[0-9]{1,330}\Z")
_ZEROS = re.compile(r"0{2,30}\Z")


class Shown(Enum):
    """How a number is shown, as far as its meaning goes."""

    NUMBER = "number"
    DATE = "date"
    MOMENT = "date and time"
    TIME = "time"


#: A style: how a number is shown, and to how many digits zeros are put before it.
Style = tuple[Shown, int]
PLAIN: Style = (Shown.NUMBER, 0)

_BUILT_IN = {
    **dict.fromkeys((14, 15, 16, 17), Shown.DATE),
    **dict.fromkeys((18, 19, 20, 21, 45, 46, 47), Shown.TIME),
    22: Shown.MOMENT,
    **dict.fromkeys((*range(27, 32), 36, *range(50, 59)), Shown.DATE),
    **dict.fromkeys(range(32, 36), Shown.TIME),
}


class Unusable(ValueError):
    """A cell whose value can't be used; the message says why."""


def style_of(number: int, codes: dict[int, str]) -> Style:
    """The style of a number format: built in, or with its code."""
    if number not in codes:
        return (_BUILT_IN.get(number, Shown.NUMBER), 0)
    code = codes[number].partition(";")[0]
    if _ZEROS.match(code):
        return (Shown.NUMBER, len(code))
    letters = set(_LITERAL.sub("", code).lower())
    if code.lower() == "general":
        return PLAIN
    has_time = bool(letters & {"h", "s"})
    has_date = bool(letters & {"y", "d"}) or ("m" in letters and not has_time)
    if has_date:
        return (Shown.MOMENT if has_time else Shown.DATE, 0)
    return (Shown.TIME if has_time else Shown.NUMBER, 0)


def number_text(raw: str, style: Style, *, since_1904: bool, decimal: str) -> str:
    """Raises ``Unusable``: no number, or a day that there is not."""
    shown, digits = style
    if shown is Shown.NUMBER and _WHOLE.match(raw):
        return raw.zfill(digits) if digits and raw[0] != "-" else raw
    try:
        number = float(raw)
    except ValueError:
        raise Unusable(f"It holds {raw[:40]!r}, which is no number.") from None
    if shown is not Shown.NUMBER:
        return _moment(number, shown, since_1904)
    if not abs(number) < float("inf"):
        raise Unusable("It holds no number that can be kept.")
    if number.is_integer() and abs(number) < 1e21:
        whole = str(int(number))
        return whole.zfill(digits) if digits and number >= 0 else whole
    return repr(number).replace(".", decimal)


def iso_text(raw: str) -> str:
    """A day that is stored as ISO 8601 (``t="d"``), without a midnight behind it."""
    return re.sub(r"T00:00(?::00(?:\.0+)?)?Z?\Z", "", raw.strip())


def unescaped(text: str) -> str:
    """Text with ``_x000D_`` and the like resolved (ECMA-376 part 1, 22.9.2.19)."""
    if "_x" not in text:
        return text
    plain = _ESCAPE.sub(lambda found: chr(int(found[1], 16)), text)
    return plain.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _moment(number: float, shown: Shown, since_1904: bool) -> str:
    if not 0 <= number < _LAST_DAY + 1:
        raise Unusable("It holds a day that a spreadsheet can't show.")
    days, rest = divmod(round(number * 86_400), 86_400)
    if shown is Shown.TIME:
        minutes, seconds = divmod(days * 86_400 + rest, 60)
        return f"{minutes // 60:02}:{minutes % 60:02}:{seconds:02}"
    if since_1904:
        base = date(1904, 1, 1)
    elif days == 60:
        raise Unusable("It holds the 29th of February 1900, which there was not.")
    else:
        base = date(1899, 12, 30) if days > 60 else date(1899, 12, 31)
    try:
        day = base + timedelta(days=days)
    except OverflowError:
        raise Unusable("It holds a day that a spreadsheet can't show.") from None
    if shown is Shown.DATE or not rest:
        return day.isoformat()
    moment = datetime(day.year, day.month, day.day) + timedelta(seconds=rest)
    return moment.isoformat(" ")
