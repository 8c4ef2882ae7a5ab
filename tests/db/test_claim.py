"""Claiming: how many, which, in whose turn, and what the lease says."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db import connection
from django.db.models import Count
from django.db.models.functions import Now
from django.utils import timezone

from campaigns.models import Campaign
from sending import build, clock, sql
from sending.handover import give_back
from sending.models import Send
from sending.queue import Claimed, Rotation, claim, renew
from tests.factories import SendFactory

from .rows import LEASE, assert_identity, campaign_to, held, row, status_of, take

MARGIN = 10.0


def _built(people: int, *, status: str = "sending") -> Campaign:
    campaign = campaign_to(people)
    build.build(campaign.pk, size=1000)
    if status != "sending":
        Campaign.objects.filter(pk=campaign.pk).update(status=status)
    return campaign


def _claim(rotation: Rotation, total: int, **options: object) -> list[Claimed]:
    given: dict[str, object] = {
        "worker_id": 7,
        "lease": LEASE,
        "margin": MARGIN,
        "blocked": [],
        **options,
    }
    return claim(rotation, total=total, **given)  # type: ignore[arg-type]


def _rotation(*campaigns: Campaign) -> Rotation:
    rotation = Rotation()
    rotation.refresh([c.pk for c in campaigns])
    return rotation


@pytest.mark.django_db
def test_a_claim_brings_what_a_lane_needs_and_sets_the_lease() -> None:
    campaign = _built(1)
    asked_at = clock.now()
    (claimed,) = _claim(_rotation(campaign), 5)
    send = Send.objects.annotate(db_now=Now()).get()
    assert (claimed.id, claimed.token) == (send.pk, send.claim_token)
    assert (claimed.campaign_id, claimed.account_id) == (campaign.pk, campaign.account_id)
    assert (claimed.email, claimed.job_id) == (send.email, send.job_id)
    assert claimed.content_id == campaign.content_id
    assert send.subscriber is not None
    assert claimed.attributes == send.subscriber.attributes
    assert (send.status, send.worker_id, send.attempts) == ("claimed", 7, 0)
    assert send.lease_until is not None
    # The database's lease outlives what this process trusts by the margin at least.
    assert claimed.trusted_until - asked_at <= LEASE - MARGIN + 5
    assert send.lease_until - send.db_now > timedelta(seconds=LEASE - 30)
    assert_identity(campaign)


@pytest.mark.django_db
@pytest.mark.parametrize("total", [1, 2, 3, 7, 20, 50])
def test_a_claim_never_takes_more_than_it_was_asked_for(total: int) -> None:
    """Postman 276: a subquery's LIMIT ran again and claimed too many."""
    campaigns = [_built(4), _built(1), _built(6)]
    for campaign in campaigns[:2]:
        row(campaign, "retry", next_attempt_at=timezone.now() - timedelta(minutes=1))
    SendFactory.create_batch(3, transactional=True)
    claimed = _claim(_rotation(*campaigns), total)
    assert len(claimed) == min(total, 16)
    assert Send.objects.filter(status="claimed").count() == len(claimed)
    assert len({r.id for r in claimed}) == len(claimed)


#: The claim as it is often written: a LIMIT in a subquery that the planner may run per row.
_NAIVE = f"""
UPDATE {sql.SEND} s SET status = 'claimed', claim_token = gen_random_uuid(),
    lease_until = clock_timestamp()
FROM (SELECT id FROM {sql.SEND} WHERE campaign_id = %(campaign)s AND status = 'queued'
    LIMIT 2 FOR UPDATE SKIP LOCKED) picked
WHERE s.id = picked.id AND s.campaign_id = %(campaign)s
RETURNING s.id"""


