"""Making and editing a campaign in the admin."""

from __future__ import annotations

from datetime import datetime, timedelta
from threading import Thread
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from django.contrib.admin.models import LogEntry
from django.db import connection
from django.test import Client
from django.utils import timezone

from campaigns import editing, lifecycle
from campaigns.admin import account_choice
from campaigns.errors import GateBusy
from campaigns.forms import CampaignForm, ZonedDateTimeField
from campaigns.models import Campaign
from tests.factories import AccountFactory, CampaignFactory, SegmentFactory

from . import campaign_pages
from .campaign_pages import Status, client_with, said, status_of, url

pytestmark = pytest.mark.django_db

campaign = campaign_pages.campaign
boss = campaign_pages.boss


def form_of(campaign: Campaign, **changes: Any) -> dict[str, Any]:
    """What a browser would post from the change page as it is now."""
    form = CampaignForm(instance=campaign)
    given = {name: form[name].value() for name in form.fields if name != "account"}
    return {k: "" if v is None else v for k, v in {**given, **changes}.items()}


def test_a_new_campaign_is_of_the_chosen_account_and_its_author(boss: Client) -> None:
    segment, other = SegmentFactory.create(), SegmentFactory.create()
    page = boss.get(url("add"))
    assert {account.pk for account in page.context["accounts"]} == {
        segment.account_id,
        other.account_id,
    }
    page = boss.get(url("add"), {"account": segment.account_id})
    offered_segments = page.context["adminform"].form.fields["segments"].queryset
    assert list(offered_segments) == [segment]
    form = {
        "account": segment.account_id,
        "name": "Spring",
        "subject": "Hello",
        "body": "Hi",
        "body_format": "text",
        "segments": [segment.pk],
    }
    assert boss.post(url("add"), form).status_code == 302
    made = Campaign.objects.get()
    assert (made.account, made.status, made.version) == (segment.account, Status.DRAFT, 1)
    assert made.created_by is not None
    assert list(made.segments.all()) == [segment]


