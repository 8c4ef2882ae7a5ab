"""While somebody decides about a campaign, nobody waits at its gate but other decisions."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection, transaction
from django.utils import timezone

from campaigns import gate, lifecycle
from campaigns.editing import edit
from campaigns.errors import GateBusy
from campaigns.models import Campaign
from sending import doubt
from sending.connections import Busy
from sending.handover import give_back, hand_over
from sending.models import Send, Worker
from sending.rescue import rescue_dead, rescue_expired
from sending.settle import settle
from sending.withdraw import withdraw_leavers
from tests.factories import WorkerFactory

from .racing import Race
from .rows import LEASE, campaign_to, held, kinds_of, row, status_of, told

pytestmark = pytest.mark.django_db(transaction=True)


@contextmanager
def _decision(campaign: Campaign) -> Iterator[Race]:
    """This thread decides; the race's others come meanwhile."""
    with Race() as race, transaction.atomic(), connection.cursor() as cursor:
        gate.enter_exclusive(cursor, campaign.pk)
        yield race


def _expired() -> dict[str, Any]:
    return {"lease_until": timezone.now() - timedelta(seconds=1)}


def test_a_lot_of_two_campaigns_hands_over_the_one_that_is_not_busy() -> None:
    busy, free = campaign_to(0), campaign_to(0)
    ours = [held(row(busy, "claimed")), held(row(free, "claimed")), held(row(busy, "claimed"))]
    with _decision(busy) as race:
        handed = race.start(lambda: hand_over(ours, lease=LEASE)).result()
        assert handed.go == [ours[1]]
        assert handed.busy == [ours[0], ours[2]]
        assert handed.withheld == {}
        states = dict(Send.objects.values_list("id", "status"))
        assert [states[r.id] for r in ours] == ["claimed", "sending", "claimed"]
    assert hand_over(handed.busy, lease=LEASE).go == handed.busy


@pytest.mark.parametrize("outcome", ["sent", "retry", "bounced", "failed", "in_doubt"])
def test_outcomes_are_all_written_or_none(outcome: str) -> None:
    busy, free = campaign_to(0), campaign_to(0)
    sends = [row(busy, "sending"), row(free, "sending")]
    lot = [told(held(s), outcome) for s in sends]
    with _decision(busy) as race:
        writing = race.start(lambda: settle(lot, doubt_wait=0))
        with pytest.raises(Busy):
            writing.result()
        assert [status_of(s) for s in sends] == ["sending", "sending"]
        assert [kinds_of(s) for s in sends] == [[], []]
    assert settle(lot, doubt_wait=0) == {s.pk: outcome for s in sends}


def test_what_was_merely_claimed_goes_back_although_the_rest_is_busy() -> None:
    busy = campaign_to(0)
    claimed, sending = row(busy, "claimed"), row(busy, "sending", attempts=1)
    in_doubt = row(busy, "in_doubt")
    ours = [held(claimed), held(sending), held(in_doubt)]
    with _decision(busy) as race:
        returning = race.start(lambda: give_back(ours))
        with pytest.raises(Busy):
            returning.result()
        assert [status_of(s) for s in (claimed, sending, in_doubt)] == [
            "queued",
            "sending",
            "in_doubt",
        ]
    assert give_back(ours) == 2
    assert {status_of(s) for s in (claimed, sending, in_doubt)} == {"queued"}


def test_a_give_back_of_claimed_rows_needs_no_gate() -> None:
    busy = campaign_to(0)
    send = row(busy, "claimed")
    with _decision(busy) as race:
        assert race.start(lambda: give_back([held(send)])).result() == 1
    assert status_of(send) == "queued"


def test_rescue_comes_back_for_a_busy_campaign() -> None:
    busy, free = campaign_to(0), campaign_to(0)
    sends = [row(busy, "sending", **_expired()), row(free, "sending", **_expired())]
    with _decision(busy) as race:
        assert race.start(lambda: rescue_expired(doubt_wait=0)).result() == 1
        assert [status_of(s) for s in sends] == ["sending", "in_doubt"]
    assert rescue_expired(doubt_wait=0) == 1
    assert status_of(sends[0]) == "in_doubt"


