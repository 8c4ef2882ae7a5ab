"""The admin of attribute definitions, and the fields they make of a person's attributes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.contrib import admin, messages
from django.db import transaction
from django.http import HttpRequest

from ..attributes.fit import count_people
from ..audit import record
from ..forms.attributes import AttributeDefinitionForm, typed_form
from ..models import AttributeDefinition
from ..scoping import AccountFilter, ScopedAdmin
from .meanwhile import NothingOverwritten
from .parts import StyledMedia

#: Definitions that become fields of a person's page; the rest stays in "other attributes".
SHOWN = 100


@admin.register(AttributeDefinition)
class AttributeDefinitionAdmin(StyledMedia, NothingOverwritten, ScopedAdmin):
    """An attribute's key is for good: campaigns and stored values go by it. Its kind changes only
    while every stored value is of the new one; deleting it leaves people's values as they are."""

    form = AttributeDefinitionForm
    list_display = ("key", "label", "kind", "account")
    list_select_related = ("account",)
    list_filter = ("kind", AccountFilter)
    sortable_by = ("key", "kind")
    search_fields = ("key__istartswith", "label__istartswith")
    search_help_text = "The beginning of a key or a label."
    autocomplete_fields = ("account",)
    fields = ("account", "key", "label", "kind", "choices")
    delete_confirmation_template = "admin/sendonce_subscribers/attribute_delete.html"

    def get_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        return (*self.fields, "people", "created") if obj else self.fields

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        return ("account", "key", "people", "created") if obj else ()

    @admin.display(description="people who have it")
    def people(self, obj: AttributeDefinition) -> str:
        return str(count_people(obj.account, obj.key))

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        # One by one: each page says how many people keep a value.
        return obj is not None and super().has_delete_permission(request, obj)

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        with transaction.atomic():
            super().save_model(request, obj, form, change)
            record(
                obj.account,
                "attribute.change" if change else "attribute.define",
                subject=obj.key,
                detail={"kind": obj.kind, "choices": len(obj.choices)},
                request=request,
            )

    def delete_view(self, request: HttpRequest, object_id: str, extra_context: Any = None) -> Any:
        found = self.get_object(request, object_id)
        people = count_people(found.account, found.key) if found else 0
        return super().delete_view(
            request, object_id, {**(extra_context or {}), "keep_people": people}
        )

    def delete_model(self, request: HttpRequest, obj: Any) -> None:
        with transaction.atomic():
            record(
                obj.account,
                "attribute.delete",
                subject=obj.key,
                detail={"kind": obj.kind},
                request=request,
            )
            super().delete_model(request, obj)
        self.message_user(
            request,
            f"Only the definition of {obj.key} is gone: the values that people have stay, and "
            f"campaigns still show them.",
            messages.INFO,
        )


class TypedAttributes(admin.ModelAdmin):
    """For the subscribers' admin: a field for each attribute that the account has defined."""

    def get_form(self, request: Any, obj: Any = None, change: bool = False, **kwargs: Any) -> Any:
        kwargs["form"] = typed_form(self.form, self._definitions(request, obj))
        return super().get_form(request, obj, change, **kwargs)

    def get_fieldsets(self, request: HttpRequest, obj: Any = None) -> Any:
        names = [f"attribute_{definition.pk}" for definition in self._definitions(request, obj)]
        return [
            (title, {**options, "fields": _with_fields(options["fields"], names)})
            for title, options in super().get_fieldsets(request, obj)
        ]

    def _definitions(self, request: HttpRequest, obj: Any) -> Sequence[AttributeDefinition]:
        """None for whoever only looks: they see the attributes as they are stored."""
        if obj is None or not self.has_change_permission(request, obj):
            return ()
        cached = getattr(request, "_sendonce_definitions", None)
        if cached is None or cached[0] != obj.account_id:
            rows = AttributeDefinition.objects.filter(account=obj.account_id).order_by("key")
            cached = (obj.account_id, list(rows[:SHOWN]))
            request._sendonce_definitions = cached  # type: ignore[attr-defined]
        return list(cached[1])


def _with_fields(fields: Sequence[Any], names: list[str]) -> tuple[Any, ...]:
    if "attributes" not in fields:
        return tuple(fields)
    place = list(fields).index("attributes")
    return (*fields[:place], *names, *fields[place:])
