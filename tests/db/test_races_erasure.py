"""A person is erased while the protocol moves their row, on two connections, in both orders."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.db import connection, transaction

from campaigns import gate, lifecycle
from campaigns.models import Campaign
from sending import build as builder
from sending import erasure, events
from sending.build import Progress, build, build_chunk
from sending.handover import hand_over
from sending.models import Send
from sending.settle import settle
from sending.sql import erasure as sql
from sending.tracking import inbox
from subscribers.models import Subscriber

from .forgotten import forget, places_of
from .racing import Halt, Race
from .rows import LEASE, assert_identity, campaign_to, held, row, status_of, take, told
from .tracked import DEAD, event_of, handed, result_of, suppressions

pytestmark = pytest.mark.django_db(transaction=True)


def _person(send: Send) -> Subscriber:
    assert send.subscriber is not None
    return send.subscriber


def _erasing_halts_at_its_end(monkeypatch: pytest.MonkeyPatch, halt: Halt) -> None:
    """With its locks held and nothing committed."""
    forgetting: Callable[..., Any] = erasure._forget_rows
    monkeypatch.setattr(erasure, "_forget_rows", halt.behind(forgetting))


# --- build -----------------------------------------------------------------------------------


def test_a_chunk_that_found_the_person_is_built_again_without_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    campaign = campaign_to(3)
    gone = Subscriber.objects.order_by("pk")[1]
    with Race() as race:
        halt = race.halt()
        monkeypatch.setattr(builder, "Progress", halt.behind(Progress))
        building = race.start_to(halt, lambda: build_chunk(campaign.pk, size=10))
        forget(gone)
        halt.released.set()
        assert building.result() == Progress(inserted=2, done=False)
    build(campaign.pk, size=10)
    assert Send.objects.count() == 2
    assert places_of(gone.email) == []
    assert_identity(campaign)


def test_a_chunk_that_wants_to_commit_meanwhile_waits_and_is_built_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    campaign = campaign_to(3)
    gone = Subscriber.objects.order_by("pk")[1]
    with Race() as race:
        halt = race.halt(passing=1)  # the second look comes after the person is held
        _erasing_halts_at_its_end(monkeypatch, halt)
        erasing = race.start_to(halt, lambda: forget(gone))
        building = race.start(lambda: build_chunk(campaign.pk, size=10))
        building.wait_until_blocked()
        halt.released.set()
        erasing.result()
        assert building.result() == Progress(inserted=2, done=False)
    build(campaign.pk, size=10)
    assert places_of(gone.email) == []
    assert Send.objects.count() == 2
    assert_identity(campaign)


@pytest.mark.parametrize("looks", [2, 1], ids=["second look", "control"])
def test_a_row_built_since_the_first_look_is_seen_by_the_second(
    looks: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    campaign = campaign_to(1)
    gone = Subscriber.objects.get()
    if looks == 1:
        monkeypatch.setattr(sql, "HOLD_PERSON", "SELECT %(subscriber)s")
        first: Callable[..., int] = erasure._forget_rows
        done: list[bool] = []

        def once(*given: Any) -> int:
            if done:
                return 0
            done.append(True)
            return first(*given)

        monkeypatch.setattr(erasure, "_forget_rows", once)
    with Race() as race:
        halt = race.halt()
        _erasing_halts_at_its_end(monkeypatch, halt)
        erasing = race.start_to(halt, lambda: forget(gone))
        assert build_chunk(campaign.pk, size=10) == Progress(inserted=1, done=False)
        halt.released.set()
        erasing.result()
    places = places_of(gone.email)
    assert places == (
        [] if looks == 2 else ["sendonce_sending_send.email", "sendonce_sending_send.email_lower"]
    )


# --- claim and hand-over ---------------------------------------------------------------------


def test_a_claim_leaves_out_whom_an_erasure_holds(monkeypatch: pytest.MonkeyPatch) -> None:
    campaign = campaign_to(0)
    send, other = row(campaign), row(campaign)
    with Race() as race:
        halt = race.halt()
        _erasing_halts_at_its_end(monkeypatch, halt)
        erasing = race.start_to(halt, lambda: forget(_person(send)))
        assert [r.id for r in take([campaign.pk], 10)] == [other.pk], "nobody waits"
        halt.released.set()
        erasing.result()
    assert status_of(send) == "suppressed"


def test_an_erasure_waits_for_a_claim_and_closes_it() -> None:
    campaign = campaign_to(0)
    send = row(campaign)
    with Race() as race:
        with transaction.atomic():
            (claimed,) = take([campaign.pk], 1)
            erasing = race.start(lambda: forget(_person(send)))
            erasing.wait_until_blocked()
        erasing.result()
    assert status_of(send) == "suppressed"
    found = hand_over([claimed], lease=LEASE)
    assert (found.go, found.withheld) == ([], {})


def test_a_hand_over_that_waits_for_an_erasure_sends_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    campaign = campaign_to(0)
    send, other = row(campaign, "claimed"), row(campaign, "claimed")
    with Race() as race:
        halt = race.halt()
        _erasing_halts_at_its_end(monkeypatch, halt)
        erasing = race.start_to(halt, lambda: forget(_person(send)))
        handing = race.start(lambda: hand_over([held(send), held(other)], lease=LEASE))
        handing.wait_until_blocked()
        halt.released.set()
        erasing.result()
        assert [r.id for r in handing.result().go] == [other.pk]
    assert status_of(send) == "suppressed"


def test_an_erasure_that_waits_for_a_hand_over_leaves_the_message_on_the_wire(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    campaign = campaign_to(0)
    send = row(campaign, "claimed")
    worker = held(send)
    email = str(send.email)
    with Race() as race:
        halt = race.halt()
        monkeypatch.setattr(events, "record", halt.behind(events.record))
        handing = race.start_to(halt, lambda: hand_over([worker], lease=LEASE))
        erasing = race.start(lambda: forget(_person(send)))
        erasing.wait_until_blocked()
        halt.released.set()
        assert [r.id for r in handing.result().go] == [send.pk]
        erasing.result()
    assert status_of(send) == "sending"
    assert settle([told(worker, "sent")], doubt_wait=0) == {send.pk: "sent"}
    assert places_of(email) == []


# --- outcomes and webhooks -------------------------------------------------------------------


@pytest.mark.parametrize("first", ["outcome", "erasure"])
def test_a_bounce_beside_an_erasure_leaves_no_address(
    first: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    send, claimed = handed()
    email = str(send.email)
    person = _person(send)

    def settling() -> object:
        return settle([told(claimed, "bounced")], doubt_wait=0)

    with Race() as race:
        halt = race.halt()
        if first == "outcome":
            monkeypatch.setattr(events, "record", halt.behind(events.record))
            ahead: Any = race.start_to(halt, settling)
            behind: Any = race.start(lambda: _forget_all(person))
        else:
            _erasing_halts_at_its_end(monkeypatch, halt)
            ahead = race.start_to(halt, lambda: _forget_all(person))
            behind = race.start(settling)
        behind.wait_until_blocked()
        halt.released.set()
        ahead.result()
        behind.result()
    assert status_of(send) == "bounced"
    assert places_of(email) == []
    assert suppressions() == [(None, "erased")]


@pytest.mark.parametrize("kind", ["hard_bounce", "complained", "unsubscribed"])
@pytest.mark.parametrize("first", ["webhook", "erasure"])
def test_a_webhook_beside_an_erasure_leaves_no_address(
    first: str, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    send = row(campaign_to(0), "sent")
    email = str(send.email)
    person = _person(send)
    event = event_of(send, kind, text=f"{DEAD}: {email}")
    inbox.store([event])
    with Race() as race:
        halt = race.halt()
        if first == "webhook":
            monkeypatch.setattr(events, "record", halt.behind(events.record))
            ahead: Any = race.start_to(halt, inbox.apply_waiting)
            behind: Any = race.start(lambda: _forget_all(person))
        else:
            _erasing_halts_at_its_end(monkeypatch, halt)
            ahead = race.start_to(halt, lambda: _forget_all(person))
            behind = race.start(inbox.apply_waiting)
        behind.wait_until_blocked()
        halt.released.set()
        ahead.result()
        behind.result()
    assert result_of(event) == "applied"
    assert places_of(email) == []
    assert suppressions() == [(None, "erased")]


def _forget_all(person: Subscriber) -> None:
    """As ``forget``, and what stands on the list in plain goes after the ledger's part."""
    with transaction.atomic():
        forget(person)
        with connection.cursor() as cursor:
            cursor.execute(
                "DELETE FROM sendonce_subscribers_suppression WHERE email_lower = lower(%s)",
                [person.email],
            )


