"""What people write for an attribute, as the value that is stored: of the JSON type of its kind.

Refused rather than guessed: ``1,234`` is a thousand here and one there, ``03/04/2026`` is a day
in March or in April. Pure, so that files and forms agree.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from datetime import date
from decimal import Decimal
from functools import lru_cache
from typing import Any, Protocol

from ..models import AttributeDefinition

Kind = AttributeDefinition.Kind
#: What is stored for an attribute.
Value = str | int | float | bool

#: Characters of a value that a message repeats.
SHOWN = 40
#: Characters of a number; a float of 64 bits needs fewer.
_MAX_NUMBER = 330

_TRUE = "1 true t yes y on x \u2713 \u2714 oui vrai s\u00ed si verdadero ja wahr"
_FALSE = "0 false f no n off non faux falso nein falsch"
_WORDS = dict.fromkeys(_TRUE.split(), True) | dict.fromkeys(_FALSE.split(), False)

#: Between thousands: blanks that don't break (ISO 80000-1), Swiss apostrophes.
_BLANKS = re.compile(r"(?<=\d)[ \u00a0\u2009\u202f'\u2019](?=\d{3}(?!\d))")
_NUMBER = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]{1,3})?\Z")
#: What nearly every number looks like; few enough digits to be kept exactly.
_SHORT = re.compile(r"-?[0-9]{1,9}(?:\.[0-9]{1,6})?\Z")
_INTEGER = re.compile(r"[+-]?[0-9]+\Z")
_SIGNS = str.maketrans({"\u2212": "-", "\u2010": "-", "\u2011": "-", "\u2013": "-"})

_ISO = re.compile(
    r"([0-9]{4})(?:-([0-9]{1,2})-([0-9]{1,2})|/([0-9]{1,2})/([0-9]{1,2})|"
    r"\.([0-9]{1,2})\.([0-9]{1,2})|([0-9]{2})([0-9]{2}))"
    r"(?:[T ][0-9]{1,2}:[0-9]{2}(?::[0-9]{2}(?:[.,][0-9]+)?)?(?:Z|[+-][0-9]{2}:?[0-9]{2})?)?\Z"
)
_DAY = re.compile(r"([0-9]{1,2})([./-])\s?([0-9]{1,2})\2\s?([0-9]{4}|[0-9]{2})\Z")
_STORED_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}\Z")
_ORDERS = {"dmy": (2, 1, 0), "mdy": (2, 0, 1)}


class ValueRefused(ValueError):
    """Not a value of the attribute's kind; the message says why, in one plain sentence."""


class Definition(Protocol):
    """What of an ``AttributeDefinition`` is needed here."""

    kind: str
    choices: list[str]


def parse(
    definition: Definition, raw: str, decimal: str = ".", date_order: str = "ymd"
) -> Value | None:
    """The value that ``raw`` writes, of the JSON type of the definition's kind (a date as an
    ISO 8601 string); ``None``: nothing is written. Blanks around it don't count.

    ``decimal``: what stands before a fraction, ``.`` or ``,``. ``date_order``: of days that are
    not written as ISO 8601 has them, ``dmy`` or ``mdy``; with ``ymd`` they are refused.

    Raises ``ValueRefused``.
    """
    text = raw.strip()
    if not text:
        return None
    match definition.kind:
        case Kind.NUMBER:
            return parse_number(text, decimal)
        case Kind.DATE:
            return parse_date(text, date_order)
        case Kind.BOOLEAN:
            return parse_boolean(text)
        case Kind.CHOICE:
            return parse_choice(text, definition.choices)
    return _text(text)


def check_value(definition: Definition, value: Any) -> None:
    """Is ``value`` what is stored for such an attribute? Raises ``ValueRefused`` if it is not."""
    match definition.kind:
        case Kind.NUMBER:
            if isinstance(value, bool) or not isinstance(value, int | float):
                raise ValueRefused(f"{shown(value)} is not a number.")
            if value != value or value in (float("inf"), float("-inf")):
                raise ValueRefused(f"{value} is not a number that can be stored.")
        case Kind.DATE:
            if not isinstance(value, str) or not _STORED_DATE.match(value):
                raise ValueRefused(f"{shown(value)} is not a date such as 2026-11-30.")
            _date(value, *value.split("-"))
        case Kind.BOOLEAN:
            if not isinstance(value, bool):
                raise ValueRefused(f"{shown(value)} is neither true nor false.")
        case Kind.CHOICE:
            if value not in definition.choices:
                raise ValueRefused(_no_choice(value, definition.choices))
        case _:
            if not isinstance(value, str):
                raise ValueRefused(f"{shown(value)} is not a text.")
            _text(value)


