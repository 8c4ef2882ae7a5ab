"""The admin of what was approved, and of who approved it."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest

from subscribers.admin import StyledMedia
from subscribers.scoping import AccountFilter, ReadOnly, ScopedAdmin

from ..models import Approval, Campaign, Content


@admin.register(Content)
class ContentAdmin(StyledMedia, ReadOnly, ScopedAdmin):
    """What was approved, frozen."""

    list_display = ("subject", "account", "from_email", "created")
    list_select_related = ("account",)
    list_filter = (AccountFilter,)
    sortable_by = ()
    ordering = ("-id",)
    search_fields = ("subject__istartswith",)
    search_help_text = "The beginning of a subject."


@admin.register(Approval)
class ApprovalAdmin(StyledMedia, ReadOnly, ScopedAdmin):
    """Who approved what, when; and what became of it."""

    account_lookup = "campaign__account_id"
    list_display = ("campaign", "by_name", "at", "scheduled_for", "standing")
    list_select_related = ("campaign__account",)
    list_filter = (("voided_at", admin.EmptyFieldListFilter),)
    sortable_by = ()

    @admin.display(description="standing")
    def standing(self, obj: Approval) -> str:
        if obj.voided_at:
            return f"void: {obj.void_reason}"
        is_canceled = obj.campaign.status == Campaign.Status.CANCELED
        return "campaign canceled" if is_canceled else "stands"

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        return super().get_queryset(request).select_related("campaign__account", "content", "by")
