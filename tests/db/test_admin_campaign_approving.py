"""Approving a campaign in the admin."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from django.contrib.admin.models import LogEntry
from django.test import Client
from django.utils import timezone

from campaigns import audience, editing, lifecycle
from campaigns.models import Campaign
from sending import build, ledger
from subscribers.models import Account
from tests.factories import (
    CampaignFactory,
    MembershipFactory,
    SegmentFactory,
    SubscriberFactory,
    SuppressionFactory,
)

from . import campaign_pages
from .campaign_pages import Status, client_with, said, status_of, url

pytestmark = pytest.mark.django_db

campaign = campaign_pages.campaign
boss = campaign_pages.boss


def approval_of(client: Client, campaign: Campaign, **changes: Any) -> dict[str, Any]:
    """What a browser would post from the approve page as it is now."""
    form = client.get(url("approve", campaign.pk)).context["form"]
    given = {name: form[name].value() for name in form.fields}
    return {k: "" if v is None else v for k, v in {**given, **changes}.items()}


def test_the_approve_page_shows_who_what_and_when(boss: Client, campaign: Campaign) -> None:
    segment = campaign.segments.get()
    excluded = SegmentFactory.create(account=campaign.account)
    campaign.exclude_segments.add(excluded)
    account = campaign.account
    SubscriberFactory.create(account=account, segments=[segment, excluded])
    SubscriberFactory.create(account=account, segments=[segment], pending=True)
    left = SubscriberFactory.create(account=account)
    MembershipFactory.create(segment=segment, subscriber=left, left=True)
    for where, expired in ((account, False), (None, False), (account, True)):
        person = SubscriberFactory.create(account=account, segments=[segment])
        SuppressionFactory.create(
            account=where,
            email=person.email,
            expires=timezone.now() - timedelta(days=1) if expired else None,
        )
    page = boss.get(url("approve", campaign.pk))
    text = " ".join(page.content.decode().split())
    people = page.context["people"]
    assert (people.addressed, people.suppressed, people.paused) == (4, 2, 0)
    assert f"{segment.name} (brings 5)" in text
    assert f"{excluded.name} (takes 1 away)" in text
    assert "<strong>2</strong> people get it" in text
    assert "Spring, Ann" in text
    assert "Hello Ann," in text
    assert account.from_email in text
    assert "Europe/Paris" in text
    assert not LogEntry.objects.exists()
    assert status_of(campaign) == Status.DRAFT


def test_the_count_before_is_the_audience_after(boss: Client, campaign: Campaign) -> None:
    SubscriberFactory.create_batch(
        3, account=campaign.account, segments=list(campaign.segments.all())
    )
    person = SubscriberFactory.create(account=campaign.account, segments=campaign.segments.all())
    SuppressionFactory.create(account=campaign.account, email=person.email)
    counted = audience.count(campaign)
    lifecycle.approve(campaign, by=None)
    assert lifecycle.due(campaign)
    build.build(campaign.pk, size=100)
    found = ledger.counts(campaign)
    assert (found["audience"], found["suppressed"]) == (counted.addressed, counted.suppressed)


def test_nobody_is_counted_where_nobody_is_addressed() -> None:
    assert audience.count(CampaignFactory.create(segments=[])) == audience.Audience(0, 0)


def test_approving_at_once(boss: Client, campaign: Campaign) -> None:
    answer = boss.post(url("approve", campaign.pk), approval_of(boss, campaign))
    assert answer.headers["Location"] == url("change", campaign.pk)
    campaign.refresh_from_db()
    assert campaign.status == Status.APPROVED
    assert campaign.scheduled_for is not None
    assert campaign.scheduled_for <= timezone.now()
    entry = LogEntry.objects.get()
    assert (entry.object_id, entry.change_message) == (str(campaign.pk), "Approved.")


def test_approving_for_a_time_in_the_accounts_zone(boss: Client, campaign: Campaign) -> None:
    form = approval_of(boss, campaign, start="at", scheduled_for="2999-07-01T10:00")
    boss.post(url("approve", campaign.pk), form)
    campaign.refresh_from_db()
    assert campaign.scheduled_for == datetime(2999, 7, 1, 10, tzinfo=ZoneInfo("Europe/Paris"))


def test_at_once_means_now_although_another_time_was_planned(
    boss: Client, campaign: Campaign
) -> None:
    Campaign.objects.filter(pk=campaign.pk).update(scheduled_for=timezone.now() + timedelta(days=9))
    assert approval_of(boss, campaign)["start"] == "at"
    boss.post(url("approve", campaign.pk), approval_of(boss, campaign, start="now"))
    campaign.refresh_from_db()
    assert campaign.scheduled_for is not None
    assert campaign.scheduled_for <= timezone.now()


@pytest.mark.parametrize(
    "changes",
    [
        {"start": "at", "scheduled_for": ""},
        {"start": "at", "scheduled_for": "2001-01-01T00:00"},
        {"start": "at", "scheduled_for": "soon"},
        {"start": "never"},
        {"seen_version": ""},
        {"seen_digest": ""},
    ],
)
def test_a_wrong_moment_is_an_error_of_the_page(
    boss: Client, campaign: Campaign, changes: dict[str, str]
) -> None:
    answer = boss.post(url("approve", campaign.pk), approval_of(boss, campaign, **changes))
    assert answer.status_code == 200
    assert status_of(campaign) == Status.DRAFT


def test_approving_twice_approves_once(boss: Client, campaign: Campaign) -> None:
    form = approval_of(boss, campaign)
    boss.post(url("approve", campaign.pk), form)
    answer = boss.post(url("approve", campaign.pk), form)
    assert answer.status_code == 302
    assert "the campaign is approved" in said(answer)
    assert campaign.approvals.count() == 1
    assert LogEntry.objects.count() == 1


def test_a_page_that_was_edited_since_is_refused(boss: Client, campaign: Campaign) -> None:
    form = approval_of(boss, campaign)
    editing.edit(campaign, version=campaign.version, values={"subject": "Other"})
    answer = boss.post(url("approve", campaign.pk), form)
    assert "edited meanwhile" in said(answer)
    assert status_of(campaign) == Status.DRAFT
    assert not LogEntry.objects.exists()


def test_a_sender_that_was_changed_since_is_refused_too(boss: Client, campaign: Campaign) -> None:
    form = approval_of(boss, campaign)
    Account.objects.filter(pk=campaign.account_id).update(from_email="other@example.org")
    assert "edited meanwhile" in said(boss.post(url("approve", campaign.pk), form))
    assert status_of(campaign) == Status.DRAFT


def test_a_refused_approval_says_why(campaign: Campaign) -> None:
    Account.objects.filter(pk=campaign.account_id).update(second_approver=True)
    client = client_with(campaign.account, "view_campaign", "approve_campaign")
    answer = client.post(url("approve", campaign.pk), approval_of(client, campaign))
    assert "second person" in said(answer)
    assert status_of(campaign) == Status.DRAFT


def test_content_that_does_not_compile_can_not_be_approved(
    boss: Client, campaign: Campaign
) -> None:
    form = approval_of(boss, campaign)
    Campaign.objects.filter(pk=campaign.pk).update(body="{% include 'x' %}")
    page = boss.get(url("approve", campaign.pk)).content.decode()
    assert "body, line 1" in page
    assert 'value="Approve"' not in page
    assert boss.post(url("approve", campaign.pk), form).status_code == 302
    assert status_of(campaign) == Status.DRAFT