# --- decisions -------------------------------------------------------------------------------


def test_an_erasure_neither_waits_at_a_gate_nor_keeps_anybody_there(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    campaign = campaign_to(0)
    send, other = row(campaign), row(campaign, "sent")
    with Race() as race:
        with transaction.atomic(), connection.cursor() as cursor:
            gate.enter_exclusive(cursor, campaign.pk)
            race.start(lambda: forget(_person(send))).result()
        halt = race.halt()
        _erasing_halts_at_its_end(monkeypatch, halt)
        erasing = race.start_to(halt, lambda: forget(_person(other)))
        lifecycle.pause(campaign)
        halt.released.set()
        erasing.result()
    assert Campaign.objects.get(pk=campaign.pk).status == "paused"
    assert status_of(send) == "suppressed"


def test_a_cancel_beside_an_erasure_closes_each_row_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    campaign = campaign_to(0)
    send, other = row(campaign), row(campaign)
    with Race() as race:
        halt = race.halt()
        _erasing_halts_at_its_end(monkeypatch, halt)
        erasing = race.start_to(halt, lambda: forget(_person(send)))
        canceling = race.start(lambda: lifecycle.cancel(campaign))
        canceling.wait_until_blocked()
        halt.released.set()
        erasing.result()
        canceling.result()
    assert (status_of(send), status_of(other)) == ("suppressed", "canceled")
