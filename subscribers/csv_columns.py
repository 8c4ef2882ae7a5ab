"""What the columns of a subscribers' CSV file mean, and what a row says about a person.

Import and export share this: what export writes, import reads back as it was.

A column is known by its name, whatever its case, spaces and accents. ``email`` (or one of its
usual names) is needed; ``status``, ``locale``, ``timezone``, ``consent_source`` and
``suppressed`` are optional; ``reject_line`` and ``reject_reason`` (a reject file, mended) and
columns without a name are passed over; every other column is an attribute, named as merge
fields can spell it (``First Name`` becomes ``first_name``). ``attribute:Name`` is an
attribute with exactly that name.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from dataclasses import dataclass, field
from functools import lru_cache
from json.encoder import encode_basestring
from typing import NamedTuple

from django.core.exceptions import ValidationError

from .addresses import normalize
from .csv_reading import ImportRefused
from .models import Subscriber, Suppression
from .timezones import validate_timezone

#: Export's columns before the attributes.
SYSTEM_COLUMNS = ("email", "status", "locale", "timezone", "consent_source", "suppressed")
REJECT_COLUMNS = ("reject_line", "reject_reason")
_EXACTLY = "attribute:"
_MAX_NAME = 100

#: Folded names of the address column, the surest first: "address" alone is often a street.
_EMAIL_NAMES = (
    "email",
    "emailaddress",
    "mail",
    "mailaddress",
    "emailadresse",
    "adresseemail",
    "adressemail",
    "courriel",
    "correo",
    "correoelectronico",
    "address",
)
_SYSTEM_NAMES = {
    "status": "status",
    "locale": "locale",
    "timezone": "timezone",
    "consentsource": "consent_source",
    "suppressed": "suppressed",
    "rejectline": "reject_line",
    "rejectreason": "reject_reason",
}
_LOCALE = re.compile(r"[A-Za-z]{2,3}(?:[-_][A-Za-z0-9]{1,8})*\Z")
_REASONS = frozenset(set(Suppression.Reason.values) - {Suppression.Reason.ERASED.value})

#: What a spreadsheet takes for a formula (OWASP "CSV Injection", with the full-width signs
#: that some locales accept), behind any number of apostrophes that were put there before.
_FORMULA = re.compile(r"'*[\t\r\n]|[\s']*[=+\-@\uff1d\uff0b\uff0d\uff20]")


class RowError(ValueError):
    """A row that can't be imported; the message says why, in one plain sentence."""


class Row(NamedTuple):
    """What one row says. Blank: the file is silent about it."""

    email: str
    #: ``Subscriber.Status``.
    status: str
    #: A JSON object of the cells that are not empty.
    attributes: str
    locale: str
    timezone: str
    consent_source: str
    #: The reason why the address must not get mail, as another export said it.
    suppressed: str


def guard(cell: str) -> str:
    """The cell as a spreadsheet shows it rather than computes it: an apostrophe before what
    would be a formula. ``unguard`` takes exactly that away."""
    return f"'{cell}" if _FORMULA.match(cell) else cell


def unguard(cell: str) -> str:
    """Undo ``guard``. A foreign cell of apostrophe and formula loses the apostrophe too, which
    is what spreadsheets mean by it."""
    return cell[1:] if cell[:1] == "'" and _FORMULA.match(cell, 1) else cell


def attribute_name(name: str) -> str:
    """A column's name as a merge field can spell it: lower case, ``_`` for all that is no
    letter or digit, none at the start (templates refuse it); may come out empty."""
    plain = unicodedata.normalize("NFC", name).lower()
    return re.sub(r"[^\w]+|_+", "_", plain).strip("_")


def column_for(attribute: str) -> str:
    """The column name that import reads as this attribute."""
    columns = _meaning(attribute)
    plain = columns == ("", attribute) and _fold(attribute) not in _EMAIL_NAMES
    return attribute if plain else f"{_EXACTLY}{attribute}"


def has_email(header: list[str]) -> bool:
    """Does this header have a column of addresses?"""
    return any(_fold(unguard(name)) in _EMAIL_NAMES for name in header)


