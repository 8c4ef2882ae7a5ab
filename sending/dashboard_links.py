"""Where the front page's panel leads, for who asks."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest

from campaigns.models import Campaign
from subscribers.admin_urls import site_of, url_if_any
from subscribers.scoping import account_ids

from .models import TransportPause
from .pauses import risks_others

CAMPAIGN = "sendonce_campaigns"
SENDING = "sendonce_sending"
SUBSCRIBERS = "sendonce_subscribers"


class Links:
    """Addresses within the admin site that the request is of; "" where it has no such page."""

    def __init__(self, request: HttpRequest) -> None:
        self.request = request
        self.site = site_of(request)

    def to(self, name: str, *args: Any, query: str = "") -> str:
        url = url_if_any(self.site, name, *args)
        return f"{url}?{query}" if url and query else url

    def allowed(self, permission: str, name: str, *args: Any) -> str:
        return self.to(name, *args) if self.request.user.has_perm(permission) else ""

    def campaign(self, campaign: Campaign) -> str:
        return self.to(f"{CAMPAIGN}_campaign_change", campaign.pk)

    def progress(self, campaign: Campaign) -> str:
        page = "report" if campaign.status == Campaign.Status.SENT else "progress"
        there = self.allowed(f"{SENDING}.view_send", f"{SENDING}_send_{page}", campaign.pk)
        return there or self.campaign(campaign)

    def campaigns(self, status: str) -> str:
        return self.to(f"{CAMPAIGN}_campaign_changelist", query=f"status__exact={status}")

    def pages(self) -> list[tuple[str, str]]:
        """What operating takes, of what this user may see."""
        found = (
            ("Doubt desk", self.allowed(f"{SENDING}.view_send", f"{SENDING}_send_doubt_desk")),
            ("One person's story", self._stories()),
            (
                "Transports and brakes",
                self.allowed(
                    f"{SENDING}.view_transportpause", f"{SENDING}_transportpause_overview"
                ),
            ),
            ("Senders", self.allowed(f"{SENDING}.view_worker", f"{SENDING}_worker_changelist")),
        )
        return [(label, url) for label, url in found if url]

    def _stories(self) -> str:
        sees_people = self.request.user.has_perm(f"{SUBSCRIBERS}.view_subscriber")
        return self.allowed(f"{SENDING}.view_send", f"{SENDING}_send_story") if sees_people else ""

    def pauses(self) -> str:
        """The overview, which tells what waits for each and what can be done."""
        return self.to(f"{SENDING}_transportpause_overview")

    def pause(self, pause: TransportPause) -> str:
        return self.pauses() or self.to(f"{SENDING}_transportpause_change", pause.pk)

    def may_try(self, pause: TransportPause) -> bool:
        """As the pause's own page has it."""
        may = self.request.user.has_perm(f"{SENDING}.delete_transportpause")
        risky = risks_others(pause.account_id, pause.stage)
        return may and (not risky or account_ids(self.request) is None)

    def doubt(self, campaign_id: int | None) -> str:
        desk = f"campaign={campaign_id}" if campaign_id else ""
        listed = f"status__exact=in_doubt{'&' if desk else ''}{desk}"
        return self.to(f"{SENDING}_send_doubt_desk", query=desk) or self.to(
            f"{SENDING}_send_changelist", query=listed
        )
