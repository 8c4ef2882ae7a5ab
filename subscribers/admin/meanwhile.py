"""Two editors of one row at once: the later is told, and nothing is overwritten."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.contrib.admin.utils import flatten_fieldsets, unquote
from django.http import HttpRequest, HttpResponse

from ..forms.seen import SEEN, SeenForm
from ..read_committed import read_committed


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