def test_a_dead_worker_is_not_done_with_while_rows_of_it_are_left() -> None:
    busy, free = campaign_to(0), campaign_to(0)
    worker: Worker = WorkerFactory.create(locked=True)
    sends = [row(busy, "sending", worker=worker), row(free, "sending", worker=worker)]
    with _decision(busy) as race:
        assert race.start(lambda: rescue_dead(doubt_wait=0)).result() == 1
        assert [status_of(s) for s in sends] == ["sending", "in_doubt"]
        worker.refresh_from_db()
        assert worker.ended is None
    assert rescue_dead(doubt_wait=0) == 1
    assert status_of(sends[0]) == "in_doubt"
    worker.refresh_from_db()
    assert worker.ended is not None


def test_somebody_who_leaves_does_not_wait() -> None:
    busy, free = campaign_to(0), campaign_to(0)
    sends = [row(busy), row(free)]
    people = [s.subscriber for s in sends if s.subscriber is not None]
    for person in people:
        person.memberships.update(left_at=timezone.now())
    ids = [person.pk for person in people]
    with _decision(busy) as race:
        assert race.start(lambda: withdraw_leavers(ids)).result() == 1
        assert [status_of(s) for s in sends] == ["queued", "suppressed"]
    Send.objects.filter(pk=sends[0].pk).update(status="queued")
    assert withdraw_leavers(ids) == 1
    assert status_of(sends[0]) == "suppressed"


# --- decisions wait, but not for ever --------------------------------------------------------

DECISIONS: dict[str, Callable[[Campaign], object]] = {
    "pause": lifecycle.pause,
    "cancel": lifecycle.cancel,
    "finish": lifecycle.finish,
}


@pytest.mark.parametrize("verb", DECISIONS)
def test_a_decision_says_that_the_gate_is_busy(verb: str, monkeypatch: pytest.MonkeyPatch) -> None:
    campaign = campaign_to(0)
    send = row(campaign, "in_doubt")
    monkeypatch.setattr(gate, "DECISION_PATIENCE", "SET LOCAL lock_timeout = '50ms'")
    with Race() as race:
        with transaction.atomic(), connection.cursor() as cursor:
            assert gate.try_shared(cursor, [campaign.pk]) == set()
            deciding = race.start(lambda: DECISIONS[verb](campaign))
            with pytest.raises(GateBusy, match="busy"):
                deciding.result()
        assert status_of(send) == "in_doubt"
        assert Campaign.objects.get(pk=campaign.pk).status == "sending"
        DECISIONS[verb](campaign)


@pytest.mark.parametrize("decision", doubt.DECISIONS)
def test_doubt_of_a_busy_campaign_is_left_for_another_time(
    decision: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    campaign = campaign_to(0)
    send = row(campaign, "in_doubt")
    monkeypatch.setattr(gate, "DECISION_PATIENCE", "SET LOCAL lock_timeout = '50ms'")
    with _decision(campaign) as race:
        assert race.start(lambda: doubt.resolve([send], decision)).result() == 0
        assert status_of(send) == "in_doubt"
    assert doubt.resolve([send], decision) == 1


def test_an_edit_says_that_the_gate_is_busy(monkeypatch: pytest.MonkeyPatch) -> None:
    campaign = campaign_to(0, status="approved")
    monkeypatch.setattr(gate, "DECISION_PATIENCE", "SET LOCAL lock_timeout = '50ms'")
    with _decision(campaign) as race:
        editing = race.start(
            lambda: edit(campaign, version=campaign.version, values={"name": "Renamed"})
        )
        with pytest.raises(GateBusy):
            editing.result()


def test_the_patience_of_a_decision_ends_with_its_transaction() -> None:
    campaign = campaign_to(0)
    with connection.cursor() as cursor:
        cursor.execute("SHOW lock_timeout")
        before = cursor.fetchone()
        with transaction.atomic():
            gate.enter_exclusive(cursor, campaign.pk)
            cursor.execute("SHOW lock_timeout")
            assert cursor.fetchone() == ("20s",)
        cursor.execute("SHOW lock_timeout")
        assert cursor.fetchone() == before != ("20s",)