@pytest.mark.django_db
@pytest.mark.parametrize("materialized", [True, False], ids=["materialized", "control"])
def test_the_limit_holds_under_a_plan_that_repeats_subqueries(materialized: bool) -> None:
    # The plan that statistics may bring about one day: they know of nothing but another campaign.
    _built(100)
    with connection.cursor() as cursor:
        cursor.execute(f"ANALYZE {sql.SEND}")
        campaign = _built(8)
        for setting in ("hashjoin", "mergejoin", "material", "memoize", "indexscan", "bitmapscan"):
            cursor.execute(f"SET LOCAL enable_{setting} = off")
        cursor.execute("SET LOCAL join_collapse_limit = 1")
        if materialized:
            assert len(_claim(_rotation(campaign), 2)) == 2
        else:
            cursor.execute(_NAIVE, {"campaign": campaign.pk})
            assert len(cursor.fetchall()) > 2, "control: it claimed too many"


@pytest.mark.django_db
def test_a_large_campaign_does_not_hide_fifty_small_ones() -> None:
    large = _built(120)
    small = [campaign_to(2) for _ in range(50)]
    for campaign in small:
        build.build(campaign.pk, size=1000)
    rotation = _rotation(large, *small)
    reached: set[int | None] = set()
    for _ in range(3):
        claimed = _claim(rotation, 20)
        assert len(claimed) == 20
        reached |= {r.campaign_id for r in claimed}
    assert reached == {large.pk, *(c.pk for c in small)}


@pytest.mark.django_db
def test_the_rows_of_a_claim_are_shared_out_among_few_campaigns() -> None:
    campaigns = [_built(30), _built(30), _built(3)]
    claimed = _claim(_rotation(*campaigns), 20)
    per = {c.pk: sum(r.campaign_id == c.pk for r in claimed) for c in campaigns}
    assert per == {campaigns[0].pk: 7, campaigns[1].pk: 7, campaigns[2].pk: 3}


@pytest.mark.django_db
def test_everything_is_claimed_in_the_end() -> None:
    campaigns = [_built(23), _built(1), _built(0), _built(8)]
    rotation, seen = _rotation(*campaigns), 0
    for _ in range(30):
        claimed = _claim(rotation, 5)
        seen += len(claimed)
        if not claimed:
            rotation.refresh([c.pk for c in campaigns])
            if not _claim(rotation, 5):
                break
    assert seen == 32
    assert not Send.objects.filter(status="queued").exists()


@pytest.mark.django_db
def test_rows_given_back_behind_the_mark_are_found_again() -> None:
    campaign = _built(5)
    rotation = _rotation(campaign)
    claimed = _claim(rotation, 3)
    assert rotation.marks[campaign.pk] == claimed[-1].id
    give_back(claimed)
    assert [r.id for r in _claim(rotation, 9)] == list(
        Send.objects.order_by("id").values_list("id", flat=True)[3:]
    ), "beyond the mark first"
    assert _claim(rotation, 9) == [], "nothing beyond the mark: it goes back to the start"
    assert {r.id for r in _claim(rotation, 9)} == {r.id for r in claimed}


@pytest.mark.django_db
@pytest.mark.parametrize("status", ["paused", "canceled", "sent", "approved"])
def test_a_campaign_that_is_not_sending_gives_nothing(status: str) -> None:
    campaign = _built(2)
    row(campaign, "retry", next_attempt_at=timezone.now() - timedelta(minutes=1))
    Campaign.objects.filter(pk=campaign.pk).update(
        status=status, finished_at=timezone.now(), built_at=timezone.now()
    )
    assert _claim(_rotation(campaign), 9) == []


@pytest.mark.django_db
@pytest.mark.parametrize("state", ["claimed", "sending", "sent", "bounced", "failed",
                                   "suppressed", "in_doubt", "canceled"])  # fmt: skip
def test_only_what_is_queued_or_in_retry_is_claimed(state: str) -> None:
    campaign = campaign_to(0)
    send = row(campaign, state)
    assert _claim(_rotation(campaign), 9) == []
    assert status_of(send) == state


# --- retries ---------------------------------------------------------------------------------


