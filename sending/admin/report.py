"""The report of a campaign: what came of it, by hour as drawings and tables, and as CSV."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.http import HttpRequest, HttpResponse, HttpResponseBase, HttpResponseNotAllowed
from django.template.response import TemplateResponse
from django.urls import path
from django.utils import timezone
from django.utils.text import slugify
from django.views.decorators.csrf import csrf_protect

from campaigns.models import Campaign
from subscribers.audit import record
from subscribers.downloads import csv_download

from ..charts import columns
from ..exporting import hours_csv, sends_csv
from ..reporting import Hour, columns_of, domains, in_shares, report
from ..watching_words import share_words
from .watching import CampaignPages

#: What may be exported, as the form names it.
HOURS, SENDS = "hours", "sends"

#: The two drawings: title, what it shows, and the series from the floor up, with their names.
_SENT = ("Sent", (("sent", "sent"),))
_WENT_WRONG = (
    "Bounced, complained, unsubscribed",
    (("bounced", "bounced"), ("complained", "complaints"), ("unsubscribed", "unsubscribed")),
)


class ReportPages(CampaignPages):
    """``report/<campaign>/`` and its export."""

    report_template = "admin/sendonce_sending/report.html"

    def get_urls(self) -> list[Any]:
        protected = self.admin_site.admin_view
        return [
            path(
                "report/<int:campaign_id>/",
                protected(self.report_view),
                name=self._page_name("report"),
            ),
            path(
                "report/<int:campaign_id>/export/",
                protected(csrf_protect(self.report_export_view)),
                name=self._page_name("report_export"),
            ),
            *super().get_urls(),
        ]

    def has_export_sends_permission(self, request: HttpRequest) -> bool:
        """May take every recipient's address along: as whoever may export subscribers."""
        may_export = request.user.has_perm("sendonce_subscribers.export_subscriber")
        return may_export and self.has_view_permission(request)

    def report_view(self, request: HttpRequest, campaign_id: int) -> HttpResponse:
        if request.method not in ("GET", "HEAD"):
            return HttpResponseNotAllowed(["GET", "HEAD"])
        campaign = self.campaign_or_404(request, campaign_id)
        found = report(campaign)
        shown, width = columns_of(found.hours)
        listed, drawn, every_domain = domains(campaign.pk) if found.sent else ([], 0, 0)
        request.current_app = self.admin_site.name
        answer = TemplateResponse(
            request,
            self.report_template,
            {
                **self.campaign_context(request, campaign),
                "title": "Report",
                "report": found,
                "outcomes": [(one, share_words(one.share)) for one in found.outcomes],
                "told": [(one, share_words(one.share)) for one in found.told],
                "reached": [(one, share_words(one.share)) for one in found.reached],
                "drawings": [
                    drawing(shown, title, series) for title, series in (_SENT, _WENT_WRONG)
                ],
                "by_day": width >= timedelta(days=1),
                "domains": [(one, in_shares(one.number, drawn)) for one in listed],
                "drawn": drawn,
                "domains_more": every_domain - len(listed),
                "export_url": self.url_if_any(self._page_name("report_export"), campaign.pk),
                "may_export_sends": self.has_export_sends_permission(request),
            },
        )
        answer["Cache-Control"] = "no-store"
        return answer

    def report_export_view(self, request: HttpRequest, campaign_id: int) -> HttpResponseBase:
        """A download, as POST: it is recorded who took what."""
        if request.method != "POST":
            return HttpResponseNotAllowed(["POST"])
        campaign = self.campaign_or_404(request, campaign_id)
        what = request.POST.get("what")
        if what not in (HOURS, SENDS) or (
            what == SENDS and not self.has_export_sends_permission(request)
        ):
            raise PermissionDenied
        # Before the first byte leaves: a download that breaks off was one all the same.
        with transaction.atomic():
            record(
                campaign.account,
                f"campaign.export_{what}",
                subject=str(campaign),
                detail={"campaign": campaign.pk},
                request=request,
            )
        return csv_download(*self._report_file(campaign, what))

    def _report_file(self, campaign: Campaign, what: str) -> tuple[Any, str]:
        lines = hours_csv(campaign) if what == HOURS else sends_csv(campaign)
        name = slugify(campaign.name)[:60] or f"campaign-{campaign.pk}"
        return lines, f"{name}-{what}-{timezone.now():%Y-%m-%d}"


def drawing(
    hours: list[Hour], title: str, series: tuple[tuple[str, str], ...]
) -> dict[str, Any] | None:
    """A chart of these hours for the template; None when it would be empty. Pure."""
    kinds = [kind for kind, _ in series]
    rows = [[getattr(hour, kind) for kind in kinds] for hour in hours]
    totals = {kind: sum(row[place] for row in rows) for place, kind in enumerate(kinds)}
    if not any(number > 0 for row in rows for number in row):
        return None
    chart = columns(rows, kinds)
    return {
        "title": title,
        "slug": slugify(title),
        "chart": chart,
        "series": [(kind, name, totals[kind]) for kind, name in series],
        "labels": [(label, hours[label.place].since) for label in chart.labels],
    }
