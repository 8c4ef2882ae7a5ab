"""Whether campaigns reach a person: on their page, and as a filter of the list."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.contrib.admin.utils import quote
from django.db.models import QuerySet
from django.http import HttpRequest
from django.urls import NoReverseMatch, reverse
from django.utils import timezone

from .. import hooks
from ..models import Subscriber, Suppression
from ..scoping import account_ids
from ..suppressing.standing import entries_against, hindrances, on_a_list


class SuppressedFilter(admin.SimpleListFilter):
    title = "suppressed"
    parameter_name = "suppressed"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [("yes", "Yes"), ("no", "No")]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        match self.value():
            case "yes":
                return queryset.filter(on_a_list())
            case "no":
                return queryset.filter(~on_a_list())
            case _:
                return queryset


class Reach(admin.ModelAdmin):
    """For the subscribers' admin: its template shows ``reach`` first, ``None`` on the add page."""

    def render_change_form(self, request: Any, context: Any, *args: Any, **kwargs: Any) -> Any:
        shown = context.get("original")
        # Read anew: a form with errors has written what was typed into the one that is shown.
        person = Subscriber.objects.filter(pk=shown.pk).first() if shown is not None else None
        if person is not None:
            context["reach"] = [
                {"why": one, "url": self._entry_url(request, one.entry)}
                for one in hindrances(person, entries_against(person), timezone.now())
            ]
            context["person_links"] = hooks.links(person, request)
        return super().render_change_form(request, context, *args, **kwargs)

    def _entry_url(self, request: HttpRequest, entry: Suppression | None) -> str | None:
        """The entry's page, for whoever may see it: those for all accounts, superusers only."""
        if entry is None or (entry.account_id is None and account_ids(request) is not None):
            return None
        label, name = entry._meta.app_label, entry._meta.model_name
        if not any(request.user.has_perm(f"{label}.{act}_{name}") for act in ("view", "change")):
            return None
        try:
            return reverse(
                f"admin:{label}_{name}_change",
                args=[quote(entry.pk)],
                current_app=self.admin_site.name,
            )
        except NoReverseMatch:
            return None
