"""What the admin classes of all apps share."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest

from ..addresses import lower

#: Rows that an action changes in one transaction.
CHUNK = 500


class StyledMedia:
    """The few rules that the stock admin has not."""

    class Media:
        css = {"all": ("sendonce_subscribers/admin.css",)}


class AddressSearch(admin.ModelAdmin):
    """Searches the beginning of an address, as the database compares addresses."""

    search_help_text = "The beginning of an address."

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Any], search_term: str
    ) -> tuple[QuerySet[Any], bool]:
        return super().get_search_results(request, queryset, lower(search_term))


def is_used(obj: Any, *, apart_from: set[Any]) -> bool:
    """Does any other table refer to ``obj``? Asked of the model, so that this app need not
    know which apps stand above it."""
    for relation in obj._meta.related_objects:
        through = getattr(relation, "through", None)
        if relation.related_model in apart_from or through in apart_from:
            continue
        found = relation.related_model._base_manager.filter(**{relation.field.name: obj})
        if found.exists():
            return True
    return False


def staff_name(request: HttpRequest) -> str:
    return request.user.get_username()
