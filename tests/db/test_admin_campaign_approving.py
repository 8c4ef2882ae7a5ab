"""Approving a campaign in the admin."""

from __future__ import annotations

from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth import get_user_model
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from campaigns import audience, lifecycle
from campaigns.admin import approve_page
from campaigns.models import Campaign
from sending import build, ledger
from subscribers.models import Account, AuditEvent
from tests.factories import (
    CampaignFactory,
    MembershipFactory,
    SegmentFactory,
    StaffFactory,
    SubscriberFactory,
    SuppressionFactory,
    WorkerFactory,
)

from . import campaign_pages
from .campaign_pages import Status, approval_of, client_with, status_of, url

pytestmark = pytest.mark.django_db

campaign = campaign_pages.campaign
boss = campaign_pages.boss


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
    assert f"{segment.name}</a> (brings 5)" in text
    assert f"{excluded.name}</a> (takes 1 away)" in text
    assert f'href="/admin/sendonce_subscribers/segment/{segment.pk}/change/"' in text
    assert "<strong>2</strong> people get it, as of now; 2 more are suppressed and do not." in text
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


def test_without_a_sender_nobody_is_told_that_it_starts_at_once(
    boss: Client, campaign: Campaign
) -> None:
    page, nobody = url("approve", campaign.pk), "No sender is running: nothing leaves before one"
    assert nobody in boss.get(page).content.decode()
    sender = WorkerFactory.create()
    assert nobody not in boss.get(page).content.decode()
    type(sender).objects.update(ended=timezone.now())
    answer = boss.post(page, approval_of(boss, campaign), follow=True)
    assert "approved. It starts as soon as a sender runs." in answer.content.decode()
    assert status_of(campaign) == Status.APPROVED


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


def test_a_sample_names_people_who_get_it(boss: Client, campaign: Campaign) -> None:
    segment = campaign.segments.get()
    barred = SubscriberFactory.create(account=campaign.account, segments=[segment])
    SuppressionFactory.create(account=campaign.account, email=barred.email)
    later = timezone.now() + timedelta(days=9)
    resting = SubscriberFactory.create(
        account=campaign.account, segments=[segment], paused_until=later
    )
    more = SubscriberFactory.create_batch(9, account=campaign.account, segments=[segment])
    page = boss.get(url("approve", campaign.pk))
    named = [email for email, _ in page.context["sample"]]
    assert len(named) == 5
    assert more[0].email in named
    assert not {barred.email, resting.email} & set(named)


def test_the_message_is_shown_as_a_chosen_person_of_the_audience(
    boss: Client, campaign: Campaign
) -> None:
    bea, outsider = (
        SubscriberFactory.create(account=campaign.account, attributes={"first_name": name})
        for name in ("Bea", "Outsider")
    )
    MembershipFactory.create(segment=campaign.segments.get(), subscriber=bea)
    page = boss.get(url("approve", campaign.pk), {"as": bea.pk})
    assert page.context["preview"].subject == "Spring, Bea"
    for asked in (outsider.pk, "x", "9" * 30, ""):
        page = boss.get(url("approve", campaign.pk), {"as": asked})
        assert page.context["preview"].subject == "Spring, Ann"


def test_whoever_may_not_see_people_sees_no_address_and_nobodys_fields(campaign: Campaign) -> None:
    client = client_with(campaign.account, "view_campaign", "approve_campaign")
    person = campaign.segments.get().memberships.get().subscriber
    page = client.get(url("approve", campaign.pk), {"as": person.pk})
    text = page.content.decode()
    assert person.email not in text
    assert approve_page.masked(person.email) in text
    assert page.context["preview"].subject == "Spring, dear reader"
    frame = client.get(page.context["frame"])
    assert "Hello there," in frame.content.decode()
    assert "Ann" not in frame.content.decode()
    assert "/sendonce_subscribers/segment/" not in text


def test_the_page_asks_as_little_for_thirty_segments_as_for_three(
    boss: Client, campaign: Campaign
) -> None:
    def queries() -> int:
        with CaptureQueriesContext(connection) as caught:
            assert boss.get(url("approve", campaign.pk)).status_code == 200
        return len(caught)

    def grow(number: int) -> None:
        for segment in SegmentFactory.create_batch(number, account=campaign.account):
            campaign.segments.add(segment)
            SubscriberFactory.create(account=campaign.account, segments=[segment])

    grow(3)
    queries()
    few = queries()
    grow(27)
    assert queries() == few


