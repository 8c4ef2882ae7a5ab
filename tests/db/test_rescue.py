"""Rescue: the lease decides, by the database's clock; late answers still count."""

from __future__ import annotations

import uuid
from datetime import timedelta

import pytest
from django.db import connection
from django.db.models.functions import Now
from django.utils import timezone

from campaigns.models import Campaign
from sending.doubt import SEND_AGAIN, resolve
from sending.models import Send, Worker
from sending.rescue import rescue_dead, rescue_expired, worker_lock_key
from sending.settle import settle
from tests.factories import SendFactory, WorkerFactory

from .racing import Race
from .rows import assert_identity, campaign_to, held, kinds_of, row, status_of, take, told

OLD = uuid.UUID("0ddba115-0000-4000-8000-000000000001")
WAIT = 600.0


def _expired() -> dict[str, object]:
    return {"lease_until": timezone.now() - timedelta(seconds=1)}


# --- by the lease ----------------------------------------------------------------------------


@pytest.mark.django_db
@pytest.mark.parametrize("tried_before", [False, True], ids=["queued", "retry"])
def test_an_expired_claim_goes_back_without_an_attempt(tried_before: bool) -> None:
    campaign = campaign_to(0)
    made = 2 if tried_before else 0
    due = timezone.now() if tried_before else None
    send = row(campaign, "claimed", attempts=made, next_attempt_at=due, **_expired())
    assert rescue_expired(doubt_wait=WAIT) == 1
    send.refresh_from_db()
    assert (send.status, send.attempts) == ("retry" if tried_before else "queued", made)
    assert (send.claim_token, send.lease_until, send.worker_id) == (None, None, None)
    assert kinds_of(send) == []
    assert [r.id for r in take([campaign.pk], 5)] == [send.pk]


@pytest.mark.django_db
def test_an_expired_hand_over_is_in_doubt_and_keeps_its_token() -> None:
    send = row(campaign_to(0), "sending", **_expired())
    token, lease = send.claim_token, send.lease_until
    assert rescue_expired(doubt_wait=WAIT) == 1
    send.refresh_from_db()
    assert (send.status, send.claim_token, send.attempts) == ("in_doubt", token, 1)
    assert (send.settle_at, send.reason) == (None, "worker_lost")
    assert send.lease_until == lease, "it says from when on somebody may send it again"
    assert kinds_of(send) == ["in_doubt"]


@pytest.mark.django_db
@pytest.mark.parametrize("state", ["claimed", "sending"])
def test_a_lease_that_runs_is_left_alone(state: str) -> None:
    send = row(campaign_to(0), state, lease_until=timezone.now() + timedelta(seconds=30))
    assert rescue_expired(doubt_wait=WAIT) == 0
    assert status_of(send) == state


@pytest.mark.django_db
def test_rescue_repeated_finds_nothing() -> None:
    campaign = campaign_to(0)
    row(campaign, "claimed", **_expired())
    row(campaign, "sending", **_expired())
    assert rescue_expired(doubt_wait=WAIT) == 2
    assert rescue_expired(doubt_wait=WAIT) == 0


@pytest.mark.django_db
@pytest.mark.parametrize("state", ["claimed", "sending"])
def test_transactional_messages_are_rescued_too(state: str) -> None:
    trait = {"claimed": "claimed", "sending": "handed_over"}[state]
    send = SendFactory.create(transactional=True, **{trait: True}, **_expired())
    assert rescue_expired(doubt_wait=WAIT) == 1
    assert status_of(send) == ("queued" if state == "claimed" else "in_doubt")


@pytest.mark.django_db
@pytest.mark.parametrize("status", ["sending", "paused", "canceled"])
def test_what_a_rescued_claim_becomes_depends_on_its_campaign(status: str) -> None:
    campaign = campaign_to(0)
    plain = row(campaign, "claimed", **_expired())
    repeat = row(campaign, "claimed", doubt_tokens=[OLD], handed_at=timezone.now(), **_expired())
    Campaign.objects.filter(pk=campaign.pk).update(status=status)
    assert rescue_expired(doubt_wait=WAIT) == 2
    plain.refresh_from_db()
    repeat.refresh_from_db()
    if status == "canceled":
        assert (plain.status, plain.reason) == ("canceled", "canceled")
        assert (repeat.status, repeat.claim_token, repeat.doubt_tokens) == ("in_doubt", OLD, [])
        assert (kinds_of(plain), kinds_of(repeat)) == (["canceled"], ["in_doubt"])
    else:
        assert (plain.status, plain.reason) == ("queued", "")
        assert (repeat.status, repeat.claim_token, repeat.doubt_tokens) == ("queued", None, [OLD])


