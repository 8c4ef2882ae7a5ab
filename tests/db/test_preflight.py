"""Preflight on what is stored, and approval that goes by it."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from campaigns import hooks, lifecycle, preflight
from campaigns.errors import ApprovalRefused, PreflightFailed
from campaigns.forecasts import TransportState
from campaigns.models import Approval, Campaign, Content
from campaigns.preflight import field_counts
from campaigns.sandbox import compile_template
from sending.models import TransportPause
from sending.transport_states import transport_state
from subscribers.models import Segment, Subscriber
from tests.factories import (
    AttributeDefinitionFactory,
    CampaignFactory,
    MembershipFactory,
    SegmentFactory,
    SubscriberFactory,
    SuppressionFactory,
)

from .lifecycles import stored

pytestmark = pytest.mark.django_db


def codes(report: preflight.Report) -> set[str]:
    return {finding.code for finding in report.findings}


def of_kind(report: preflight.Report, kind: str) -> dict[str, Any]:
    return {
        finding.code: finding
        for check in report.checks
        if check.code == kind
        for finding in check.findings
    }


def campaign_of(**fields: Any) -> Campaign:
    found: Campaign = CampaignFactory.create(**{"readers": 2, **fields})
    return found


def test_an_ordinary_campaign_passes() -> None:
    report = preflight.run(campaign_of())
    # The tests' site is at an address of this machine, and so is their relay.
    assert codes(report) == {"system_links.local"}
    assert report.ok
    assert report.audience is not None
    assert report.audience.reached == 2
    assert report.compiled is not None
    assert report.duration is not None


def test_errors_keep_from_approval_and_nothing_is_changed() -> None:
    campaign = campaign_of(body='<p>Hello all of you out there</p><a href="/x">x</a>')
    with pytest.raises(PreflightFailed, match=r"^the link /x is relative") as caught:
        lifecycle.approve(campaign, by=None)
    assert isinstance(caught.value, ApprovalRefused)
    assert {error.code for error in caught.value.report.errors} == {"link.relative"}
    after = stored(campaign)
    assert (after.status, after.content, after.scheduled_for) == ("draft", None, None)
    assert not Approval.objects.exists()
    assert not Content.objects.exists()


def test_warnings_do_not() -> None:
    campaign = campaign_of(body="<p>Hello {{ first_name }} {{ city }}</p>", subject="RE: A")
    AttributeDefinitionFactory.create(account=campaign.account, key="city")
    report = preflight.run(campaign)
    assert {"fields.missing", "subject.reply"} <= {finding.code for finding in report.warnings}
    lifecycle.approve(campaign, by=None)
    assert stored(campaign).status == "approved"


def test_approval_looks_at_what_is_stored_and_not_at_what_the_caller_holds() -> None:
    campaign = campaign_of()
    Campaign.objects.filter(pk=campaign.pk).update(body='<a href="javascript:x">x</a>')
    with pytest.raises(PreflightFailed, match="javascript"):
        lifecycle.approve(campaign, by=None)
    mended = stored(campaign)
    mended.body = '<a href="/only/in/memory">x</a>'
    Campaign.objects.filter(pk=campaign.pk).update(body="<p>Mended, and good to read.</p>")
    lifecycle.approve(mended, by=None)
    content = stored(campaign).content
    assert content is not None
    assert "Mended" in content.html


def test_the_frozen_content_is_the_one_that_was_looked_at() -> None:
    campaign = campaign_of()
    report = preflight.run(campaign)
    lifecycle.approve(campaign, by=None)
    content = stored(campaign).content
    assert content is not None
    assert report.compiled is not None
    assert (content.html, content.text) == (report.compiled.html, report.compiled.text)


# --- fields ----------------------------------------------------------------------------------


def test_who_lacks_a_field_is_who_would_get_nothing_in_its_place() -> None:
    segment: Segment = SegmentFactory.create()
    values: list[dict[str, Any]] = [
        {"city": "Łódź"}, {"city": 0}, {"city": False}, {"city": ["a"]}, {"city": " "},
        {"city": ""}, {"city": None}, {"city": []}, {"city": ["a", "b"]}, {}, {"City": "x"},
    ]  # fmt: skip
    for attributes in values:
        SubscriberFactory.create(account=segment.account, segments=[segment], attributes=attributes)
    counts = field_counts.count(segment.account_id, [segment.pk], [], ["city", "city.a", "city.0"])
    assert counts.people == len(values)
    assert counts.lacking == {"city": 5, "city.a": 11, "city.0": 9}
    printed = compile_template("{{ city }}", html=False)
    assert sum(not printed.render(attributes) for attributes in values) == 5


def test_only_those_who_would_get_it_are_counted() -> None:
    inside, outside = SegmentFactory.create_batch(2)
    Segment.objects.filter(pk=outside.pk).update(account=inside.account)
    account = inside.account

    def person(**fields: Any) -> Subscriber:
        found: Subscriber = SubscriberFactory.create(
            **{"account": account, "segments": [inside], "attributes": {}, **fields}
        )
        return found

    person()
    person(unsubscribed=True)
    person(pending=True)
    person(paused_until=timezone.now() + timedelta(days=1))
    person(segments=[inside, outside])
    person(segments=[])
    MembershipFactory.create(segment=inside, subscriber=person(segments=[]), left=True)
    SuppressionFactory.create(account=account, email=person().email)
    SuppressionFactory.create(account=None, email=person().email)
    SuppressionFactory.create(account=account, erased_email="gone@example.org")
    counts = field_counts.count(account.pk, [inside.pk], [outside.pk], ["city"])
    assert (counts.people, counts.lacking) == (1, {"city": 1})


def test_a_count_that_takes_too_long_is_given_up_and_the_transaction_goes_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    campaign = campaign_of(body="<p>Hello {{ first_name }}, how are you?</p>")
    sql = field_counts.count_sql
    monkeypatch.setattr(field_counts, "PATIENCE", 100)
    monkeypatch.setattr(
        field_counts, "count_sql", lambda *a: sql(*a) + " AND pg_sleep(5) IS NOT NULL"
    )
    lifecycle.approve(campaign, by=None)
    assert stored(campaign).status == "approved"
    report = preflight.run(campaign)
    assert set(of_kind(report, "fields")) == {"fields.uncounted"}
    with connection.cursor() as cursor:
        cursor.execute("SHOW statement_timeout")
        assert cursor.fetchone() == ("0",)


def test_field_names_are_data_and_not_sql() -> None:
    segment = SegmentFactory.create()
    SubscriberFactory.create(account=segment.account, segments=[segment])
    names = ["x'); DROP TABLE y; --", "%(account)s", "a.b.c", "ключ"]
    assert field_counts.count(segment.account_id, [segment.pk], [], names).lacking.keys() == set(
        names
    )


def test_more_fields_than_are_counted_are_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(field_counts, "MAX_FIELDS", 2)
    campaign = campaign_of(body="<p>How are you {{ a }} {{ b }} {{ c }} {{ first_name }}</p>")
    found = of_kind(preflight.run(campaign), "fields")
    assert found["fields.left_out"].title == "2 more fields were not looked at"


# --- the account's other campaigns -----------------------------------------------------------


def sent(campaign: Campaign, **fields: Any) -> Campaign:
    found: Campaign = CampaignFactory.create(
        **{"sent": True, "account": campaign.account, **fields}
    )
    return found


@pytest.mark.parametrize(
    ("fields", "found"),
    [
        ({}, True),
        ({"subject": "Another"}, False),
        ({"body": "<p>Another</p>"}, False),
        ({"started_at": timezone.now() - timedelta(days=8)}, False),
        ({"sent": False}, False),
        ({"sent": False, "canceled": True, "started_at": timezone.now()}, True),
        ({"sent": False, "approved": True}, True),
    ],
)
def test_the_same_within_a_week_is_told(fields: dict[str, Any], found: bool) -> None:
    campaign = campaign_of()
    sent(campaign, **{"name": "The first", **fields})
    told = of_kind(preflight.run(campaign), "duplicate")
    assert bool(told) == found
    assert not found or "\u201cThe first\u201d" in told["duplicate.recent"].title


def test_the_same_body_to_the_same_people_is_told_whatever_its_subject() -> None:
    campaign = campaign_of()
    sent(campaign, subject="Another", segments=list(campaign.segments.all()))
    assert of_kind(preflight.run(campaign), "duplicate")


def test_another_account_s_campaigns_are_nobody_s_business() -> None:
    campaign = campaign_of()
    CampaignFactory.create(sent=True)
    CampaignFactory.create_batch(3, sent=True, audience=1_000_000)
    report = preflight.run(campaign)
    assert codes(report) == {"system_links.local"}


def test_ten_times_as_many_as_usual_is_told() -> None:
    campaign = campaign_of(readers=11)
    for number in range(3):
        sent(campaign, audience=1, body=f"<p>Another one {number}</p>")
    (found,) = of_kind(preflight.run(campaign), "audience").values()
    assert found.title == "11 people would get it, 11 times as many as usual"


# --- times and transport ---------------------------------------------------------------------


def test_a_time_that_has_passed_is_refused_and_no_time_is_now() -> None:
    past = timezone.now() - timedelta(minutes=2)
    campaign = campaign_of()
    with pytest.raises(PreflightFailed, match="which is past"):
        lifecycle.approve(campaign, by=None, scheduled_for=past)
    Campaign.objects.filter(pk=campaign.pk).update(scheduled_for=past)
    with pytest.raises(PreflightFailed, match="which is past"):
        lifecycle.approve(campaign, by=None)
    lifecycle.approve(campaign, by=None, scheduled_for=timezone.now())
    assert lifecycle.due(campaign) is True


def test_limits_that_are_too_slow_are_told_with_the_reckoned_end() -> None:
    now = timezone.now()
    campaign = campaign_of(
        account__max_per_hour=1,
        readers=3,
        scheduled_for=now + timedelta(hours=1),
        finish_by=now + timedelta(hours=2),
    )
    report = preflight.run(campaign)
    assert report.duration is not None
    assert report.duration.seconds == pytest.approx(3 * 3600)
    assert set(of_kind(report, "finish")) == {"finish.late"}
    assert report.ok


def test_a_transport_that_takes_no_mail_is_told() -> None:
    campaign = campaign_of()
    TransportPause.objects.create(
        alias="default", stage="connect", reason="Connection refused", probe_at=timezone.now()
    )
    found = of_kind(preflight.run(campaign), "transport")["transport.paused"]
    assert found.detail.startswith("It can't be reached: Connection refused. Look at the relay")
    other = campaign_of(account__transport="nowhere")
    assert "transport.unknown" in codes(preflight.run(other))


def test_a_pause_for_one_account_is_no_other_s() -> None:
    campaign, other = campaign_of(), campaign_of()
    TransportPause.objects.create(
        alias="default",
        account=campaign.account,
        stage="mail",
        code=550,
        reason="no",
        probe_at=timezone.now(),
    )
    assert transport_state(campaign.account_id, "default").problem
    assert transport_state(other.account_id, "default") == TransportState(stays_here=True)


def test_without_an_app_that_sends_it_works(monkeypatch: pytest.MonkeyPatch) -> None:
    for hook in (hooks.duration, hooks.transport_state):
        monkeypatch.setattr(hook, "_filled", None)
    report = preflight.run(campaign_of())
    assert report.duration is None
    # Nobody says that the relay is on this machine.
    assert {error.code for error in report.errors} == {"system_links.local"}


# --- work ------------------------------------------------------------------------------------


def test_the_queries_are_as_many_for_many_as_for_few() -> None:
    counts = []
    for size in (3, 30):
        campaign = campaign_of(readers=size)
        campaign.exclude_segments.add(SegmentFactory.create(account=campaign.account))
        for number in range(size):
            AttributeDefinitionFactory.create(account=campaign.account, key=f"key_{number}")
            campaign.segments.add(SegmentFactory.create(account=campaign.account))
            sent(campaign)
        found = stored(campaign)
        with CaptureQueriesContext(
            connection,
        ) as captured:
            preflight.run(found)
        counts.append(len(captured))
    assert counts[0] == counts[1]
    assert counts[0] < 40