def write(value: Any) -> str | None:
    """A stored value as files have it, which ``parse`` reads back whatever the file's options;
    ``None`` for what is no such value (a list, an object)."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return value
    return repr(value) if isinstance(value, int | float) else None


def parse_number(text: str, decimal: str = ".") -> int | float:
    """Raises ``ValueRefused``: no number, or one that could be two, or one too long to be kept
    exactly. Whole numbers come as ``int``, however they are written."""
    if decimal == "." and _SHORT.match(text):
        short = float(text)
        return int(short) if short.is_integer() else short
    if len(text) > _MAX_NUMBER:
        raise ValueRefused(f"{shown(text)} is not a number.")
    plain = _BLANKS.sub("", text.translate(_SIGNS)) if not _INTEGER.match(text) else text
    group = "," if decimal == "." else "."
    if group in plain:
        plain = _ungrouped(text, plain, decimal, group)
    if decimal == ",":
        plain = plain.replace(",", ".")
    if _INTEGER.match(plain):
        return int(plain)
    if not _NUMBER.match(plain):
        raise ValueRefused(f"{shown(text)} is not a number.")
    number = float(plain)
    if abs(number) == float("inf") or Decimal(repr(number)) != Decimal(plain):
        raise ValueRefused(f"{shown(text)} has more digits than can be kept; store it as a text.")
    return int(number) if number.is_integer() and abs(number) < 1e15 else number


def _ungrouped(text: str, plain: str, decimal: str, group: str) -> str:
    """``plain`` without the signs between thousands, where they can be nothing else."""
    whole, *rest = plain.split(decimal)
    first, *groups = whole.lstrip("+-").split(group)
    if any(group in part for part in rest) or not all(re.match(r"\d{3}\Z", g) for g in groups):
        mark = "point" if decimal == "." else "comma"
        raise ValueRefused(f"{shown(text)} is not a number with a decimal {mark}.")
    if not re.match(r"\d{1,3}\Z", first):
        raise ValueRefused(f"{shown(text)} is not a number.")
    if len(groups) == 1 and not rest:
        raise ValueRefused(
            f"{shown(text)} could be two numbers; write {first}{groups[0]} or "
            f"{first}{decimal}{groups[0]}."
        )
    return plain.replace(group, "")


@lru_cache(maxsize=4096)
def parse_date(text: str, order: str = "ymd") -> str:
    """The day as ISO 8601 writes it (``2026-11-30``); a time of day behind it is dropped. Raises
    ``ValueRefused``: no such day, or one that could be two."""
    iso = _ISO.match(text[:60])
    if iso is not None:
        return _date(text, *(part for part in iso.groups() if part is not None))
    day = _DAY.match(text[:60])
    if day is None:
        raise ValueRefused(f"{shown(text)} is not a date; write it like 2026-11-30.")
    if len(day[4]) == 2:
        raise ValueRefused(f"The year of {shown(text)} must have four digits.")
    if order not in _ORDERS:
        raise ValueRefused(
            f"{shown(text)} could be two days; write it like 2026-11-30, or say whether "
            "the day or the month comes first."
        )
    parts = (day[1], day[3], day[4])
    return _date(text, *(parts[place] for place in _ORDERS[order]))


def parse_boolean(text: str) -> bool:
    """From a word of English, French, Spanish or German, 1, 0 or x. Raises ``ValueRefused``."""
    found = _WORDS.get(text.casefold())
    if found is None:
        raise ValueRefused(f"{shown(text)} is neither yes nor no.")
    return found


def parse_choice(text: str, choices: Sequence[str]) -> str:
    """The choice as it is declared, whatever the case. Raises ``ValueRefused``."""
    if text in choices:
        return text
    folded = text.casefold()
    for choice in choices:
        if choice.strip().casefold() == folded:
            return choice
    raise ValueRefused(_no_choice(text, choices))


def guess_kind(samples: Iterable[str]) -> Kind:
    """The kind of which all these values (those not empty) are, ``TEXT`` where that is not sure:
    ``01234`` is a postal code, ``1`` and ``0`` alone may be counts, a few words may be choices
    but nobody has declared them."""
    values = [text for text in (sample.strip() for sample in samples) if text]
    if not values:
        return Kind.TEXT
    if all(text.casefold() in _WORDS for text in values) and not all(
        text.isdigit() for text in values
    ):
        return Kind.BOOLEAN
    if all(_ISO.match(text) or _DAY.match(text) for text in values) and not all(
        text.isdigit() for text in values
    ):
        return Kind.DATE
    if all(_is_number(text) for text in values):
        return Kind.NUMBER
    return Kind.TEXT


def _is_number(text: str) -> bool:
    digits = text.lstrip("+-")
    if text[:1] == "+" or len(digits) > 15 or (digits[:1] == "0" and digits[1:2].isdigit()):
        return False  # telephone numbers, card numbers, postal codes
    return bool(re.match(r"-?[0-9]{1,3}(?:[.,' \u00a0\u202f]?[0-9]{3})*(?:[.,][0-9]+)?\Z", text))


def _date(text: str, year: str, month: str, day: str) -> str:
    try:
        return date(int(year), int(month), int(day)).isoformat()
    except ValueError:
        raise ValueRefused(f"There is no day {shown(text)}.") from None


def _text(text: str) -> str:
    if "\0" in text:
        raise ValueRefused("A text can't hold a NUL character.")
    return text


def _no_choice(value: Any, choices: Sequence[str]) -> str:
    some = ", ".join(choices[:8]) + (", ..." if len(choices) > 8 else "")
    return f"{shown(value)} is none of {some or 'the choices, for there are none yet'}."


def shown(value: Any) -> str:
    """A value in quotes for a message, cut to ``SHOWN`` characters, on one line."""
    text = " ".join(str(value)[: SHOWN + 1].split())
    return f"\u201c{text[:SHOWN]}\u2026\u201d" if len(text) > SHOWN else f"\u201c{text}\u201d"
