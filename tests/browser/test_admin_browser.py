"""From an empty form to a canceled campaign and a decided doubt, as staff do it in a browser."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest
from django.urls import reverse

from campaigns import lifecycle
from campaigns.models import Campaign
from sending import build
from sending.models import Send
from tests.factories import SegmentFactory, SendFactory, StaffFactory, SubscriberFactory

from .conftest import too_narrow

if TYPE_CHECKING:
    from playwright.sync_api import Page, expect
else:
    expect = pytest.importorskip("playwright.sync_api").expect

pytestmark = pytest.mark.django_db(transaction=True)

Status = Campaign.Status


@pytest.fixture
def segment() -> Any:
    found = SegmentFactory.create(name="Readers", account__timezone="Europe/Paris")
    SegmentFactory.create(account=found.account, name="Staff")
    SubscriberFactory.create_batch(3, account=found.account, segments=[found])
    return found


def status_of(campaign: Campaign) -> str:
    return str(Campaign.objects.values_list("status", flat=True).get(pk=campaign.pk))


@pytest.mark.parametrize("javascript", [True, False], ids=["script", "no-script"])
def test_a_campaign_from_composing_to_the_end(
    open_page: Callable[..., Page], segment: Any, javascript: bool
) -> None:
    page = open_page(StaffFactory.create(superuser=True), javascript=javascript)
    page.goto(reverse("admin:sendonce_campaigns_campaign_add"))
    page.get_by_label("Name:", exact=True).fill("Spring")
    page.get_by_label("Subject:").fill("Hello {{ first_name }}")
    page.get_by_label("Body:", exact=True).fill("<p>{% include 'x' %}</p>")
    page.get_by_label("Readers").first.check()
    page.get_by_role("button", name="Save and continue editing").click()
    expect(page.get_by_text(re.compile("^Line 1, column 4: There is no tag"))).to_be_visible()

    page.get_by_label("Body:", exact=True).fill(
        "<p>Dear {{ first_name }}, spring is here.</p><p>{{ account.postal_address }} "
        '<a href="{{ unsubscribe_url }}">Unsubscribe</a></p>'
    )
    page.get_by_role("button", name="Save and continue editing").click()
    expect(page.get_by_text("was added successfully")).to_be_visible()
    campaign = Campaign.objects.get()

    page.get_by_role("link", name="Approve…").click()
    expect(page.get_by_text("3 people get it")).to_be_visible()
    message = page.frame_locator("iframe[title='The message at phone width']")
    expect(message.get_by_text("spring is here")).to_be_visible()
    page.get_by_label("I have seen the warnings").check()
    page.get_by_role("button", name="Approve", exact=True).click()
    expect(page.get_by_text("Spring: approved.")).to_be_visible()
    assert status_of(campaign) == Status.APPROVED

    campaign.refresh_from_db()
    assert lifecycle.due(campaign)
    build.build(campaign.pk, size=100)
    page.reload()
    page.get_by_role("button", name="Pause").click()
    expect(page.get_by_text("Spring: paused.")).to_be_visible()
    assert status_of(campaign) == Status.PAUSED
    expect(page.get_by_text("Every recipient is accounted for: 3 of 3.")).to_be_visible()
    page.get_by_role("button", name="Resume").click()
    expect(page.get_by_text("Spring: resumed.")).to_be_visible()
    assert status_of(campaign) == Status.SENDING
    page.get_by_role("link", name="Cancel campaign…").click()
    page.get_by_role("button", name="Cancel this campaign").click()
    expect(page.get_by_text("Spring: canceled.")).to_be_visible()
    assert status_of(campaign) == Status.CANCELED
    assert set(campaign.sends.values_list("status", flat=True)) == {Send.Status.CANCELED}


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
