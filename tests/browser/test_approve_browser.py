"""Approving, taking back and canceling, as an approver does it in a browser."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

import pytest
from django.contrib.auth.models import Permission
from django.urls import reverse
from django.utils import timezone

from campaigns import lifecycle
from campaigns.models import Campaign
from subscribers.models import Account
from tests.factories import (
    CampaignFactory,
    SegmentFactory,
    SendFactory,
    StaffFactory,
    SubscriberFactory,
    SuppressionFactory,
)

from .accessibility import flaws
from .conftest import too_narrow

if TYPE_CHECKING:
    from playwright.sync_api import Page, expect
else:
    expect = pytest.importorskip("playwright.sync_api").expect

pytestmark = pytest.mark.django_db(transaction=True)

Status = Campaign.Status


def url(page: str, campaign: Campaign) -> str:
    return reverse(f"admin:sendonce_campaigns_campaign_{page}", args=[campaign.pk])


@pytest.fixture
def campaign() -> Campaign:
    """A draft of Ann's to four people, of whom one is suppressed."""
    segment = SegmentFactory.create(
        name="Readers", account__timezone="Europe/Paris", account__postal_address="1 High Street"
    )
    people = SubscriberFactory.create_batch(4, account=segment.account, segments=[segment])
    SuppressionFactory.create(account=segment.account, email=people[0].email)
    found: Campaign = CampaignFactory.create(
        name="Spring catalogue",
        account=segment.account,
        segments=[segment],
        created_by=StaffFactory.create(username="ann"),
    )
    return found


def approver(account: Account, *more: str) -> Any:
    user = StaffFactory.create()
    names = ("view_campaign", "approve_campaign", "view_subscriber", "view_segment", *more)
    user.user_permissions.set(Permission.objects.filter(codename__in=names))
    account.members.add(user)
    return user


PLAIN_LINK = '<p><a href="http://www.example.org/summer">Summer</a></p>'


def status_of(campaign: Campaign) -> str:
    return str(Campaign.objects.values_list("status", flat=True).get(pk=campaign.pk))


def warned(campaign: Campaign) -> None:
    """A link that is not encrypted: a warning, and no error."""
    body = campaign.body.replace("</body>", f"{PLAIN_LINK}</body>")
    Campaign.objects.filter(pk=campaign.pk).update(body=body)


def test_the_focus_is_seen_in_a_message_and_scrolls_it(
    open_page: Callable[..., Page], campaign: Campaign
) -> None:
    """The page around a frame is told of no focus in it: the frame has to show it."""
    body = campaign.body.replace("</body>", f"{'<p>More.</p>' * 90}</body>")
    Campaign.objects.filter(pk=campaign.pk).update(body=body)
    page = open_page(approver(campaign.account), javascript=False)
    page.goto(url("approve", campaign))
    for width in ("desktop", "phone"):
        frame = page.frame_locator(f"iframe[title='The message at {width} width']")
        mark = frame.get_by_role("region", name="The message")
        expect(mark).to_have_css("outline-style", "none")
        for _ in range(60):
            page.keyboard.press("Tab")
            if mark.evaluate("at => at === document.activeElement && document.hasFocus()"):
                break
        expect(mark).to_have_css("outline", "rgb(32, 80, 103) solid 5px")
        page.keyboard.press("End")
        expect(frame.get_by_text("the spring catalogue is here")).not_to_be_in_viewport()


def test_enter_in_the_time_approves_nothing(
    open_page: Callable[..., Page], campaign: Campaign
) -> None:
    page = open_page(approver(campaign.account))
    page.goto(url("approve", campaign))
    page.get_by_role("radio", name="At once").press("Enter")
    page.wait_for_load_state()
    expect(page.get_by_role("button", name="Approve", exact=True)).to_be_visible()
    assert status_of(campaign) == Status.DRAFT


def test_an_author_is_told_why_not(open_page: Callable[..., Page], campaign: Campaign) -> None:
    Account.objects.filter(pk=campaign.account_id).update(second_approver=True)
    user = approver(campaign.account)
    Campaign.objects.filter(pk=campaign.pk).update(created_by=user)
    page = open_page(user)
    page.goto(url("change", campaign))
    expect(page.get_by_text("whoever made a campaign or edited it last can't")).to_be_visible()
    page.get_by_role("link", name="Approve…").click()
    expect(page.get_by_text("whoever made a campaign or edited it last can't")).to_be_visible()
    expect(page.get_by_role("button", name="Approve", exact=True)).to_have_count(0)


def test_an_editor_is_warned_before_an_edit_takes_the_approval_back(
    open_page: Callable[..., Page], campaign: Campaign
) -> None:
    lifecycle.approve(campaign, by=StaffFactory.create())
    page = open_page(approver(campaign.account, "change_campaign"))
    page.goto(url("change", campaign))
    expect(page.get_by_text("Saving a change takes the approval back.")).to_be_visible()
    page.get_by_label("Name:", exact=True).fill("Renamed")
    page.get_by_role("button", name="Save and continue editing").click()
    expect(page.get_by_text("This edit took the approval back")).to_be_visible()
    expect(page.get_by_text("Saving a change takes the approval back.")).to_have_count(0)
    assert status_of(campaign) == Status.DRAFT


def sending(campaign: Campaign) -> Campaign:
    found: Campaign = CampaignFactory.create(
        account=campaign.account, segments=campaign.segments.all()
    )
    lifecycle.approve(found, by=StaffFactory.create(username="zoe"))
    lifecycle.withdraw(found, by=StaffFactory.create(username="bob"))
    lifecycle.approve(found, by=StaffFactory.create(username="joe"))
    lifecycle.due(found)
    for trait in ("sent", "sent", "in_doubt", "retry"):
        SendFactory.create(campaign=found, **{trait: True})
    return found


def test_the_pages_are_accessible_and_narrow(
    open_page: Callable[..., Page], campaign: Campaign
) -> None:
    running, plain = sending(campaign), campaign
    warned(plain)
    blocked = CampaignFactory.create(
        account=campaign.account,
        segments=campaign.segments.all(),
        body="<p>{% include 'x' %}" + "x" * 200 + "</p>",
        finish_by=timezone.now() + timedelta(hours=1),
        scheduled_for=datetime(2020, 1, 1, tzinfo=ZoneInfo("UTC")),
    )
    approved = lifecycle.approve(
        CampaignFactory.create(account=campaign.account, segments=campaign.segments.all()),
        by=StaffFactory.create(),
    )
    page = open_page(approver(campaign.account, "control_campaign", "view_send", "test_campaign"))
    for name, about, axe in (
        ("approve", plain, True),
        ("approve", blocked, True),
        ("approve", approved, False),
        ("change", plain, False),
        ("change", approved, True),
        ("change", running, True),
        ("cancel", running, True),
        ("cancel", plain, False),
    ):
        page.goto(url(name, about))
        assert too_narrow(page) == [], (name, about)
        if axe:
            assert flaws(page) == [], (name, about)
