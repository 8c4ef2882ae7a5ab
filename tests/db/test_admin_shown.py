"""Moments and related rows where the admin only shows them."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Permission
from django.test import Client

from campaigns.models import Approval, Campaign, Image
from sending.models import Send
from subscribers.models import AuditEvent, Membership, Subscriber
from tests.db.admin_pages import member_client, url
from tests.factories import (
    ContentFactory,
    ImageFactory,
    MembershipFactory,
    SendFactory,
    StaffFactory,
    SubscriberFactory,
)

pytestmark = pytest.mark.django_db

AT = datetime(2030, 11, 30, 23, 5, tzinfo=UTC)
IN_TOKYO = "1 Dec 2030, 08:05 JST"


@pytest.fixture
def send() -> Any:
    made = SendFactory.create(campaign__account__timezone="Asia/Tokyo", sent=True)
    Send.objects.update(sent_at=AT, handed_at=AT)
    account, campaign = made.account, made.campaign
    Subscriber.objects.update(created=AT, timezone="Europe/Paris")
    MembershipFactory.create(subscriber=made.subscriber, segment__account=account)
    Membership.objects.update(joined_at=AT)
    content = ContentFactory.create(account=account)
    ImageFactory.create(account=account)
    Image.objects.update(created=AT)
    AuditEvent.objects.create(account=account, verb="segment.add", by_name="ann", at=AT)
    AuditEvent.objects.update(at=AT)
    Approval.objects.create(
        campaign=campaign,
        content=content,
        by=StaffFactory.create(username="ann"),
        by_name="ann",
        at=AT,
        scheduled_for=AT,
        digest="0" * 64,
    )
    return made


@pytest.mark.parametrize(
    "model",
    [AuditEvent, Approval, Image, Membership, Send, Subscriber],
    ids=lambda m: m.__name__,
)
def test_moments_are_in_the_zone_of_the_account(
    superuser_client: Client, send: Send, model: type[Any]
) -> None:
    row = model._default_manager.latest("pk")
    for page in (url(model, "changelist"), url(model, "change", row.pk)):
        assert IN_TOKYO in superuser_client.get(page).content.decode()


def test_a_row_of_no_account_tells_utc(superuser_client: Client) -> None:
    AuditEvent.objects.create(verb="segment.add", by_name="ann")
    AuditEvent.objects.update(at=AT)
    page = superuser_client.get(url(AuditEvent, "changelist")).content.decode()
    assert "30 Nov 2030, 23:05 UTC" in page


def test_a_column_of_moments_sorts_still(superuser_client: Client) -> None:
    SubscriberFactory.create()
    columns = superuser_client.get(url(Subscriber, "changelist")).context["cl"].list_display
    assert [c.admin_order_field for c in columns if callable(c)] == ["created"]


@pytest.mark.parametrize("may_see_users", [False, True])
def test_who_may_not_see_users_reads_a_name_without_a_link(send: Send, may_see_users: bool) -> None:
    client, user = member_client(send.account)
    if may_see_users:
        user.user_permissions.add(Permission.objects.get(codename="view_user"))
    approval = Approval.objects.get()
    page = client.get(url(Approval, "change", approval.pk)).content.decode()
    assert (f"/{get_user_model()._meta.model_name}/{approval.by_id}/" in page) is may_see_users
    assert "ann" in page


def test_no_excluded_segment_is_said(superuser_client: Client, send: Send) -> None:
    page = superuser_client.get(url(Campaign, "change", send.campaign_id)).content.decode()
    row = page.partition("field-exclude_segments")[2]
    assert '<div class="readonly">-</div>' in row[:600]


@pytest.mark.parametrize(("status", "is_said"), [("sending", False), ("paused", True)])
def test_the_reason_of_a_pause_is_not_that_of_sending(
    superuser_client: Client, send: Send, status: str, is_said: bool
) -> None:
    Campaign.objects.update(status=status, status_reason="by ann")
    page = superuser_client.get(url(Campaign, "change", send.campaign_id)).content.decode()
    assert ("Reason: by ann." in page) is is_said
