"""Provider events beside a worker, beside each other, and in a crash."""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from typing import Any

import pytest
from django.db import connection, transaction
from django.utils import timezone

from campaigns import gate, lifecycle
from sending.handover import hand_over
from sending.models import CampaignHealth, DeliveryEvent
from sending.settle import settle
from sending.tracking import inbox as tracking
from subscribers import consent, suppression

from .racing import Race
from .rows import LEASE, campaign_to, held, row, status_of, take, told
from .tracked import (
    DEAD,
    TOKEN,
    counts,
    event_of,
    handed,
    result_of,
    suppressions,
    tell,
)

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize(
    ("kind", "outcome", "end"),
    [
        ("delivered", "sent", "sent"),
        ("delivered", "in_doubt", "sent"),
        ("delivered", "retry", "sent"),
        ("delivered", "bounced", "sent"),
        ("hard_bounce", "sent", "bounced"),
        ("hard_bounce", "in_doubt", "bounced"),
        ("rejected", "sent", "failed"),
        ("rejected", "retry", "failed"),
    ],
)
def test_an_event_before_the_outcome_commits(kind: str, outcome: str, end: str) -> None:
    send, claimed = handed()
    assert tell(send, kind, text=DEAD if kind == "hard_bounce" else "") == ["applied"]
    assert settle([told(claimed, outcome)], doubt_wait=600) == {}
    assert status_of(send) == end


def test_a_row_that_was_claimed_for_a_repeat_is_not_handed_over_any_more() -> None:
    campaign = campaign_to(0)
    send = row(campaign, "queued", handed_at=timezone.now(), attempts=1, doubt_tokens=[TOKEN])
    (claimed,) = take([campaign.pk], 1)
    assert tell(send, "delivered") == ["applied"]
    assert hand_over([claimed], lease=LEASE).go == []
    assert status_of(send) == "sent"


def test_a_campaign_that_is_sent_is_not_opened_again() -> None:
    campaign = campaign_to(0, status="sent")
    send = row(campaign, "in_doubt")
    tell(send, "rejected")
    tell(row(campaign, "in_doubt"), "hard_bounce", text=DEAD)
    campaign.refresh_from_db()
    assert (campaign.status, status_of(send)) == ("sent", "failed")


def test_nothing_happens_to_a_campaign_about_which_somebody_decides(
    transactional_db: None,
) -> None:
    campaign, other = campaign_to(0), campaign_to(0)
    send, free = row(campaign, "in_doubt"), row(other, "in_doubt")
    events = [event_of(send, "delivered"), event_of(free, "delivered")]
    tracking.store(events)
    with Race() as race:
        halt = race.halt()

        def decide() -> None:
            with transaction.atomic(), connection.cursor() as cursor:
                gate.enter_exclusive(cursor, campaign.pk)
                halt.here()

        race.start_to(halt, decide)
        assert tracking.apply_waiting() == 1
        assert [result_of(e) for e in events] == ["waiting", "applied"]
        assert (status_of(send), status_of(free)) == ("in_doubt", "sent")
    assert tracking.apply_waiting() == 1
    assert status_of(send) == "sent"


def test_two_workers_apply_each_event_once(transactional_db: None) -> None:
    campaign = campaign_to(0)
    sends = [row(campaign, "in_doubt") for _ in range(12)]
    kinds = ("queued", "delivered", "complained", "hard_bounce")
    tracking.store([event_of(s, kind, text=DEAD) for s in sends for kind in kinds])

    def work() -> int:
        done = 0
        while n := tracking.apply_waiting(7):
            done += n
        return done

    with Race() as race:
        first, second = race.start(work), race.start(work)
        total = first.result() + second.result() + work()
    assert total == len(sends) * len(kinds)
    assert {status_of(send) for send in sends} == {"bounced"}
    assert DeliveryEvent.objects.count() == total
    health = CampaignHealth.objects.get()
    assert (health.bounced, health.complained) == (12, 12)
    assert set(suppressions()) == {(send.email, "complaint") for send in sends}


