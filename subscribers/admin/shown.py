"""Moments and related rows as the admin's lists and pages show them: moments in the account's
zone, with its name, and links only to pages that the reader may open."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, tzinfo
from functools import cache
from typing import Any

from django.contrib import admin
from django.core.exceptions import FieldDoesNotExist
from django.db.models import DateTimeField, Field, ForeignKey, ManyToManyField, Model
from django.http import HttpRequest, HttpResponse
from django.utils.formats import date_format

from ..timezones import zone_named

NONE = "-"


def moment(when: datetime | None, zone: tzinfo = UTC, *, seconds: bool = False) -> str:
    """``1 Dec 2026, 00:05 CET``; ``-`` for none."""
    if when is None:
        return NONE
    local = when.astimezone(zone)
    return f"{date_format(local, 'j M Y, H:i:s' if seconds else 'j M Y, H:i')} {zone_name(local)}"


def zone_name(local: datetime) -> str:
    """``CET``; ``UTC-03`` for the zones that have no letters."""
    name = local.tzname() or "UTC"
    return f"UTC{name}" if name[0] in "+-" else name


def zone_of(obj: Any, lookup: str) -> tzinfo:
    """The zone of the account that ``lookup`` leads to from a row; UTC for a row of none."""
    if lookup != "pk":
        for name in lookup.removesuffix("_id").split("__"):
            obj = getattr(obj, name, None)
    zone = getattr(obj, "timezone", None)
    return zone_named(zone) if zone else UTC


class ShownFields(admin.ModelAdmin):
    """Fields that are only read: the columns of the list, and what a page has no input for."""

    def get_list_display(self, request: HttpRequest) -> Any:
        columns = super().get_list_display(request)
        return [self._column(one) if isinstance(one, str) else one for one in columns]

    def _column(self, name: str) -> Any:
        is_moment = not hasattr(self, name) and isinstance(_field(self.model, name), DateTimeField)
        model: Any = self.model
        return _moments(model, name, _lookup(self)) if is_moment else name

    def render_change_form(
        self,
        request: Any,
        context: Any,
        add: bool = False,
        change: bool = False,
        form_url: str = "",
        obj: Any = None,
    ) -> HttpResponse:
        if obj is not None:
            zone = zone_of(obj, _lookup(self))
            self._show(request, context["adminform"], self.model, zone)
            for inline in context.get("inline_admin_formsets", ()):
                self._show(request, inline, inline.opts.model, zone)
        return super().render_change_form(request, context, add, change, form_url, obj)

    def _show(self, request: HttpRequest, form: Any, model: type[Model], zone: tzinfo) -> None:
        """In place: who may edit what was decided before, so no field is lost from a form."""
        shown: dict[str, Any] = {}
        # Of an inline: Django reads the same list for its rows and for one that is added.
        may = (getattr(form, f"has_{act}_permission", True) for act in ("change", "add"))
        is_fixed = not any(may)
        for name in _names(form.fieldsets):
            if not (is_fixed or name in form.readonly_fields):
                continue
            field = _field(model, name)
            if isinstance(field, DateTimeField):
                shown[name] = _shown(field, lambda value, _: moment(value, zone))
            elif isinstance(field, ForeignKey) and not self._may_open(request, field):
                shown[name] = _shown(field, lambda value, _: NONE if value is None else str(value))
            elif isinstance(field, ManyToManyField):
                shown[name] = _shown(field, lambda rows, _: _listed(rows))
        if shown:
            form.fieldsets = [
                (title, {**of, "fields": [_put(shown, one) for one in of["fields"]]})
                for title, of in form.fieldsets
            ]
            form.readonly_fields = [*form.readonly_fields, *shown.values()]

    def _may_open(self, request: HttpRequest, field: Any) -> bool:
        """Whether the page of a related row is there for this reader, or nobody's."""
        related = field.remote_field.model
        if not self.admin_site.is_registered(related):
            return True
        return self.admin_site.get_model_admin(related).has_view_or_change_permission(request)


def _lookup(model_admin: Any) -> str:
    # Not an attribute of the mixin: it comes before the class that says it.
    return str(getattr(model_admin, "account_lookup", "pk"))


@cache
def _moments(model: type[Model], name: str, lookup: str) -> Any:
    """A column. The same each time: Django looks for a column among those that sort."""
    field = model._meta.get_field(name)
    return _shown(field, lambda value, obj: moment(value, zone_of(obj, lookup) if value else UTC))


def _shown(field: Any, words: Callable[[Any, Any], str]) -> Any:
    """What Django's admin takes for a field's name, called as the field is."""

    def shown(obj: Any) -> str:
        return words(getattr(obj, field.name), obj)

    shown.__name__ = field.name
    return admin.display(description=field.verbose_name, ordering=field.name)(shown)


def _listed(rows: Any) -> str:
    return ", ".join(map(str, rows.all())) or NONE


def _field(model: type[Model], name: str) -> Field[Any, Any] | None:
    try:
        found = model._meta.get_field(name)
    except FieldDoesNotExist:
        return None
    return found if isinstance(found, Field) else None


def _names(fieldsets: Any) -> list[str]:
    every = [one for _, of in fieldsets for one in of["fields"]]
    flat = [name for one in every for name in (one if isinstance(one, (list, tuple)) else (one,))]
    return [name for name in flat if isinstance(name, str)]


def _put(shown: dict[str, Any], one: Any) -> Any:
    if isinstance(one, (list, tuple)):
        return [_put(shown, each) for each in one]
    return shown.get(one, one) if isinstance(one, str) else one
