"""The admin's pages of a campaign: whose client, which URL, what was said."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.models import Permission
from django.contrib.messages import get_messages
from django.test import Client
from django.urls import reverse

from campaigns.models import Campaign
from subscribers.models import Account
from tests.factories import CampaignFactory, SegmentFactory, StaffFactory, SubscriberFactory

from .conftest import superuser_client

Status = Campaign.Status


def url(page: str, *args: Any) -> str:
    return reverse(f"admin:sendonce_campaigns_campaign_{page}", args=args)


def client_with(account: Account, *codenames: str) -> Client:
    """A member of the account with these permissions on campaigns."""
    user = StaffFactory.create()
    user.user_permissions.set(
        Permission.objects.filter(
            content_type__app_label="sendonce_campaigns", codename__in=codenames
        )
    )
    account.members.add(user)
    client = Client()
    client.force_login(user)
    return client


@pytest.fixture
def campaign() -> Campaign:
    """A draft with one person in its audience."""
    segment = SegmentFactory.create(account__timezone="Europe/Paris")
    SubscriberFactory.create(
        account=segment.account, segments=[segment], attributes={"first_name": "Ann"}
    )
    found: Campaign = CampaignFactory.create(account=segment.account, segments=[segment])
    return found


boss = superuser_client


def approval_of(client: Client, campaign: Campaign, **changes: Any) -> dict[str, Any]:
    """What a browser would post from the approve page as it is now, its warnings ticked."""
    form = client.get(url("approve", campaign.pk)).context["form"]
    given = {name: form[name].value() for name in form.fields}
    given["acknowledged"] = "on"
    return {k: "" if v is None else v for k, v in {**given, **changes}.items()}


def said(answer: Any) -> str:
    return " ".join(str(message) for message in get_messages(answer.wsgi_request))


def status_of(campaign: Campaign) -> str:
    return str(Campaign.objects.values_list("status", flat=True).get(pk=campaign.pk))
