"""The admin of what holds mail back: paused transports, slowed limits, the brakes' counts.

All are read-only; a pause and a slow-down may be lifted by hand, which asks first.
"""

from __future__ import annotations

from typing import Any

from django.contrib import admin, messages
from django.contrib.admin.utils import quote
from django.db.models import Q, QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils import timezone
from django.utils.text import capfirst

from subscribers.admin import StyledMedia
from subscribers.admin.shown import zone_of
from subscribers.audit import record
from subscribers.models import Account
from subscribers.scoping import AccountFilter, ReadOnly, ScopedAdmin, account_ids

from .. import pauses
from ..limits import slow_downs
from ..models import CampaignHealth, RateLimit, TransportPause
from ..status_limits import READ_AT, health_fact
from ..wording import (
    limit_words,
    rate_words,
    refusal_words,
    remedy,
    share_words,
    stage_words,
    trouble,
)
from .texts import moment, shortened
from .transports import Transports


class Liftable(StyledMedia, ReadOnly, ScopedAdmin):
    """Rows that are in the way of mail. To delete one lifts it; nothing else can be done to it.

    ``lift_title``: what it is in words; ``lift_warning``: what lifting it does; ``lift_done``:
    what is said afterwards, ``{}`` being the row; ``lift_tried``: when the row is still there;
    ``lift_back``: the page that is shown then; ``lift_more``: a page with more about it, and what
    that is called.
    """

    change_form_template = "admin/sendonce_sending/lift/change_form.html"
    delete_confirmation_template = "admin/sendonce_sending/lift/confirmation.html"
    lift_title = ""
    lift_button = ""
    lift_warning = ""
    lift_done = ""
    lift_tried = ""
    lift_back = "changelist"
    lift_more: tuple[str, str] | None = None

    def is_shared(self, obj: Any) -> bool:
        """Whether it holds back others' mail too: one tenant's staff do not lift it. Unless a
        page knows better, it does."""
        return True

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return (
            obj is not None
            and admin.ModelAdmin.has_delete_permission(self, request, obj)
            and (account_ids(request) is None or not self.is_shared(obj))
        )

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        every = admin.ModelAdmin.get_queryset(self, request)
        ids = account_ids(request)
        return every if ids is None else self.concerning(every, ids)

    def concerning(self, every: QuerySet[Any], ids: list[int]) -> QuerySet[Any]:
        """Those of ``every`` that hold back mail of these accounts. Unless a page knows better,
        staff of accounts see none."""
        return every.none()

    def render_change_form(
        self,
        request: Any,
        context: Any,
        add: bool = False,
        change: bool = False,
        form_url: str = "",
        obj: Any = None,
    ) -> HttpResponse:
        context["show_delete"] = False
        if self.lift_more is not None:
            page, label = self.lift_more
            more = f"admin:{self.opts.app_label}_{self.opts.model_name}_{page}"
            context["lift_more"] = (reverse(more, current_app=self.admin_site.name), label)
        if obj is not None and self.has_delete_permission(request, obj):
            name = f"admin:{self.opts.app_label}_{self.opts.model_name}_delete"
            args = [quote(obj.pk)]
            context.update(
                lift_title=self.lift_title,
                lift_button=self.lift_button,
                lift_url=reverse(name, args=args, current_app=self.admin_site.name),
            )
        return super().render_change_form(request, context, add, change, form_url, obj)

    def delete_view(
        self, request: HttpRequest, object_id: str, extra_context: Any = None
    ) -> HttpResponse:
        words = {"lift_button": self.lift_button, "lift_warning": self.lift_warning}
        return super().delete_view(
            request, object_id, {**words, "title": self.lift_button, **(extra_context or {})}
        )

    def response_delete(self, request: HttpRequest, obj_display: str, obj_id: Any) -> HttpResponse:
        done = self.lift_done
        if self.model.objects.filter(pk=obj_id).exists():
            done = self.lift_tried
        self.message_user(request, done.format(obj_display), messages.SUCCESS)
        name = f"admin:{self.opts.app_label}_{self.opts.model_name}_{self.lift_back}"
        return HttpResponseRedirect(reverse(name, current_app=self.admin_site.name))


