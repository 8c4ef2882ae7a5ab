"""The doubt desk as tests ask for it: rows in doubt, its URLs, a form sent as by a browser."""

from __future__ import annotations

from typing import Any

from django.contrib.messages import get_messages
from django.test import Client
from django.urls import reverse

from campaigns.models import Campaign
from sending.models import Send
from tests.factories import CampaignFactory, SendFactory

DESK = reverse("admin:sendonce_sending_send_doubt_desk")


def of(campaign: Campaign, **more: str) -> str:
    query = "&".join(f"{name}={value}" for name, value in more.items())
    return f"{DESK}?campaign={campaign.pk}" + (f"&{query}" if query else "")


def doubtful(number: int, campaign: Campaign | None = None, **fields: Any) -> list[Send]:
    campaign = campaign or CampaignFactory.create(sent=True)
    fields.setdefault("reason", "connection_lost")
    return [SendFactory.create(campaign=campaign, in_doubt=True, **fields) for _ in range(number)]


def post(client: Client, where: str, **data: Any) -> Any:
    return client.post(where, {"decision": "send_again", "which": "ticked", **data})


def confirmed(client: Client, where: str, **data: Any) -> Any:
    """Through the page that asks, as a browser does."""
    asked = post(client, where, **data)
    assert asked.status_code == 200, [str(m) for m in get_messages(asked.wsgi_request)]
    return post(client, where, asked=asked.context["asked"], confirmed="yes", **data)


def said(response: Any) -> list[str]:
    return [str(message) for message in get_messages(response.wsgi_request)]
