"""The brakes: counts of all workers together, and the campaigns that they pause."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from django.db import OperationalError, connection, transaction

from campaigns import lifecycle
from campaigns.models import Campaign
from sending import health
from sending.answers import Answer, Outcome, Reason, Stage, Verdict
from sending.health import Brake
from sending.models import CampaignHealth, TransportPause
from sending.queue import Claimed
from sending.shared import Shared
from sending.sql.pauses import ERRORS
from sending.upkeep import Upkeep
from subscribers.models import Account
from tests.claimed_rows import claimed_row
from tests.factories import AccountFactory, CampaignFactory

from .racing import Race

POLICY = Verdict(Outcome.FAILED, Reason.POLICY)
SENT = Verdict(Outcome.SENT, Reason.ACCEPTED)
DEAD = Verdict(Outcome.BOUNCED, Reason.ADDRESS_DEAD)
LOST = Verdict(Outcome.IN_DOUBT, Reason.CONNECTION_LOST)
BLOCKED = Answer(Stage.DOT, 550, "5.7.1", "5.7.1 blocked")
IN_A_ROW = "20 refusals in a row (policy): 550 5.7.1 blocked"


def sending(**fields: Any) -> Campaign:
    campaign: Campaign = CampaignFactory.create(sending=True, **fields)
    return campaign


def row(campaign_id: int | None) -> Claimed:
    return claimed_row(
        campaign_id=campaign_id, subscriber_id=None, email="ann@example.org", alias="default"
    )


def noted(brake: Brake, campaign: Campaign | int, verdict: Verdict, times: int = 1) -> Brake:
    campaign_id = campaign if isinstance(campaign, int) else campaign.pk
    for _ in range(times):
        brake.note("default", row(campaign_id), verdict, BLOCKED)
    return brake


def counts_of(campaign: Campaign) -> tuple[int, int, int, int]:
    found = CampaignHealth.objects.get(pk=campaign.pk)
    return found.accepted, found.bounced, found.refused, found.in_a_row


def status_of(campaign: Campaign) -> tuple[str, str]:
    campaign.refresh_from_db()
    return campaign.status, campaign.status_reason


@pytest.mark.django_db
def test_counts_of_all_workers_add_up_and_an_acceptance_ends_the_row() -> None:
    campaign, other = sending(), sending()
    here, there = Brake(), Brake()
    noted(noted(here, campaign, POLICY, 3), other, SENT, 5)
    noted(there, campaign, POLICY, 4)
    assert here.flush() == there.flush() == []
    assert counts_of(campaign) == (0, 0, 7, 7)
    assert counts_of(other) == (5, 0, 0, 0)
    noted(noted(noted(here, campaign, SENT), campaign, POLICY, 2), campaign, DEAD)
    assert here.flush() == []
    assert counts_of(campaign) == (1, 1, 9, 2)
    assert here.flush() == []
    assert counts_of(campaign) == (1, 1, 9, 2), "told once"


@pytest.mark.django_db
def test_refusals_that_each_worker_sees_a_part_of_pause_the_campaign() -> None:
    campaign = sending()
    workers = [Brake() for _ in range(4)]
    pulled = [noted(worker, campaign, POLICY, 5).flush() for worker in workers]
    assert pulled == [[], [], [], [(campaign.pk, IN_A_ROW)]]


@pytest.mark.django_db
def test_the_threshold_is_the_accounts() -> None:
    campaign = sending(account=AccountFactory.create(max_refusals=3))
    brake = Brake()
    assert noted(brake, campaign, POLICY, 2).flush() == []
    noted(brake, campaign, POLICY)
    assert brake.urgent, "it knows by now that every refusal counts"
    assert [c for c, _ in brake.flush()] == [campaign.pk]


@pytest.mark.django_db
def test_a_campaign_that_is_gone_keeps_nobodys_counts_away() -> None:
    campaign = sending()
    brake = Brake()
    noted(noted(brake, campaign.pk + 1000, SENT), campaign, SENT)
    assert brake.flush() == []
    assert counts_of(campaign) == (1, 0, 0, 0)
    with connection.cursor() as cursor:
        cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")


@pytest.mark.django_db(transaction=True)
def test_a_campaign_deleted_at_this_moment_is_left_out() -> None:
    campaign, doomed = sending(), CampaignFactory.create()
    brake = noted(noted(Brake(), campaign, SENT), doomed, SENT)
    with Race() as race:
        with transaction.atomic():
            Campaign.objects.filter(pk=doomed.pk).delete()
            flushing = race.start(brake.flush)
            flushing.wait_until_blocked()
        assert flushing.result() == []
    assert counts_of(campaign) == (1, 0, 0, 0)
    assert CampaignHealth.objects.count() == 1


@pytest.mark.django_db(transaction=True)
def test_two_processes_flush_the_same_campaigns_at_once() -> None:
    first, second = sending(), sending()
    noted(noted(Brake(), first, SENT), second, SENT).flush()
    # Noted in opposite order: neither may hold what the other waits for.
    here = noted(noted(Brake(), first, SENT, 3), second, DEAD, 2)
    there = noted(noted(Brake(), second, DEAD, 5), first, SENT, 7)
    with Race() as race:
        with transaction.atomic():
            CampaignHealth.objects.select_for_update().get(pk=first.pk)
            racers = []
            for brake in (here, there):
                racers.append(race.start(brake.flush))
                racers[-1].wait_until_blocked()
        assert [racer.result() for racer in racers] == [[], []]
    assert counts_of(first) == (11, 0, 0, 0)
    assert counts_of(second) == (1, 7, 0, 0)


@pytest.mark.django_db(transaction=True)
def test_four_workers_that_trip_at_once_pause_it_once() -> None:
    campaign = sending()

    def work() -> list[bool]:
        brake = noted(Brake(), campaign, POLICY, 20)
        return [health.pause(*pulled) for pulled in brake.flush()]

    with Race() as race:
        with transaction.atomic():
            # Holds the flushes together until all four are there.
            noted(Brake(), campaign, SENT).flush()
            racers = [race.start(work) for _ in range(4)]
            for racer in racers:
                racer.wait_until_blocked()
        results = [paused for racer in racers for paused in racer.result()]
    assert results.count(True) == 1, results
    status, reason = status_of(campaign)
    assert status == Campaign.Status.PAUSED
    assert "refusals in a row (policy)" in reason
    assert CampaignHealth.objects.get().base["trips"] == 1


@pytest.mark.django_db
def test_after_a_resume_it_takes_fresh_evidence() -> None:
    campaign = sending()
    brake = Brake()
    assert [health.pause(*p) for p in noted(brake, campaign, POLICY, 20).flush()] == [True]
    # What was in flight at the pause still comes, and others flush it while it is paused.
    assert noted(brake, campaign, POLICY, 30).flush() == []
    assert health.look() == []
    lifecycle.resume(campaign)
    noted(brake, campaign, POLICY, 5)
    assert brake.flush() == [], "told before anybody knows of the resume: still the old evidence"
    assert counts_of(campaign)[3] == 0
    assert noted(brake, campaign, POLICY, 19).flush() == []
    assert health.look() == []
    assert noted(brake, campaign, POLICY).flush() == [(campaign.pk, IN_A_ROW)]
    assert health.pause(campaign.pk, IN_A_ROW)
    assert CampaignHealth.objects.get().base["trips"] == 2


@pytest.mark.django_db
def test_rates_are_taken_from_the_last_resume_whoever_paused_it() -> None:
    campaign = sending()
    brake = noted(noted(Brake(), campaign, SENT, 300), campaign, DEAD, 14)
    assert brake.flush() == []
    lifecycle.pause(campaign)
    assert health.mark_paused() == 1
    assert health.mark_paused() == 0
    lifecycle.resume(campaign)
    assert health.look() == []
    noted(noted(brake, campaign, SENT, 60), campaign, DEAD, 19)
    assert brake.flush() == [], "33 in all, but 19 since"
    noted(brake, campaign, DEAD)
    assert brake.flush() == [
        (campaign.pk, "20 of 80 addresses are dead (25 %; the account's limit is 5 %)")
    ]


@pytest.mark.django_db
def test_a_reason_from_before_a_resume_pauses_nothing() -> None:
    campaign = sending()
    stale = noted(Brake(), campaign, POLICY, 20).flush()
    assert health.pause(*stale[0])
    lifecycle.resume(campaign)
    assert health.pause(*stale[0]) is False
    assert status_of(campaign)[0] == Campaign.Status.SENDING


@pytest.mark.django_db
@pytest.mark.parametrize("status", ["paused", "canceled", "sent"])
def test_only_what_is_running_is_paused(status: str) -> None:
    campaign: Campaign = CampaignFactory.create(**{status: True})
    assert noted(Brake(), campaign, POLICY, 40).flush() == []
    assert health.look() == []
    assert health.pause(campaign.pk, "why") is False
    assert status_of(campaign)[0] == status


@pytest.fixture
def shared() -> Iterator[Shared]:
    made = Shared(
        lanes=1, lot_limit=20, lease=60, margin=10, freshness=5, doubt_wait=600, poll=1
    )  # fmt: skip
    yield made
    made.pool.close()


def complaints(campaign: Campaign, count: int, *, accepted: int = 1000) -> None:
    """As a provider's webhooks bring them."""
    CampaignHealth.objects.update_or_create(
        campaign=campaign, defaults={"complained": count, "accepted": accepted}
    )