@admin.register(TransportPause)
class TransportPauseAdmin(Transports, Liftable):
    """What takes no mail now, and why. To delete a pause is to have it tried at once; it goes when
    the try works."""

    change_list_template = "admin/sendonce_sending/transports/change_list.html"
    list_display = ("alias", "trouble", "brief_why", "whose", "began", "tries", "next_try")
    list_select_related = ("account",)
    sortable_by = ()
    fieldsets = (
        (None, {"fields": ("alias", "whose", "trouble", "reason", "lifted_by")}),
        ("Tries", {"fields": ("began", "tries", "next_try", "where", "code")}),
    )
    lift_back = "overview"
    lift_more = ("overview", "Transports and brakes")
    lift_title = "Takes no mail now"
    lift_button = "Try now"
    lift_warning = (
        "The senders try at once and not at the planned moment. If it works, the pause is over. If "
        "not, it stays, and they go on trying by themselves; nothing is lost by that, and no "
        "attempt of a recipient is spent. After errors in a row one message is tried, which may "
        "end in doubt as those before it."
    )
    # By somebody else meanwhile, or because no mail goes by it any more.
    lift_done = "The pause is over: {}."
    # What it was comes first: behind the try it would read like what came of it.
    lift_tried = (
        "Paused so far: {}. The next try is made now, and ends the pause if it works. Load this "
        "page again in a moment to see what came of it."
    )

    @admin.display(description="for")
    def whose(self, obj: TransportPause) -> str:
        return str(obj.account) if obj.account else "everybody"

    @admin.display(description="trouble")
    def trouble(self, obj: TransportPause) -> str:
        whose = self._account(obj)
        return capfirst(trouble(obj.stage, obj.code, whose=whose, said=obj.reason))

    @admin.display(description="it said")
    def brief_why(self, obj: TransportPause) -> str:
        return shortened(obj.reason)

    @admin.display(description="where")
    def where(self, obj: TransportPause) -> str:
        return stage_words(obj.stage)

    @admin.display(description="since")
    def began(self, obj: TransportPause) -> str:
        return moment(obj.since, zone_of(obj, self.account_lookup))

    @admin.display(description="what lifts it")
    def lifted_by(self, obj: TransportPause) -> str:
        what = remedy(obj.stage, obj.code, whose=self._account(obj), said=obj.reason)
        return f"{what} Senders try by themselves: the first try that works lifts the pause."

    @admin.display(description="tries")
    def tries(self, obj: TransportPause) -> int:
        return obj.failures

    @admin.display(description="next try")
    def next_try(self, obj: TransportPause) -> str:
        if obj.probe_at <= timezone.now():
            return "due"
        return moment(obj.probe_at, zone_of(obj, self.account_lookup))

    def _account(self, obj: TransportPause) -> str | None:
        return str(obj.account) if obj.account else None

    def is_shared(self, obj: TransportPause) -> bool:
        return pauses.risks_others(obj.account_id, obj.stage)

    def concerning(self, every: QuerySet[Any], ids: list[int]) -> QuerySet[Any]:
        used = Account.objects.filter(pk__in=ids).values("transport")
        return every.filter(Q(account__in=ids) | Q(account__isnull=True, alias__in=used))

    def delete_model(self, request: HttpRequest, obj: Any) -> None:
        is_tried = pauses.try_now(obj.alias, obj.account_id)
        verb = "transport.try_now" if is_tried else "transport.lift_pause"
        record(obj.account, verb, subject=obj.alias, request=request)

    def log_deletions(self, request: HttpRequest, queryset: Any) -> Any:
        """Nothing is deleted by hand: the row goes when the try works."""
        return [self.log_change(request, obj, "Tried now.") for obj in queryset]


class SlowedFilter(admin.SimpleListFilter):
    """The table has a row per transport, account and provider of mailboxes: few."""

    title = "rate"
    parameter_name = "slowed"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [("yes", "Slowed down")]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        return queryset.filter(slow_downs.SLOWED) if self.value() == "yes" else queryset