def test_showing_what_a_time_means_approves_nothing(boss: Client, campaign: Campaign) -> None:
    form = approval_of(boss, campaign, start="at", scheduled_for="2999-07-01T00:30", check="1")
    answer = boss.post(url("approve", campaign.pk), form)
    text = answer.content.decode()
    assert "1 July 2999, 00:30 CEST (30 June 2999, 22:30 UTC)" in text
    assert 'value="2999-07-01T00:30"' in text
    assert status_of(campaign) == Status.DRAFT
    assert not AuditEvent.objects.exists()


def test_a_planned_moment_that_has_passed_is_said_and_nothing_is_chosen(
    boss: Client, campaign: Campaign
) -> None:
    Campaign.objects.filter(pk=campaign.pk).update(
        scheduled_for=datetime(2020, 1, 2, 9, tzinfo=ZoneInfo("Europe/Paris"))
    )
    page = boss.get(url("approve", campaign.pk)).content.decode()
    assert "2 January 2020, 09:00 CET (08:00 UTC), which has passed" in page
    assert "checked" not in page
    answer = boss.post(url("approve", campaign.pk), approval_of(boss, campaign))
    assert "Choose when it starts." in answer.content.decode()
    assert status_of(campaign) == Status.DRAFT
    boss.post(url("approve", campaign.pk), approval_of(boss, campaign, start="now"))
    assert status_of(campaign) == Status.APPROVED


def test_an_author_is_told_before_and_offered_nothing(campaign: Campaign) -> None:
    Account.objects.filter(pk=campaign.account_id).update(second_approver=True)
    client = client_with(campaign.account, "view_campaign", "approve_campaign")
    author = get_user_model().objects.get(pk=client.session["_auth_user_id"])
    Campaign.objects.filter(pk=campaign.pk).update(created_by=author)
    page = client.get(url("change", campaign.pk)).content.decode()
    assert "whoever made a campaign or edited it last can&#x27;t" in page
    page = client.get(url("approve", campaign.pk)).content.decode()
    assert "whoever made a campaign or edited it last can&#x27;t" in page
    assert 'value="Approve"' not in page
    answer = client.post(url("approve", campaign.pk), approval_of(client, campaign))
    assert "Not approved: this account asks for a second person" in answer.content.decode()
    assert status_of(campaign) == Status.DRAFT


def test_a_second_person_is_told_whose_it_is_and_may(campaign: Campaign) -> None:
    Account.objects.filter(pk=campaign.account_id).update(second_approver=True)
    Campaign.objects.filter(pk=campaign.pk).update(
        created_by=StaffFactory.create(username="author")
    )
    client = client_with(campaign.account, "view_campaign", "approve_campaign")
    page = client.get(url("approve", campaign.pk)).content.decode()
    assert "author made it; you may approve it" in page
    assert 'value="Approve"' in page
    client.post(url("approve", campaign.pk), approval_of(client, campaign))
    assert status_of(campaign) == Status.APPROVED


def test_an_editor_sees_the_checks_and_no_button(campaign: Campaign) -> None:
    client = client_with(campaign.account, "change_campaign", "view_campaign")
    page = client.get(url("approve", campaign.pk)).content.decode()
    assert "ask somebody who may" in page
    assert 'value="Approve"' not in page
    assert url("approve", campaign.pk) in client.get(url("change", campaign.pk)).content.decode()
    assert client.post(url("approve", campaign.pk), {}).status_code == 403
    asked = client.post(
        url("approve", campaign.pk),
        approval_of(client, campaign, start="at", scheduled_for="2999-07-01T00:30", check="1"),
    )
    assert "1 July 2999, 00:30 CEST" in asked.content.decode()
    assert status_of(campaign) == Status.DRAFT
    viewer = client_with(campaign.account, "view_campaign")
    assert viewer.get(url("approve", campaign.pk)).status_code == 403


def test_content_that_does_not_compile_can_not_be_approved(
    boss: Client, campaign: Campaign
) -> None:
    form = approval_of(boss, campaign)
    Campaign.objects.filter(pk=campaign.pk).update(body="{% include 'x' %}")
    page = boss.get(url("approve", campaign.pk)).content.decode()
    assert "line 1, column 1" in page
    assert f'href="{url("change", campaign.pk)}?line=1&amp;column=1#id_body"' in page
    assert 'value="Approve"' not in page
    again = approval_of(boss, campaign)
    for posted in (form, again):
        answer = boss.post(url("approve", campaign.pk), posted)
        assert "Not approved" in answer.content.decode()
        assert status_of(campaign) == Status.DRAFT
    assert not AuditEvent.objects.exists()