@pytest.mark.django_db
def test_complaints_by_webhook_pause_a_campaign_of_which_this_process_sent_nothing(
    shared: Shared, caplog: pytest.LogCaptureFixture
) -> None:
    campaign, other = sending(), sending()
    upkeep = Upkeep(shared, watch_drain=False, patience=0)
    complaints(campaign, 2)
    assert upkeep.apply_brakes() is False
    complaints(campaign, 3)
    assert upkeep.apply_brakes() is True
    assert status_of(campaign) == (
        "paused",
        "3 complaints about 1000 messages (0.3 %; the account's limit is 0.1 %)",
    )
    assert status_of(other)[0] == "sending"
    assert upkeep.apply_brakes() is False
    lifecycle.resume(campaign)
    assert upkeep.apply_brakes() is False
    complaints(campaign, 5)
    assert upkeep.apply_brakes() is False, "two more since it was resumed"
    complaints(campaign, 6)
    assert upkeep.apply_brakes() is True
    told = [r for r in caplog.records if getattr(r, "event", "") == "campaign_paused"]
    assert len(told) == 2


@pytest.mark.django_db
def test_a_worker_of_one_campaign_looks_at_that_one() -> None:
    campaign, other = sending(), sending()
    complaints(campaign, 3)
    complaints(other, 3)
    assert [c for c, _ in health.look(other.pk)] == [other.pk]
    assert [c for c, _ in health.look()] == [campaign.pk, other.pk]


