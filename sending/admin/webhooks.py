"""The admin of what providers tell: read-only, and for superusers, as it is no tenant's."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.urls import reverse
from django.utils.html import format_html
from django.utils.text import capfirst

from subscribers.admin import StyledMedia
from subscribers.scoping import ReadOnly, ScopedAdmin, account_ids

from ..models import ProviderEvent, WebhookCount
from ..providers.table import PROVIDERS
from ..tracking.rules import Result
from ..wording import WEBHOOK, kind_words, result_words, words
from .texts import moment, shortened

#: What stands for a job id that can't travel; see ``sending.transports``.
BY_NUMBER = "send:"


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
    list_display = ("when", "event", "told", "to", "result_in_brief", "esp_name")
    list_filter = (ProviderFilter, ResultFilter)
    sortable_by = ()
    search_fields = ("event_id__exact",)
    search_help_text = "An event's id."
    show_full_result_count = False
    show_facets = admin.ShowFacets.NEVER
    paginator = ScopedAdmin.paginator
    list_per_page = 50
    list_max_show_all = 200
    fields = (
        "esp_name", "event", "text", "recipient", "outcome", "message", "at", "received",
        "applied_at", "event_id", "message_id", "job_id", "installation",
    )  # fmt: skip

    @admin.display(description="received")
    def when(self, obj: ProviderEvent) -> str:
        return moment(obj.received)

    @admin.display(description="what")
    def event(self, obj: ProviderEvent) -> str:
        return kind_words(obj.kind, WEBHOOK)

    @admin.display(description="it said")
    def told(self, obj: ProviderEvent) -> str:
        return shortened(obj.text) or "-"

    @admin.display(description="provider")
    def esp_name(self, obj: ProviderEvent) -> str:
        return obj.esp

    @admin.display(description="result")
    def outcome(self, obj: ProviderEvent) -> str:
        return result_words(obj.result) if obj.applied_at else "waiting"

    @admin.display(description="result")
    def result_in_brief(self, obj: ProviderEvent) -> str:
        return words(obj.result) if obj.applied_at else "waiting"

    @admin.display(description="recipient")
    def to(self, obj: ProviderEvent) -> str:
        return self._linked(obj, obj.recipient or "its send")

    @admin.display(description="message")
    def message(self, obj: ProviderEvent) -> str:
        return self._linked(obj, "its send") if obj.job_id else "-"

    def _linked(self, obj: ProviderEvent, text: str) -> str:
        """A link that finds its send by the job id, without a query for each row of the list."""
        if not obj.job_id:
            return text if obj.recipient else "-"
        listed = reverse("admin:sendonce_sending_send_changelist", current_app=self.admin_site.name)
        pk = obj.job_id.removeprefix(BY_NUMBER)
        if obj.job_id.startswith(BY_NUMBER) and pk.isdecimal():
            name = "admin:sendonce_sending_send_change"
            url = reverse(name, args=[pk], current_app=self.admin_site.name)
        else:
            url = f"{listed}?{urlencode({'q': obj.job_id})}"
        return format_html('<a href="{}">{}</a>', url, text)


@admin.register(WebhookCount)
class WebhookCountAdmin(StyledMedia, OfNoTenant):
    list_display = ("day", "reason", "count", "provider")
    fields = ("day", "provider", "reason", "count")
    list_filter = (ProviderFilter,)
    sortable_by = ()
    show_facets = admin.ShowFacets.NEVER

    @admin.display(description="what")
    def reason(self, obj: WebhookCount) -> str:
        return capfirst(result_words(obj.what))

    @admin.display(description="provider")
    def provider(self, obj: WebhookCount) -> str:
        return obj.esp
