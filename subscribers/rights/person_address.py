"""One person's address, in all the forms in which it may be stored and in texts that name it."""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Iterable
from typing import Any

import idna
from django.db.models import Q, QuerySet, TextField
from django.db.models.functions import Cast, Collate, Lower

from ..addresses import canonical, erased_hashes, lower
from ..models import Account, Subscriber

#: What stands in a text where the address was.
PLACEHOLDER = "(address)"


class PersonAddress:
    """``forms``: as ``email_lower`` holds them. ``hash`` is what is kept of it, ``hashes`` all that
    may be stored: of every form, under every signing key."""

    def __init__(self, email: str, *more: str) -> None:
        """Raises ``ValueError``: there is no address."""
        self.email = canonical(email)
        if not self.email or "\0" in email:
            raise ValueError("There is no address.")
        self.forms: set[str] = set()
        for given in (email, *more):
            self.forms |= _forms(given)
        self.hash = erased_hashes(self.email)[0]
        self.hashes = {digest for form in self.forms for digest in erased_hashes(form)}
        written = self.forms | {_in_json(form) for form in self.forms}
        longest_first = sorted(written, key=lambda form: (-len(form), form))
        # Not the end of another local part (o'brien is not brien), nor the beginning of another
        # domain.
        self._pattern = re.compile(
            r"(?<![\w.+-])(?<![\w.+-]['\u2019&])(?:"
            + "|".join(map(re.escape, longest_first))
            + r")(?![\w-]|\.\w)",
            re.IGNORECASE,
        )

    def with_stored(self, emails: Iterable[str]) -> PersonAddress:
        """This, with the forms of ``emails`` as well."""
        return PersonAddress(self.email, *self.forms, *emails)

    def is_in(self, value: Any) -> bool:
        """Does plain JSON data name the address anywhere? Pure."""
        if isinstance(value, str):
            return self._pattern.search(value) is not None
        if isinstance(value, dict):
            return any(self.is_in(part) for pair in value.items() for part in pair)
        return isinstance(value, list) and any(self.is_in(part) for part in value)

    def cut_out(self, value: Any) -> Any:
        """Plain JSON data without the address. Pure."""
        if isinstance(value, str):
            return self._pattern.sub(PLACEHOLDER, value)
        if isinstance(value, dict):
            return {self.cut_out(key): self.cut_out(part) for key, part in value.items()}
        return [self.cut_out(part) for part in value] if isinstance(value, list) else value

    def without_rows(self, value: Any) -> Any:
        """Plain JSON data, where a list of texts that names the address (a row of a file: the rest
        of it speaks of the person, too) is emptied. Pure."""
        if isinstance(value, list):
            if all(isinstance(cell, str) for cell in value):
                return [""] * len(value) if self.is_in(value) else value
            return [self.without_rows(part) for part in value]
        if isinstance(value, dict):
            return {key: self.without_rows(part) for key, part in value.items()}
        return self.cut_out(value)

    def people(self, account: Account) -> QuerySet[Subscriber]:
        return Subscriber.objects.filter(account=account, email_lower__in=self.forms).order_by("pk")


def naming(rows: QuerySet[Any], address: PersonAddress, *columns: str) -> QuerySet[Any]:
    """Those of ``rows`` of which a column (text or JSON) may name the address; ``is_in`` tells for
    sure."""
    said = {f"said_{c}": Lower(Collate(Cast(c, TextField()), "C")) for c in columns}
    named = Q()
    for name in said:
        for form in sorted(address.forms | {_in_json(form) for form in address.forms}):
            named |= Q(**{f"{name}__contains": form})
    return rows.alias(**said).filter(named)


def _in_json(form: str) -> str:
    """As it stands in a text of JSON: a quoted local part with its quotes escaped."""
    return json.dumps(form, ensure_ascii=False)[1:-1]


def _forms(email: str) -> set[str]:
    forms = {lower(email.strip()), lower(canonical(email))}
    local, at, domain = canonical(email).rpartition("@")
    if at and "xn--" in domain.lower():
        # Saved past every entrance, in the script in which people read it.
        with contextlib.suppress(idna.IDNAError):
            forms.add(lower(f"{local}@{idna.decode(domain)}"))
    return forms - {""}
