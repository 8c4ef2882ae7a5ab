"""The admin of the ledger: read-only, but for deciding about doubt."""

from __future__ import annotations

from typing import Any

from django.contrib import admin, messages
from django.contrib.admin.views.main import ChangeList
from django.core.paginator import Paginator
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.utils import timezone

from campaigns.models import Campaign
from subscribers.admin import AddressSearch, StyledMedia
from subscribers.admin.confirming import confirmation
from subscribers.admin.shown import moment, zone_of
from subscribers.scoping import (
    AccountFilter,
    ReadOnly,
    ScopedAdmin,
    ScopedFilter,
    account_ids,
    as_id,
)
from subscribers.timezones import zone_named

from .. import doubt, doubt_decisions, waits
from ..models import DeliveryEvent, Send
from ..wording import answer_words, doubt_words, kind_words, reason_words, words
from . import archive, send_lists
from .doubt_desk import DoubtDesk
from .progress import ProgressPages
from .report import ReportPages
from .stories import Stories
from .texts import shortened

#: Rows that one action decides about; more than that is a policy, not a look at each.
MOST_DECIDED = 1000


class CampaignFilter(ScopedFilter):
    title = "campaign"
    parameter_name = "campaign"
    related = Campaign
    lookup = "campaign"
    ordering = ("-id",)
    shown = 20

    def label(self, row: Any) -> str:
        return str(row)

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[Any, str]]:
        return [(send_lists.SINGLE, "Single messages"), *super().lookups(request, model_admin)]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        if self.value() == send_lists.SINGLE:
            return queryset.filter(campaign__isnull=True)
        found = as_id(self.value())
        if found is None:
            return super().queryset(request, queryset)
        # Equal, in words that leave the order to the index: see ``send_lists``.
        return queryset.filter(campaign_id__gte=found, campaign_id__lte=found)


