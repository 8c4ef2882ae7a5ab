"""The admin of what became of hand-overs, event by event."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest

from subscribers.admin import StyledMedia
from subscribers.admin.shown import zone_of
from subscribers.scoping import AccountFilter, ReadOnly, ScopedAdmin

from ..models import DeliveryEvent
from ..wording import answer_words, kind_words, reason_words
from .texts import moment, shortened


class UnclassifiedFilter(admin.SimpleListFilter):
    """The answers that no rule knows. The only filter beside the account's: it has an index."""

    title = "answers"
    parameter_name = "known"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [("no", "Unclassified")]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        return queryset.filter(known=False) if self.value() == "no" else queryset


@admin.register(DeliveryEvent)
class DeliveryEventAdmin(StyledMedia, ReadOnly, ScopedAdmin):
    """Every end of a hand-over that was no success, and what providers told later."""

    list_display = ("when", "event", "brief_answer", "recipient")
    list_select_related = ("account", "send")
    list_filter = (UnclassifiedFilter, AccountFilter)
    sortable_by = ()
    search_fields = ("event_id__exact",)
    search_help_text = "A provider's event id."
    fields = (
        "at", "what", "why", "answer", "attempt", "send", "account", "by_name", "event_id"
    )  # fmt: skip

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        return super().get_queryset(request).defer("send__context", "send__frozen")

    @admin.display(description="when")
    def when(self, obj: DeliveryEvent) -> str:
        return moment(obj.at, zone_of(obj, self.account_lookup))

    @admin.display(description="answer")
    def brief_answer(self, obj: DeliveryEvent) -> str:
        return shortened(self.answer(obj))

    @admin.display(description="what")
    def event(self, obj: DeliveryEvent) -> str:
        why = "" if obj.reason == obj.kind else obj.reason
        return ": ".join(
            filter(None, (kind_words(obj.kind, obj.stage), reason_words(why, known=obj.known)))
        )

    @admin.display(description="what")
    def what(self, obj: DeliveryEvent) -> str:
        return kind_words(obj.kind, obj.stage)

    @admin.display(description="recipient")
    def recipient(self, obj: DeliveryEvent) -> str:
        return (obj.send.email or "erased person") if obj.send else "-"

    @admin.display(description="why")
    def why(self, obj: DeliveryEvent) -> str:
        return reason_words(obj.reason, known=obj.known) or "-"

    @admin.display(description="answer")
    def answer(self, obj: DeliveryEvent) -> str:
        return answer_words(obj.stage, obj.code, obj.enhanced, obj.text) or "-"
