"""The doubt desk: what is in doubt, with the evidence, and the decision of a person about it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any
from urllib.parse import urlencode

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseNotAllowed, HttpResponseRedirect
from django.utils import timezone
from django.utils.text import Truncator

from campaigns.models import Campaign
from subscribers.database_clock import database_time
from subscribers.scoping import account_ids, as_id, visible
from subscribers.timezones import zone_named

from .. import doubt, doubt_decisions, doubt_desk
from ..doubt_advice import (
    BRIEF_FATES,
    consequences,
    evidence_words,
    fate_words,
    reason_meaning,
    reason_name,
)
from ..models import Send
from ..wording import answer_words
from .pages import OperatingPages, moment_of

#: What stands for the messages of no campaign, where a campaign's id does else.
SINGLE = "none"
#: Recipients that the confirmation names.
NAMED = 10
#: Rows that the confirmation counts; behind that it says "or more".
COUNTED = 100_000

LABELS = {doubt.SEND_AGAIN: "Send again", doubt.TREAT_AS_SENT: "Treat as sent"}


@dataclass(frozen=True, slots=True)
class Scope:
    """What a page of rows is about. ``campaign`` None: the single messages; ``reason`` None: any
    reason."""

    campaign: Campaign | None
    reason: str | None

    @property
    def query(self) -> str:
        given = {"campaign": self.campaign.pk if self.campaign else SINGLE}
        return urlencode(given if self.reason is None else {**given, "reason": self.reason})

    @property
    def name(self) -> str:
        return str(self.campaign) if self.campaign else "Single messages"

    @property
    def zone(self) -> Any:
        if self.campaign is None:
            return timezone.get_current_timezone()
        return zone_named(self.campaign.account.timezone)

    @property
    def is_canceled(self) -> bool:
        return self.campaign is not None and self.campaign.status == Campaign.Status.CANCELED


class DoubtDesk(OperatingPages):
    """For the ledger's admin: ``doubt/``, the overview, and with ``?campaign=`` its rows."""

    desk_template = "admin/sendonce_sending/doubt/desk.html"
    rows_template = "admin/sendonce_sending/doubt/rows.html"
    decide_template = "admin/sendonce_sending/doubt/decide.html"

    def get_urls(self) -> list[Any]:
        desk = self.operating_path("doubt/", self.doubt_desk_view, "doubt_desk")
        return [desk, *super().get_urls()]

    def has_resolve_permission(self, request: HttpRequest) -> bool:
        return request.user.has_perm(f"{self.opts.app_label}.resolve_doubt")

    def doubt_desk_view(self, request: HttpRequest) -> HttpResponse:
        if request.method not in ("GET", "HEAD", "POST"):
            return HttpResponseNotAllowed(["GET", "HEAD", "POST"])
        self.must_view(request)
        if "campaign" not in request.GET:
            if request.method == "POST":
                return HttpResponseNotAllowed(["GET", "HEAD"])
            return self._desk(request)
        scope = self._scope(request)
        if scope is None:
            self.message_user(request, "There is no such campaign.", messages.WARNING)
            return HttpResponseRedirect(self.operating_url("doubt_desk"))
        if request.method == "POST":
            if not self.has_resolve_permission(request):
                raise PermissionDenied
            return self._decide(request, scope)
        return self._rows(request, scope)

    # --- pages -------------------------------------------------------------------------------

    def _desk(self, request: HttpRequest) -> HttpResponse:
        accounts, now = account_ids(request), database_time()
        before = as_id(request.GET.get("before", ""))
        ids, more = doubt_desk.campaigns_in_doubt(accounts, before=before)
        single = doubt_desk.single_messages(accounts, now) if before is None else None
        found = [*([single] if single else []), *doubt_desk.overview(ids, now)]
        context = {
            "doubts": [_shown(one, self.has_resolve_permission(request)) for one in found],
            "next": ids[-1] if more else None,
            "before": before,
            "may_resolve": self.has_resolve_permission(request),
            "waiting_events": doubt_desk.waiting_events() if found else 0,
        }
        return self.operating_page(request, self.desk_template, "Doubt desk", context)

    def _rows(self, request: HttpRequest, scope: Scope) -> HttpResponse:
        now = database_time()
        after = as_id(request.GET.get("after", "")) or 0
        rows, more = doubt_desk.page_of(self._doubtful(request, scope), now, after=after)
        if scope.campaign is None:
            about = doubt_desk.single_messages(account_ids(request), now)
        else:
            about = next(iter(doubt_desk.overview([scope.campaign.pk], now)), None)
        may_resolve = self.has_resolve_permission(request)
        shown = _shown(about, may_resolve) if about is not None else None
        context = {
            "scope": scope,
            "about": shown,
            "reason": None if scope.reason is None else reason_name(scope.reason),
            "rows": [_row(row) for row in rows],
            "after": after,
            "next": more,
            "may_resolve": may_resolve,
            "zone": scope.zone,
        }
        title = f"In doubt: {Truncator(scope.name).chars(80)}"
        return self.operating_page(request, self.rows_template, title, context)

    def _decide(self, request: HttpRequest, scope: Scope) -> HttpResponse:
        decision = request.POST.get("decision", "")
        everything = request.POST.get("which") == "all"
        ids = [pk for raw in request.POST.getlist("send") if (pk := as_id(raw)) is not None]
        back = f"{self.operating_url('doubt_desk')}?{scope.query}"
        problem = _problem(decision, scope, chosen=everything or bool(ids))
        if problem:
            self.message_user(request, problem, messages.WARNING)
            return HttpResponseRedirect(back)
        asked = moment_of(request.POST.get("asked", ""))
        if "confirmed" not in request.POST or asked is None:
            return self._confirm(request, scope, decision, everything, ids)
        sends = self.get_queryset(request)
        if not everything:
            done = doubt_decisions.decide(
                self._of(sends, scope), ids, decision,
                request=request, asked=asked,
            )  # fmt: skip
            left_off = None
        else:
            done, left_off = doubt_decisions.decide_all(
                self._of(sends, scope), decision, request=request, asked=asked,
                after=as_id(request.POST.get("after", "")) or 0,
            )  # fmt: skip
        lines = doubt_decisions.told(done, decision)
        well = done.decided == done.chosen
        self.message_user(request, lines[0], messages.SUCCESS if well else messages.WARNING)
        for line in lines[1:]:
            self.message_user(request, line, messages.WARNING)
        if left_off is None:
            return HttpResponseRedirect(back if self._is_left(request, scope) else self._desk_url())
        return self._confirm(request, scope, decision, everything, [], asked=asked, after=left_off)

    def _confirm(
        self,
        request: HttpRequest,
        scope: Scope,
        decision: str,
        everything: bool,
        ids: list[int],
        *,
        asked: datetime | None = None,
        after: int = 0,
    ) -> HttpResponse:
        """The page before a decision; with ``after`` the one between two parts of it, as the time
        of one request was over first."""
        now = database_time()
        asked = asked or now
        chosen = self._doubtful(request, scope).filter(handed_at__lte=asked, pk__gt=after)
        if not everything:
            chosen = chosen.filter(pk__in=ids)
        number = chosen.order_by()[:COUNTED].count()
        harmless = doubt_desk.harmless(chosen, now).order_by()[:COUNTED].count()
        sent = scope.campaign is not None and scope.campaign.status == Campaign.Status.SENT
        people = list(chosen.order_by("pk").values_list("email", flat=True)[: NAMED + 1])
        context = {
            "subtitle": scope.name,
            "scope": scope,
            "decision": decision,
            "label": LABELS[decision],
            "number": number,
            "more_than": number == COUNTED,
            "left": len(ids) - number if not everything else 0,
            "consequences": consequences(decision, harmless=harmless, rows=number, reopens=sent),
            "people": [email or "an erased person" for email in people[:NAMED]],
            "others": max(0, number - NAMED),
            "ids": ids,
            "everything": everything,
            "asked": asked.isoformat(),
            "after": after,
            "reason": None if scope.reason is None else reason_name(scope.reason),
        }
        title = f"{LABELS[decision]}: go on?" if after else f"{LABELS[decision]}?"
        return self.operating_page(request, self.decide_template, title, context)

    # --- what it is about ----------------------------------------------------------------------

    def _scope(self, request: HttpRequest) -> Scope | None:
        """What the query asks for, where this user may see it."""
        raw, reason = request.GET.get("campaign", ""), request.GET.get("reason")
        reason = None if reason is None or "\x00" in reason else reason
        if raw == SINGLE:
            return Scope(None, reason)
        pk = as_id(raw)
        every = Campaign.objects.select_related("account").defer("body", "text_body")
        campaign = visible(every, request, "account_id").filter(pk=pk).first() if pk else None
        return Scope(campaign, reason) if campaign is not None else None

    @staticmethod
    def _of(sends: QuerySet[Any], scope: Scope) -> QuerySet[Any]:
        campaign = scope.campaign.pk if scope.campaign is not None else None
        return doubt_desk.concerning(sends, campaign, scope.reason)

    def _doubtful(self, request: HttpRequest, scope: Scope) -> QuerySet[Any]:
        campaign = scope.campaign.pk if scope.campaign is not None else None
        return doubt_desk.in_doubt(self.get_queryset(request), campaign, scope.reason)

    def _is_left(self, request: HttpRequest, scope: Scope) -> bool:
        return self._doubtful(request, scope).exists()

    def _desk_url(self) -> str:
        return self.operating_url("doubt_desk")


