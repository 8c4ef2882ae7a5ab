"""Approving what was approved, edited or changed meanwhile; nothing typed is lost."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.db import connection
from django.test import Client
from django.utils import timezone

from campaigns import editing, lifecycle, preflight
from campaigns.errors import GateBusy, PreflightFailed
from campaigns.models import Approval, Campaign, Layout
from campaigns.preflight import Check, Finding, Report
from subscribers.models import Account, AuditEvent, Membership
from tests.factories import SegmentFactory, StaffFactory, SubscriberFactory

from . import campaign_pages
from .campaign_pages import Status, approval_of, said, status_of, url

pytestmark = pytest.mark.django_db

campaign = campaign_pages.campaign
boss = campaign_pages.boss

CHANGED = "the campaign was changed since this page was shown"
LATER = {"start": "at", "scheduled_for": "2999-07-01T10:00"}


def nothing_was_done(campaign: Campaign) -> bool:
    return status_of(campaign) == Status.DRAFT and not (
        LogEntry.objects.exists() or AuditEvent.objects.exists() or Approval.objects.exists()
    )


def test_approving_twice_approves_once(boss: Client, campaign: Campaign) -> None:
    form = approval_of(boss, campaign)
    boss.post(url("approve", campaign.pk), form)
    answer = boss.post(url("approve", campaign.pk), form)
    assert answer.headers["Location"] == url("change", campaign.pk)
    assert f"{campaign}: it was approved already, by you; nothing was changed." in said(answer)
    assert campaign.approvals.count() == 1
    assert LogEntry.objects.count() == AuditEvent.objects.count() == 1


def test_the_later_of_two_approvers_is_told_who_was_first(boss: Client, campaign: Campaign) -> None:
    form = approval_of(boss, campaign)
    lifecycle.approve(campaign, by=StaffFactory.create(username="zoe"))
    answer = boss.post(url("approve", campaign.pk), form)
    assert f"{campaign}: it was approved already, by zoe; nothing was changed." in said(answer)
    page = boss.get(url("approve", campaign.pk)).content.decode()
    assert "Only a draft can be approved." in page
    assert 'value="Approve"' not in page


def test_an_approval_is_recorded_with_what_was_agreed_to(boss: Client, campaign: Campaign) -> None:
    boss.post(url("approve", campaign.pk), approval_of(boss, campaign, **LATER))
    campaign.refresh_from_db()
    event = AuditEvent.objects.get()
    assert (event.verb, event.subject, event.from_address) == (
        "campaign.approve",
        campaign.name,
        "127.0.0.1",
    )
    assert campaign.scheduled_for is not None
    assert event.detail == {
        "campaign": campaign.pk,
        "digest": campaign.approved_digest,
        "starts": campaign.scheduled_for.isoformat(),
        "people": 1,
        "warnings": event.detail["warnings"],
    }


def edit_it(campaign: Campaign) -> None:
    editing.edit(campaign, version=campaign.version, values={"subject": "Other {{ first_name }}"})


def change_its_sender(campaign: Campaign) -> None:
    Account.objects.filter(pk=campaign.account_id).update(reply_to="other@example.org")


def change_its_segments(campaign: Campaign) -> None:
    more = SegmentFactory.create(account=campaign.account)
    campaign.segments.add(more)


def change_its_layout(campaign: Campaign) -> None:
    Layout.objects.filter(campaigns=campaign).update(
        body="<html><body><h1>New</h1>{% block content %}{% endblock %}</body></html>"
    )


@pytest.mark.parametrize(
    "change", [edit_it, change_its_sender, change_its_segments, change_its_layout]
)
def test_a_page_of_what_was_changed_since_is_shown_anew_with_what_was_typed(
    boss: Client, campaign: Campaign, change: Any
) -> None:
    if change is change_its_layout:
        frame = Layout.objects.create(
            account=campaign.account,
            name="Frame",
            body="<html><body>{% block content %}{% endblock %}</body></html>",
        )
        Campaign.objects.filter(pk=campaign.pk).update(
            layout=frame,
            body='<p>{{ account.postal_address }} <a href="{{ unsubscribe_url }}">No</a></p>',
        )
        campaign.refresh_from_db()
    form = approval_of(boss, campaign, **LATER)
    change(campaign)
    answer = boss.post(url("approve", campaign.pk), form)
    text = answer.content.decode()
    assert CHANGED in text
    assert f'value="{LATER["scheduled_for"]}"' in text
    assert nothing_was_done(campaign)
    again = {name: answer.context["form"][name].value() for name in answer.context["form"].fields}
    posted = {name: value or "" for name, value in again.items()}
    boss.post(url("approve", campaign.pk), {**posted, "acknowledged": "on"})
    assert status_of(campaign) == Status.APPROVED


def test_another_audience_is_shown_before_it_is_approved(boss: Client, campaign: Campaign) -> None:
    segment = campaign.segments.get()
    form = approval_of(boss, campaign)
    SubscriberFactory.create_batch(11, account=campaign.account, segments=[segment])
    text = boss.post(url("approve", campaign.pk), form).content.decode()
    assert "It was 1, it is 12 now." in text
    assert nothing_was_done(campaign)
    Membership.objects.filter(segment=segment).order_by("-pk")[0].delete()
    boss.post(url("approve", campaign.pk), approval_of(boss, campaign))
    assert status_of(campaign) == Status.APPROVED


def test_a_few_people_more_do_not_hold_an_approval_up(boss: Client, campaign: Campaign) -> None:
    form = approval_of(boss, campaign)
    SubscriberFactory.create(account=campaign.account, segments=campaign.segments.all())
    boss.post(url("approve", campaign.pk), form)
    assert status_of(campaign) == Status.APPROVED


def test_an_incomplete_page_says_so(boss: Client, campaign: Campaign) -> None:
    answer = boss.post(url("approve", campaign.pk), {"start": "now"})
    assert "this page was not complete" in answer.content.decode()
    assert nothing_was_done(campaign)


# --- warnings -----------------------------------------------------------------------------------

ALT = Finding("images.alt", "warning", "An image has no alternative text", field="body")
LATE = Finding("finish.late", "warning", "It will be done too late", field="finish_by")
WRONG = Finding("links.broken", "error", "A link leads nowhere", field="body")


def lacking(people: int) -> Finding:
    title = f"{people:,} people of 10,000 lack {{{{ city }}}}"
    return Finding("fields.missing", "warning", title, field="body", count=people)


@pytest.fixture
def finds(monkeypatch: pytest.MonkeyPatch) -> list[Finding]:
    """What preflight finds, besides what it says of the campaign."""
    found: list[Finding] = []
    real = preflight.run

    def run(campaign: Campaign, **given: Any) -> Report:
        report = real(campaign, **given)
        calm = tuple(replace(check, findings=()) for check in report.checks)
        return replace(report, checks=(*calm, Check("of tests", "Of tests", tuple(found))))

    monkeypatch.setattr(preflight, "run", run)
    return found


def test_warnings_are_shown_and_ticked(
    boss: Client, campaign: Campaign, finds: list[Finding]
) -> None:
    finds.append(ALT)
    page = boss.get(url("approve", campaign.pk)).content.decode()
    assert "An image has no alternative text." in page
    assert "I have seen the warnings" in page
    assert f'href="{url("change", campaign.pk)}#id_body"' in page
    answer = boss.post(url("approve", campaign.pk), approval_of(boss, campaign, acknowledged=""))
    assert "Not approved yet: there are warnings." in answer.content.decode()
    assert nothing_was_done(campaign)
    boss.post(url("approve", campaign.pk), approval_of(boss, campaign, acknowledged="on"))
    assert status_of(campaign) == Status.APPROVED
    assert AuditEvent.objects.get().detail["warnings"] == ["images.alt"]


def test_without_warnings_there_is_nothing_to_tick(
    boss: Client, campaign: Campaign, finds: list[Finding]
) -> None:
    page = boss.get(url("approve", campaign.pk)).content.decode()
    assert "I have seen the warnings" not in page
    assert "Nothing was found that speaks against it." in page


def test_a_warning_that_was_not_shown_was_not_seen(
    boss: Client, campaign: Campaign, finds: list[Finding]
) -> None:
    finds.append(ALT)
    form = approval_of(boss, campaign, acknowledged="on")
    finds.append(LATE)
    answer = boss.post(url("approve", campaign.pk), form)
    text = answer.content.decode()
    assert "the warnings are not those that this page showed" in text
    assert "It will be done too late." in text
    assert not answer.context["form"]["acknowledged"].value()
    assert nothing_was_done(campaign)


@pytest.mark.parametrize("when", ["before the page's own look", "behind the gate"])
def test_a_warning_that_says_something_else_by_now_was_not_seen(
    boss: Client, campaign: Campaign, finds: list[Finding], when: str, monkeypatch: Any
) -> None:
    finds.append(lacking(3))
    form = approval_of(boss, campaign, acknowledged="on", **LATER)

    def worse() -> None:
        finds[:] = [lacking(3_000)]

    if when == "behind the gate":
        # Where it is asked who may approve, the gate is held and preflight has yet to look.
        second_person = lifecycle.second_person

        def later(*args: Any) -> str:
            if connection.in_atomic_block and len(connection.savepoint_ids) > 1:
                worse()
            return second_person(*args)

        monkeypatch.setattr(lifecycle, "second_person", later)
    else:
        worse()
    answer = boss.post(url("approve", campaign.pk), form)
    text = answer.content.decode()
    assert "the warnings are not those that this page showed" in text
    assert "3,000 people of 10,000 lack" in text
    assert f'value="{LATER["scheduled_for"]}"' in text
    assert not answer.context["form"]["acknowledged"].value()
    assert nothing_was_done(campaign)
    again = {name: answer.context["form"][name].value() for name in answer.context["form"].fields}
    boss.post(url("approve", campaign.pk), {**again, "acknowledged": "on"})
    assert status_of(campaign) == Status.APPROVED


def test_a_number_that_moved_a_little_does_not_hold_an_approval_up(
    boss: Client, campaign: Campaign, finds: list[Finding]
) -> None:
    finds.append(lacking(3_000))
    form = approval_of(boss, campaign, acknowledged="on")
    finds[:] = [lacking(3_412)]
    boss.post(url("approve", campaign.pk), form)
    assert status_of(campaign) == Status.APPROVED


def test_a_warning_that_is_gone_does_not_matter(
    boss: Client, campaign: Campaign, finds: list[Finding]
) -> None:
    finds.extend([ALT, LATE])
    form = approval_of(boss, campaign, acknowledged="on")
    finds.remove(LATE)
    boss.post(url("approve", campaign.pk), form)
    assert status_of(campaign) == Status.APPROVED


def test_an_error_that_came_since_is_shown(
    boss: Client, campaign: Campaign, finds: list[Finding]
) -> None:
    form = approval_of(boss, campaign, **LATER)
    finds.append(WRONG)
    text = boss.post(url("approve", campaign.pk), form).content.decode()
    assert "some things have to be mended first" in text
    assert "A link leads nowhere." in text
    assert f'value="{LATER["scheduled_for"]}"' in text
    assert 'value="Approve"' not in text
    assert nothing_was_done(campaign)


def test_what_the_decision_itself_finds_is_shown_with_what_was_typed(
    boss: Client, campaign: Campaign, finds: list[Finding], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between the page's own look and the one behind the gate something may change."""
    form = approval_of(boss, campaign, **LATER)
    report = preflight.run(campaign)
    worse = replace(report, checks=(*report.checks, Check("links", "Links", (WRONG,))))

    def refused(*args: Any, **kwargs: Any) -> None:
        raise PreflightFailed(worse)

    monkeypatch.setattr(lifecycle, "approve", refused)
    text = boss.post(url("approve", campaign.pk), form).content.decode()
    assert "A link leads nowhere." in text
    assert f'value="{LATER["scheduled_for"]}"' in text
    assert nothing_was_done(campaign)