def test_accounts_that_are_not_offered_are_told_of(
    boss: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    for _ in range(3):
        AccountFactory.create()
    assert "by name" not in boss.get(url("add")).content.decode()
    monkeypatch.setattr(account_choice, "MOST", 2)
    page = boss.get(url("add"))
    assert len(page.context["accounts"]) == 2
    assert "These are the first 2 by name" in page.content.decode()


def test_a_member_of_one_account_is_not_asked_which() -> None:
    account = AccountFactory.create()
    client = client_with(account, "add_campaign", "view_campaign")
    answer = client.get(url("add"), follow=True)
    assert answer.redirect_chain == [(f"{url('add')}?account={account.pk}", 302)]


def test_an_edit_moves_the_version_and_is_logged(boss: Client, campaign: Campaign) -> None:
    answer = boss.post(url("change", campaign.pk), form_of(campaign, subject="New"))
    assert answer.status_code == 302
    campaign.refresh_from_db()
    assert (campaign.subject, campaign.version) == ("New", 2)
    assert "Subject" in LogEntry.objects.get(object_id=str(campaign.pk)).get_change_message()


def test_of_two_editors_the_later_is_told_and_keeps_what_was_typed(
    boss: Client, campaign: Campaign
) -> None:
    first, second = form_of(campaign, subject="First"), form_of(campaign, subject="Second")
    assert boss.post(url("change", campaign.pk), first).status_code == 302
    answer = boss.post(url("change", campaign.pk), second)
    assert answer.status_code == 200
    page = answer.content.decode()
    assert "edited meanwhile" in page
    assert 'value="Second"' in page
    campaign.refresh_from_db()
    assert campaign.subject == "First"


@pytest.mark.django_db(transaction=True)
def test_an_edit_between_the_check_and_the_write_is_seen_too(
    boss: Client, campaign: Campaign, monkeypatch: pytest.MonkeyPatch
) -> None:
    check = CampaignForm._check_content
    raced: list[Thread] = []

    def somebody_else_saves() -> None:
        editing.edit(campaign, version=1, values={"subject": "First"})
        connection.close()

    def and_then_somebody_saves(self: CampaignForm, *args: Any) -> None:
        check(self, *args)
        if not raced:
            raced.append(Thread(target=somebody_else_saves))
            raced[0].start()
            raced[0].join()

    monkeypatch.setattr(CampaignForm, "_check_content", and_then_somebody_saves)
    answer = boss.post(url("change", campaign.pk), form_of(campaign, subject="Second"))
    assert answer.status_code == 200
    assert "edited meanwhile" in answer.content.decode()
    assert 'value="Second"' in answer.content.decode()
    campaign.refresh_from_db()
    assert (campaign.subject, campaign.version) == ("First", 2)


def test_an_edit_that_can_not_be_decided_about_in_time_is_told(
    boss: Client, campaign: Campaign, monkeypatch: pytest.MonkeyPatch
) -> None:
    def busy(*args: Any, **kwargs: Any) -> Any:
        raise GateBusy

    monkeypatch.setattr("campaigns.admin.campaign.edit", busy)
    answer = boss.post(url("change", campaign.pk), form_of(campaign, name="Autumn"))
    assert answer.status_code == 302
    assert "Not saved: the campaign is busy" in said(answer)
    campaign.refresh_from_db()
    assert (campaign.name != "Autumn", campaign.version) == (True, 1)
    assert not LogEntry.objects.exists()


@pytest.mark.parametrize("version", ["", "0", "x", "99"])
def test_a_form_without_the_version_it_saw_is_refused(
    boss: Client, campaign: Campaign, version: str
) -> None:
    form = form_of(campaign, subject="Blind", seen_version=version)
    assert boss.post(url("change", campaign.pk), form).status_code == 200
    campaign.refresh_from_db()
    assert campaign.subject != "Blind"


def test_editing_an_approved_campaign_takes_the_approval_back_and_says_so(
    boss: Client, campaign: Campaign
) -> None:
    lifecycle.approve(campaign, by=None, scheduled_for=timezone.now() + timedelta(days=1))
    answer = boss.post(url("change", campaign.pk), form_of(campaign, subject="New"))
    assert "took the approval back" in said(answer)
    campaign.refresh_from_db()
    assert campaign.status == Status.DRAFT
    assert campaign.approvals.get().voided_at is not None
    assert "edited by staff" in boss.get(url("change", campaign.pk)).content.decode()


def test_saving_without_a_change_leaves_the_approval(boss: Client, campaign: Campaign) -> None:
    lifecycle.approve(campaign, by=None, scheduled_for=timezone.now() + timedelta(days=1))
    form = form_of(campaign)
    form["body"] = form["body"].replace("\n", "\r\n")
    assert boss.post(url("change", campaign.pk), form).status_code == 302
    assert status_of(campaign) == Status.APPROVED
    assert campaign.version == Campaign.objects.get(pk=campaign.pk).version


@pytest.mark.parametrize(
    ("changes", "field", "words"),
    [
        ({"subject": "Hi {{ name"}, "subject", "Line 1, column"),
        ({"body": "<p>\n{% include 'x' %}"}, "body", "Line 2, column"),
        ({"subject": ""}, "subject", "required"),
        ({"body": ""}, "body", "required"),
        ({"subject": "a\x85b"}, "subject", "line ends"),
        ({"from_name": "a\x85Bcc: x@example.org"}, "from_name", "line ends"),
        ({"reply_to": "nonsense"}, "reply_to", "valid email"),
        ({"body_format": "mjml", "body": "<mjml><mj-nope/></mjml>"}, "body", "MJML"),
        ({"segments": []}, "segments", "required"),
        ({"scheduled_for": "2001-01-01T10:00"}, "scheduled_for", "in the past"),
        ({"scheduled_for": "2027-03-28T02:30"}, "scheduled_for", "time zone"),
        ({"scheduled_for": "soon"}, "scheduled_for", "valid date"),
    ],
)
def test_what_is_wrong_is_said_beside_its_field(
    boss: Client, campaign: Campaign, changes: dict[str, Any], field: str, words: str
) -> None:
    answer = boss.post(url("change", campaign.pk), form_of(campaign, **changes))
    assert answer.status_code == 200
    errors = answer.context["adminform"].form.errors
    assert list(errors) == [field]
    assert words in errors.as_text()
    campaign.refresh_from_db()
    assert campaign.version == 1


def test_segments_of_another_account_are_refused(boss: Client, campaign: Campaign) -> None:
    other = SegmentFactory.create()
    for name in ("segments", "exclude_segments"):
        answer = boss.post(url("change", campaign.pk), form_of(campaign, **{name: [other.pk]}))
        assert name in answer.context["adminform"].form.errors
    assert other not in campaign.segments.all()


def test_the_schedule_is_in_the_accounts_zone(boss: Client, campaign: Campaign) -> None:
    boss.post(url("change", campaign.pk), form_of(campaign, scheduled_for="2999-07-01T10:00"))
    campaign.refresh_from_db()
    assert campaign.scheduled_for == datetime(2999, 7, 1, 10, tzinfo=ZoneInfo("Europe/Paris"))
    assert 'value="2999-07-01T10:00"' in boss.get(url("change", campaign.pk)).content.decode()


def test_a_moment_survives_its_field_to_the_second() -> None:
    field = ZonedDateTimeField(zone=ZoneInfo("Asia/Kathmandu"))
    moment = datetime(2030, 1, 2, 3, 4, 5, tzinfo=ZoneInfo("UTC"))
    assert field.prepare_value(moment) == "2030-01-02T08:49:05"
    assert field.clean(field.prepare_value(moment)) == moment
    assert not field.has_changed(moment, field.prepare_value(moment))


@pytest.mark.parametrize("trait", ["sending", "paused", "sent", "canceled"])
def test_what_is_under_way_can_not_be_edited(boss: Client, trait: str) -> None:
    campaign = CampaignFactory.create(**{trait: True})
    page = boss.get(url("change", campaign.pk)).content.decode()
    assert 'name="subject"' not in page
    assert 'name="_save"' not in page
    answer = boss.post(url("change", campaign.pk), form_of(campaign, subject="Late"))
    assert answer.status_code == 302
    assert f"the campaign is {trait}" in said(answer)
    campaign.refresh_from_db()
    assert campaign.subject != "Late"


def test_the_status_is_in_no_form(boss: Client, campaign: Campaign) -> None:
    form = form_of(campaign, status="sent", approved_digest="x", version=7, subject="New")
    boss.post(url("change", campaign.pk), form)
    campaign.refresh_from_db()
    assert (campaign.status, campaign.approved_digest, campaign.version) == ("draft", "", 2)


def test_only_a_draft_that_was_never_approved_can_be_deleted(
    boss: Client, campaign: Campaign
) -> None:
    free = CampaignFactory.create()
    lifecycle.approve(campaign, by=None)
    lifecycle.withdraw(campaign)
    canceled = CampaignFactory.create(canceled=True)
    for found, status in ((free, 302), (campaign, 403), (canceled, 403)):
        answer = boss.post(url("delete", found.pk), {"post": "yes"})
        assert answer.status_code == status
    assert set(Campaign.objects.all()) == {campaign, canceled}
