"""What the page of a campaign tells in the admin."""

from __future__ import annotations

import html
import re

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from campaigns import lifecycle
from campaigns.models import Campaign
from tests.factories import CampaignFactory, SegmentFactory, SendFactory, StaffFactory

from . import campaign_pages
from .campaign_pages import client_with, url

pytestmark = pytest.mark.django_db

campaign = campaign_pages.campaign
boss = campaign_pages.boss


def test_the_page_of_a_campaign_shows_its_ledger(boss: Client) -> None:
    campaign = CampaignFactory.create(sending=True, audience=3)
    SendFactory.create(campaign=campaign)
    SendFactory.create(campaign=campaign, sent=True)
    page = " ".join(boss.get(url("change", campaign.pk)).content.decode().split())
    assert "<dt>in doubt</dt><dd>0</dd>" in page
    assert "does not add up: 2 rows for 3 recipients" in page
    SendFactory.create(campaign=campaign, in_doubt=True)
    page = " ".join(boss.get(url("change", campaign.pk)).content.decode().split())
    assert "Every recipient is accounted for: 3 of 3" in page
    (link,) = re.findall(r'<dt>in doubt</dt><dd><a href="([^"]+)"[^>]*>1</a></dd>', page)
    listed = boss.get(html.unescape(link)).context["cl"].queryset
    assert [(s.campaign_id, s.status) for s in listed] == [(campaign.pk, "in_doubt")]


def test_the_counts_are_links_only_for_those_who_may_see_the_sends() -> None:
    campaign = CampaignFactory.create(sending=True, audience=1)
    SendFactory.create(campaign=campaign)
    client = client_with(campaign.account, "view_campaign")
    assert "<dt>queued</dt><dd>1</dd>" in client.get(url("change", campaign.pk)).content.decode()


def test_an_approved_campaign_does_not_claim_to_start_by_itself(boss: Client) -> None:
    campaign = CampaignFactory.create(approved=True)
    page = boss.get(url("change", campaign.pk)).content.decode()
    assert "A sender starts it when its time has come" in page


def test_the_page_of_a_campaign_tells_its_approvals(boss: Client, campaign: Campaign) -> None:
    approver = StaffFactory.create(username="approver")
    lifecycle.approve(campaign, by=approver)
    lifecycle.withdraw(campaign, by=approver, reason="a <typo>")
    page = boss.get(url("change", campaign.pk)).content.decode()
    assert "void: a &lt;typo&gt;" in page


def test_the_page_of_a_campaign_makes_no_query_per_segment_or_approval(
    boss: Client, campaign: Campaign
) -> None:
    def queries() -> int:
        with CaptureQueriesContext(connection) as caught:
            assert boss.get(url("change", campaign.pk)).status_code == 200
        return len(caught)

    lifecycle.approve(campaign, by=None)
    lifecycle.withdraw(campaign)
    queries()
    few = queries()
    for segment in SegmentFactory.create_batch(5, account=campaign.account):
        campaign.segments.add(segment)
        lifecycle.approve(campaign, by=None)
        lifecycle.withdraw(campaign)
    assert queries() == few
