"""Two editors of one row at once: the later is told, and nothing is overwritten."""

from __future__ import annotations

import hashlib
import json
from typing import Any

from django import forms
from django.contrib import admin
from django.contrib.admin.utils import flatten_fieldsets, unquote
from django.core.exceptions import ValidationError
from django.db.models import Model
from django.http import HttpRequest, HttpResponse
from django.utils.text import capfirst, get_text_list

from ..read_committed import read_committed

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
        self.initial[SEEN] = " ".join(f"{name}={of}" for name, of in self._fingerprints.items())

    def clean(self) -> dict[str, Any]:
        cleaned: dict[str, Any] = super().clean() or self.cleaned_data
        posted = str(cleaned.get(SEEN, ""))
        seen = dict(pair.partition("=")[::2] for pair in posted.split())
        changed = [name for name, of in self._fingerprints.items() if seen.get(name) != of]
        if not seen:
            self.add_error(None, ValidationError(NOT_COMPLETE, code="conflict"))
        elif changed:
            self.add_error(None, ValidationError(self._told(changed), code="conflict"))
        return cleaned

    def _told(self, changed: list[str]) -> str:
        labels = [capfirst(str(self[name].label)) for name in changed[:NAMED]]
        more = len(changed) - len(labels)
        named = get_text_list([*labels, f"{more} more"] if more else labels, "and")
        return (
            f"Not saved: changed meanwhile: {named}. What you typed is still here; open this page "
            "in another tab and carry your changes over."
        )


class NothingOverwritten(admin.ModelAdmin):
    """For admins whose rows have no version: the page carries fingerprints of what it showed, and
    a save compares them with the row, locked, so that nobody writes between look and save."""

    def changeform_view(
        self,
        request: HttpRequest,
        object_id: str | None = None,
        form_url: str = "",
        extra_context: Any = None,
    ) -> HttpResponse:
        if request.method != "POST" or object_id is None:
            return super().changeform_view(request, object_id, form_url, extra_context)
        with read_committed():
            found = self.get_object(request, unquote(object_id))
            if found is not None and self.has_change_permission(request, found):
                # Django reads it again, and for good, in this transaction.
                rows = self.model._default_manager.select_for_update(no_key=True, of=("self",))
                rows.filter(pk=found.pk).first()
            return super().changeform_view(request, object_id, form_url, extra_context)

    def get_form(self, request: Any, obj: Any = None, change: bool = False, **kwargs: Any) -> Any:
        if not self._is_edited(request, obj):
            return super().get_form(request, obj, change, **kwargs)
        if "fields" not in kwargs:
            kwargs["fields"] = flatten_fieldsets(self.get_fieldsets(request, obj))
        if kwargs["fields"] is not None:
            # The form has it without a field of the model.
            kwargs["fields"] = [name for name in kwargs["fields"] if name != SEEN]
        form: Any = super().get_form(request, obj, change, **kwargs)
        return type(form.__name__, (SeenForm, form), {})

    def get_fieldsets(self, request: HttpRequest, obj: Any = None) -> Any:
        given = super().get_fieldsets(request, obj)
        if not self._is_edited(request, obj):
            return given
        (title, options), *others = given
        return [(title, {**options, "fields": (*options["fields"], SEEN)}), *others]

    def _is_edited(self, request: HttpRequest, obj: Any) -> bool:
        return obj is not None and self.has_change_permission(request, obj)
