"""The admin of senders, and of what makes this installation itself.

Senders are no tenant's: their hosts and what they wait for are for superusers. Staff of accounts
see that senders run, and how fast; not where.
"""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.db.models import OuterRef, QuerySet, Subquery
from django.db.models.functions import Now
from django.http import HttpRequest, HttpResponse
from django.utils.html import format_html

from campaigns.models import Campaign
from subscribers.admin import StyledMedia
from subscribers.database_clock import database_time
from subscribers.scoping import ReadOnly, ScopedAdmin, account_ids

from ..alive import worker_state
from ..models import Installation, Worker
from ..senders import Senders, senders, summary
from .texts import lately, parted, shortened

#: On the request: what was looked at once for the whole page.
_LOOKED = "_sendonce_senders"


@admin.register(Worker)
class WorkerAdmin(StyledMedia, ReadOnly, admin.ModelAdmin):
    """Senders, of the whole installation: they have no account."""

    change_list_template = "admin/sendonce_sending/worker/change_list.html"
    list_display = ("__str__", "state", "has", "began", "last", "only", "open", "brief_note")
    sortable_by = ()
    show_full_result_count = False
    show_facets = admin.ShowFacets.NEVER
    paginator = ScopedAdmin.paginator
    list_per_page = 50

    class Media:
        css = {"all": ("sendonce_sending/desk.css",)}

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        every = super().get_queryset(request)
        if account_ids(request) is not None:
            return every.none()
        # Seen by the database's clock, so judged by it too.
        name = Campaign.objects.filter(pk=OuterRef("only_campaign")).values("name")[:1]
        return every.annotate(db_now=Now(), only_name=Subquery(name))

    def changelist_view(self, request: HttpRequest, extra_context: Any = None) -> HttpResponse:
        if not self.has_view_or_change_permission(request):
            return super().changelist_view(request, extra_context)
        found = senders(database_time())
        # The columns ask for what is looked at here: a list's methods get the row alone.
        setattr(request, _LOOKED, found)
        everything = account_ids(request) is None
        context = {
            "senders": found,
            "summary": summary(found, command=everything),
            "sees_hosts": everything,
            "title": "Senders",
            **(extra_context or {}),
        }
        return super().changelist_view(request, context)

    def get_list_display(self, request: HttpRequest) -> Any:
        """With the columns that are counted for all rows at once, bound to this request's look."""
        shown = list(super().get_list_display(request))
        found: Senders | None = getattr(request, _LOOKED, None)
        if found is not None and "has" in shown:
            place = shown.index("has") + 1
            shown[place:place] = [_holds(found), _rate(found)]
        if found is not None and not found.limited and "open" in shown:
            # Most installations limit no connections: a column of dashes would only be asked about.
            shown.remove("open")
        return shown

    @admin.display(description="state")
    def state(self, obj: Any) -> str:
        word = worker_state(obj.ended, obj.seen, obj.db_now)
        return format_html('<span class="sendonce-{}">{}</span>', word, word)

    @admin.display(description="lanes")
    def has(self, obj: Worker) -> str:
        each = obj.sessions_a_lane
        if each == 1:
            return f"{obj.lanes:,}"
        lanes = f"{obj.lanes:,} {'lane' if obj.lanes == 1 else 'lanes'}"
        return format_html(
            '<span class="sendonce-abreast" title="{}">{}</span>',
            f"{lanes} with up to {each} sessions each",
            f"{obj.lanes:,} x {each}",
        )

    @admin.display(description="since")
    def began(self, obj: Worker) -> str:
        return parted(obj.started)

    @admin.display(description="seen")
    def last(self, obj: Any) -> str:
        return lately(obj.seen, obj.db_now)

    @admin.display(description="serves")
    def only(self, obj: Any) -> str:
        if obj.only_campaign is None:
            return "everything"
        return f"only {obj.only_name or f'campaign {obj.only_campaign}'}"

    @admin.display(description="limited sessions")
    def open(self, obj: Worker) -> str:
        # One that signed off closed them, and did not say so again.
        held = sorted((obj.sessions or {}).items()) if obj.ended is None else []
        return ", ".join(f"{number} by {alias}" for alias, number in held if number) or "-"

    @admin.display(description="note")
    def brief_note(self, obj: Worker) -> str:
        return shortened(obj.note) or "-"


def _holds(found: Senders) -> Any:
    @admin.display(description="holds")
    def holds(obj: Worker) -> int:
        return found.holds[obj.pk]

    return holds


def _rate(found: Senders) -> Any:
    @admin.display(description="a minute")
    def rate(obj: Worker) -> str:
        return f"{found.of.get(obj.pk, 0):,.0f}"

    return rate


@admin.register(Installation)
class InstallationAdmin(StyledMedia, ReadOnly, admin.ModelAdmin):
    """What makes this installation itself; for superusers, as it is no tenant's."""

    list_display = ("namespace", "system_identifier", "timeline")

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        every = super().get_queryset(request)
        return every if account_ids(request) is None else every.none()