def test_a_busy_campaign_says_so_and_keeps_what_was_typed(
    boss: Client, campaign: Campaign, monkeypatch: pytest.MonkeyPatch
) -> None:
    form = approval_of(boss, campaign, **LATER)

    def busy(*args: Any, **kwargs: Any) -> None:
        raise GateBusy

    monkeypatch.setattr(lifecycle, "approve", busy)
    text = boss.post(url("approve", campaign.pk), form).content.decode()
    assert "Not approved: the campaign is busy" in text
    assert f'value="{LATER["scheduled_for"]}"' in text
    assert nothing_was_done(campaign)


def test_a_moment_that_passed_while_somebody_looked(boss: Client, campaign: Campaign) -> None:
    planned = timezone.now() + timedelta(hours=1)
    Campaign.objects.filter(pk=campaign.pk).update(scheduled_for=planned)
    form = approval_of(boss, campaign, acknowledged="on")
    form["scheduled_for"] = "2020-01-01T10:00"
    text = boss.post(url("approve", campaign.pk), form).content.decode()
    assert "This is in the past." in text
    assert 'value="2020-01-01T10:00"' in text
    assert "not chosen yet" in text
    assert "Ends about" not in text, "an end is foretold of a start that can be"
    assert nothing_was_done(campaign)
