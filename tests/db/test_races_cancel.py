"""``cancel`` against open rows and a build, on two connections, beside its controls."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.db import transaction

from campaigns import lifecycle
from sending import sql
from sending.build import build_chunk
from sending.connections import Busy
from sending.handover import give_back
from sending.models import Send

from .race_rules import (
    PASSING,
    gate_or_control,
    late_refusal,
    late_return,
    status_now,
    stop_before_commit,
)
from .racing import Race, without_gate
from .rows import assert_identity, campaign_to, held, kinds_of, row, status_of

pytestmark = pytest.mark.django_db(transaction=True)


@gate_or_control
@pytest.mark.parametrize("opens", [late_refusal, late_return], ids=["retry", "give-back"])
def test_cancel_against_a_row_that_opens(
    opens: Callable[[Send], Callable[[], object]], gated: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    campaign = campaign_to(0)
    send = row(campaign, "sending")
    if not gated:
        without_gate(monkeypatch)
    with Race() as race:
        halt = race.halt(PASSING[opens])
        stop_before_commit(monkeypatch, halt)
        opening = race.start_to(halt, opens(send))
        canceling = race.start(lambda: lifecycle.cancel(campaign))
        if gated:
            canceling.wait_until_blocked()
        else:
            canceling.result()
        halt.released.set()
        opening.result()
        canceling.result()
    assert status_now(campaign) == "canceled"
    if gated:
        assert status_of(send) == "canceled"
    else:
        assert status_of(send) in ("retry", "queued"), "control: open in a canceled campaign"


@gate_or_control
@pytest.mark.parametrize("opens", [late_refusal, late_return], ids=["retry", "give-back"])
def test_a_row_that_would_open_while_cancel_decides_comes_again(
    opens: Callable[[Send], Callable[[], object]], gated: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    campaign = campaign_to(0)
    send = row(campaign, "sending")
    opening = opens(send)
    if not gated:
        without_gate(monkeypatch)
    with Race() as race, transaction.atomic():
        lifecycle.cancel(campaign)
        racer = race.start(opening)
        if gated:
            with pytest.raises(Busy):
                racer.result()
            assert status_of(send) == "sending"
        else:
            racer.result()
    if gated:
        opening()
        assert status_of(send) == "canceled"
        assert kinds_of(send) == ["canceled"]
    else:
        assert status_of(send) in ("retry", "queued"), "control: open in a canceled campaign"


def test_a_claimed_row_goes_back_while_cancel_decides_and_is_canceled_then(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """No gate is needed for it: claimed and queued are both open, and a cancel closes both."""
    campaign = campaign_to(0)
    send = row(campaign, "claimed")
    with Race() as race:
        halt = race.halt()
        monkeypatch.setattr(lifecycle, "_notify", halt.behind(lifecycle._notify))
        canceling = race.start_to(halt, lambda: lifecycle.cancel(campaign))
        assert give_back([held(send)]) == 1
        assert status_of(send) == "queued"
        halt.released.set()
        canceling.result()
    assert status_of(send) == "canceled"
    assert kinds_of(send) == ["canceled"]


@pytest.mark.parametrize("waiting", [True, False], ids=["row lock", "control"])
def test_cancel_closes_the_claimed_row_that_is_just_going_back(
    waiting: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    campaign = campaign_to(0)
    send = row(campaign, "claimed")
    if not waiting:
        locking = "FOR NO KEY UPDATE OF s"
        skipping = sql.CANCEL_ROWS.replace(locking, f"{locking} SKIP LOCKED")
        monkeypatch.setattr(sql, "CANCEL_ROWS", skipping)
    with Race() as race:
        halt = race.halt()
        stop_before_commit(monkeypatch, halt)
        returning = race.start_to(halt, lambda: give_back([held(send)]))
        canceling = race.start(lambda: lifecycle.cancel(campaign))
        if waiting:
            canceling.wait_until_blocked()
            assert status_now(campaign) == "canceled", "it waits for the row, not at the gate"
        else:
            canceling.result()
        halt.released.set()
        assert returning.result() == 1
        canceling.result()
    if waiting:
        assert status_of(send) == "canceled"
    else:
        assert status_of(send) == "queued", "control: open in a canceled campaign"


def test_a_claimed_row_that_cancel_has_closed_does_not_go_back() -> None:
    campaign = campaign_to(0)
    send = row(campaign, "claimed")
    with Race() as race:
        with transaction.atomic():
            lifecycle.cancel(campaign)
            returning = race.start(lambda: give_back([held(send)]))
            returning.wait_until_blocked()
        assert returning.result() == 0
    assert status_of(send) == "canceled"
    assert kinds_of(send) == ["canceled"]


@pytest.mark.parametrize("opens", [late_refusal, late_return], ids=["retry", "give-back"])
def test_a_row_that_would_open_in_a_canceled_campaign_is_canceled(
    opens: Callable[[Send], Callable[[], object]],
) -> None:
    campaign = campaign_to(0)
    send = row(campaign, "sending")
    lifecycle.cancel(campaign)
    assert status_of(send) == "sending"
    opens(send)()
    assert status_of(send) == "canceled"


@pytest.mark.parametrize("guards", ["gate", "cursor lock only", "control"])
def test_cancel_against_a_build_chunk(guards: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A chunk that stands in the middle of its INSERT while the campaign is canceled.

    The chunk's own row lock on the campaign would do as well; with neither, rows are queued in
    a canceled campaign.
    """
    campaign = campaign_to(3)
    person = campaign.segments.get().subscribers.get_queryset().order_by("id")[1]
    if guards != "gate":
        without_gate(monkeypatch)
    if guards == "control":
        monkeypatch.setattr(sql, "CHUNK_CURSOR", "SELECT 1")
        inserting, _, _ = sql.CHUNK_INSERT.partition(f"UPDATE {sql.CAMPAIGN}")
        counting = "SELECT (SELECT count(*) FROM inserted), (SELECT n FROM people)"
        monkeypatch.setattr(sql, "CHUNK_INSERT", inserting + counting)
    with Race() as race:
        with transaction.atomic():
            # Somebody else's row for one of the people, never committed, holds the INSERT up.
            Send.objects.create(
                account=campaign.account,
                campaign=campaign,
                subscriber=person,
                email=person.email,
                job_id="held up",
            )
            building = race.start(lambda: build_chunk(campaign.pk, size=100))
            building.wait_until_blocked()
            canceling = race.start(lambda: lifecycle.cancel(campaign))
            if guards == "control":
                canceling.result()
            else:
                canceling.wait_until_blocked()
            transaction.set_rollback(True)
        progress = building.result()
        canceling.result()
    assert progress is not None
    assert progress.inserted == 3
    found = set(Send.objects.filter(campaign=campaign).values_list("status", flat=True))
    if guards == "control":
        assert found == {"queued"}, "control: queued in a canceled campaign"
    else:
        assert found == {"canceled"}
        assert_identity(campaign)


def test_no_chunk_is_built_after_cancel() -> None:
    campaign = campaign_to(3)
    lifecycle.cancel(campaign)
    assert build_chunk(campaign.pk, size=100) is None
    assert not Send.objects.exists()
