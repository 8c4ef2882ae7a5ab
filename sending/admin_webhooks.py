"""The admin of what providers tell: read-only, and for superusers, as it is no tenant's."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest

from subscribers.admin import StyledMedia
from subscribers.scoping import ReadOnly, ScopedAdmin, account_ids

from .models import ProviderEvent, WebhookCount
from .providers.table import PROVIDERS
from .tracking.rules import Result


class ProviderFilter(admin.SimpleListFilter):
    """From the table of providers: to ask the rows which there are would read all of them."""

    title = "provider"
    parameter_name = "esp"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        names = sorted({p.esp_name for p in PROVIDERS.values() if p.esp_name})
        return [(name, name) for name in names]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        return queryset if self.value() is None else queryset.filter(esp=self.value())


class ResultFilter(admin.SimpleListFilter):
    title = "result"
    parameter_name = "result"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        results = [(str(result), result.replace("_", " ")) for result in Result]
        return [("waiting", "waiting"), *results]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        if self.value() is None:
            return queryset
        if self.value() == "waiting":
            return queryset.filter(applied_at__isnull=True)
        return queryset.filter(result=self.value())


class OfNoTenant(ReadOnly, admin.ModelAdmin):
    """Rows that belong to no account: for whoever sees all of them."""

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        every = super().get_queryset(request)
        return every if account_ids(request) is None else every.none()


@admin.register(ProviderEvent)
class ProviderEventAdmin(StyledMedia, OfNoTenant):
    list_display = ("received", "esp", "kind", "recipient", "outcome", "job_id", "text")
    list_filter = (ProviderFilter, ResultFilter)
    sortable_by = ()
    search_fields = ("event_id__exact",)
    search_help_text = "An event's id."
    show_full_result_count = False
    show_facets = admin.ShowFacets.NEVER
    paginator = ScopedAdmin.paginator
    list_per_page = 50
    list_max_show_all = 200

    @admin.display(description="result")
    def outcome(self, obj: ProviderEvent) -> str:
        return obj.result.replace("_", " ") if obj.applied_at else "waiting"


@admin.register(WebhookCount)
class WebhookCountAdmin(StyledMedia, OfNoTenant):
    list_display = ("day", "esp", "reason", "count")
    list_filter = (ProviderFilter,)
    sortable_by = ()
    show_facets = admin.ShowFacets.NEVER

    @admin.display(description="what")
    def reason(self, obj: WebhookCount) -> str:
        return obj.what.replace("_", " ")
