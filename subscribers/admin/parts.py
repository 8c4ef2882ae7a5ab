"""What the admin classes of all apps share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.contrib import admin
from django.contrib.admin.views.main import ChangeList
from django.db.models import Q, QuerySet
from django.db.models.functions import Collate
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.urls import path

from ..addresses import canonical, lower
from ..scoping import beginning_with
from .shown import ShownFields

#: Rows that an action changes in one transaction.
CHUNK = 500


class StyledMedia(ShownFields):
    """The few rules that the stock admin has not."""

    class Media:
        css = {"all": ("sendonce_subscribers/admin.css",)}


def addresses_beginning(
    queryset: QuerySet[Any], address: str, typed: str, other: Q | None = None
) -> QuerySet[Any]:
    """The rows whose address begins so, in the order of addresses: the one that is just this first.
    ``address`` leads to the column that an index has in the order of its bytes, whatever the
    database's locale is; in this order the first rows are there without the others. ``other``: what
    is found, too."""
    forms = {lower(typed)}
    if "@" in typed and not typed.isascii():
        # As people read an international domain, and as it is stored.
        forms.add(lower(canonical(typed)))
    found = other or Q()
    for form in sorted(forms):
        found |= beginning_with(("folded_address__startswith",), form)
    rows = queryset.alias(folded_address=Collate(address, "C")).filter(found)
    return rows.order_by("folded_address", "-pk")


class AddressSearch(admin.ModelAdmin):
    """Searches the beginning of an address, as the database compares addresses."""

    search_help_text = "The beginning of an address. What is found is listed by address."
    #: Where it is: what is found is then listed by address.
    address_field: str | None = None

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Any], search_term: str
    ) -> tuple[QuerySet[Any], bool]:
        field = self.address_field
        if field and tuple(self.get_search_fields(request)) == (f"{field}__startswith",):
            if not search_term.strip():
                return queryset, False
            return addresses_beginning(queryset, field, search_term), False
        found, repeats = super().get_search_results(request, queryset, lower(search_term))
        if "@" in search_term and not search_term.isascii():
            # As people read an international domain, and as it is stored.
            stored = lower(canonical(search_term))
            found |= super().get_search_results(request, queryset, stored)[0]
        return found, repeats


class CountedChangeList(ChangeList):
    """Asks for no rows where none were counted: to find none again takes as long."""

    def get_results(self, request: HttpRequest) -> None:
        super().get_results(request)
        if self.result_count == 0:
            self.result_list = self.queryset.none()


class SortingChangeList(CountedChangeList):
    """For ``SortingPaginator``: also where one page shows all."""

    def get_results(self, request: HttpRequest) -> None:
        super().get_results(request)
        whole = (self.show_all and self.can_show_all) or not self.multi_page
        if self.result_count and whole:
            self.result_list = self.paginator.object_list


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
