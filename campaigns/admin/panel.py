"""What stands above a campaign's form: its state, what happens next, what can be done."""

from __future__ import annotations

from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

from django.http import HttpRequest
from django.utils import timezone
from django.utils.text import capfirst

from subscribers.timezones import zone_named

from .. import hooks, lifecycle
from ..models import Campaign
from .moments import both
from .verb_words import happens_next, is_waiting
from .verbs import APPROVE, VerbAdmin, offered

Status = Campaign.Status

WHAT_HAPPENS_NEXT = {
    Status.DRAFT: "Nothing is sent before somebody approves it.",
    Status.APPROVED: "A sender starts it when its time has come.",
    Status.SENDING: "It is being sent and can't be edited any more.",
    Status.PAUSED: "Nothing is handed over until it is resumed.",
    Status.SENT: "Nothing of it is open any more.",
    Status.CANCELED: "What was not sent is not sent.",
}

#: Approvals that the page lists; a campaign has few.
SHOWN_APPROVALS = 20


def headline(campaign: Campaign, zone: ZoneInfo, waits: str = "") -> str:
    """Its state in words, with the moment that says most; ``waits``: see ``hooks.waits``. Pure."""
    word = capfirst(Status(campaign.status).label)
    if is_waiting(campaign.status, waits):
        word += " (waits)"
    told: dict[str, tuple[str, datetime | None]] = {
        Status.APPROVED: ("starts", campaign.scheduled_for),
        Status.SENDING: ("since", campaign.started_at),
        Status.PAUSED: ("started", campaign.started_at),
        Status.SENT: ("finished", campaign.finished_at),
    }
    how, moment = told.get(Status(campaign.status), ("", None))
    if moment is None:
        return word
    if campaign.status == Status.APPROVED and moment <= timezone.now():
        how = "due since"
    return f"{word}, {how} {both(moment, zone)}"


class CampaignPanel(VerbAdmin):
    """The panel's context, for ``CampaignAdmin``."""

    def panel(self, request: HttpRequest, campaign: Campaign) -> dict[str, Any]:
        """``campaign`` must be as the database has it, with its account."""
        permissions = self.permissions_on(request, campaign)
        zone = zone_named(campaign.account.timezone)
        verbs = offered(campaign.status, permissions)
        may_edit = self.has_change_permission(request, campaign)
        draft = campaign.status == Status.DRAFT
        waits = hooks.waits(campaign.pk)
        counts = dict(hooks.counts(campaign.pk)) if campaign.started_at else {}
        return {
            "campaign": campaign,
            "zone": zone,
            "headline": headline(campaign, zone, waits),
            "next": happens_next(
                WHAT_HAPPENS_NEXT, campaign.status, waits=waits, in_doubt=counts.get("in_doubt", 0)
            ),
            "second_person": lifecycle.second_person(campaign, request.user)
            if draft and "approve" in permissions
            else "",
            "edit_voids": may_edit and campaign.status == Status.APPROVED,
            "verbs": [(verb, self._url(verb, campaign)) for verb in verbs],
            "checks_url": self._url(APPROVE, campaign)
            if draft and may_edit and APPROVE not in verbs
            else "",
            "links": self.panel_links(request, campaign),
            "approvals": self._approvals(request, campaign),
            "older_approvals": max(0, campaign.approvals.count() - SHOWN_APPROVALS),
            "approvals_url": self._approvals_url(request, campaign),
            "ledger": self._ledger(request, campaign, counts),
            "brakes": hooks.brakes(campaign.pk) if campaign.started_at else [],
            "waits": waits,
        }

    def panel_links(self, request: HttpRequest, campaign: Campaign) -> list[tuple[str, str]]:
        """(label, URL) of the pages about the campaign: once it is sent, those of the sending
        come first."""
        own = [("Preview", self._named_url("preview", campaign))]
        if self._allows(request, "test", campaign):
            own.append(("Send a test", self._named_url("test", campaign)))
        own = [(label, url) for label, url in own if url]
        told = list(hooks.links(campaign, request))
        return told + own if campaign.started_at else own + told

    def _approvals(self, request: HttpRequest, campaign: Campaign) -> list[tuple[Any, str]]:
        """Each approval with the URL of what was approved, where this user may see that."""
        may = request.user.has_perm(f"{self.opts.app_label}.view_content")
        return [
            (
                approval,
                self._reversed(f"{self.opts.app_label}_content_change", approval.content_id)
                if may
                else "",
            )
            for approval in campaign.approvals.all()[:SHOWN_APPROVALS]
        ]

    def _approvals_url(self, request: HttpRequest, campaign: Campaign) -> str:
        """The list of the campaign's approvals, "" where this user, or this site, has none."""
        if not request.user.has_perm(f"{self.opts.app_label}.view_approval"):
            return ""
        listed = self._reversed(f"{self.opts.app_label}_approval_changelist")
        return f"{listed}?campaign__id__exact={campaign.pk}" if listed else ""

    def _ledger(
        self, request: HttpRequest, campaign: Campaign, counts: dict[str, int]
    ) -> dict[str, Any] | None:
        """The ledger's counts for the page, ``None`` before there is anything to count."""
        if not counts:
            return None
        counts = dict(counts)
        audience = counts.pop("audience")
        listed = self._sends_url(request)
        return {
            "counts": [
                (
                    name.replace("_", " "),
                    number,
                    f"{listed}?campaign={campaign.pk}&status__exact={name}"
                    if listed and number
                    else "",
                )
                for name, number in counts.items()
            ],
            "audience": audience,
            "rows": sum(counts.values()),
            "difference": audience - sum(counts.values()),
            "built": campaign.built_at is not None,
        }

    def _sends_url(self, request: HttpRequest) -> str:
        """The list of sends, where this site's admin has one and the user may see it."""
        if not request.user.has_perm("sendonce_sending.view_send"):
            return ""
        return self._reversed("sendonce_sending_send_changelist")
