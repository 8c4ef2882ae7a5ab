"""The admin of segments and of who is in them."""

from __future__ import annotations

from itertools import islice
from typing import Any
from urllib.parse import urlencode

from django.contrib import admin, messages
from django.contrib.admin.views.main import ChangeList
from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.utils import timezone

from ..admin_urls import url_if_any
from ..audit import record
from ..consent import leave
from ..forms.people import MembershipForm
from ..models import ImportJob, Membership, MembershipChange, Segment
from ..paging import SortingPaginator
from ..references import is_used
from ..scoping import (
    AccountFilter,
    ReadOnly,
    ScopedAdmin,
    ScopedChoices,
    ScopedFilter,
    as_id,
    deletion_summary,
    visible,
)
from ..segments.chart import draw
from ..segments.members import delete, hold_to_delete
from ..segments.numbers import PERIODS, history, latest_changes, numbers, present_in, sample
from ..timezones import zone_named
from .confirming import confirmation
from .meanwhile import NothingOverwritten
from .parts import CHUNK, AddressSearch, SortingChangeList, StyledMedia, staff_name
from .segment_people import SegmentPeople, may_add, may_remove, page_of


class CountingChangeList(ChangeList):
    """A page of segments, with the present members of each: one statement for the page."""

    def get_results(self, request: HttpRequest) -> None:
        super().get_results(request)
        rows: list[Any] = list(self.result_list)
        found = present_in(row.pk for row in rows) if rows else {}
        for row in rows:
            row.present = found.get(row.pk, 0)
        self.result_list = rows


#: What goes with a segment that is deleted, or outlives it.
_NOT_USE: set[Any] = {Membership, MembershipChange, ImportJob}


@admin.register(Segment)
class SegmentAdmin(StyledMedia, NothingOverwritten, SegmentPeople, ScopedAdmin):
    list_display = ("name", "people", "slug", "account", "created")
    list_select_related = ("account",)
    list_filter = (AccountFilter,)
    search_fields = ("name__istartswith", "slug__startswith")
    search_help_text = "The beginning of a name or a slug."
    autocomplete_fields = ("account",)
    prepopulated_fields = {"slug": ("name",)}
    readonly_fields = ("created",)
    change_form_template = "admin/sendonce_subscribers/segment_change_form.html"

    class Media:
        css = {"all": ("sendonce_subscribers/admin.css", "sendonce_subscribers/segments.css")}

    @admin.display(description="people")
    def people(self, obj: Any) -> str:
        return f"{obj.present:,}"

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[ChangeList]:
        return CountingChangeList

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> tuple[str, ...]:
        # People and campaigns of the account are in it: it can't move to another.
        return (*self.readonly_fields, "account") if obj else self.readonly_fields

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        # A campaign that names it would silently reach others than its approver saw.
        return (
            obj is not None
            and super().has_delete_permission(request, obj)
            and not is_used(obj, apart_from=_NOT_USE)
        )

    def get_deleted_objects(self, objs: Any, request: HttpRequest) -> Any:
        return deletion_summary(objs, Membership.objects.filter(segment__in=objs))

    def save_model(self, request: HttpRequest, obj: Segment, form: Any, change: bool) -> None:
        with transaction.atomic():
            super().save_model(request, obj, form, change)
            if not change:
                record(obj.account, "segment.create", subject=obj.name, request=request)
            elif form.changed_data:
                told = {"fields": sorted(form.changed_data)}
                record(
                    obj.account, "segment.change", subject=obj.name, detail=told, request=request
                )

    def delete_model(self, request: HttpRequest, obj: Segment) -> None:
        with transaction.atomic():
            if not hold_to_delete(obj):
                return
            # Asked again behind the lock: a campaign may have taken it since the page was shown.
            if is_used(obj, apart_from=_NOT_USE):
                raise PermissionDenied
            detail = {"people": present_in([obj.pk]).get(obj.pk, 0)}
            record(obj.account, "segment.delete", subject=obj.name, detail=detail, request=request)
            delete(obj)

    def render_change_form(
        self,
        request: HttpRequest,
        context: Any,
        add: bool = False,
        change: bool = False,
        form_url: str = "",
        obj: Any = None,
    ) -> HttpResponse:
        if obj is not None:
            context.update(self._people_context(request, obj))
        return super().render_change_form(request, context, add, change, form_url, obj)

    def _people_context(self, request: HttpRequest, segment: Segment) -> dict[str, Any]:
        unit = request.GET.get("by", "")
        unit = unit if unit in PERIODS else "day"
        zone = zone_named(segment.account.timezone)
        moves = history(segment, unit, zone, timezone.now())
        app = self.opts.app_label
        # Names of people are for those who may see people.
        sees_people = request.user.has_perm(f"{app}.view_subscriber") or request.user.has_perm(
            f"{app}.change_subscriber"
        )
        return {
            "segment": segment,
            "zone": zone,
            "numbers": numbers(segment),
            "people_links": self._people_links(request, segment, sees_people),
            "sees_people": sees_people,
            "sample": sample(segment) if sees_people else (),
            "changes": latest_changes(segment) if sees_people else (),
            "unit": unit,
            "units": [(name, f"?by={name}") for name in PERIODS],
            "moves": moves[::-1],
            "oldest": moves[0].since,
            "happened": any(move.joined or move.came_back or move.left for move in moves),
            "chart": draw(moves),
        }

    def _people_links(
        self, request: HttpRequest, segment: Segment, sees_people: bool
    ) -> list[tuple[str, str]]:
        """What this user may do with the people of the segment: label and address."""
        app = self.opts.app_label
        site = self.admin_site
        of_it = urlencode({"account": segment.account_id, "segment": segment.pk})
        links: list[tuple[str, str]] = []
        if may_add(request):
            links.append(("Add people", page_of(site, segment, "add_people")))
        if may_remove(request):
            links.append(("Remove people", page_of(site, segment, "remove_people")))
        for label, page, allowed in (
            ("Import into it", "import", request.user.has_perm(f"{app}.import_subscriber")),
            ("Export", "export", request.user.has_perm(f"{app}.export_subscriber")),
            ("See everybody", "changelist", sees_people),
        ):
            if allowed and (url := url_if_any(site.name, f"{app}_subscriber_{page}")):
                links.append((label, f"{url}?{of_it}"))
        return links