@pytest.mark.django_db(transaction=True)
def test_counts_are_kept_when_the_database_fails() -> None:
    campaign = sending()
    brake = noted(Brake(), campaign, POLICY, 3)
    noted(Brake(), campaign, DEAD).flush()

    with Race() as race, transaction.atomic():
        CampaignHealth.objects.select_for_update().get()
        flushing = race.start(brake.flush)
        flushing.wait_until_blocked()
        flushing.kill_backend()
        with pytest.raises(OperationalError):
            flushing.result()
        noted(brake, campaign, POLICY, 2)
    assert brake.urgent
    assert brake.flush() == []
    assert counts_of(campaign) == (0, 1, 5, 5)


@pytest.mark.django_db
def test_errors_in_a_row_pause_the_transport_for_everybody() -> None:
    account: Account = AccountFactory.create()
    brake = Brake()
    for _ in range(10):
        brake.note("default", row(None), LOST, Answer(Stage.HTTP, 500, "", "oops"))
    assert brake.flush() == []
    found = TransportPause.objects.get()
    assert (found.alias, found.account, found.stage, found.code) == ("default", None, ERRORS, 500)
    assert found.reason == "10 errors in a row, at the provider: 500 oops"
    there = Brake()
    there.pauses.refresh()
    assert there.pauses.blocks("default", account.pk)
    assert there.pauses.probing("default")


@pytest.mark.django_db
def test_the_last_counts_are_told_when_upkeep_ends(shared: Shared) -> None:
    campaign = sending()
    noted(shared.brake, campaign, SENT, 2)
    Upkeep(shared, watch_drain=False, patience=0)._tell_the_last()
    assert counts_of(campaign)[0] == 2
