"""What the admin classes of all apps share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.urls import path

from ..addresses import canonical, lower

#: Rows that an action changes in one transaction.
CHUNK = 500


class StyledMedia(admin.ModelAdmin):
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


class FilePages(admin.ModelAdmin):
    """``import/`` and ``export/`` of a model, each by a permission of its own. Names and hooks are
    those of django-import-export."""

    #: The pages that whoever mixes this in has.
    import_view: Callable[[HttpRequest], HttpResponseBase]
    export_view: Callable[[HttpRequest], HttpResponseBase]

    def get_urls(self) -> list[Any]:
        names = f"{self.opts.app_label}_{self.opts.model_name}"
        protected = self.admin_site.admin_view
        return [
            path("import/", protected(self.import_view), name=f"{names}_import"),
            path("export/", protected(self.export_view), name=f"{names}_export"),
            *super().get_urls(),
        ]

    def has_import_permission(self, request: HttpRequest) -> bool:
        return request.user.has_perm(f"{self.opts.app_label}.import_{self.opts.model_name}")

    def has_export_permission(self, request: HttpRequest) -> bool:
        return request.user.has_perm(f"{self.opts.app_label}.export_{self.opts.model_name}")

    def changelist_view(self, request: HttpRequest, extra_context: Any = None) -> HttpResponse:
        context = {
            "has_import_permission": self.has_import_permission(request),
            "has_export_permission": self.has_export_permission(request),
            **(extra_context or {}),
        }
        return super().changelist_view(request, context)
