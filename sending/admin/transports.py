"""Transports and brakes on one page: what takes mail, what does not, why, and what to do."""

from __future__ import annotations

from typing import Any

from django.contrib.admin.exceptions import NotRegistered
from django.contrib.admin.utils import quote
from django.db.models import Count, Window
from django.http import HttpRequest, HttpResponse, HttpResponseNotAllowed

from campaigns.models import Campaign
from subscribers.admin_urls import url_if_any
from subscribers.database_clock import database_time
from subscribers.models import Account
from subscribers.scoping import account_ids, visible
from subscribers.timezones import zone_named

from ..alive import served
from ..limits import slow_downs
from ..models import CampaignHealth, RateLimit
from ..status_limits import READ_AT
from ..transport_overview import PauseNote, brakes, transport_states
from ..wording import limit_words, rate_words, refusal_words, share_words
from .pages import OperatingPages

#: Slow-downs that are listed.
SLOWED = 100


class Transports(OperatingPages):
    """For the pauses' admin: ``overview/``."""

    overview_template = "admin/sendonce_sending/transports/overview.html"

    def get_urls(self) -> list[Any]:
        page = self.operating_path("overview/", self.overview_view, "overview")
        return [page, *super().get_urls()]

    def overview_view(self, request: HttpRequest) -> HttpResponse:
        if request.method not in ("GET", "HEAD"):
            return HttpResponseNotAllowed(["GET", "HEAD"])
        self.must_view(request)
        everything, now = account_ids(request) is None, database_time()
        live = served(now)
        states = transport_states(
            visible(Account.objects.all(), request, "pk"),
            self.get_queryset(request),
            visible(Campaign.objects.all(), request, "account_id"),
            now,
            everything=everything,
        )
        context = {
            "everything": everything,
            "served": live,
            "all_served": None in live,
            "transports": [
                {
                    "state": state,
                    "pauses": [(note, self._lift_url(request, note)) for note in state.pauses],
                    "campaigns": [
                        (campaign, self._url_of(request, Campaign, campaign.pk))
                        for campaign in state.campaigns
                    ],
                }
                for state in states
            ],
            "running_url": self._list_url(request, Campaign, "status__exact=sending"),
            **self._slowed(request),
            **self._brakes(request),
        }
        title = "Transports and brakes"
        return self.operating_page(request, self.overview_template, title, context)

    def _lift_url(self, request: HttpRequest, note: PauseNote) -> str:
        """ "" where it is not this user's to lift."""
        if not self.has_delete_permission(request, note.pause):
            return ""
        return self.operating_url("delete", quote(note.pause.pk))

    def _slowed(self, request: HttpRequest) -> dict[str, Any]:
        try:
            page = self.admin_site.get_model_admin(RateLimit)
        except NotRegistered:
            return {}
        if not page.has_view_permission(request):
            return {}
        rows: Any = slow_downs.named(page.get_queryset(request).filter(slow_downs.SLOWED))
        rows = rows.annotate(read_at=READ_AT, every=Window(Count("*")))
        found = list(rows.order_by("slowed_at", "key")[:SLOWED])
        told = [
            {
                "limit": limit,
                "of": limit_words(limit.key, limit.account_name or ""),
                "now": rate_words(limit.rate, hourly=limit.key.startswith("account:")),
                "shut": limit.updated if limit.updated > limit.read_at else None,
                "usual": "no limit"
                if limit.usual is None
                else rate_words(limit.usual, hourly=limit.key.startswith("account:")),
                "url": self._url_of(request, RateLimit, limit.pk, "delete")
                if page.has_delete_permission(request, limit)
                else "",
            }
            for limit in found
        ]
        return {
            "slowed": told,
            "slowed_more": found[0].every - len(found) if found else 0,
            "slowed_url": self._list_url(request, RateLimit, "slowed=yes"),
        }

    def _brakes(self, request: HttpRequest) -> dict[str, Any]:
        if not self._sees(request, CampaignHealth):
            return {}
        every = visible(CampaignHealth.objects.all(), request, "campaign__account_id")
        found, more = brakes(every)
        told = [
            {
                "campaign": brake.campaign,
                "zone": zone_named(brake.campaign.account.timezone),
                "url": self._url_of(request, Campaign, brake.campaign.pk),
                "health": brake.health,
                "counts": [
                    (
                        "Dead addresses",
                        share_words(
                            brake.health.bounced,
                            brake.health.bounce_rate,
                            brake.health.max_bounce_rate,
                        ),
                    ),
                    (
                        "Complaints",
                        share_words(
                            brake.health.complained,
                            brake.health.complaint_rate,
                            brake.health.max_complaint_rate,
                        ),
                    ),
                    (
                        "Refused in a row",
                        refusal_words(
                            brake.health.in_a_row, brake.health.refused, brake.health.max_refusals
                        ),
                    ),
                ],
            }
            for brake in found
        ]
        paused = self._list_url(request, Campaign, "status__exact=paused")
        return {"brakes": told, "brakes_more": more, "brakes_url": paused}

    def _sees(self, request: HttpRequest, model: type[Any]) -> bool:
        label, name = model._meta.app_label, model._meta.model_name
        return any(request.user.has_perm(f"{label}.{act}_{name}") for act in ("view", "change"))

    def _list_url(self, request: HttpRequest, model: type[Any], query: str) -> str:
        """Of the list of all of them; "" where this user or this site does not have it."""
        if not self._sees(request, model):
            return ""
        name = f"{model._meta.app_label}_{model._meta.model_name}_changelist"
        url = url_if_any(self.admin_site.name, name)
        return f"{url}?{query}" if url else ""

    def _url_of(self, request: HttpRequest, model: type[Any], pk: Any, page: str = "change") -> str:
        """Of a row of another page; "" where this user or this site does not have it."""
        if not self._sees(request, model):
            return ""
        name = f"{model._meta.app_label}_{model._meta.model_name}_{page}"
        return url_if_any(self.admin_site.name, name, pk)
