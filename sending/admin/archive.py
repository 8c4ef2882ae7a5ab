"""The admin of what was pruned: counts, where the list of sends shows nothing any more."""

from __future__ import annotations

from typing import Any

from django.contrib import admin, messages
from django.http import HttpRequest

from subscribers.admin import StyledMedia
from subscribers.admin.shown import moment, zone_of
from subscribers.scoping import ReadOnly, ScopedAdmin, visible

from ..models import ArchivedCount
from ..wording import reason_words


@admin.register(ArchivedCount)
class ArchivedCountAdmin(StyledMedia, ReadOnly, ScopedAdmin):
    account_lookup = "campaign__account_id"
    list_display = ("campaign", "status", "why", "number", "when")
    list_select_related = ("campaign__account",)
    search_fields = ("campaign__name__icontains",)
    search_help_text = "A part of the campaign's name."
    sortable_by = ()
    fields = ("campaign", "status", "why", "number", "when")

    @admin.display(description="why")
    def why(self, obj: ArchivedCount) -> str:
        return reason_words(obj.reason) or "-"

    @admin.display(description="archived last")
    def when(self, obj: ArchivedCount) -> str:
        return moment(obj.at, zone_of(obj, self.account_lookup))


def tell(model_admin: admin.ModelAdmin[Any], request: HttpRequest) -> None:
    """Say on the list of one campaign's sends that rows of it were archived, if so."""
    chosen = request.GET.get("campaign", "")
    if request.method != "GET" or not (chosen.isascii() and chosen.isdigit() and len(chosen) < 19):
        return
    every: Any = visible(ArchivedCount.objects.all(), request, "campaign__account_id")
    number = sum(every.filter(campaign=int(chosen)).values_list("number", flat=True))
    if number:
        model_admin.message_user(
            request,
            f"{number:,} rows of this campaign were archived: they are counted (archived counts), "
            f"and who got it is not kept.",
            messages.INFO,
        )
