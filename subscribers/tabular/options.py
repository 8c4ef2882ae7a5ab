"""How a file is to be read, and what its people become: what a mapping page asks."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

from .records import ImportRefused

_WORDS = {
    "format": ("", "csv", "xlsx"),
    "decimal": (".", ","),
    "date_order": ("ymd", "dmy", "mdy"),
    "existing": ("update", "keep"),
}
#: What a column may mean, beside ``attribute:<key>``; blank: it is passed over.
SYSTEM_TARGETS = ("email", "status", "locale", "timezone", "consent_source", "suppressed")
EXACTLY = "attribute:"
_TARGET = re.compile(rf"(?:{'|'.join(SYSTEM_TARGETS)}|{EXACTLY}.+)?\Z", re.DOTALL)


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """Blank ``format``, ``encoding``, ``delimiter`` and ``sheet``: as the file shows.

    Raises ``ImportRefused`` for a value that none of these can have.
    """

    #: ``csv`` or ``xlsx``.
    format: str = ""
    #: A codec of Python's, such as ``utf-8`` or ``cp1252``.
    encoding: str = ""
    #: One character.
    delimiter: str = ""
    #: A sheet's name; blank: the first that is visible.
    sheet: str = ""
    #: Does the first row hold names (or already a person)?
    header: bool = True
    #: One target for each column, see ``SYSTEM_TARGETS``; none at all: by the columns' names.
    mapping: tuple[str, ...] = ()
    #: What stands before the fraction of a number.
    decimal: str = "."
    #: Of days that are not written as ISO 8601 has them; ``ymd``: such are refused.
    date_order: str = "ymd"
    #: What becomes of what is known of people in the file.
    existing: str = "update"
    #: The sender vouches for these people's consent.
    confirmed: bool = False
    consent_source: str = ""
    #: All of the file or nothing.
    atomic: bool = False

    def __post_init__(self) -> None:
        if not isinstance(self.mapping, list | tuple):
            raise ImportRefused("The mapping must be a list of columns' meanings.")
        object.__setattr__(self, "mapping", tuple(self.mapping))
        for name, known in _WORDS.items():
            if getattr(self, name) not in known:
                shown = " or ".join(repr(word) for word in known if word)
                raise ImportRefused(f"The option {name} must be {shown}.")
        for name in ("encoding", "delimiter", "sheet", "consent_source"):
            if not isinstance(getattr(self, name), str):
                raise ImportRefused(f"The option {name} must be a text.")
        for name in ("header", "confirmed", "atomic"):
            if not isinstance(getattr(self, name), bool):
                raise ImportRefused(f"The option {name} must be true or false.")
        if self.delimiter and (len(self.delimiter) != 1 or self.delimiter in '"\r\n\0'):
            raise ImportRefused(f"The delimiter must be one character, not {self.delimiter!r}.")
        if len(self.consent_source) > 200:
            raise ImportRefused("The consent source is longer than 200 characters.")
        for target in self.mapping:
            if not isinstance(target, str) or not _TARGET.match(target):
                raise ImportRefused(f"A column can't mean {target!r:.60}.")

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Options:
        """Raises ``ImportRefused`` for a key that is no option, or a value that it can't have."""
        unknown = sorted(set(data) - {field.name for field in fields(cls)})
        if unknown:
            raise ImportRefused(f"There is no option {unknown[0]!r:.60} for an import.")
        return cls(**data)

    def to_json(self) -> dict[str, Any]:
        """Plain JSON data, all options in it."""
        return {**asdict(self), "mapping": list(self.mapping)}