def _problem(decision: str, scope: Scope, *, chosen: bool) -> str:
    """Why nothing can be asked for, in a sentence; "": it can. Pure."""
    if decision not in doubt.DECISIONS:
        return "Nothing was changed: choose what to do."
    if decision == doubt.SEND_AGAIN and scope.is_canceled:
        return "Nothing was changed: the campaign is canceled, nothing of it is sent again."
    if not chosen:
        return "Nothing was changed: tick the messages to decide about, or choose all."
    return ""


def _shown(one: doubt_desk.Doubtful, may_resolve: bool) -> dict[str, Any]:
    """A campaign's doubt as the templates show it to somebody who decides, or only looks."""
    campaign = one.campaign
    canceled = campaign is not None and campaign.status == Campaign.Status.CANCELED
    return {
        "campaign": campaign,
        "key": campaign.pk if campaign else SINGLE,
        "name": str(campaign) if campaign else "Single messages",
        "zone": zone_named(campaign.account.timezone) if campaign else None,
        "rows": one.rows,
        "more": one.more,
        "since": one.since,
        "canceled": canceled,
        "groups": [
            {
                "reason": group.reason,
                "name": reason_name(group.reason),
                "meaning": reason_meaning(group.reason),
                "rows": group.rows,
                "since": group.since,
                "latest": group.latest,
                "transport": group.transport,
                "fate": fate_words(group.fate, may_resolve),
                "until": group.until,
                "evidence": evidence_words(group.transport.tells, may_resolve),
                "advice": group.advice,
                "likely": LABELS.get(group.advice.likely, ""),
            }
            for group in one.groups
        ],
    }


def _row(row: doubt_desk.Row) -> dict[str, Any]:
    send: Send = row.send
    name = reason_name(send.reason)
    # What a library says of a lost connection is often just that.
    repeats = row.answer.strip().rstrip(".").lower() == name.lower()
    text = "" if repeats else send.answer_text
    return {
        "send": send,
        "reason": name,
        "answer": answer_words(send.answer_stage, send.answer_code, send.answer_enhanced, text),
        "transport": row.transport,
        "harmless": row.harmless,
        "fate": BRIEF_FATES[row.fate],
        "until": row.until,
        "told": row.told,
    }
