"""The build: who becomes a row, in which state, and chunk by chunk."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone

from campaigns import lifecycle
from sending import build, ledger
from sending.build import Progress, build_chunk, unbuilt
from sending.models import Send
from subscribers.models import Membership, Subscriber, Suppression
from subscribers.suppression import suppress
from tests.factories import (
    AccountFactory,
    CampaignFactory,
    MembershipFactory,
    SegmentFactory,
    SubscriberFactory,
    SuppressionFactory,
)

from .built import finish_build, people_of, rows_of
from .rows import assert_identity, campaign_to, kinds_of, member

# --- who -------------------------------------------------------------------------------------


@pytest.mark.django_db
def test_a_person_becomes_one_queued_row_with_a_derived_job_id() -> None:
    campaign = campaign_to(0)
    person = member(campaign, email="Ann@Example.ORG")
    finish_build(campaign)
    send = Send.objects.get()
    assert (send.account, send.campaign, send.subscriber) == (campaign.account, campaign, person)
    assert (send.email, send.email_lower) == ("Ann@Example.ORG", "ann@example.org")
    assert send.job_id == f"campaign:{campaign.pk}:{person.pk}"
    assert (send.status, send.attempts, send.doubt_tokens, send.reason) == ("queued", 0, [], "")
    assert campaign.audience == 1


@pytest.mark.django_db
def test_somebody_in_three_segments_is_one_row() -> None:
    campaign = campaign_to(0)
    others = SegmentFactory.create_batch(2, account=campaign.account)
    campaign.segments.add(*others)
    member(campaign)
    finish_build(campaign)
    assert Send.objects.count() == campaign.audience == 1


@pytest.mark.django_db
def test_only_confirmed_members_of_a_chosen_segment_get_it() -> None:
    campaign = campaign_to(0)
    segment = campaign.segments.get()
    excluded = SegmentFactory.create(account=campaign.account)
    campaign.exclude_segments.add(excluded)

    inside = member(campaign)
    back = member(campaign)
    MembershipFactory.create(segment=excluded, subscriber=back, left=True)
    # None of these:
    member(campaign, pending=True)
    member(campaign, unsubscribed=True)
    MembershipFactory.create(segment=excluded, subscriber=member(campaign))
    MembershipFactory.create(segment=segment, left=True)
    SubscriberFactory.create(account=campaign.account)
    elsewhere = SegmentFactory.create(account=campaign.account)
    SubscriberFactory.create(account=campaign.account, segments=[elsewhere])
    # A membership across accounts, which only a fault could make.
    MembershipFactory.create(segment=segment, subscriber=SubscriberFactory.create())

    finish_build(campaign)
    assert set(rows_of(campaign)) == {inside.email, back.email}
    assert campaign.audience == 2


@pytest.mark.django_db
def test_suppressed_members_are_accounted_for_and_say_why() -> None:
    campaign = campaign_to(0)
    free, own, for_all, lapsed, elsewhere = (member(campaign) for _ in range(5))
    suppress(campaign.account, own.email.upper(), "complaint")
    suppress(None, for_all.email, "manual")
    SuppressionFactory.create(
        account=campaign.account,
        email=lapsed.email,
        reason=Suppression.Reason.HARD_BOUNCE,
        expires=timezone.now() - timedelta(days=1),
    )
    suppress(AccountFactory.create(), elsewhere.email, "complaint")
    finish_build(campaign)
    assert rows_of(campaign) == {
        free.email: "queued",
        own.email: "suppressed",
        for_all.email: "suppressed",
        lapsed.email: "queued",
        elsewhere.email: "queued",
    }
    assert campaign.audience == 5
    for send in Send.objects.filter(campaign=campaign):
        assert kinds_of(send) == (["suppressed"] if send.status == "suppressed" else [])


@pytest.mark.django_db
def test_two_campaigns_to_the_same_people_do_not_meet() -> None:
    first = campaign_to(3)
    second = CampaignFactory.create(
        account=first.account, segments=list(first.segments.all()), sending=True
    )
    finish_build(first)
    finish_build(second)
    assert Send.objects.count() == 6


# --- chunks ----------------------------------------------------------------------------------


@pytest.mark.django_db
def test_an_empty_chunk_is_not_the_end() -> None:
    """listmonk 1931: a batch whose rows were all ineligible finished the campaign early."""
    campaign = campaign_to(0)
    nobody = [SubscriberFactory.create(account=campaign.account) for _ in range(5)]
    last = member(campaign)
    assert build_chunk(campaign.pk, size=2) == Progress(inserted=0, done=False)
    assert build_chunk(campaign.pk, size=2) == Progress(inserted=0, done=False)
    assert build_chunk(campaign.pk, size=2) == Progress(inserted=1, done=False)
    campaign.refresh_from_db()
    assert (campaign.audience_cursor, campaign.built_at) == (last.pk, None)
    assert build_chunk(campaign.pk, size=2) == Progress(inserted=0, done=True)
    assert build_chunk(campaign.pk, size=2) is None
    assert len(nobody) == 5
    assert set(rows_of(campaign)) == {last.email}


@pytest.mark.django_db
def test_a_sparse_segment_of_a_large_account_is_walked_in_growing_chunks(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    campaign = campaign_to(0)
    Subscriber.objects.bulk_create(
        Subscriber(account=campaign.account, email=f"p{n}@example.org", status="confirmed")
        for n in range(300)
    )
    chosen = people_of(campaign)[::100]
    Membership.objects.bulk_create(
        Membership(segment=campaign.segments.get(), subscriber=person) for person in chosen
    )
    steps: list[Progress | None] = []

    def counting(campaign_id: int, *, size: int) -> Progress | None:
        steps.append(build_chunk(campaign_id, size=size))
        return steps[-1]

    monkeypatch.setattr(build, "build_chunk", counting)
    finish_build(campaign, size=5)
    assert set(rows_of(campaign)) == {person.email for person in chosen}
    assert len(steps) <= 8, "60 chunks of five ids without growing"


@pytest.mark.django_db
def test_the_identity_holds_after_every_chunk_and_draining_may_start_with_the_first() -> None:
    campaign = campaign_to(7)
    done = False
    while not done:
        step = build_chunk(campaign.pk, size=3)
        assert step is not None
        assert_identity(campaign)
        assert ledger.counts(campaign)["audience"] >= 3
        done = step.done
    assert ledger.counts(campaign)["audience"] == 7


@pytest.mark.django_db
@pytest.mark.parametrize("verb", ["pause", "cancel"])
def test_a_build_stops_with_its_campaign_and_goes_on_where_it_was(verb: str) -> None:
    campaign = campaign_to(4)
    build_chunk(campaign.pk, size=2)
    assert unbuilt() == [campaign.pk]
    getattr(lifecycle, verb)(campaign)
    assert build_chunk(campaign.pk, size=2) is None
    assert unbuilt() == []
    assert_identity(campaign)
    if verb == "pause":
        lifecycle.resume(campaign)
        finish_build(campaign)
        assert campaign.audience == Send.objects.count() == 4


@pytest.mark.django_db
@pytest.mark.parametrize("status", ["draft", "approved", "paused", "sent", "canceled"])
def test_only_a_sending_campaign_is_built(status: str) -> None:
    campaign = CampaignFactory.create(**({} if status == "draft" else {status: True}))
    member(campaign)
    assert build_chunk(campaign.pk, size=10) is None
    assert not Send.objects.exists()