@pytest.mark.django_db
@pytest.mark.parametrize("policy", ["resend", "assume_sent"])
@pytest.mark.parametrize("status", ["sending", "canceled"])
def test_a_policy_waits_for_the_lease_and_the_answer_time_out(policy: str, status: str) -> None:
    campaign = campaign_to(0, status=status)
    campaign.account.in_doubt_policy = policy
    campaign.account.save()
    send = row(campaign, "sending", **_expired())
    rescue_expired(doubt_wait=WAIT)
    send = Send.objects.annotate(db_now=Now()).get(pk=send.pk)
    if status == "canceled":
        assert send.settle_at is None, "nothing is sent again in a canceled campaign"
    else:
        assert send.settle_at is not None
        assert timedelta(seconds=500) < send.settle_at - send.db_now <= timedelta(seconds=WAIT)


@pytest.mark.django_db
@pytest.mark.parametrize("outcome", ["sent", "retry", "bounced", "failed"])
def test_the_late_answer_of_a_zombie_settles_its_doubt(outcome: str) -> None:
    campaign = campaign_to(0)
    send = row(campaign, "sending", **_expired())
    zombie = held(send)
    rescue_expired(doubt_wait=WAIT)
    assert settle([told(zombie, outcome)], doubt_wait=WAIT) == {send.pk: outcome}
    assert status_of(send) == outcome


@pytest.mark.django_db
def test_the_rows_of_many_campaigns_are_rescued_at_once() -> None:
    campaigns = [campaign_to(0) for _ in range(3)]
    for campaign in campaigns:
        Campaign.objects.filter(pk=campaign.pk).update(audience=2)
        row(campaign, "claimed", **_expired())
        row(campaign, "sending", **_expired())
    assert rescue_expired(doubt_wait=WAIT) == 6
    for campaign in campaigns:
        assert_identity(campaign)


# --- by the session --------------------------------------------------------------------------


def _worker(**fields: object) -> Worker:
    worker: Worker = WorkerFactory.create(**{"locked": True, **fields})
    return worker


@pytest.mark.django_db
def test_a_worker_whose_session_is_gone_is_rescued_at_once() -> None:
    campaign, dead, other = campaign_to(0), _worker(), _worker(locked=False)
    claimed = row(campaign, "claimed", worker=dead)
    on_wire = row(campaign, "sending", worker=dead)
    foreign = row(campaign, "claimed", worker=other)
    assert rescue_dead(doubt_wait=WAIT) == 2
    assert [status_of(s) for s in (claimed, on_wire, foreign)] == ["queued", "in_doubt", "claimed"]
    dead.refresh_from_db()
    assert dead.ended is not None
    assert "session was gone" in dead.note
    assert rescue_dead(doubt_wait=WAIT) == 0


@pytest.mark.django_db
def test_nobody_sends_again_what_a_worker_found_dead_may_still_send() -> None:
    """Its session was lost, its process may live until the lease is over."""
    campaign, dead = campaign_to(0), _worker()
    send = row(campaign, "sending", worker=dead)
    rescue_dead(doubt_wait=WAIT)
    assert resolve([send], SEND_AGAIN) == 0
    assert status_of(send) == "in_doubt"
    Send.objects.update(lease_until=timezone.now() - timedelta(seconds=1))
    assert resolve([send], SEND_AGAIN) == 1
    send.refresh_from_db()
    assert (send.status, send.lease_until) == ("queued", None)


@pytest.mark.django_db
def test_a_policy_still_waits_for_the_lease_of_a_worker_found_dead() -> None:
    """A lost connection is not a dead worker: relabelled at once, repeated much later."""
    campaign, dead = campaign_to(0), _worker()
    campaign.account.in_doubt_policy = "resend"
    campaign.account.save()
    lease = timezone.now() + timedelta(seconds=300)
    send = row(campaign, "sending", worker=dead, lease_until=lease)
    rescue_dead(doubt_wait=WAIT)
    send.refresh_from_db()
    assert send.settle_at == lease + timedelta(seconds=WAIT)


@pytest.mark.django_db
@pytest.mark.parametrize("who", ["me", "signed off", "behind a pooler"])
def test_who_is_not_suspected(who: str) -> None:
    worker = _worker(
        ended=timezone.now() if who == "signed off" else None, locked=who != "behind a pooler"
    )
    send = row(campaign_to(0), "claimed", worker=worker)
    assert rescue_dead(doubt_wait=WAIT, me=worker.pk if who == "me" else None) == 0
    assert status_of(send) == "claimed"


@pytest.mark.django_db(transaction=True)
def test_a_worker_lives_as_long_as_its_session() -> None:
    worker = _worker()
    send = row(campaign_to(0), "claimed", worker=worker)
    with Race() as race:
        halt = race.halt()

        def hold() -> None:
            with connection.cursor() as cursor:
                cursor.execute("SELECT pg_advisory_lock(%s)", [worker_lock_key(worker.pk)])
            halt.here()

        living = race.start_to(halt, hold)
        assert rescue_dead(doubt_wait=WAIT) == 0
        assert status_of(send) == "claimed"
        # kill -9: the server notices that the session has ended, and frees its lock.
        living.kill_backend()
        assert rescue_dead(doubt_wait=WAIT) == 1
    assert status_of(send) == "queued"
