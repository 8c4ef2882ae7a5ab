"""An approver's whole path: what waits is looked at, refused, approved, withdrawn, approved.

What axe finds in the pages without ``axe`` the tests of these pages say.
"""

from __future__ import annotations

import re
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest
from django.urls import reverse
from django.utils import timezone

from campaigns.models import Approval, Campaign
from subscribers.models import AuditEvent
from subscribers.roles import Role
from tests.factories import CampaignFactory, SegmentFactory, SubscriberFactory

from .role_paths import OpenPage, look, member, neighbours, posted

if TYPE_CHECKING:
    from playwright.sync_api import Page, expect
else:
    expect = pytest.importorskip("playwright.sync_api").expect

pytestmark = pytest.mark.django_db(transaction=True)

BODY = """<html><body>
<p>Dear {{ first_name|default:"friend" }}, <a href="http://www.example.org/plays">the plays</a></p>
<p>{{ account.postal_address }} <a href="{{ unsubscribe_url }}">Leave</a></p>
</body></html>"""
LEADS_NOWHERE = BODY.replace("http://www.example.org/plays", "/plays")


@pytest.fixture
def campaign() -> Campaign:
    """A draft of an editor's with a link that leads nowhere."""
    neighbours()
    segment = SegmentFactory.create(
        name="Readers", account__name="City Theatre", account__timezone="Europe/Berlin"
    )
    SubscriberFactory.create_batch(5, account=segment.account, segments=[segment])
    found: Campaign = CampaignFactory.create(
        account=segment.account,
        segments=[segment],
        name="Spring premiere",
        subject="The season opens",
        body=LEADS_NOWHERE,
        created_by=member(Role.EDITOR, segment.account, "ann"),
    )
    return found


def url(page: str, campaign: Campaign) -> str:
    return reverse(f"admin:sendonce_campaigns_campaign_{page}", args=[campaign.pk])


def status_of(campaign: Campaign) -> str:
    return str(Campaign.objects.values_list("status", flat=True).get(pk=campaign.pk))


def mend(open_page: OpenPage, campaign: Campaign, *, javascript: bool) -> None:
    """The editor follows the error to its field and mends the link."""
    page = open_page(campaign.created_by, javascript=javascript)
    page.goto(url("approve", campaign))
    page.get_by_role("link", name="Edit “body”").first.click()
    expect(page).to_have_url(re.compile(re.escape(url("change", campaign)) + ".*#id_body$"))
    page.get_by_label("Body:", exact=True).fill(BODY)
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.get_by_text("was changed successfully")).to_be_visible()


def to_the_checklist(page: Page) -> None:
    page.goto("/admin/")
    look(page, "approver-front")
    front = page.locator("#content-main")
    front.get_by_role("row", name="Campaigns").get_by_role(
        "link", name="Campaigns", exact=True
    ).click()
    expect(page.locator(".field-counted")).to_have_text("-")  # nobody has counted it
    look(page, "approver-list")
    page.get_by_role("link", name="Spring premiere").click()
    expect(page.get_by_role("button", name="Save")).to_have_count(0)
    look(page, "approver-campaign")
    page.get_by_role("link", name="Approve…").click()


