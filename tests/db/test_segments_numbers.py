"""What a segment's page and the approve page say of people, against people one can count."""

from __future__ import annotations

import random
from datetime import UTC, date, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from campaigns import audience
from sending import build
from subscribers.models import Membership, Segment
from subscribers.segments.numbers import (
    Move,
    Numbers,
    history,
    latest_changes,
    numbers,
    present_in,
    sample,
)
from tests.factories import (
    CampaignFactory,
    MembershipChangeFactory,
    MembershipFactory,
    SegmentFactory,
    SubscriberFactory,
    SuppressionFactory,
)

pytestmark = pytest.mark.django_db

TOMORROW = timedelta(days=1)


def mixed(segment: Segment, **more: Any) -> dict[str, Any]:
    """A person of every kind in the segment, by what stands against them."""
    now = timezone.now()
    kinds: dict[str, dict[str, Any]] = {
        "reached": {},
        "pause over": {"paused_until": now - TOMORROW},
        "paused": {"paused_until": now + TOMORROW},
        "suppressed": {},
        "suppressed for all": {},
        "suppressed twice and paused": {"paused_until": now + TOMORROW},
        "suppression over": {},
        "suppressed elsewhere": {},
        "pending": {"pending": True},
        "pending and suppressed": {"pending": True},
        "unsubscribed": {"unsubscribed": True},
    }
    people = {
        kind: SubscriberFactory.create(
            account=segment.account, segments=[segment], **{**fields, **more}
        )
        for kind, fields in kinds.items()
    }
    for kind in ("suppressed", "suppressed twice and paused", "pending and suppressed"):
        SuppressionFactory.create(account=segment.account, email=people[kind].email.upper())
    for kind in ("suppressed for all", "suppressed twice and paused"):
        SuppressionFactory.create(account=None, email=people[kind].email)
    SuppressionFactory.create(
        account=segment.account, email=people["suppression over"].email, expires=now - TOMORROW
    )
    SuppressionFactory.create(email=people["suppressed elsewhere"].email)
    MembershipFactory.create(segment=segment, left=True)
    return people


# --- counts --------------------------------------------------------------------------------------


def test_every_member_is_counted_once() -> None:
    segment = SegmentFactory.create()
    people = mixed(segment)
    found = numbers(segment)
    assert found == Numbers(reachable=4, suppressed=3, paused=1, pending=2, unsubscribed=1)
    assert (found.confirmed, found.present) == (8, len(people))
    assert numbers(SegmentFactory.create()) == Numbers()


def test_present_members_of_many_segments_in_one_statement() -> None:
    one, other, empty = (SegmentFactory.create() for _ in range(3))
    MembershipFactory.create_batch(3, segment=one)
    MembershipFactory.create(segment=one, left=True)
    MembershipFactory.create(segment=other)
    with CaptureQueriesContext(
        connection,
    ) as queries:
        assert present_in([one.pk, other.pk, empty.pk]) == {one.pk: 3, other.pk: 1}
    assert len(queries) == 1


def test_an_audience_counts_what_the_build_builds() -> None:
    first, second, excluded = (SegmentFactory.create(name=name) for name in "abc")
    for segment in (second, excluded):
        Segment.objects.filter(pk=segment.pk).update(account=first.account)
        segment.refresh_from_db()
    people = mixed(first)
    for kind in ("reached", "paused", "suppressed"):
        MembershipFactory.create(segment=second, subscriber=people[kind])
    SubscriberFactory.create_batch(2, account=first.account, segments=[second])
    out = SubscriberFactory.create(account=first.account, segments=[first, second, excluded])
    SubscriberFactory.create(account=first.account, segments=[excluded])
    MembershipFactory.create(segment=excluded, subscriber=people["reached"], left=True)
    SubscriberFactory.create(segments=[first])  # another account's, past every entrance

    campaign = CampaignFactory.create(account=first.account, segments=[first, second], sending=True)
    campaign.exclude_segments.add(excluded)
    found = audience.count(campaign)
    assert (found.addressed, found.suppressed, found.paused, found.reached) == (10, 3, 1, 6)
    assert found.included == (audience.Share(first, 9), audience.Share(second, 6))
    assert found.excluded == (audience.Share(excluded, 1),)
    assert audience.addressed(campaign).count() == found.addressed

    build.build(campaign.pk, size=3)
    rows = list(campaign.sends.values_list("status", "reason"))
    assert len(rows) == found.addressed
    assert rows.count(("queued", "")) == found.reached
    assert rows.count(("suppressed", "suppressed")) == found.suppressed
    assert rows.count(("suppressed", "paused")) == found.paused
    assert not campaign.sends.filter(subscriber=out).exists()