class SegmentFilter(ScopedFilter):
    title = "segment"
    parameter_name = "segment"
    related = Segment
    joined = ("account",)
    ordering = ("account__name", "name")

    def label(self, row: Segment) -> str:
        return f"{row.name} ({row.account.name})"

    def has_output(self) -> bool:
        # One is a choice already: not everybody is in it.
        return bool(self.lookup_choices) or self.value() is not None

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        if self.value() is None:
            return queryset
        present = Membership.objects.filter(segment=as_id(self.value()), left_at__isnull=True)
        return queryset.filter(pk__in=present.values("subscriber"))


def record_joining(request: HttpRequest, membership: Membership) -> None:
    """On record: staff put one person into a segment."""
    where, who = membership.segment, membership.subscriber.email
    told = {"segment": where.name}
    record(where.account, "membership.add", subject=who, detail=told, request=request)


class MembershipInline(ScopedChoices, admin.TabularInline):
    """The segments somebody is in or has left; new ones of the same account can be added."""

    model = Membership
    extra = 0
    fields = ("segment", "joined_at", "left_at")
    readonly_fields = ("joined_at", "left_at")
    verbose_name_plural = "Segments"

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        return super().get_queryset(request).select_related("segment", "subscriber")

    def get_formset(self, request: HttpRequest, obj: Any = None, **kwargs: Any) -> Any:
        formset = super().get_formset(request, obj, **kwargs)
        segment: Any = formset.form.base_fields.get("segment")
        if segment is not None and obj is not None:
            segment.queryset = segment.queryset.filter(account=obj.account_id)
        return formset

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False


class OfPersonInSegment(AddressSearch):
    """Of rows of a person in a segment, both of one account: no index has an account's in order."""

    address_field = "subscriber__email_lower"
    paginator = SortingPaginator

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[ChangeList]:
        return SortingChangeList

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Any], search_term: str
    ) -> tuple[QuerySet[Any], bool]:
        found, repeats = super().get_search_results(request, queryset, search_term)
        if not search_term.strip():
            return found, repeats
        # Then the addresses of these accounts are read, and no others.
        return visible(found, request, "subscriber__account_id"), repeats


@admin.register(Membership)
class MembershipAdmin(StyledMedia, OfPersonInSegment, ScopedAdmin):
    """Who is in which segment. Leaving stays on record; nothing is edited or deleted."""

    account_lookup = "segment__account_id"
    form = MembershipForm
    list_display = ("subscriber", "segment", "joined_at", "left_at")
    list_select_related = ("subscriber", "segment__account")
    list_filter = (("left_at", admin.EmptyFieldListFilter),)
    sortable_by = ()
    ordering = ("-id",)
    search_fields = ("subscriber__email_lower__startswith",)
    autocomplete_fields = ("segment", "subscriber")
    fields = ("segment", "subscriber")
    actions = ("leave_selected",)

    def get_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        return (*self.fields, "joined_at", "left_at") if obj else self.fields

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        with transaction.atomic():
            super().save_model(request, obj, form, change)
            record_joining(request, obj)

    def has_leave_permission(self, request: HttpRequest) -> bool:
        return super().has_change_permission(request)

    @admin.action(permissions=["leave"], description="Leave the segment")
    def leave_selected(self, request: HttpRequest, queryset: QuerySet[Any]) -> HttpResponse | None:
        page = confirmation(
            self,
            request,
            queryset.select_related("subscriber", "segment"),
            title="Leave the segment",
            warning="These people leave the segment; messages of running campaigns that reach "
            "them through it alone are not sent any more.",
            button="Leave",
        )
        if page is not None:
            return page
        done = 0
        source = f"removed by {staff_name(request)} in the admin"
        rows = queryset.select_related("subscriber", "segment__account")
        memberships = iter(rows.iterator(chunk_size=CHUNK))
        while chunk := list(islice(memberships, CHUNK)):
            with transaction.atomic():
                left = leave(chunk, source=source)
                for membership in left:
                    self.log_change(request, membership, "Left the segment.")
                    where, who = membership.segment, membership.subscriber.email
                    told = {"segment": where.name}
                    record(
                        where.account, "membership.leave", subject=who, detail=told, request=request
                    )
            done += len(left)
        self.message_user(request, f"Left: {done}.", messages.SUCCESS)
        return None


@admin.register(MembershipChange)
class MembershipChangeAdmin(StyledMedia, ReadOnly, OfPersonInSegment, ScopedAdmin):
    """Who left a segment or came back to it, when, and what showed it."""

    account_lookup = "segment__account_id"
    list_display = ("subscriber", "kind", "segment", "at", "source")
    list_select_related = ("subscriber", "segment__account")
    list_filter = ("kind",)
    sortable_by = ()
    search_fields = ("subscriber__email_lower__startswith",)
    fields = ("subscriber", "segment", "kind", "at", "source")