def test_one_that_dies_half_way_has_done_nothing(transactional_db: None) -> None:
    """The events stay stored, and the next one applies them."""
    campaign = campaign_to(0)
    send = row(campaign, "in_doubt")
    event = event_of(send, "hard_bounce", text=DEAD)
    tracking.store([event])
    with Race() as race:
        halt = race.halt()
        original = tracking._mark
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(tracking, "_mark", halt.behind(original))
            racer = race.start_to(halt, tracking.apply_waiting)
            assert tracking.apply_waiting() == 0  # the other one has it
            racer.kill_backend()
            halt.released.set()
            with pytest.raises(Exception, match=r"terminat|closed|lost"):
                racer.result()
    assert (result_of(event), status_of(send), suppressions()) == ("waiting", "in_doubt", [])
    assert tracking.apply_waiting() == 1
    assert (result_of(event), status_of(send)) == ("applied", "bounced")
    assert suppressions() == [(send.email, "hard_bounce")]


def test_it_works_beside_a_worker_that_settles_and_suppresses(transactional_db: None) -> None:
    campaign = campaign_to(0)
    sends = [row(campaign, "sending") for _ in range(20)]
    tracking.store([event_of(s, kind, text=DEAD) for s in sends for kind in ("queued", "rejected")])

    def worker() -> None:
        for send in reversed(sends):
            settle([told(held(send), "bounced")], doubt_wait=600)

    def applier() -> None:
        while tracking.apply_waiting(5):
            pass

    with Race() as race:
        racers = [race.start(worker), race.start(applier), race.start(applier)]
        for racer in racers:
            racer.result()
    assert {status_of(send) for send in sends} <= {"bounced", "failed"}


def test_two_requests_with_the_same_events_in_two_orders(transactional_db: None) -> None:
    """They wait for each other, but not in a circle, wherever they meet."""
    send = row(campaign_to(0), "sent")
    first, middle, last = (event_of(send, "opened", event_id=f"Test:{n}") for n in "amz")

    class Undo(Exception):
        pass

    with Race() as race:
        halt = race.halt()

        def hold_the_middle() -> None:
            with suppress(Undo), transaction.atomic():
                tracking.store([middle])
                halt.here()
                raise Undo

        race.start_to(halt, hold_the_middle)
        racers = []
        for order in ([first, middle, last], [last, middle, first]):
            racers.append(race.start(partial(tracking.store, order)))
            racers[-1].wait_until_blocked()
        halt.released.set()
        assert sum(racer.result() for racer in racers) == 3
    assert counts() == {"Test replayed": 3}


def test_the_workers_are_woken(transactional_db: None) -> None:
    send = row(campaign_to(0), "in_doubt")
    with connection.cursor() as cursor:
        cursor.execute(f"LISTEN {lifecycle.CHANNEL}")
    with Race() as race:
        event = event_of(send, "delivered")
        race.start(lambda: tracking.store([event])).result()
        race.start(lambda: tracking.store([event])).result()
    told_of = list(connection.connection.notifies(timeout=2, stop_after=1))
    assert [n.payload for n in told_of] == ["events"]
    tracking.store([event_of(send, "opened")])
    assert list(connection.connection.notifies(timeout=0.1)) == []
    with connection.cursor() as cursor:
        cursor.execute(f"UNLISTEN {lifecycle.CHANNEL}")


@pytest.mark.django_db(transaction=True)
def test_an_unsubscription_told_beside_one_here_waits_and_not_in_a_circle(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    send = row(campaign_to(0), "sent")
    person = send.subscriber
    assert person is not None
    event = event_of(send, "unsubscribed")
    tracking.store([event])
    with Race() as race:
        halt = race.halt()

        def holding_the_person(*given: Any, **more: Any) -> Any:
            halt.here()
            return suppression.suppress(*given, **more)

        monkeypatch.setattr(consent, "suppress", holding_the_person)
        here = race.start_to(halt, lambda: consent.unsubscribe(person, evidence="a link"))
        told = race.start(tracking.apply_waiting)
        told.wait_until_blocked()
        halt.released.set()
        assert here.result() is True
        assert told.result() == 1
    assert result_of(event) == "applied"
    assert suppressions() == [(send.email, "unsubscribed")]