@admin.register(RateLimit)
class RateLimitAdmin(Liftable):
    """How fast mail may leave, for all senders together; and what is slowed down, and why."""

    list_display = ("what", "now", "brief_why", "usually", "began")
    list_filter = (SlowedFilter,)
    sortable_by = ()
    fields = ("what", "now", "usually", "since", "raised", "why")
    lift_title = "Slowed down"
    lift_button = "Lift the slow-down"
    lift_warning = (
        "The usual rate holds again at once. If the other side still asks for less, it is slowed "
        "down again."
    )
    lift_done = lift_tried = "Lifted: {}."

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        return slow_downs.named(super().get_queryset(request)).annotate(read_at=READ_AT)

    @admin.display(description="limit")
    def what(self, obj: Any) -> str:
        return capfirst(limit_words(obj.key, obj.account_name or ""))

    @admin.display(description="messages now")
    def now(self, obj: Any) -> str:
        if obj.updated > obj.read_at:
            return f"none before {timezone.localtime(obj.updated):%H:%M:%S}"
        return rate_words(obj.rate, hourly=_is_account(obj))

    @admin.display(description="usually")
    def usually(self, obj: RateLimit) -> str:
        return "no limit" if obj.usual is None else rate_words(obj.usual, hourly=_is_account(obj))

    @admin.display(description="slowed down since")
    def since(self, obj: RateLimit) -> str:
        return moment(obj.slowed_at) if obj.slowed_at else "not slowed down"

    @admin.display(description="raised last")
    def raised(self, obj: RateLimit) -> str:
        return moment(obj.raised_at) if obj.raised_at else "-"

    @admin.display(description="slowed down since")
    def began(self, obj: RateLimit) -> str:
        return moment(obj.slowed_at) if obj.slowed_at else "as usual"

    @admin.display(description="why")
    def why(self, obj: RateLimit) -> str:
        return obj.reason or "-"

    @admin.display(description="why")
    def brief_why(self, obj: RateLimit) -> str:
        return shortened(self.why(obj))

    def is_shared(self, obj: RateLimit) -> bool:
        return not _is_account(obj)

    def concerning(self, every: QuerySet[Any], ids: list[int]) -> QuerySet[Any]:
        return every.filter(key__in=slow_downs.keys_of_accounts(ids))

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return super().has_delete_permission(request, obj) and obj.slowed_at is not None

    def delete_model(self, request: HttpRequest, obj: Any) -> None:
        slow_downs.lift(obj.pk)
        whose = obj.key.removeprefix("account:") if _is_account(obj) else None
        account = Account.objects.filter(pk=whose).first() if whose else None
        record(account, "transport.lift_slow_down", subject=str(obj), request=request)


@admin.register(CampaignHealth)
class CampaignHealthAdmin(StyledMedia, ReadOnly, ScopedAdmin):
    """What the brakes of a campaign count, beside what its account allows."""

    account_lookup = "campaign__account_id"
    list_display = ("name", "status", "dead", "complaints", "refusals", "times")
    list_filter = (AccountFilter,)
    sortable_by = ()
    ordering = ("-campaign",)
    fields = (
        "campaign", "status", "accepted", "dead", "complaints", "refusals", "times", "tripped",
        "trip", "updated",
    )  # fmt: skip

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        return super().get_queryset(request).select_related("campaign__account")

    @admin.display(description="campaign")
    def name(self, obj: CampaignHealth) -> str:
        return obj.campaign.name

    @admin.display(description="status")
    def status(self, obj: CampaignHealth) -> str:
        return obj.campaign.get_status_display()

    @admin.display(description="dead addresses")
    def dead(self, obj: CampaignHealth) -> str:
        fact = health_fact(obj)
        return share_words(fact.bounced, fact.bounce_rate, fact.max_bounce_rate)

    @admin.display(description="complaints")
    def complaints(self, obj: CampaignHealth) -> str:
        fact = health_fact(obj)
        return share_words(fact.complained, fact.complaint_rate, fact.max_complaint_rate)

    @admin.display(description="refused in a row")
    def refusals(self, obj: CampaignHealth) -> str:
        fact = health_fact(obj)
        return refusal_words(fact.in_a_row, fact.refused, fact.max_refusals)

    @admin.display(description="paused by a brake")
    def times(self, obj: CampaignHealth) -> str:
        trips = health_fact(obj).trips
        return {0: "never", 1: "once"}.get(trips, f"{trips} times")

    @admin.display(description="the last time at")
    def tripped(self, obj: CampaignHealth) -> str:
        at = health_fact(obj).tripped_at
        return moment(at, zone_of(obj, self.account_lookup)) if at else "-"

    @admin.display(description="the last time because", empty_value="-")
    def trip(self, obj: CampaignHealth) -> str:
        return capfirst(health_fact(obj).trip)


def _is_account(limit: RateLimit) -> bool:
    return limit.key.startswith("account:")