@dataclass
class Columns:
    """A header, understood. ``system`` maps a system column to its place."""

    header: list[str]
    system: dict[str, int] = field(default_factory=dict)
    attributes: list[tuple[int, str]] = field(default_factory=list)
    ignored: list[str] = field(default_factory=list)
    #: The attributes' places, and how their names begin an entry of a JSON object.
    _keys: list[tuple[int, str]] = field(default_factory=list)

    @classmethod
    def understand(cls, header: list[str]) -> Columns:
        """Raises ``ImportRefused``: no e-mail column, or two columns that mean the same."""
        names = [unguard(name) for name in header]
        columns = cls(names)
        email = _email_column(names)
        columns.system["email"] = email
        for place, name in enumerate(names):
            if place == email:
                continue
            system, attribute = _meaning(name)
            if system in REJECT_COLUMNS or not (system or attribute):
                columns.ignored.append(name.strip() or f"column {place + 1}")
            elif system:
                if system in columns.system:
                    raise ImportRefused(f"Two columns are named {system}.")
                columns.system[system] = place
            elif len(attribute) > _MAX_NAME:
                raise ImportRefused(
                    f"The name of column {place + 1} is longer than {_MAX_NAME} characters."
                )
            else:
                columns.attributes.append((place, attribute))
        for attribute, times in Counter(name for _, name in columns.attributes).items():
            if times > 1:
                raise ImportRefused(f"{times} columns are named {attribute}.")
        columns._keys = [(p, f"{encode_basestring(n)}:") for p, n in columns.attributes]
        return columns

    def read(self, cells: list[str]) -> Row:
        """What this row says. Raises ``RowError`` or ``AddressError``."""
        wide = len(self.header)
        if len(cells) < wide or (len(cells) > wide and any(cells[wide:])):
            raise RowError(f"The row has {len(cells)} cells, the header {wide}.")
        if "\0" in "".join(cells):
            raise RowError("The row holds a NUL character.")
        system = {name: unguard(cells[place]).strip() for name, place in self.system.items()}
        attributes = []
        for place, key in self._keys:
            value = unguard(cells[place]).strip()
            if value:
                attributes.append(key + encode_basestring(value))
        return Row(
            normalize(system["email"]),
            _status(system.get("status", "")),
            f"{{{','.join(attributes)}}}",
            _locale(system.get("locale", "")),
            _timezone(system.get("timezone", "")),
            _consent_source(system.get("consent_source", "")),
            _suppressed(system.get("suppressed", "")),
        )

    def plain(self, cells: list[str]) -> list[str]:
        """The cells without the apostrophes that guard formulas."""
        return [unguard(cell) for cell in cells]


def _fold(name: str) -> str:
    plain = unicodedata.normalize("NFKD", name).casefold()
    return "".join(c for c in plain if c.isalnum())


def _meaning(name: str) -> tuple[str, str]:
    """``(system column, attribute)``, one of them blank; both, where the name says nothing."""
    name = name.strip()
    if name.startswith(_EXACTLY):
        return "", name[len(_EXACTLY) :]
    return (
        (system, "")
        if (system := _SYSTEM_NAMES.get(_fold(name), ""))
        else (
            "",
            attribute_name(name),
        )
    )


def _email_column(names: list[str]) -> int:
    folded = [_fold(name) for name in names]
    for known in _EMAIL_NAMES:
        places = [place for place, name in enumerate(folded) if name == known]
        if len(places) > 1:
            raise ImportRefused(f"Two columns are named {names[places[0]].strip()}.")
        if places:
            return places[0]
    shown = ", ".join(name.strip()[:30] for name in names[:6])
    raise ImportRefused(
        f"There is no e-mail column; the first line must hold column names, "
        f"one of them email. It holds: {' '.join(shown.split())}"
    )


def _status(value: str) -> str:
    status = value.lower()
    if status and status not in Subscriber.Status.values:
        known = ", ".join(Subscriber.Status.values)
        raise RowError(f"The status {value[:40]!r} is none of {known}.")
    return status


def _locale(value: str) -> str:
    if value and (len(value) > 20 or not _LOCALE.match(value)):
        raise RowError(f"{value[:40]!r} is no locale; use one such as fr or pt-BR.")
    return value


def _timezone(value: str) -> str:
    if value and not _is_timezone(value):
        raise RowError(f"{value[:40]!r} is no time zone; use a name such as Europe/Paris.")
    return value


@lru_cache(maxsize=1024)
def _is_timezone(value: str) -> bool:
    try:
        validate_timezone(value)
    except ValidationError:
        return False
    return len(value) <= 64


def _consent_source(value: str) -> str:
    if len(value) > 200:
        raise RowError("The consent source is longer than 200 characters.")
    return value


def _suppressed(value: str) -> str:
    reason = value.lower()
    if reason and reason not in _REASONS:
        known = ", ".join(sorted(_REASONS))
        raise RowError(f"The reason for suppression {value[:40]!r} is none of {known}.")
    return reason