@pytest.mark.parametrize("javascript", [True, False], ids=["script", "no-script"])
def test_from_what_waits_to_what_is_approved(
    open_page: OpenPage, campaign: Campaign, javascript: bool
) -> None:
    approver = member(Role.APPROVER, campaign.account)
    page = open_page(approver, javascript=javascript)
    to_the_checklist(page)
    expect(page.get_by_role("heading", name="To mend before it can be approved")).to_be_visible()
    expect(page.get_by_role("button", name="Approve", exact=True)).to_have_count(0)
    look(page, "approver-blocked")

    mend(open_page, campaign, javascript=javascript)
    page.reload()
    page.get_by_role("radio", name="At this time").check()
    page.get_by_label("Time", exact=True).fill("2999-07-01T00:30")
    page.get_by_role("button", name="Check this time").click()
    shown = page.locator("#approve-timing")
    expect(shown).to_contain_text("1 July 2999, 00:30 CEST (30 June 2999, 22:30 UTC)")
    page.get_by_role("button", name="Approve", exact=True).click()
    expect(page.get_by_role("alert")).to_contain_text("Not approved yet: there are warnings.")
    for width in ("desktop", "phone"):
        frame = page.frame_locator(f"iframe[title='The message at {width} width']")
        expect(frame.get_by_text("the plays")).to_be_visible()
    assert status_of(campaign) == "draft"
    look(page, "approver-warnings", axe=javascript)
    page.get_by_label("I have seen the warnings").check()
    page.get_by_role("button", name="Approve", exact=True).click()
    expect(page.get_by_text("Spring premiere: approved. It starts at 1 July 2999")).to_be_visible()
    expect(page.get_by_role("heading", name="Approved, starts 1 July 2999, 00:30")).to_be_visible()
    look(page, "approver-approved")
    page.goto("/admin/")
    scheduled = page.get_by_role("region", name="Scheduled")
    expect(scheduled.get_by_role("link", name="Spring premiere")).to_be_visible()
    expect(scheduled).to_contain_text("1 Jul 2999, 00:30 CEST")
    look(page, "approver-front-scheduled")

    scheduled.get_by_role("link", name="Spring premiere").click()
    page.get_by_role("button", name="Withdraw approval").click()
    expect(page.get_by_text("Spring premiere: approval withdrawn.")).to_be_visible()
    assert status_of(campaign) == "draft"
    look(page, "approver-withdrawn")

    page.get_by_role("link", name="Approve…").click()
    page.get_by_role("radio", name="At once").check()
    page.get_by_label("I have seen the warnings").check()
    page.get_by_role("button", name="Approve", exact=True).click()
    expect(page.get_by_text("Spring premiere: approved. It starts as soon as")).to_be_visible()
    assert status_of(campaign) == "approved"
    assert Campaign.objects.get(pk=campaign.pk).approved_by == approver
    assert Approval.objects.filter(campaign=campaign, voided_at=None).count() == 1
    verbs = AuditEvent.objects.filter(account=campaign.account, by=approver).order_by("pk")
    told = list(verbs.values_list("verb", flat=True))
    assert told == ["campaign.approve", "campaign.withdraw", "campaign.approve"]
    page.goto("/admin/")
    expect(page.get_by_text("No sender is alive")).to_be_visible()
    # What is an operator's, or an editor's, is not theirs.
    for verb in ("cancel", "pause", "copy"):
        assert posted(page, url(verb, campaign)) == 403, verb


@pytest.mark.parametrize("javascript", [True, False], ids=["script", "no-script"])
def test_a_second_person_is_asked_for_before_any_click(
    open_page: OpenPage, campaign: Campaign, javascript: bool
) -> None:
    author, account = campaign.created_by, campaign.account
    assert author is not None
    account.second_approver = True
    account.save()
    Campaign.objects.filter(pk=campaign.pk).update(
        body=BODY, scheduled_for=timezone.now() + timedelta(days=3)
    )
    member_of_both = member(Role.APPROVER, account, "both")
    author.groups.add(*member_of_both.groups.all())
    page = open_page(author, javascript=javascript)
    page.goto("/admin/")
    expect(page.get_by_text("waits for a second person")).to_have_count(0)
    page.goto(url("change", campaign))
    told = page.locator(".sendonce-campaign .sendonce-note-warning")
    expect(told).to_contain_text("second person")
    look(page, "second-own")
    page.goto(url("approve", campaign))
    expect(page.get_by_role("button", name="Approve", exact=True)).to_have_count(0)
    expect(page.get_by_role("region", name="Approve")).to_contain_text("second person")
    look(page, "second-approve", axe=javascript)
    assert posted(page, url("approve", campaign), start="now") == 200
    assert status_of(campaign) == "draft"

    page = open_page(member_of_both, javascript=javascript)
    page.goto("/admin/")
    look(page, "second-front")
    page.get_by_role("link", name="Spring premiere waits for a second person").click()
    page.get_by_role("link", name="Approve…").click()
    expect(page.get_by_text("ann made it; you may approve it.")).to_be_visible()
    page.get_by_label("I have seen the warnings").check()
    page.get_by_role("button", name="Approve", exact=True).click()
    expect(page.get_by_text("Spring premiere: approved.")).to_be_visible()
