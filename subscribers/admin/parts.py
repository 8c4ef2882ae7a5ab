"""What the admin classes of all apps share."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest

from ..addresses import canonical, lower

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
        found, repeats = super().get_search_results(request, queryset, lower(search_term))
        if "@" in search_term and not search_term.isascii():
            # As people read an international domain, and as it is stored.
            stored = lower(canonical(search_term))
            found |= super().get_search_results(request, queryset, stored)[0]
        return found, repeats


def staff_name(request: HttpRequest) -> str:
    return request.user.get_username()