@admin.register(Send)
class SendAdmin(
    StyledMedia,
    ProgressPages,
    ReportPages,
    DoubtDesk,
    Stories,
    AddressSearch,
    ReadOnly,
    ScopedAdmin,
):
    """One row per recipient. Rows move by the sender alone; staff decide about doubt."""

    change_form_template = "admin/sendonce_sending/send/change_form.html"
    change_list_template = "admin/sendonce_sending/send/change_list.html"
    list_display = ("recipient", "status", "brief_answer", "campaign_name", "moment")
    list_select_related = ("account", "campaign")
    list_filter = ("status", CampaignFilter, AccountFilter)
    # No other order has an index, and there may be tens of millions.
    ordering = send_lists.ORDERING
    sortable_by = ()
    paginator = send_lists.RunsPaginator
    search_fields = ("email_lower__startswith", "job_id__exact")
    search_help_text = "The beginning of an address, or a job id."
    actions = ("send_again", "treat_as_sent")
    fieldsets = (
        (None, {"fields": ("recipient", "status", "why", "answer")}),
        (
            "Message",
            {"fields": ("account", "campaign", "subscriber", "content", "job_id", "expires")},
        ),
        (
            "Hand-over",
            {
                "fields": (
                    "attempts",
                    "next_attempt_at",
                    "handed_at",
                    "sent_at",
                    "settle_at",
                    "replay_until",
                    "replays",
                    "via",
                    "provider_message_id",
                    "worker",
                    "lease_until",
                    "claim_token",
                    "doubt_tokens",
                ),
                "classes": ("collapse",),
            },
        ),
    )

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        found = super().get_queryset(request).defer("context", "frozen")
        # The few are found by their queue; by the status alone it reads all that was sent.
        queue = Send.QUEUE_OF.get(request.GET.get("status__exact", ""))
        return found if queue is None else found.filter(queue=queue)

    def get_fieldsets(self, request: HttpRequest, obj: Any = None) -> Any:
        """Without the sender for staff of accounts: its host is not theirs to know."""
        shown = super().get_fieldsets(request, obj)
        if account_ids(request) is None:
            return shown
        return [
            (name, {**options, "fields": [one for one in options["fields"] if one != "worker"]})
            for name, options in shown
        ]

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[ChangeList]:
        return send_lists.RunsChangeList

    def get_search_fields(self, request: HttpRequest) -> tuple[str, ...]:
        # What is no job id is looked for in one index, and not in two and the rows.
        term = request.GET.get("q", "")
        return self.search_fields if ":" in term else self.search_fields[:1]

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Any], search_term: str
    ) -> tuple[QuerySet[Any], bool]:
        if search_term.strip():
            every = super().get_search_results(request, Send.objects.order_by(), search_term)[0]
            send_lists.note_few(request, every)
        return super().get_search_results(request, queryset, search_term)

    def get_paginator(
        self, request: HttpRequest, queryset: QuerySet[Any], *args: Any, **kwargs: Any
    ) -> Paginator[Any]:
        made = super().get_paginator(request, queryset, *args, **kwargs)
        # A send's history is paged by it, too.
        if isinstance(made, send_lists.RunsPaginator) and queryset.model is Send:
            made.scope = send_lists.scope(request)
        return made

    def changelist_view(self, request: HttpRequest, extra_context: Any = None) -> HttpResponse:
        archive.tell(self, request)
        context = {"may_see_stories": self.may_see_stories(request), **(extra_context or {})}
        return super().changelist_view(request, context)

    @admin.display(description="recipient")
    def recipient(self, obj: Send) -> str:
        return obj.email or "erased person"

    @admin.display(description="campaign")
    def campaign_name(self, obj: Send) -> str:
        return str(obj.campaign) if obj.campaign else "single message"

    @admin.display(description="last answer")
    def answer(self, obj: Send) -> str:
        code, enhanced = obj.answer_code, obj.answer_enhanced
        return answer_words(obj.answer_stage, code, enhanced, obj.answer_text) or "-"

    @admin.display(description="last answer")
    def brief_answer(self, obj: Send) -> str:
        return shortened(self.answer(obj))

    @admin.display(description="why")
    def why(self, obj: Send) -> str:
        return words(obj.reason) or "-"

    @admin.display(description="when")
    def moment(self, obj: Send) -> str:
        when = obj.sent_at or obj.handed_at
        return moment(when, zone_of(obj, self.account_lookup)) if when else "-"

    @admin.action(permissions=["resolve"], description="Send again (in doubt or failed)")
    def send_again(self, request: HttpRequest, queryset: QuerySet[Any]) -> HttpResponse | None:
        return self._resolve(
            request,
            queryset.filter(status__in=(Send.Status.IN_DOUBT, Send.Status.FAILED)),
            doubt.SEND_AGAIN,
            title="Send again",
            warning=_warning(queryset),
            button="Send again",
        )

    @admin.action(permissions=["resolve"], description="Treat as sent (in doubt)")
    def treat_as_sent(self, request: HttpRequest, queryset: QuerySet[Any]) -> HttpResponse | None:
        return self._resolve(
            request,
            queryset.filter(status=Send.Status.IN_DOUBT),
            doubt.TREAT_AS_SENT,
            title="Treat as sent",
            warning="These rows count as sent. Whoever did not get the message does not get it.",
            button="Treat as sent",
        )

    def _resolve(
        self, request: HttpRequest, queryset: QuerySet[Any], decision: str, **page: str
    ) -> HttpResponse | None:
        chosen = list(queryset.order_by("pk")[: MOST_DECIDED + 1])
        if len(chosen) > MOST_DECIDED:
            self.message_user(
                request,
                f"More than {MOST_DECIDED} rows at once: nothing was changed. Choose fewer, or "
                f"decide at the doubt desk, which takes any number.",
                messages.ERROR,
            )
            return None
        if not chosen:
            self.message_user(
                request, "None of these rows is in a state to decide about.", messages.WARNING
            )
            return None
        response = confirmation(self, request, queryset, **page)
        if response is not None:
            return response
        done = doubt_decisions.decide(
            self.get_queryset(request),
            [send.pk for send in chosen],
            decision,
            request=request,
            failed=decision == doubt.SEND_AGAIN,
        )
        self.message_user(
            request,
            f"{page['title']}: {done.decided} of {len(chosen)} rows.",
            messages.SUCCESS if done.decided == len(chosen) else messages.WARNING,
        )
        for why, number in done.left.items():
            self.message_user(request, f"{number} left as before: {why}.", messages.WARNING)
        return None

    def render_change_form(
        self,
        request: Any,
        context: Any,
        add: bool = False,
        change: bool = False,
        form_url: str = "",
        obj: Any = None,
    ) -> HttpResponse:
        if obj is not None:
            list_url = f"admin:{self.opts.app_label}_{self.opts.model_name}_changelist"
            context.update(
                story=[_told(event) for event in obj.events.order_by("at", "pk")],
                waits=waits.of_send(obj),
                doubt=doubt_words(obj.reason, obj.answer_code),
                list_url=reverse(list_url, current_app=self.admin_site.name),
                decisions=self._decisions(request, obj),
                is_canceled=_is_canceled(obj),
                story_url=self.story_url(request, obj),
                is_replayed=bool(
                    obj.settle_at and obj.replay_until and obj.replay_until > timezone.now()
                ),
                zone=zone_named(obj.account.timezone),
            )
        return super().render_change_form(request, context, add, change, form_url, obj)

    def _decisions(self, request: HttpRequest, send: Send) -> list[tuple[str, str]]:
        """The actions that make sense for this row, as (name, label)."""
        if not self.has_resolve_permission(request):
            return []
        again = [] if _is_canceled(send) else [("send_again", "Send again…")]
        return {
            Send.Status.IN_DOUBT: [*again, ("treat_as_sent", "Treat as sent…")],
            Send.Status.FAILED: again,
        }.get(Send.Status(send.status), [])


def _warning(chosen: QuerySet[Any]) -> str:
    """What sending these again may do."""
    reopens = "A campaign that was sent is sending again until these are done."
    if not chosen.filter(status=Send.Status.IN_DOUBT).exists():
        return reopens
    twice = "Whoever is in doubt may have got the message already and would get it twice."
    return f"{twice} {reopens}"


def _is_canceled(send: Send) -> bool:
    """Of a canceled campaign: nothing of it is sent again."""
    return send.campaign is not None and send.campaign.status == Campaign.Status.CANCELED


def _told(event: DeliveryEvent) -> dict[str, Any]:
    """One event of a send's story, in words."""
    return {
        "at": event.at,
        "what": kind_words(event.kind, event.stage),
        "why": reason_words(event.reason, known=event.known) or "-",
        "attempt": event.attempt or "-",
        "answer": answer_words(event.stage, event.code, event.enhanced, event.text) or "-",
        "by": event.by_name or "-",
    }
