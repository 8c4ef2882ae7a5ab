"""The page that shows what approving will do, and asks for it."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.urls import path
from django.utils.text import capfirst

from subscribers.database_clock import database_time
from subscribers.models import Subscriber
from subscribers.scoping import as_id
from subscribers.timezones import zone_named

from .. import audience, hooks, lifecycle, preflight
from ..errors import CampaignError, NotAgreed, PreflightFailed, WrongState
from ..models import Campaign
from ..preflight import Report
from ..preview_people import EMPTY
from . import approve_page
from .approve_form import ApproveForm, codes
from .moments import both
from .panel import headline
from .verbs import APPROVE, Verb, VerbAdmin

Status = Campaign.Status

#: Looking at the page is for editors too: it is where the checks are.
LOOK = Verb("approve", APPROVE.label, "", "look", APPROVE.states, asks=True)

CHANGED = (
    "Not approved: the campaign was changed since this page was shown, or something that goes out "
    "with it (its layout, its account's sender). This is how it is now; look at it again."
)
INCOMPLETE = "Not approved: this page was not complete. It is now; look at it again."
ERRORS = "Not approved: some things have to be mended first."
MOMENT = "Not approved: choose when it starts."


class ApprovePages(VerbAdmin):
    approve_template = "admin/sendonce_campaigns/campaign/approve.html"

    def get_urls(self) -> list[Any]:
        view = self._protected(self.approve_view)
        return [
            path("<path:object_id>/approve/", view, name=self._url_name(APPROVE)),
            *super().get_urls(),
        ]

    def has_look_permission(self, request: HttpRequest, obj: Campaign | None = None) -> bool:
        """May open the page: whoever may approve, or edit; what it offers is another matter."""
        may_edit = request.user.has_perm(f"{self.opts.app_label}.change_campaign")
        return self._allows(request, "approve", obj) or (
            may_edit and self.has_view_or_change_permission(request, obj)
        )

    def approve_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        # Asking what a time would mean is looking, too.
        decides = request.method == "POST" and "check" not in request.POST
        campaign = self._found(request, object_id, APPROVE if decides else LOOK)
        if not isinstance(campaign, Campaign):
            return campaign
        now = database_time()
        if request.method != "POST":
            return self._approve_page(request, campaign, self._first_form(campaign, now))
        if campaign.status != Status.DRAFT:
            return self._refuse_state(request, campaign)
        form = ApproveForm(request.POST, account=campaign.account, now=now)
        form.is_valid()
        if not decides:
            return self._approve_page(request, campaign, form)
        return self._approve(request, campaign, form, now)

    # --- deciding ----------------------------------------------------------------------------

    def _approve(
        self, request: HttpRequest, campaign: Campaign, form: ApproveForm, now: datetime
    ) -> HttpResponse:
        """Approve what the form says, or show the page again with what was typed."""
        moment = form.moment()
        report = preflight.run(campaign, scheduled_for=moment or now, now=now)
        note = self._hindrance(request, campaign, form, report)
        if note:
            return self._approve_page(request, campaign, form, report=report, note=note)

        def act() -> None:
            lifecycle.approve(
                campaign,
                by=request.user,
                scheduled_for=moment or now,
                seen_digest=form.cleaned_data["seen_digest"],
                objection=form.objection,
            )

        def detail() -> dict[str, Any]:
            return {
                "digest": campaign.approved_digest,
                "starts": campaign.scheduled_for.isoformat() if campaign.scheduled_for else "",
                "people": report.audience.reached if report.audience else 0,
                "warnings": codes(report.warnings),
            }

        error = self._attempt(request, campaign, APPROVE, act, detail=detail)
        if error is not None:
            return self._approval_refused(request, campaign, form, error)
        assert campaign.scheduled_for is not None
        zone = zone_named(campaign.account.timezone)
        at_once = "at once" if hooks.has_sender() else "as soon as a sender runs"
        starts = f"at {both(campaign.scheduled_for, zone)}" if moment else at_once
        self.message_user(request, f"{campaign}: approved. It starts {starts}.", messages.SUCCESS)
        return self._to_change_page(campaign)

    def _hindrance(
        self, request: HttpRequest, campaign: Campaign, form: ApproveForm, report: Report
    ) -> str:
        """Why the page is shown again instead of approving; "": it is not."""
        if form.is_incomplete:
            return INCOMPLETE
        if not form.is_valid():
            return MOMENT
        if not form.saw(campaign):
            return CHANGED
        refusal = lifecycle.second_person(campaign, request.user)
        if refusal:
            return f"Not approved: {refusal}."
        if not report.ok:
            return ERRORS
        return form.objection(report)

    def _approval_refused(
        self, request: HttpRequest, campaign: Campaign, form: ApproveForm, error: CampaignError
    ) -> HttpResponse:
        """What came between the page's own look and the decision behind the gate."""
        found = self.get_object(request, str(campaign.pk))
        if found is None or isinstance(error, WrongState):
            return self._refuse_state(request, found or campaign, error)
        report = error.report if isinstance(error, (PreflightFailed, NotAgreed)) else None
        note = CHANGED if not form.saw(found) else f"Not approved: {error}."
        if report is not None and form.saw(found):
            note = form.objection(report) if isinstance(error, NotAgreed) else ERRORS
        return self._approve_page(request, found, form, report=report, note=note)

    def _refuse_state(
        self, request: HttpRequest, campaign: Campaign, error: CampaignError | None = None
    ) -> HttpResponse:
        """It is no draft (any more): its own page says what it is, with one sentence."""
        refused = error or WrongState(APPROVE.name, campaign.status, APPROVE.states)
        if campaign.status == Status.APPROVED and campaign.approved_by is not None:
            who = campaign.approved_by
            name = "you" if who == request.user else who.get_username()
            said = f"{campaign}: it was approved already, by {name}; nothing was changed."
            self.message_user(request, said, messages.INFO)
        else:
            self._say_refused(request, campaign, APPROVE, refused)
        return self._to_change_page(campaign)

    # --- showing -----------------------------------------------------------------------------

    def _first_form(self, campaign: Campaign, now: datetime) -> ApproveForm:
        start, planned, _ = approve_page.moment_at_first(campaign, now)
        return ApproveForm(
            account=campaign.account, now=now, initial={"start": start, "scheduled_for": planned}
        )

    def _approve_page(
        self,
        request: HttpRequest,
        campaign: Campaign,
        form: ApproveForm,
        *,
        report: Report | None = None,
        note: str = "",
    ) -> TemplateResponse:
        zone = zone_named(campaign.account.timezone)
        now = form.now
        _, planned, has_passed = approve_page.moment_at_first(campaign, now)
        moment = form.moment() if form.is_bound else planned
        if report is None:
            report = preflight.run(campaign, scheduled_for=moment or now, now=now)
        form.show(campaign, report)
        why_not = self._why_not(request, campaign)
        who = self._who(request, campaign, report)
        context: dict[str, Any] = {
            "form": form,
            "note": note,
            "is_draft": campaign.status == Status.DRAFT,
            "headline": headline(campaign, zone),
            "why_not": why_not,
            "can_approve": not why_not and report.ok,
            "is_chosen": not form["scheduled_for"].errors
            and form["start"].value() in (ApproveForm.NOW, ApproveForm.AT),
            "people": report.audience,
            "report": report,
            "missed": both(campaign.scheduled_for, zone)
            if has_passed and campaign.scheduled_for
            else "",
            "has_sender": hooks.has_sender(),
            "timing": approve_page.timing(campaign, report, moment, now),
            **approve_page.checklist(report, self._change_url(request, campaign)),
            **who,
            **self._what(campaign, report, who["person"]),
        }
        title = "Approve campaign" if self._allows(request, "approve", campaign) else "Checks"
        return self._page(request, campaign, self.approve_template, title, context)

    def _why_not(self, request: HttpRequest, campaign: Campaign) -> str:
        """Why this user can't approve it, a sentence; "": they can, if preflight lets them."""
        if campaign.status != Status.DRAFT:
            return "Only a draft can be approved."
        if not self._allows(request, "approve", campaign):
            return "You may look at this page, but not approve: ask somebody who may."
        refusal = lifecycle.second_person(campaign, request.user)
        return f"{capfirst(refusal)}." if refusal else ""

    def _who(self, request: HttpRequest, campaign: Campaign, report: Report) -> dict[str, Any]:
        """A sample, by address for whoever may see people; and the segments' pages."""
        may_see = request.user.has_perm("sendonce_subscribers.view_subscriber")
        may_open = request.user.has_perm("sendonce_subscribers.view_segment")
        people = report.audience
        drawn = approve_page.sample(campaign) if people and people.reached else []

        def shares(of: Any) -> list[tuple[Any, str]]:
            page = "sendonce_subscribers_segment_change"
            return [
                (share, self._reversed(page, share.segment.pk) if may_open else "") for share in of
            ]

        return {
            "may_see_people": may_see,
            "sample": [
                (
                    person.email if may_see else approve_page.masked(person.email),
                    f"?as={person.pk}" if may_see else "",
                )
                for person in drawn
            ],
            "person": self._shown_as(request, campaign, drawn) if may_see else None,
            "included": shares(people.included) if people else [],
            "excluded": shares(people.excluded) if people else [],
        }

    def _shown_as(
        self, request: HttpRequest, campaign: Campaign, drawn: list[Subscriber]
    ) -> Subscriber | None:
        """Whom the message is shown as: the one asked for, if the campaign addresses them; else
        the first of the sample."""
        asked = as_id(request.GET.get("as"))
        found = audience.addressed(campaign).filter(pk=asked).first() if asked else None
        return found or (drawn[0] if drawn else None)

    def _what(
        self, campaign: Campaign, report: Report, person: Subscriber | None
    ) -> dict[str, Any]:
        """The message as ``person`` gets it; the frames ask for it again, each for itself."""
        frame = self._named_url("preview_frame", campaign)
        preview = self._named_url("preview", campaign)
        # Without a person the preview would take the first of the audience, seen or not.
        shown_as = f"?as={person.pk if person else EMPTY}"
        compiled = report.compiled
        return {
            "compiled": compiled,
            "preview": approve_page.preview(compiled, person) if compiled else None,
            "frame": f"{frame}{shown_as}&part=html" if frame and compiled and compiled.html else "",
            "preview_url": f"{preview}{shown_as}" if preview else "",
        }

    def _change_url(self, request: HttpRequest, campaign: Campaign) -> str:
        """Where findings are mended, "" for whoever may not."""
        may = self.has_change_permission(request, campaign)
        return self._named_url("change", campaign) if may else ""
