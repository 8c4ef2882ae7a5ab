"""Running a campaign from the admin: editing, approving, and the verbs while it is sent."""

from __future__ import annotations

import html
import re
from datetime import datetime, timedelta
from threading import Thread
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import Permission
from django.contrib.messages import get_messages
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone

from campaigns import audience, editing, lifecycle
from campaigns.admin_verbs import VERBS, offered
from campaigns.forms import CampaignForm, ZonedDateTimeField
from campaigns.models import Campaign
from sending import build, ledger
from sending.models import Send
from subscribers.models import Account
from tests.factories import (
    AccountFactory,
    CampaignFactory,
    MembershipFactory,
    SegmentFactory,
    SendFactory,
    StaffFactory,
    SubscriberFactory,
    SuppressionFactory,
)

pytestmark = pytest.mark.django_db

Status = Campaign.Status


def url(page: str, *args: Any) -> str:
    return reverse(f"admin:sendonce_campaigns_campaign_{page}", args=args)


def client_with(account: Account, *codenames: str) -> Client:
    """A member of the account with these permissions on campaigns."""
    user = StaffFactory.create()
    user.user_permissions.set(
        Permission.objects.filter(
            content_type__app_label="sendonce_campaigns", codename__in=codenames
        )
    )
    account.members.add(user)
    client = Client()
    client.force_login(user)
    return client


@pytest.fixture
def campaign() -> Campaign:
    """A draft with one person in its audience."""
    segment = SegmentFactory.create(account__timezone="Europe/Paris")
    SubscriberFactory.create(
        account=segment.account, segments=[segment], attributes={"first_name": "Ann"}
    )
    found: Campaign = CampaignFactory.create(account=segment.account, segments=[segment])
    return found


@pytest.fixture
def boss() -> Client:
    client = Client()
    client.force_login(StaffFactory.create(superuser=True))
    return client


def form_of(campaign: Campaign, **changes: Any) -> dict[str, Any]:
    """What a browser would post from the change page as it is now."""
    form = CampaignForm(instance=campaign)
    given = {name: form[name].value() for name in form.fields if name != "account"}
    return {k: "" if v is None else v for k, v in {**given, **changes}.items()}


def approval_of(client: Client, campaign: Campaign, **changes: Any) -> dict[str, Any]:
    """What a browser would post from the approve page as it is now."""
    form = client.get(url("approve", campaign.pk)).context["form"]
    given = {name: form[name].value() for name in form.fields}
    return {k: "" if v is None else v for k, v in {**given, **changes}.items()}


def said(answer: Any) -> str:
    return " ".join(str(message) for message in get_messages(answer.wsgi_request))


def status_of(campaign: Campaign) -> str:
    return str(Campaign.objects.values_list("status", flat=True).get(pk=campaign.pk))


# --- making and editing --------------------------------------------------------------------------


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


# --- approving -----------------------------------------------------------------------------------


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
    assert page.context["people"] == audience.Audience(addressed=4, suppressed=2)
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


# --- the verbs -----------------------------------------------------------------------------------

STATES = ("draft", "approved", "sending", "paused", "sent", "canceled")
LEADS_TO = {
    ("approved", "withdraw"): "draft",
    ("approved", "cancel"): "canceled",
    ("sending", "pause"): "paused",
    ("sending", "cancel"): "canceled",
    ("paused", "resume"): "sending",
    ("paused", "cancel"): "canceled",
}


@pytest.mark.parametrize("verb", ["withdraw", "pause", "resume", "cancel"])
@pytest.mark.parametrize("state", STATES)
def test_a_verb_works_where_the_state_allows_it_and_says_no_elsewhere(
    boss: Client, state: str, verb: str
) -> None:
    campaign = CampaignFactory.create(**({} if state == "draft" else {state: True}))
    answer = boss.post(url(verb, campaign.pk))
    assert answer.headers["Location"] == url("change", campaign.pk)
    assert status_of(campaign) == LEADS_TO.get((state, verb), state)
    if (state, verb) in LEADS_TO:
        assert LogEntry.objects.get().object_id == str(campaign.pk)
    else:
        assert f"cannot {verb}: the campaign is {state}" in said(answer)
        assert not LogEntry.objects.exists()


@pytest.mark.parametrize("state", STATES)
def test_only_what_the_state_allows_is_offered(boss: Client, state: str) -> None:
    campaign = CampaignFactory.create(**({} if state == "draft" else {state: True}))
    page = boss.get(url("change", campaign.pk)).content.decode()
    for verb in VERBS:
        shown = f'"{url(verb.name, campaign.pk)}"' in page
        assert shown is (state in verb.states), verb.name


