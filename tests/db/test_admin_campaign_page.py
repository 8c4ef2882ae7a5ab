"""What the page of a campaign tells in the admin."""

from __future__ import annotations

import html
import re
from datetime import UTC, datetime

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone

from campaigns import hooks, lifecycle
from campaigns.admin.panel import SHOWN_APPROVALS
from campaigns.models import Approval, Campaign
from subscribers.models import Account
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
    assert "A sender starts it as soon as one runs" in page


def test_the_page_of_a_campaign_tells_its_approvals(boss: Client, campaign: Campaign) -> None:
    approver = StaffFactory.create(username="approver")
    lifecycle.approve(campaign, by=approver)
    lifecycle.withdraw(campaign, by=approver, reason="a <typo>")
    lifecycle.approve(campaign, by=StaffFactory.create(username="zoe"))
    page = " ".join(boss.get(url("change", campaign.pk)).content.decode().split())
    assert re.search(r"void since [^<]+: a &lt;typo&gt;</td>", page)
    assert "<td>zoe</td>" in page
    assert "Approved by zoe on" in page
    content = reverse("admin:sendonce_campaigns_content_change", args=[campaign.content_id])
    assert campaign.approved_digest[:8] in page
    assert f'href="{content}"' in page
    first = Approval.objects.earliest("pk")
    Approval.objects.bulk_create(
        Approval(campaign=campaign, by_name="x", at=first.at, digest="x", content=first.content,
                 scheduled_for=first.scheduled_for, voided_at=first.at)
        for _ in range(SHOWN_APPROVALS)
    )  # fmt: skip
    listed = reverse("admin:sendonce_campaigns_approval_changelist")
    every = f"{listed}?campaign__id__exact={campaign.pk}"
    page = boss.get(url("change", campaign.pk)).content.decode()
    assert f'And <a href="{every}">2 older</a>.' in page
    assert boss.get(every).context["cl"].result_count == SHOWN_APPROVALS + 2


def test_the_approval_of_a_canceled_campaign_does_not_stand(
    boss: Client, campaign: Campaign
) -> None:
    listed = reverse("admin:sendonce_campaigns_approval_changelist")
    lifecycle.approve(campaign, by=None)
    for page in (url("change", campaign.pk), listed):
        assert ">stands</td>" in boss.get(page).content.decode()
    lifecycle.cancel(campaign)
    for page in (url("change", campaign.pk), listed):
        text = boss.get(page).content.decode()
        assert ">campaign canceled</td>" in text
        assert ">stands</td>" not in text


def test_who_may_not_edit_reads_its_moments_in_the_account_s_zone(campaign: Campaign) -> None:
    Account.objects.filter(pk=campaign.account_id).update(timezone="Asia/Tokyo")
    moment = datetime(2030, 11, 30, 15, 30, tzinfo=UTC)
    Campaign.objects.filter(pk=campaign.pk).update(scheduled_for=moment, finish_by=None)
    page = client_with(campaign.account, "view_campaign").get(url("change", campaign.pk))
    shown = " ".join(page.content.decode().split())
    assert "1 December 2030, 00:30 JST (30 November 2030, 15:30 UTC)" in shown
    assert "Scheduled for:" in shown
    assert "Finish by:" in shown
    editor = client_with(campaign.account, "view_campaign", "change_campaign")
    fields = editor.get(url("change", campaign.pk)).context["adminform"].form.fields
    for name in ("scheduled_for", "finish_by"):
        help_text = getattr(Campaign._meta.get_field(name), "help_text", "")
        assert help_text in shown
        assert fields[name].help_text == f"Time zone Asia/Tokyo. {help_text}"


def test_the_list_groups_the_digits_of_an_audience(boss: Client) -> None:
    CampaignFactory.create(sending=True, audience=1_234_567)
    assert "1,234,567" in boss.get(url("changelist")).content.decode()


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


@pytest.mark.parametrize("state", ["draft", "approved", "sending", "paused", "sent", "canceled"])
def test_a_viewer_sees_the_state_and_no_button(state: str) -> None:
    campaign = CampaignFactory.create(**({} if state == "draft" else {state: True}))
    page = client_with(campaign.account, "view_campaign").get(url("change", campaign.pk))
    text = page.content.decode()
    assert page.context["headline"].startswith(state.capitalize())
    panel = text[text.index('aria-labelledby="campaign-state"') : text.index("</section>")]
    assert "<form" not in panel
    assert 'class="button' not in panel


def test_the_progress_of_what_is_sent_is_the_first_link(
    boss: Client, campaign: Campaign, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[Campaign, object]] = []

    def links(about: Campaign, request: object) -> list[tuple[str, str]]:
        asked.append((about, request))
        return [("Progress", "/progress/"), ("Report", "/report/")]

    monkeypatch.setattr(hooks, "links", links)
    labels = [label for label, _ in boss.get(url("change", campaign.pk)).context["links"]]
    assert labels == ["Preview", "Send a test", "Progress", "Report"]
    running = CampaignFactory.create(sending=True)
    page = boss.get(url("change", running.pk))
    assert [label for label, _ in page.context["links"]][:2] == ["Progress", "Report"]
    assert '<a href="/progress/">Progress</a>' in page.content.decode()
    assert [about.pk for about, _ in asked] == [campaign.pk, running.pk]


def test_the_cancel_page_says_what_is_kept_and_what_is_not(boss: Client) -> None:
    campaign = CampaignFactory.create(sending=True, audience=4, built_at=timezone.now())
    for trait in ({}, {"retry": True}, {"sent": True}, {"in_doubt": True}):
        SendFactory.create(campaign=campaign, **trait)
    page = " ".join(boss.get(url("cancel", campaign.pk)).content.decode().split())
    assert "<strong>2</strong> recipients who wait for it" in page
    assert "<strong>1</strong> sent" in page
    assert "<strong>1</strong> in doubt, until evidence comes" in page
    assert "not been counted yet" not in page


@pytest.mark.parametrize("state", ["draft", "sent", "canceled"])
def test_what_can_not_be_canceled_is_said_without_a_button(boss: Client, state: str) -> None:
    campaign = CampaignFactory.create(**({} if state == "draft" else {state: True}))
    page = boss.get(url("cancel", campaign.pk)).content.decode()
    assert "Cancel this campaign" not in page
    assert "Back to the campaign" in page


def test_the_cancel_page_asks_one_statement_for_the_counts(boss: Client) -> None:
    def queries(campaign: Campaign) -> int:
        with CaptureQueriesContext(connection) as caught:
            assert boss.get(url("cancel", campaign.pk)).status_code == 200
        return len(caught)

    campaign = CampaignFactory.create(sending=True)
    queries(campaign)
    few = queries(campaign)
    SendFactory.create_batch(30, campaign=campaign)
    assert queries(campaign) == few
