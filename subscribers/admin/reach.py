"""Whether campaigns reach a person: on their page, and in the list by its filter."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.contrib.admin.views.main import ChangeList
from django.core.paginator import Paginator
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils import timezone

from .. import hooks
from ..admin_urls import url_if_any
from ..models import Subscriber, Suppression
from ..scoping import account_ids
from ..suppressing.standing import entries_against, hindrances
from .looking import LookedPaginator, LookingChangeList, looked


class Reach(admin.ModelAdmin):
    """For the subscribers' admin: its template shows ``reach`` first, ``None`` on the add page."""

    paginator = LookedPaginator

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[ChangeList]:
        return LookingChangeList

    def get_paginator(
        self, request: HttpRequest, queryset: QuerySet[Any], *args: Any, **kwargs: Any
    ) -> Paginator[Any]:
        pages = super().get_paginator(request, queryset, *args, **kwargs)
        look = looked(request)
        if look is not None and isinstance(pages, LookedPaginator):
            pages.found = look.found
        return pages

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
        return url_if_any(self.admin_site.name, f"{label}_{name}_change", entry.pk) or None
