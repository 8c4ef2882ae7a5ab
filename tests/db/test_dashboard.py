"""The front page: what each user is told of, where it leads, by a fixed number of queries."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import Group
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from campaigns import lifecycle
from campaigns.editing import edit
from campaigns.models import Campaign, Layout
from sending import dashboard, waits
from sending.dashboard import May, look
from sending.models import CampaignHealth, TransportPause
from sending.wording import AFTER_BRAKE
from subscribers import role_groups
from subscribers.models import Account, ImportJob
from subscribers.roles import Role
from tests.db.admin_pages import member_client, url
from tests.db.doubtful import doubtful
from tests.db.watched import shown
from tests.factories import (
    AccountFactory,
    CampaignFactory,
    ImportJobFactory,
    LayoutFactory,
    SegmentFactory,
    SendFactory,
    StaffFactory,
    SubscriberFactory,
    WorkerFactory,
)

pytestmark = pytest.mark.django_db

ALL = May(campaigns=True, approve=True, sends=True, pauses=True, imports=True)


def role_client(role: Role, account: Account) -> tuple[Client, Any]:
    role_groups.update()
    user = StaffFactory.create()
    user.groups.add(Group.objects.get(sendonce_role__role=role))
    account.members.add(user)
    client = Client()
    client.force_login(user)
    return client, user


# --- what is told --------------------------------------------------------------------------------


def test_a_campaign_that_a_brake_paused_says_why() -> None:
    account = AccountFactory.create()
    client, _ = member_client(account)
    campaign = CampaignFactory.create(account=account, name="Spring", sending=True)
    lifecycle.pause(campaign, reason="6.0 % of the addresses are dead, and 5 % are allowed")
    page = shown(client)
    assert "Spring is paused" in page
    assert "6.0 % of the addresses are dead, and 5 % are allowed." in page
    assert url(Campaign, "change", campaign.pk) in page
    # It is a person's pause, as far as the brakes know.
    assert AFTER_BRAKE not in page
    CampaignHealth.objects.create(campaign=campaign, base={"trip": campaign.status_reason})
    assert f"are allowed. {AFTER_BRAKE}" in shown(client)
    assert waits.of_campaign(campaign.pk) == AFTER_BRAKE


def test_what_is_due_and_nobody_there_to_send_it() -> None:
    account = AccountFactory.create()
    client, _ = member_client(account)
    CampaignFactory.create(account=account, approved=True)
    assert "No sender is alive" in shown(client)
    WorkerFactory.create()
    assert "No sender is alive" not in shown(client)


def test_nobody_need_be_there_for_what_is_not_due() -> None:
    account = AccountFactory.create()
    client, _ = member_client(account)
    later = timezone.now() + timedelta(days=1)
    CampaignFactory.create(account=account, approved=True, scheduled_for=later)
    assert "No sender is alive" not in shown(client)


def test_held_doubt_is_told_and_what_settles_itself_is_not() -> None:
    account = AccountFactory.create()
    client, _ = member_client(account)
    campaign = CampaignFactory.create(account=account, name="Spring", sent=True)
    for _ in range(2):
        SendFactory.create(campaign=campaign, in_doubt=True)
    SendFactory.create(campaign=campaign, in_doubt=True, settle_at=timezone.now())
    SendFactory.create(transactional=True, account=account, in_doubt=True)
    page = shown(client)
    assert "Spring: 2 messages in doubt" in page
    assert "Single messages: 1 message in doubt" in page


def test_doubt_names_its_account_for_who_has_several() -> None:
    theatre, shop = AccountFactory.create(name="Theatre"), AccountFactory.create(name="Shop")
    client, user = member_client(theatre)
    campaign = CampaignFactory.create(account=theatre, name="Spring", sent=True)
    SendFactory.create(campaign=campaign, in_doubt=True)
    line = "Spring: 1 message in doubt</a>"
    assert f"{line} <span" not in shown(client)
    shop.members.add(user)
    assert f'{line} <span class="quiet">Theatre</span>' in shown(client)


def test_a_paused_transport_and_what_to_do_about_it() -> None:
    account = AccountFactory.create()
    client, _ = member_client(account)
    TransportPause.objects.create(
        alias="default", stage="auth", code=535, reason="no", probe_at=timezone.now()
    )
    page = shown(client)
    assert "Transport default refuses the login" in page
    assert "Correct the login in the settings and start the senders again; the next try" in page
    assert "by Try now" not in page
    assert url(TransportPause, "overview") in page


def test_an_edit_that_took_an_approval_back() -> None:
    account = AccountFactory.create()
    client, _ = member_client(account)
    author, approver = StaffFactory.create(username="anna"), StaffFactory.create()
    segment = SegmentFactory.create(account=account)
    SubscriberFactory.create(account=account, segments=[segment])
    campaign = CampaignFactory.create(
        account=account, name="Spring", segments=[segment], created_by=author
    )
    lifecycle.approve(campaign, by=approver, scheduled_for=timezone.now() + timedelta(days=1))
    edit(campaign, version=campaign.version, values={"name": "Spring"}, by=author)
    page = shown(client)
    assert "Spring is a draft again" in page
    assert "Edited by anna after it was approved. It has to be approved anew." in page


def test_a_draft_that_waits_for_a_second_person_is_told_to_that_person_alone() -> None:
    account = AccountFactory.create(second_approver=True)
    approver, _ = role_client(Role.APPROVER, account)
    editor, writer = role_client(Role.EDITOR, account)
    CampaignFactory.create(account=account, name="Spring", created_by=writer)
    assert "Spring waits for a second person" in shown(approver)
    assert "waits for a second person" not in shown(editor)
    Group.objects.get(sendonce_role__role=Role.APPROVER).user_set.add(writer)
    assert "waits for a second person" not in shown(editor)


def test_a_failed_import_says_why() -> None:
    account = AccountFactory.create()
    client, _ = member_client(account)
    job = ImportJobFactory.create(
        account=account, status="failed", file_name="people.csv", error="line 3 has no address"
    )
    page = shown(client)
    assert "The import of people.csv failed" in page
    assert "Line 3 has no address." in page
    ImportJob.objects.filter(pk=job.pk).update(created=timezone.now() - timedelta(days=8))
    assert "people.csv" not in shown(client)


def test_what_runs_says_how_far_it_is() -> None:
    account = AccountFactory.create()
    client, _ = member_client(account)
    campaign = CampaignFactory.create(account=account, name="Spring", sending=True, audience=4)
    for state in ({"sent": True}, {"sent": True}, {"bounced": True}, {}):
        SendFactory.create(campaign=campaign, **state)
    Campaign.objects.filter(pk=campaign.pk).update(built_at=timezone.now())
    assert "Waits: no sender is alive." in shown(client)
    WorkerFactory.create()
    page = shown(client)
    assert "<strong>3 of 4</strong>" in page
    assert 'max="4" value="3"' in page
    assert "a second just now" in page or "an hour just now" in page


def test_what_runs_and_waits_for_its_transport_says_so() -> None:
    account, other = AccountFactory.create(), AccountFactory.create()
    client, _ = member_client(account)
    CampaignFactory.create(account=account, name="Spring", sending=True)
    WorkerFactory.create()
    now = timezone.now()
    TransportPause.objects.create(
        alias="default", account=other, stage="mail", code=553, reason="no", probe_at=now
    )
    assert "Waits:" not in shown(client)
    TransportPause.objects.create(alias="default", stage="connect", reason="no", probe_at=now)
    assert "Waits: transport default can&#x27;t be reached." in shown(client)


def test_drafts_are_told_the_newest_first_and_each_once() -> None:
    account = AccountFactory.create(second_approver=True)
    client, user = role_client(Role.APPROVER, account)
    writer = StaffFactory.create(username="anna")
    CampaignFactory.create(account=account, name="Older", created_by=user)
    CampaignFactory.create(account=account, name="Newer", created_by=user)
    CampaignFactory.create(account=account, name="For a second person", created_by=writer)
    back = CampaignFactory.create(account=account, name="Taken back", approved=True)
    lifecycle.withdraw(back, reason="a slip")
    CampaignFactory.create(account=account, name="No draft", paused=True)
    CampaignFactory.create(name="Of others")
    old = CampaignFactory.create(account=account, name="Forgotten", created_by=user)
    Campaign.objects.filter(pk=old.pk).update(created=timezone.now() - timedelta(days=31))
    facts = look([account.pk], ALL, by=user)
    assert [one.name for one in facts.drafts] == ["Newer", "Older"]
    assert [one.name for one in facts.second] == ["For a second person"]
    drafts = shown(client).partition('id="sendonce-drafts"')[2].partition("</section>")[0]
    assert drafts.index("Newer") < drafts.index("Older")
    for name in ("For a second person", "Taken back", "No draft", "Of others", "Forgotten"):
        assert name not in drafts, name


def test_what_is_due_says_since_when() -> None:
    account = AccountFactory.create()
    client, _ = member_client(account)
    when = timezone.now() - timedelta(minutes=5)
    CampaignFactory.create(account=account, approved=True, scheduled_for=when)
    page = shown(client)
    assert "<p>Due since " in page
    assert "<p>Starts " not in page


def test_what_is_scheduled_says_when_in_the_account_s_zone_and_who_approved_it() -> None:
    account = AccountFactory.create(timezone="Asia/Tokyo")
    client, _ = member_client(account)
    when = timezone.now().replace(hour=20, minute=30, second=0, microsecond=0) + timedelta(days=3)
    CampaignFactory.create(
        account=account, approved=True, scheduled_for=when,
        approved_by=StaffFactory.create(username="bea"),
    )  # fmt: skip
    page = shown(client)
    assert "05:30 JST" in page
    assert "Approved by bea." in page


def test_what_was_sent_lately() -> None:
    account = AccountFactory.create()
    client, _ = member_client(account)
    campaign = CampaignFactory.create(account=account, name="Spring", sent=True, audience=2)
    SendFactory.create(campaign=campaign, sent=True)
    SendFactory.create(campaign=campaign, bounced=True)
    assert "1 of 2 sent." in shown(client)
    old = timezone.now() - timedelta(days=40)
    Campaign.objects.filter(pk=campaign.pk).update(finished_at=old)
    assert "Nothing in the last 30 days." in shown(client)


def test_there_are_more_than_are_shown() -> None:
    account = AccountFactory.create()
    client, _ = member_client(account)
    CampaignFactory.create_batch(dashboard.SHOWN + 1, account=account, paused=True)
    page = shown(client)
    assert page.count("is paused</a>") == dashboard.SHOWN
    listed = f"{url(Campaign, 'changelist')}?status__exact=paused"
    assert f'<a href="{listed}">And more paused campaigns</a>' in page


def test_what_is_counted_says_how_many_more(superuser_client: Client) -> None:
    for number in range(dashboard.SHOWN + 3):
        TransportPause.objects.create(
            alias=f"away-{number}", stage="connect", reason="no", probe_at=timezone.now()
        )
        ImportJobFactory.create(status="failed", file_name=f"{number}.csv")
        doubtful(1, CampaignFactory.create(sent=True, name=f"Doubtful {number}"))
    SendFactory.create(transactional=True, in_doubt=True)
    page = shown(superuser_client)
    overview = url(TransportPause, "overview")
    failed = f"{url(ImportJob, 'changelist')}?status__exact=failed"
    desk = reverse("admin:sendonce_sending_send_doubt_desk")
    for where, words in (
        (overview, "And 3 more paused transports"),
        (failed, "And 3 more failed imports"),
        (desk, "And more campaigns with messages in doubt"),
    ):
        assert f'<a href="{where}">{words}</a>' in page
    assert page.count("1 message in doubt</a>") == dashboard.SHOWN + 1


def test_drafts_are_not_hidden_by_those_that_wait_for_a_second_person() -> None:
    account = AccountFactory.create(second_approver=True)
    _, user = role_client(Role.APPROVER, account)
    layout = LayoutFactory.create(account=account, edited_by=user)
    own = CampaignFactory.create(account=account, created_by=user)
    writer = StaffFactory.create()
    framed = CampaignFactory.create(account=account, created_by=writer, layout=layout)
    Layout.objects.filter(pk=layout.pk).update(changed=timezone.now() + timedelta(minutes=1))
    for _ in range(dashboard.SHOWN + 1):
        CampaignFactory.create(account=account, created_by=writer)
    facts = look([account.pk], ALL, by=user)
    assert list(facts.drafts) == [framed, own]
    assert len(facts.second) == dashboard.SHOWN
    assert "second" in facts.more
    assert "drafts" not in facts.more


def test_a_sender_for_another_campaign_does_not_serve_what_is_due() -> None:
    account = AccountFactory.create()
    client, _ = member_client(account)
    spring = CampaignFactory.create(account=account, name="Spring", sending=True)
    summer = CampaignFactory.create(account=account, name="Summer", sending=True)
    WorkerFactory.create(only_campaign=spring.pk)
    page = shown(client)
    assert "No sender serves Summer" in page
    assert "Each sender that is alive was started for another campaign alone." in page
    WorkerFactory.create(only_campaign=summer.pk)
    assert "No sender" not in shown(client)
