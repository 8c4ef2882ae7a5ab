"""What a page showed of what it changes: sent back, and compared before anything is written."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.db.models import Model
from django.utils.text import capfirst, get_text_list

SEEN = "seen"
NOT_COMPLETE = "Not saved: this page was not complete. Load it again."
#: Fields that an error names.
NAMED = 5


def fingerprint(value: Any) -> str:
    """Of a field's stored value, as a form has it at first. No secret: the page shows the value."""
    if isinstance(value, (list, tuple)) and any(isinstance(one, Model) for one in value):
        value = sorted(str(one.pk) for one in value)
    written = json.dumps(value, sort_keys=True, default=str)
    return hashlib.sha256(written.encode()).hexdigest()[:32]


def sealed(fingerprints: Mapping[str, str]) -> str:
    """For the hidden field of a page; ``unsealed`` reads it."""
    return " ".join(f"{name}={of}" for name, of in fingerprints.items())


def unsealed(posted: str) -> dict[str, str]:
    return dict(pair.partition("=")[::2] for pair in posted.split())


def changed_meanwhile(labels: Iterable[str]) -> str:
    """What the later of two editors is told, of the fields with these labels."""
    every = list(labels)
    shown = every[:NAMED]
    more = len(every) - len(shown)
    named = get_text_list([*shown, f"{more} more"] if more else shown, "and")
    return (
        f"Not saved: changed meanwhile: {named}. What you typed is still here; open this page "
        "in another tab and carry your changes over."
    )


class SeenField(forms.CharField):
    """What a page showed of a row: ``name=fingerprint`` of each field. Never a change by itself."""

    def __init__(self) -> None:
        super().__init__(required=False, widget=forms.HiddenInput)

    def has_changed(self, initial: Any, data: Any) -> bool:
        return False


class SeenForm(forms.ModelForm):
    """Mixed into the form of a row that is there already, which its caller has locked.

    A field that the page did not have (it became read-only, or is no more) is not written, and
    so not compared.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._fingerprints = {name: fingerprint(self.initial.get(name)) for name in self.fields}
        self.fields[SEEN] = SeenField()
        self.initial[SEEN] = sealed(self._fingerprints)

    def clean(self) -> dict[str, Any]:
        cleaned: dict[str, Any] = super().clean() or self.cleaned_data
        seen = unsealed(str(cleaned.get(SEEN, "")))
        changed = [name for name, of in self._fingerprints.items() if seen.get(name) != of]
        if not seen:
            self.add_error(None, ValidationError(NOT_COMPLETE, code="conflict"))
        elif changed:
            told = changed_meanwhile(capfirst(str(self[name].label)) for name in changed)
            self.add_error(None, ValidationError(told, code="conflict"))
        return cleaned