@pytest.mark.django_db
def test_a_retry_is_claimed_when_it_is_due_and_not_before() -> None:
    campaign = campaign_to(0)
    due = row(campaign, "retry", next_attempt_at=timezone.now() - timedelta(seconds=1))
    row(campaign, "retry", next_attempt_at=timezone.now() + timedelta(seconds=60))
    claimed = _claim(_rotation(campaign), 9)
    assert [r.id for r in claimed] == [due.pk]
    due.refresh_from_db()
    assert due.next_attempt_at is not None, "it says where a give-back returns the row to"
    give_back(claimed)
    assert status_of(due) == "retry"


@pytest.mark.django_db
def test_retries_that_are_due_come_before_fresh_rows() -> None:
    campaign = _built(3)
    due = row(campaign, "retry", next_attempt_at=timezone.now() - timedelta(seconds=1))
    assert _claim(_rotation(campaign), 1)[0].id == due.pk


# --- transactional ---------------------------------------------------------------------------


@pytest.mark.django_db
def test_transactional_messages_come_first_with_their_own_content() -> None:
    campaign = _built(5)
    message = SendFactory.create(transactional=True, context={"link": "https://example.org/x"})
    claimed = _claim(_rotation(campaign), 2)
    assert claimed[0].id == message.pk
    assert (claimed[0].content_id, claimed[0].context) == (message.content_id, message.context)
    assert claimed[0].campaign_id is None
    assert claimed[1].campaign_id == campaign.pk


@pytest.mark.django_db
def test_transactional_retries_wait_too() -> None:
    SendFactory.create(
        transactional=True, retry=True, next_attempt_at=timezone.now() + timedelta(seconds=60)
    )
    due = SendFactory.create(
        transactional=True, retry=True, next_attempt_at=timezone.now() - timedelta(seconds=1)
    )
    assert [r.id for r in _claim(Rotation(), 9)] == [due.pk]


@pytest.mark.django_db
def test_a_blocked_account_keeps_its_messages() -> None:
    blocked, free = SendFactory.create_batch(2, transactional=True)
    claimed = _claim(Rotation(), 9, blocked=[blocked.account_id])
    assert [r.id for r in claimed] == [free.pk]


@pytest.mark.django_db
def test_a_worker_for_one_campaign_leaves_transactional_messages_alone() -> None:
    message = SendFactory.create(transactional=True)
    assert _claim(Rotation(), 9, transactional=False) == []
    assert status_of(message) == "queued"


# --- leases ----------------------------------------------------------------------------------


@pytest.mark.django_db
def test_renewal_extends_what_is_still_ours_and_nothing_else() -> None:
    campaign = campaign_to(0)
    soon = timezone.now() + timedelta(seconds=2)
    mine, on_wire = (row(campaign, s, lease_until=soon) for s in ("claimed", "sending"))
    lost, done = row(campaign, "claimed", lease_until=soon), row(campaign, "sent")
    rows = [held(mine), held(on_wire), held(lost), held(done)]
    Send.objects.filter(pk=lost.pk).update(claim_token="00000000-0000-4000-8000-000000000000")
    before = clock.now()
    for r in rows:
        r.trusted_until = before + 1
    assert renew(rows, lease=LEASE, margin=MARGIN) == 2
    assert [r.trusted_until > before + 1 for r in rows] == [True, True, False, False]
    longer = set(Send.objects.filter(lease_until__gt=soon).values_list("pk", flat=True))
    assert longer == {mine.pk, on_wire.pk}
    lost.refresh_from_db()
    done.refresh_from_db()
    assert (lost.lease_until, done.lease_until) == (soon, None)


@pytest.mark.django_db
def test_every_claim_has_a_token_of_its_own() -> None:
    campaign = _built(3)
    first = take([campaign.pk], 3)
    give_back(first)
    second = take([campaign.pk], 3)
    tokens = {r.token for r in first + second}
    assert len(tokens) == 6
    assert Send.objects.aggregate(n=Count("claim_token", distinct=True))["n"] == 3
