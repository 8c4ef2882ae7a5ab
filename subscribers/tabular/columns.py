"""What the columns of a file of subscribers mean by their names.

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
from collections.abc import Iterable, Sequence
from typing import Protocol

from .guarding import unguard
from .options import EXACTLY, SYSTEM_TARGETS

#: Export's columns before the attributes.
SYSTEM_COLUMNS = SYSTEM_TARGETS
REJECT_COLUMNS = ("reject_line", "reject_reason")
#: Characters of an attribute's key.
MAX_KEY = 100

#: Folded names of the address column, the surest first: "address" alone is often a street.
_EMAIL_NAMES = (
    "email",
    "emailaddress",
    "emails",
    "emailid",
    "mail",
    "mailaddress",
    "emailadresse",
    "mailadresse",
    "adresseemail",
    "adressemail",
    "adressedemessagerie",
    "adresseelectronique",
    "courriel",
    "mel",
    "correo",
    "correoelectronico",
    "direcciondecorreo",
    "direcciondecorreoelectronico",
    "direccionemail",
    "enderecodeemail",
    "indirizzoemail",
    "postaelettronica",
    "emailadres",
    "subscriberemail",
    "useremail",
    "address",
)
_RANK = {name: rank for rank, name in enumerate(_EMAIL_NAMES)}
_SYSTEM_NAMES = {
    "status": "status",
    "locale": "locale",
    "timezone": "timezone",
    "consentsource": "consent_source",
    "suppressed": "suppressed",
    "rejectline": "reject_line",
    "rejectreason": "reject_reason",
}


def attribute_name(name: str) -> str:
    """A column's name as a merge field can spell it: lower case, ``_`` for all that is no
    letter or digit, none at the start (templates refuse it); may come out empty."""
    plain = unicodedata.normalize("NFC", name).lower()
    return re.sub(r"[^\w]+|_+", "_", plain).strip("_")


def label_of(name: str, key: str) -> str:
    """A new attribute's label: its column's name, on one line, as far as there is room; blank where
    that is the key."""
    label = " ".join(name.replace("\0", " ").split()).removeprefix(EXACTLY)[:200].strip()
    return "" if label == key else label


def column_for(attribute: str, definitions: Iterable[Named] = ()) -> str:
    """The column name that import reads as this attribute, where these are defined."""
    exact = f"{EXACTLY}{attribute}"
    plain = fold(attribute) not in _RANK and Names(definitions).meaning(attribute) == exact
    return attribute if plain else exact


def email_place(names: Sequence[str]) -> int | None:
    """Which of these columns holds the addresses, by its name. ``None``: none says so."""
    best, place = len(_EMAIL_NAMES), None
    for number, name in enumerate(names):
        rank = _RANK.get(fold(unguard(name)), best)
        if rank < best:
            best, place = rank, number
    return place


def has_email(header: Sequence[str]) -> bool:
    """Does this header have a column of addresses?"""
    return email_place(header) is not None


def meanings(names: Sequence[str], definitions: Iterable[Named] = ()) -> list[str]:
    """A target for each column by its name, ``""`` for one to be passed over. Two may be the same;
    there may be no ``email``."""
    known = Names(definitions)
    targets = [known.meaning(unguard(name)) for name in names]
    place = email_place(names)
    if place is not None:
        rank = _RANK[fold(unguard(names[place]))]
        targets = [
            "email" if _RANK.get(fold(unguard(name)), -1) == rank else target
            for name, target in zip(names, targets, strict=True)
        ]
    return targets


class Named(Protocol):
    """What of an ``AttributeDefinition`` names a column."""

    key: str
    label: str


class Names:
    """What a column that is not the address column means by its name."""

    def __init__(self, definitions: Iterable[Named] = ()) -> None:
        self._keys: set[str] = set()
        labels: dict[str, list[str]] = {}
        for definition in definitions:
            self._keys.add(definition.key)
            for name in {fold(definition.key), fold(definition.label)} - {""}:
                labels.setdefault(name, []).append(definition.key)
        # A name that two share tells nothing.
        self._folded: dict[str, str] = {
            name: keys[0] for name, keys in labels.items() if len(keys) == 1
        }

    def meaning(self, name: str) -> str:
        """The target, ``""``: the name says none."""
        name = name.strip()
        if name.startswith(EXACTLY):
            return name if name != EXACTLY else ""
        folded = fold(name)
        system = _SYSTEM_NAMES.get(folded, "")
        if system:
            return "" if system in REJECT_COLUMNS else system
        key = attribute_name(name)
        if key not in self._keys:
            key = self._folded.get(folded, key)
        return f"{EXACTLY}{key}" if key else ""


def fold(name: str) -> str:
    """A name without its case, accents, spaces and signs."""
    plain = unicodedata.normalize("NFKD", name).casefold()
    return "".join(c for c in plain if c.isalnum())