@pytest.mark.parametrize(
    ("permissions", "names"),
    [
        (set(), []),
        ({"approve"}, ["withdraw"]),
        ({"control"}, ["cancel"]),
        ({"approve", "control"}, ["withdraw", "cancel"]),
    ],
)
def test_offers_follow_permissions(permissions: set[str], names: list[str]) -> None:
    assert [verb.name for verb in offered("approved", permissions)] == names


@pytest.mark.parametrize("verb", ["withdraw", "pause", "resume"])
def test_verbs_are_posts(boss: Client, verb: str) -> None:
    campaign = CampaignFactory.create(sending=True)
    for method in (boss.get, boss.head, boss.put, boss.delete):
        assert method(url(verb, campaign.pk)).status_code == 405
    assert status_of(campaign) == Status.SENDING


@pytest.mark.parametrize("verb", ["approve", "cancel"])
def test_looking_changes_nothing(boss: Client, campaign: Campaign, verb: str) -> None:
    assert boss.get(url(verb, campaign.pk)).status_code == 200
    assert boss.put(url(verb, campaign.pk)).status_code == 405
    assert status_of(campaign) == Status.DRAFT


@pytest.mark.parametrize("verb", [verb.name for verb in VERBS])
def test_a_post_from_elsewhere_is_refused(campaign: Campaign, verb: str) -> None:
    client = Client(enforce_csrf_checks=True)
    client.force_login(StaffFactory.create(superuser=True))
    assert client.post(url(verb, campaign.pk)).status_code == 403


@pytest.mark.parametrize("verb", [verb.name for verb in VERBS])
def test_a_verb_on_what_is_not_there(boss: Client, verb: str) -> None:
    for guessed in ("0", "9" * 30, "x", "1/../2"):
        assert boss.post(url(verb, guessed)).status_code == 302


@pytest.mark.parametrize(
    ("permission", "verbs"),
    [
        ("change_campaign", set()),
        ("approve_campaign", {"approve", "withdraw"}),
        ("control_campaign", {"pause", "resume", "cancel"}),
    ],
)
def test_each_verb_asks_for_its_own_permission(
    campaign: Campaign, permission: str, verbs: set[str]
) -> None:
    client = client_with(campaign.account, "view_campaign", permission)
    refused = {
        verb.name for verb in VERBS if client.post(url(verb.name, campaign.pk)).status_code == 403
    }
    assert refused == {verb.name for verb in VERBS} - verbs


def test_whoever_may_not_see_it_may_not_approve_it(campaign: Campaign) -> None:
    client = client_with(campaign.account, "approve_campaign", "control_campaign")
    for verb in VERBS:
        assert client.post(url(verb.name, campaign.pk)).status_code == 403


def act(client: Client, name: str, *campaigns: Campaign, **more: str) -> Any:
    data = {"action": name, "_selected_action": [c.pk for c in campaigns], **more}
    return client.post(url("changelist"), data)


def test_actions_do_what_they_can_and_say_what_they_could_not(boss: Client) -> None:
    sending, draft = CampaignFactory.create(sending=True), CampaignFactory.create()
    answer = act(boss, "pause_selected", sending, draft)
    assert (status_of(sending), status_of(draft)) == (Status.PAUSED, Status.DRAFT)
    assert f"{draft.name}: cannot pause: the campaign is draft" in said(answer)
    act(boss, "resume_selected", sending)
    assert status_of(sending) == Status.SENDING


def test_canceling_from_the_list_asks_and_cancels_the_rows(boss: Client) -> None:
    send = SendFactory.create()
    asked = act(boss, "cancel_selected", send.campaign)
    assert send.campaign.name in asked.content.decode()
    assert status_of(send.campaign) == Status.SENDING
    act(boss, "cancel_selected", send.campaign, confirmed="yes")
    send.refresh_from_db()
    assert (status_of(send.campaign), send.status) == (Status.CANCELED, Send.Status.CANCELED)


def test_actions_ask_for_the_permission(campaign: Campaign) -> None:
    sending = CampaignFactory.create(account=campaign.account, sending=True)
    client = client_with(campaign.account, "view_campaign", "change_campaign")
    act(client, "pause_selected", sending)
    act(client, "cancel_selected", sending, confirmed="yes")
    assert status_of(sending) == Status.SENDING


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
