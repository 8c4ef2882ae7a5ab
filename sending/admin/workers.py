"""The admin of senders, and of what makes this installation itself."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.db.models.functions import Now
from django.http import HttpRequest

from subscribers.admin import StyledMedia
from subscribers.scoping import ReadOnly, ScopedAdmin, account_ids

from ..models import Installation, Worker
from ..status import worker_state


@admin.register(Worker)
class WorkerAdmin(StyledMedia, ReadOnly, admin.ModelAdmin):
    """Senders, of the whole installation: they have no account."""

    list_display = ("__str__", "state", "lanes", "started", "seen", "note")
    sortable_by = ()
    show_full_result_count = False
    show_facets = admin.ShowFacets.NEVER
    paginator = ScopedAdmin.paginator

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        # Seen by the database's clock, so judged by it too.
        return super().get_queryset(request).annotate(db_now=Now())

    @admin.display(description="state")
    def state(self, obj: Any) -> str:
        return worker_state(obj.ended, obj.seen, obj.db_now)


@admin.register(Installation)
class InstallationAdmin(StyledMedia, ReadOnly, admin.ModelAdmin):
    """What makes this installation itself; for superusers, as it is no tenant's."""

    list_display = ("namespace", "system_identifier", "timeline")

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        every = super().get_queryset(request)
        return every if account_ids(request) is None else every.none()
