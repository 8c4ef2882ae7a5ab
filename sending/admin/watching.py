"""What the pages about one campaign's sends share: which campaign, which links, which frame."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.contrib.admin.exceptions import NotRegistered
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest

from campaigns.admin.verbs import VerbAdmin, offered
from campaigns.models import Campaign
from subscribers.admin_urls import site_of, url_if_any
from subscribers.scoping import visible
from subscribers.timezones import zone_named

from ..models import Send

#: What a campaign's verbs that make sense on these pages are called.
_VERBS = ("pause", "resume", "cancel")


class CampaignPages(admin.ModelAdmin):
    """For the admin of sends: pages about one campaign."""

    def campaign_or_404(self, request: HttpRequest, campaign_id: int) -> Campaign:
        """One that this request may see. Raises ``PermissionDenied`` without the permission to
        view sends, ``Http404`` for what there is not and for another account's alike."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        every = visible(Campaign.objects.select_related("account"), request, "account_id")
        # What it says is long, and nothing here shows it.
        found: Campaign | None = every.defer("body", "text_body").filter(pk=campaign_id).first()
        if found is None:
            raise Http404(f"There is no campaign {campaign_id}.")
        return found

    def campaign_context(self, request: HttpRequest, campaign: Campaign) -> dict[str, Any]:
        """What the frame of each such page shows."""
        return {
            **self.admin_site.each_context(request),
            "opts": self.opts,
            "campaign": campaign,
            "zone": zone_named(campaign.account.timezone),
            "subtitle": str(campaign),
            "media": self.media,
            "may_resolve": request.user.has_perm(f"{self.opts.app_label}.resolve_doubt"),
            **self.campaign_urls(campaign),
        }

    def campaign_urls(self, campaign: Campaign) -> dict[str, str]:
        """Links to what this site's admin has about a campaign; "" for what it has not."""
        named, pk = self.url_if_any, campaign.pk
        sends = named(f"{self.opts.app_label}_{self.opts.model_name}_changelist")
        desk = named(f"{self.opts.app_label}_{self.opts.model_name}_doubt_desk")
        return {
            "campaign_url": named("sendonce_campaigns_campaign_change", pk),
            "campaigns_url": named("sendonce_campaigns_campaign_changelist"),
            "sends_url": f"{sends}?campaign={pk}" if sends else "",
            "doubt_url": f"{desk}?campaign={pk}" if desk else "",
            "progress_url": named(self._page_name("progress"), pk),
            "report_url": named(self._page_name("report"), pk),
        }

    def _page_name(self, page: str) -> str:
        return f"{self.opts.app_label}_{self.opts.model_name}_{page}"

    def url_if_any(self, name: str, *args: Any) -> str:
        return url_if_any(self.admin_site.name, name, *args)

    def verbs(self, request: HttpRequest, campaign: Campaign) -> list[tuple[Any, str]]:
        """What this user may do to the campaign now, and where: its own admin decides, and asks
        again."""
        try:
            its_admin = self.admin_site.get_model_admin(Campaign)
        except NotRegistered:
            return []
        if not isinstance(its_admin, VerbAdmin):
            return []
        allowed = offered(campaign.status, its_admin.permissions_on(request, campaign))
        named = [
            (verb, self.url_if_any(f"sendonce_campaigns_campaign_{verb.name}", campaign.pk))
            for verb in allowed
            if verb.name in _VERBS
        ]
        return [(verb, url) for verb, url in named if url]


def links(campaign: Campaign, request: HttpRequest) -> list[tuple[str, str]]:
    """The pages of one campaign's sends that this request may open, for ``campaigns.hooks``."""
    if campaign.started_at is None or not request.user.has_perm(
        f"{Send._meta.app_label}.view_{Send._meta.model_name}"
    ):
        return []
    found = []
    for label, page in (("Progress", "progress"), ("Report", "report")):
        name = f"{Send._meta.app_label}_{Send._meta.model_name}_{page}"
        if url := url_if_any(site_of(request), name, campaign.pk):
            found.append((label, url))
    return found
