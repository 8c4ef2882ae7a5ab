"""A campaign with a row in each status and something said of it, and its pages' URLs."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.models import Permission
from django.test import Client
from django.urls import reverse

from campaigns.models import Campaign
from sending.models import DeliveryEvent, Send
from subscribers.models import Account
from tests.factories import StaffFactory

from .commands import ONE_OF_EACH, campaign_with


def page_url(page: str, campaign: Campaign) -> str:
    return reverse(f"admin:sendonce_sending_send_{page}", args=[campaign.pk])


def of_each(each: int = 1, **given: Any) -> Campaign:
    """A running campaign with so many rows in every status."""
    return campaign_with(dict.fromkeys(ONE_OF_EACH, each), **given)


def told(campaign: Campaign, kind: str, number: int = 1, **fields: Any) -> list[DeliveryEvent]:
    """So many events of a kind, about one of the campaign's rows."""
    send = Send.objects.filter(campaign=campaign).earliest("pk")
    return DeliveryEvent.objects.bulk_create(
        [
            DeliveryEvent(send=send, account=campaign.account, kind=kind, **fields)
            for _ in range(number)
        ]
    )


def viewer(account: Account | None, *codenames: str) -> Client:
    """A member of the account with these permissions of any app, as ``view_send``."""
    user = StaffFactory.create()
    user.user_permissions.set(Permission.objects.filter(codename__in=codenames))
    if account is not None:
        account.members.add(user)
    client = Client()
    client.force_login(user)
    return client


def shown(client: Client) -> str:
    """The front page, its white space folded."""
    answer = client.get("/admin/")
    assert answer.status_code == 200
    return " ".join(answer.content.decode().split())
