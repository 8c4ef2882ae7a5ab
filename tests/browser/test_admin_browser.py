"""A doubt decided from its story, no page or list too wide; whole paths: ``test_roles_*``."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest
from django.urls import reverse
from django.utils import timezone

from campaigns.models import Approval, Campaign
from sending.models import Send
from subscribers.models import Account, AuditEvent, Membership, Subscriber
from tests.factories import (
    AuditEventFactory,
    CampaignFactory,
    ContentFactory,
    MembershipFactory,
    SegmentFactory,
    SendFactory,
    StaffFactory,
    SubscriberFactory,
)

from .conftest import too_narrow

if TYPE_CHECKING:
    from playwright.sync_api import Page, expect
else:
    expect = pytest.importorskip("playwright.sync_api").expect

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def segment() -> Any:
    return SegmentFactory.create(name="Readers", account__timezone="Europe/Paris")


def test_a_doubt_is_decided_from_its_story(open_page: Callable[..., Page]) -> None:
    send = SendFactory.create(in_doubt=True)
    page = open_page(StaffFactory.create(superuser=True))
    page.goto(reverse("admin:sendonce_sending_send_change", args=[send.pk]))
    page.get_by_role("button", name="Treat as sent…").click()
    expect(page.get_by_text("does not get it")).to_be_visible()
    page.get_by_role("button", name="Treat as sent").click()
    expect(page.get_by_text("Treat as sent: 1 of 1 rows.")).to_be_visible()
    send.refresh_from_db()
    assert send.status == Send.Status.SENT


def test_lists_fit_beside_their_filters(open_page: Callable[..., Page], segment: Any) -> None:
    account, name = segment.account, "margarete.hinterhuber"
    SegmentFactory.create()  # of another account: then there is a filter by account
    Account.objects.update(name="Example Newsletter")
    person = SubscriberFactory.create(account=account, email=f"{name}@mail.example.org")
    now = timezone.now()
    MembershipFactory.create(segment=segment, subscriber=person, left_at=now)
    AuditEventFactory.create(account=account, subject=person.email, by_name=name)
    Approval.objects.create(
        campaign=CampaignFactory.create(account=account, name="Spring newsletter, readers"),
        content=ContentFactory.create(account=account),
        by_name=name,
        at=now,
        scheduled_for=now,
        voided_at=now,
        void_reason=f"edited by {name}",
        digest="0" * 64,
    )
    page = open_page(StaffFactory.create(superuser=True))
    for model in (Approval, AuditEvent, Membership, Subscriber):
        page.goto(reverse(f"admin:{model._meta.app_label}_{model._meta.model_name}_changelist"))
        expect(page.locator("#changelist-filter")).to_be_visible()
        fits = "box => box.scrollWidth <= box.clientWidth"
        assert page.locator("#changelist .results").evaluate(fits), model


def test_no_page_scrolls_sideways(open_page: Callable[..., Page], segment: Any) -> None:
    send = SendFactory.create(
        in_doubt=True,
        answer_text="4.4.2 connection lost " + "x" * 200,
        campaign__account=segment.account,
        campaign__segments=[segment],
    )
    draft = Campaign.objects.create(
        account=segment.account, name="Draft " * 20, subject="s" * 200, body="b"
    )
    page = open_page(StaffFactory.create(superuser=True))
    for name, args in (
        ("sendonce_campaigns_campaign_change", [send.campaign_id]),
        ("sendonce_campaigns_campaign_change", [draft.pk]),
        ("sendonce_campaigns_campaign_approve", [draft.pk]),
        ("sendonce_campaigns_campaign_cancel", [send.campaign_id]),
        ("sendonce_campaigns_campaign_add", []),
        ("sendonce_sending_send_change", [send.pk]),
        ("sendonce_subscribers_subscriber_change", [send.subscriber_id]),
    ):
        page.goto(reverse(f"admin:{name}", args=args))
        assert too_narrow(page) == [], name
