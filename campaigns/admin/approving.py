"""The page that shows what approving will do, and asks for it."""

from __future__ import annotations

from typing import Any
from zoneinfo import ZoneInfo

from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import path
from django.utils import timezone

from .. import audience, lifecycle
from ..content import ContentError, compile_content
from ..digest import digest
from ..errors import Conflict
from ..models import Campaign
from ..rendering import Rendered, RenderError, build_context, render
from .approve_form import ApproveForm
from .verbs import APPROVE, VerbAdmin

Status = Campaign.Status


class ApprovePages(VerbAdmin):
    approve_template = "admin/sendonce_campaigns/campaign/approve.html"

    def get_urls(self) -> list[Any]:
        view = self._protected(self.approve_view)
        return [
            path("<path:object_id>/approve/", view, name=self._url_name(APPROVE)),
            *super().get_urls(),
        ]

    def approve_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        campaign = self._found(request, object_id, APPROVE)
        if not isinstance(campaign, Campaign):
            return campaign
        if request.method != "POST":
            return self._approve_page(request, campaign, self._approve_form(campaign))
        form = ApproveForm(request.POST, account=campaign.account)
        if not form.is_valid():
            return self._approve_page(request, campaign, form)

        def act() -> None:
            # The version alone would not see that the account or its sender was changed.
            seen = form.cleaned_data["seen_digest"]
            if campaign.status == Status.DRAFT and seen != digest(campaign):
                raise Conflict("approve")
            campaign.version = form.cleaned_data["seen_version"]
            when = form.moment()
            if when is None and campaign.scheduled_for is not None:
                when = timezone.now()
            lifecycle.approve(campaign, by=request.user, scheduled_for=when)

        if self._decide(request, campaign, APPROVE, act):
            return self._to_change_page(campaign)
        return HttpResponseRedirect(self._url(APPROVE, campaign))

    def _approve_form(self, campaign: Campaign) -> ApproveForm:
        planned = campaign.scheduled_for
        ahead = planned is not None and planned > timezone.now()
        return ApproveForm(
            account=campaign.account,
            initial={
                "seen_version": campaign.version,
                "seen_digest": digest(campaign),
                "start": ApproveForm.AT if ahead else ApproveForm.NOW,
                "scheduled_for": planned if ahead else None,
            },
        )

    def _approve_page(
        self, request: HttpRequest, campaign: Campaign, form: ApproveForm
    ) -> TemplateResponse:
        people = audience.count(campaign)
        sample = audience.addressed(campaign).order_by("pk").first()
        context: dict[str, Any] = {
            "form": form,
            "people": people,
            "sample": sample,
            "is_draft": campaign.status == Status.DRAFT,
            "zone": ZoneInfo(campaign.account.timezone),
        }
        try:
            compiled = compile_content(campaign)
            context["compiled"] = compiled
            context["preview"] = _preview(compiled, sample)
        except (ContentError, RenderError) as error:
            context["problem"] = str(error)
        return self._page(request, campaign, self.approve_template, "Approve campaign", context)


def _preview(compiled: Any, sample: Any) -> Rendered:
    """The message as the first of the audience would get it; without one, as an empty person."""
    return render(
        compiled,
        build_context(
            email=sample.email if sample else "person@example.org",
            attributes=sample.attributes if sample else {},
            account_fields=compiled.account_fields,
            unsubscribe_url="(each person's own link)",
            preferences_url="(each person's own link)",
            web_url="(each person's own link)",
        ),
    )