@pytest.mark.parametrize("include", [0, 1, 30])
def test_an_audience_of_few_and_of_many_segments(include: int) -> None:
    campaign = CampaignFactory.create(segments=[])
    segments = SegmentFactory.create_batch(include, account=campaign.account)
    campaign.segments.set(segments)
    lonely = SegmentFactory.create(account=campaign.account)
    campaign.exclude_segments.add(lonely)
    SubscriberFactory.create(account=campaign.account, segments=[*segments, lonely])
    SubscriberFactory.create(account=campaign.account, segments=segments)
    found = audience.count(campaign)
    assert found.addressed == found.reached == (1 if include else 0)
    assert {share.people for share in found.included} == ({2} if include else set())
    assert [share.people for share in found.excluded] == [1 if include else 0]


def test_counting_leaves_the_planner_as_it_was() -> None:
    campaign = CampaignFactory.create()
    audience.count(campaign)
    with connection.cursor() as cursor:
        cursor.execute("SELECT current_setting('enable_hashjoin')")
        assert cursor.fetchone() == ("on",)


# --- sample --------------------------------------------------------------------------------------


def test_a_sample_is_of_present_members_and_of_all_of_a_few() -> None:
    segment = SegmentFactory.create()
    few = SubscriberFactory.create_batch(4, account=segment.account, segments=[segment])
    MembershipFactory.create(segment=segment, left=True)
    assert sample(segment) == few
    assert len(sample(segment, 2)) == 2
    assert sample(SegmentFactory.create()) == []


def test_a_sample_of_many_is_drawn_by_chance_and_reads_few() -> None:
    segment = SegmentFactory.create()
    people = SubscriberFactory.create_batch(260, account=segment.account)
    Membership.objects.bulk_create([Membership(segment=segment, subscriber=p) for p in people])
    drawn = [[p.pk for p in sample(segment, dice=random.Random(n))] for n in range(8)]
    assert all(len(set(ids)) == 10 for ids in drawn)
    assert {pk for ids in drawn for pk in ids} <= {p.pk for p in people}
    # Not the same ten, and not those at one end.
    assert len({tuple(ids) for ids in drawn}) == 8
    middle = people[130].pk
    assert any(pk < middle for ids in drawn for pk in ids)
    assert any(pk > middle for ids in drawn for pk in ids)
    assert drawn[0] == [p.pk for p in sample(segment, dice=random.Random(0))]


# --- history -------------------------------------------------------------------------------------

NOW = datetime(2026, 5, 20, 12, tzinfo=UTC)  # a Wednesday
PARIS = ZoneInfo("Europe/Paris")


def joined(segment: Segment, *moments: datetime) -> None:
    for moment in moments:
        row = MembershipFactory.create(segment=segment)
        Membership.objects.filter(pk=row.pk).update(joined_at=moment)


def test_the_history_by_day_is_in_the_accounts_days() -> None:
    segment = SegmentFactory.create()
    late = datetime(2026, 5, 18, 22, 30, tzinfo=UTC)  # the 19th in Paris
    joined(segment, late, NOW, NOW - timedelta(days=40))
    MembershipChangeFactory.create(segment=segment, at=NOW)
    MembershipChangeFactory.create(segment=segment, at=late, kind="joined")
    MembershipChangeFactory.create(at=NOW)
    found = history(segment, "day", PARIS, NOW)
    assert len(found) == 30
    assert (found[0].since, found[-1].since) == (date(2026, 4, 21), date(2026, 5, 20))
    assert found[-3:] == [
        Move(date(2026, 5, 18)),
        Move(date(2026, 5, 19), joined=1, came_back=1),
        Move(date(2026, 5, 20), joined=1, left=1),
    ]
    assert sum(move.joined for move in found) == 2


def test_the_history_by_week_begins_on_mondays() -> None:
    segment = SegmentFactory.create()
    joined(segment, NOW, NOW - timedelta(days=2), NOW - timedelta(days=3))
    found = history(segment, "week", PARIS, NOW)
    assert len(found) == 26
    assert all(move.since.weekday() == 0 for move in found)
    assert [(move.since, move.joined) for move in found[-2:]] == [
        (date(2026, 5, 11), 1),
        (date(2026, 5, 18), 2),
    ]


def test_the_history_holds_over_the_change_of_the_clock() -> None:
    segment = SegmentFactory.create()
    changed = datetime(2026, 3, 29, 23, 30, tzinfo=PARIS)
    joined(segment, changed)
    found = history(segment, "day", PARIS, datetime(2026, 4, 2, 12, tzinfo=UTC))
    assert [move.since for move in found if move.joined] == [date(2026, 3, 29)]
    assert len({move.since for move in found}) == 30


def test_the_latest_changes_come_newest_first() -> None:
    segment = SegmentFactory.create()
    old, new = (
        MembershipChangeFactory.create(segment=segment, at=NOW + timedelta(days=n))
        for n in range(2)
    )
    MembershipChangeFactory.create()
    assert latest_changes(segment) == [new, old]
    assert latest_changes(segment, 1) == [new]
