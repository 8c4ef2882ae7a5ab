"""The pages of the sending that other apps' pages link to, for whoever may open them.

``sending.apps`` fills the hooks of campaigns and subscribers with these.
"""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

from django.http import HttpRequest

from campaigns.models import Campaign
from subscribers.admin_urls import site_of, url_if_any
from subscribers.models import Subscriber

from ..doubt_desk import number_in_doubt
from ..models import Send


def _url(request: HttpRequest, name: str, *args: Any) -> str:
    """Within the admin site that the request is of; "" where that has no such page."""
    return url_if_any(site_of(request), f"{Send._meta.app_label}_{name}", *args)


def _may(request: HttpRequest, *permissions: str) -> bool:
    return request.user.has_perms(permissions)


def _sees_sends(request: HttpRequest) -> bool:
    label = Send._meta.app_label
    return _may(request, f"{label}.view_send") or _may(request, f"{label}.change_send")


def doubt_link(campaign: Campaign, request: HttpRequest) -> list[tuple[str, str]]:
    """To the doubt desk, where the campaign has rows in doubt."""
    if campaign.started_at is None or not _sees_sends(request):
        return []
    number = number_in_doubt(campaign.pk)
    url = _url(request, "send_doubt_desk")
    if not number or not url:
        return []
    return [(f"Doubt desk ({number})", f"{url}?{urlencode({'campaign': campaign.pk})}")]


def person_links(subscriber: Subscriber, request: HttpRequest) -> list[tuple[str, str]]:
    """To the story of a person."""
    url = _url(request, "send_story")
    label = Subscriber._meta.app_label
    if not url or not _sees_sends(request) or not _may(request, f"{label}.view_subscriber"):
        return []
    query = urlencode({"q": subscriber.email, "account": subscriber.account_id})
    return [("What was sent to them", f"{url}?{query}")]
