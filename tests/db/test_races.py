"""The races of the protocol, on two connections, each beside its control.

Every control takes one guard away (the gate, the second statement, the compare-and-set) and
shows that the race is then lost: the test proves that the guard matters, not only that all is
well today.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from functools import partial
from typing import Any

import pytest
from django.db import connection, transaction
from django.utils import timezone

from campaigns import hooks, lifecycle
from campaigns.models import Campaign
from sending import build, doubt, events, rescue, sql
from sending.build import build_chunk
from sending.connections import Busy
from sending.handover import give_back, hand_over
from sending.models import Send
from sending.settle import settle
from subscribers.consent import unsubscribe
from subscribers.suppression import suppress

from .racing import Halt, Race, without_gate
from .rows import (
    LEASE,
    assert_identity,
    campaign_to,
    held,
    kinds_of,
    member,
    row,
    status_of,
    take,
    told,
)

pytestmark = pytest.mark.django_db(transaction=True)


def _just_now() -> datetime:
    return timezone.now() - timedelta(seconds=1)


gate_or_control = pytest.mark.parametrize("gated", [True, False], ids=["gate", "control"])


def _stop_before_commit(monkeypatch: pytest.MonkeyPatch, halt: Halt) -> None:
    """Outcomes, hand-overs, give-backs and rescues note their events last."""
    monkeypatch.setattr(events, "record", halt.behind(events.record))


def _status(campaign: Campaign) -> str:
    return Campaign.objects.values_list("status", flat=True).get(pk=campaign.pk)


def _built(campaign: Campaign) -> Campaign:
    Campaign.objects.filter(pk=campaign.pk).update(
        built_at=timezone.now(), audience=Send.objects.filter(campaign=campaign).count()
    )
    return campaign


# --- finish ----------------------------------------------------------------------------------


def _late_refusal(send: Send) -> Callable[[], object]:
    return lambda: settle([told(held(send), "retry")], doubt_wait=0)


def _late_return(send: Send) -> Callable[[], object]:
    return lambda: give_back([held(send)])


#: How often it passes ``events.record`` before the transaction that opens the row: a give-back
#: looks for rows that are merely claimed first.
PASSING: dict[Any, int] = {_late_refusal: 0, _late_return: 1}


@gate_or_control
@pytest.mark.parametrize("opens", [_late_refusal, _late_return], ids=["retry", "give-back"])
def test_finish_against_a_row_that_opens(
    opens: Callable[[Send], Callable[[], object]], gated: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Held doubt lets a campaign finish; its late answer "not accepted" opens the row."""
    campaign = campaign_to(0)
    send = row(campaign, "in_doubt")
    _built(campaign)
    if not gated:
        without_gate(monkeypatch)
    with Race() as race:
        halt = race.halt(PASSING[opens])
        _stop_before_commit(monkeypatch, halt)
        opening = race.start_to(halt, opens(send))
        finishing = race.start(lambda: lifecycle.finish(campaign))
        if gated:
            finishing.wait_until_blocked()
            halt.released.set()
            opening.result()
            assert finishing.result() is False
            assert _status(campaign) == "sending"
        else:
            assert finishing.result() is True
            halt.released.set()
            opening.result()
            assert _status(campaign) == "sent", "control: sent, with an open row"
    assert status_of(send) in ("retry", "queued")


@gate_or_control
@pytest.mark.parametrize("opens", [_late_refusal, _late_return], ids=["retry", "give-back"])
def test_a_row_that_would_open_while_finish_decides_comes_again(
    opens: Callable[[Send], Callable[[], object]], gated: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It does not wait at the gate: nothing is written, and the repeat finds what was decided."""
    campaign = campaign_to(0)
    send = row(campaign, "in_doubt")
    _built(campaign)
    opening = opens(send)
    if not gated:
        without_gate(monkeypatch)
    with Race() as race:
        halt = race.halt()
        monkeypatch.setattr(hooks, "open_rows", halt.behind(hooks.open_rows))
        finishing = race.start_to(halt, lambda: lifecycle.finish(campaign))
        if gated:
            with pytest.raises(Busy):
                opening()
            assert status_of(send) == "in_doubt"
            assert kinds_of(send) == []
        else:
            opening()
        halt.released.set()
        assert finishing.result() is True
    if gated:
        assert _status(campaign) == "sent"
        opening()
        assert _status(campaign) == "sending"
    else:
        assert _status(campaign) == "sent", "control: sent, with an open row"
    assert status_of(send) in ("retry", "queued")


@pytest.mark.parametrize("opens", [_late_refusal, _late_return], ids=["retry", "give-back"])
def test_a_row_that_opens_after_finish_opens_its_campaign(
    opens: Callable[[Send], Callable[[], object]],
) -> None:
    """The other order: a campaign is never left ``sent`` with a row that nobody would claim."""
    campaign = campaign_to(0)
    send = row(campaign, "in_doubt")
    _built(campaign)
    assert lifecycle.finish(campaign) is True
    opens(send)()
    assert status_of(send) in ("retry", "queued")
    assert _status(campaign) == "sending"
    campaign.refresh_from_db()
    assert campaign.finished_at is None
    assert "not to have been accepted" in campaign.status_reason
    assert lifecycle.finish(campaign) is False
    assert_identity(campaign)


@gate_or_control
def test_finish_against_send_again(gated: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    campaign = campaign_to(0)
    send = row(campaign, "in_doubt")
    _built(campaign)
    if not gated:
        without_gate(monkeypatch)
    with Race() as race:
        halt = race.halt()
        monkeypatch.setattr(hooks, "open_rows", halt.behind(hooks.open_rows))
        finishing = race.start_to(halt, lambda: lifecycle.finish(campaign))
        again = race.start(lambda: doubt.resolve([send], doubt.SEND_AGAIN))
        if gated:
            again.wait_until_blocked()
        else:
            assert again.result() == 1
        halt.released.set()
        assert finishing.result() is True
        assert again.result() == 1
    assert status_of(send) == "queued"
    if gated:
        assert _status(campaign) == "sending"
    else:
        assert _status(campaign) == "sent", "control: sent, with a queued row"


# --- cancel ----------------------------------------------------------------------------------


@gate_or_control
@pytest.mark.parametrize("opens", [_late_refusal, _late_return], ids=["retry", "give-back"])
def test_cancel_against_a_row_that_opens(
    opens: Callable[[Send], Callable[[], object]], gated: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    campaign = campaign_to(0)
    send = row(campaign, "sending")
    if not gated:
        without_gate(monkeypatch)
    with Race() as race:
        halt = race.halt(PASSING[opens])
        _stop_before_commit(monkeypatch, halt)
        opening = race.start_to(halt, opens(send))
        canceling = race.start(lambda: lifecycle.cancel(campaign))
        if gated:
            canceling.wait_until_blocked()
        else:
            canceling.result()
        halt.released.set()
        opening.result()
        canceling.result()
    assert _status(campaign) == "canceled"
    if gated:
        assert status_of(send) == "canceled"
    else:
        assert status_of(send) in ("retry", "queued"), "control: open in a canceled campaign"


@gate_or_control
@pytest.mark.parametrize("opens", [_late_refusal, _late_return], ids=["retry", "give-back"])
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
        _stop_before_commit(monkeypatch, halt)
        returning = race.start_to(halt, lambda: give_back([held(send)]))
        canceling = race.start(lambda: lifecycle.cancel(campaign))
        if waiting:
            canceling.wait_until_blocked()
            assert _status(campaign) == "canceled", "it waits for the row, not at the gate"
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


@pytest.mark.parametrize("opens", [_late_refusal, _late_return], ids=["retry", "give-back"])
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


# --- pause -----------------------------------------------------------------------------------


@gate_or_control
@pytest.mark.parametrize("verb", ["pause", "cancel"])
def test_no_hand_over_commits_after_the_verb_returned(
    verb: str, gated: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    campaign = campaign_to(0)
    send = row(campaign, "claimed")
    if not gated:
        without_gate(monkeypatch)
        # Behind its status change, cancel would wait for the row's lock; the promise is about
        # the change itself.
        monkeypatch.setattr(hooks, "cancel_rows", lambda campaign_id: 0)
    with Race() as race:
        halt = race.halt()
        _stop_before_commit(monkeypatch, halt)
        handing = race.start_to(halt, lambda: hand_over([held(send)], lease=LEASE))
        deciding = race.start(lambda: getattr(lifecycle, verb)(campaign))
        if gated:
            deciding.wait_until_blocked()
            halt.released.set()
            deciding.result()
            at_return = status_of(send)
            assert len(handing.result().go) == 1
            assert at_return == "sending", "it was committed before the verb returned"
        else:
            deciding.result()
            at_return = status_of(send)
            halt.released.set()
            assert len(handing.result().go) == 1
            assert at_return == "claimed", "control: it left after the verb had returned"


@gate_or_control
@pytest.mark.parametrize(("verb", "becomes"), [("pause", "queued"), ("cancel", "canceled")])
def test_a_hand_over_while_the_verb_decides_sends_nothing(
    verb: str, becomes: str, gated: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    campaign = campaign_to(0)
    send = row(campaign, "claimed")
    claimed = held(send)
    if not gated:
        without_gate(monkeypatch)
        # Behind its status change, cancel would hold the row's lock.
        monkeypatch.setattr(hooks, "cancel_rows", lambda campaign_id: 0)
    with Race() as race, transaction.atomic():
        getattr(lifecycle, verb)(campaign)
        handed = race.start(lambda: hand_over([claimed], lease=LEASE)).result()
    if gated:
        assert (handed.go, handed.withheld, handed.busy) == ([], {}, [claimed])
        again = hand_over([claimed], lease=LEASE)
        assert (again.go, again.busy) == ([], [])
        assert status_of(send) == becomes
    else:
        assert handed.go == [claimed], "control: it left while the verb was being decided"


def test_a_hand_over_does_not_wait_behind_a_verb_that_waits(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The decision comes before every hand-over that begins after it: none starves it."""
    campaign = campaign_to(0)
    first, second = row(campaign, "claimed"), row(campaign, "claimed")
    with Race() as race:
        halt = race.halt()
        _stop_before_commit(monkeypatch, halt)
        handing = race.start_to(halt, lambda: hand_over([held(first)], lease=LEASE))
        pausing = race.start(lambda: lifecycle.pause(campaign))
        pausing.wait_until_blocked()
        claimed = held(second)
        assert hand_over([claimed], lease=LEASE).busy == [claimed]
        assert status_of(second) == "claimed"
        halt.released.set()
        assert len(handing.result().go) == 1
        pausing.result()


# --- the second statement --------------------------------------------------------------------

OPT_OUTS: dict[str, Callable[[Send], object]] = {
    "suppressed": lambda send: suppress(send.account_id, str(send.email), "complaint"),
    "suppressed for all": lambda send: suppress(None, str(send.email), "manual"),
    "erased": lambda send: suppress(send.account_id, str(send.email), "erased"),
    "unsubscribed": lambda send: unsubscribe(_person(send), evidence="a link"),
    "left": lambda send: _person(send).memberships.update(left_at=timezone.now()),
    "deleted": lambda send: _person(send).delete(),
}


def _person(send: Send) -> Any:
    assert send.subscriber is not None
    return send.subscriber


@pytest.mark.parametrize("statements", [2, 1], ids=["two statements", "control"])
@pytest.mark.parametrize("opt_out", ["suppressed", "erased", "unsubscribed", "left"])
def test_an_opt_out_that_commits_while_the_hand_over_waits_is_seen(
    opt_out: str, statements: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    campaign = campaign_to(0)
    send = row(campaign, "claimed")
    if statements == 1:
        # The lock is then taken by the checking statement itself, whose snapshot is older.
        monkeypatch.setattr(sql, "LOCK_ROWS", "SELECT %(ids)s::bigint[]")
    with Race() as race:
        with transaction.atomic():
            Send.objects.select_for_update().get(pk=send.pk)
            handing = race.start(lambda: hand_over([held(send)], lease=LEASE))
            handing.wait_until_blocked()
            race.start(lambda: OPT_OUTS[opt_out](send)).result()
        handed = handing.result()
    if statements == 2:
        assert handed.go == []
        assert status_of(send) == "suppressed"
    else:
        assert len(handed.go) == 1, "control: sent to somebody who had opted out"


# --- rescue ----------------------------------------------------------------------------------

#: The rescue that others have: look for what is late, then take it, by id.
_READ = f"SELECT id FROM {sql.SEND} WHERE status = 'sending' AND lease_until < clock_timestamp()"
_THEN_WRITE = f"UPDATE {sql.SEND} SET status = 'in_doubt', lease_until = NULL WHERE id = ANY(%s)"


@pytest.mark.parametrize("careful", [True, False], ids=["one statement", "control"])
def test_rescue_does_not_overwrite_an_outcome_that_was_faster(careful: bool) -> None:
    campaign = campaign_to(0)
    send = row(campaign, "sending", lease_until=_just_now())
    with connection.cursor() as cursor:
        cursor.execute(_READ)
        late = [i for (i,) in cursor.fetchall()]
        assert late == [send.pk]
        with Race() as race:
            race.start(lambda: settle([told(held(send), "sent")], doubt_wait=0)).result()
        if careful:
            assert rescue.rescue_expired(doubt_wait=0) == 0
            assert status_of(send) == "sent"
        else:
            cursor.execute(_THEN_WRITE, [late])
            assert status_of(send) == "in_doubt", "control: knowledge was lost"


def test_rescue_leaves_a_row_whose_outcome_is_being_written(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    campaign = campaign_to(0)
    send = row(campaign, "sending", lease_until=_just_now())
    with Race() as race:
        halt = race.halt()
        _stop_before_commit(monkeypatch, halt)
        writing = race.start_to(halt, lambda: settle([told(held(send), "failed")], doubt_wait=0))
        assert rescue.rescue_expired(doubt_wait=0) == 0
        halt.released.set()
        writing.result()
    assert status_of(send) == "failed"


def test_an_outcome_that_waits_behind_the_rescue_settles_the_doubt(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    campaign = campaign_to(0)
    send = row(campaign, "sending", lease_until=_just_now())
    with Race() as race:
        halt = race.halt()
        _stop_before_commit(monkeypatch, halt)
        rescuing = race.start_to(halt, lambda: rescue.rescue_expired(doubt_wait=0))
        late = race.start(lambda: settle([told(held(send), "sent")], doubt_wait=0))
        late.wait_until_blocked()
        halt.released.set()
        assert rescuing.result() == 1
        assert late.result() == {send.pk: "sent"}
    assert status_of(send) == "sent"


def test_a_hand_over_that_waits_behind_the_rescue_sends_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    campaign = campaign_to(0)
    send = row(campaign, "claimed", lease_until=_just_now())
    with Race() as race:
        halt = race.halt()
        _stop_before_commit(monkeypatch, halt)
        rescuing = race.start_to(halt, lambda: rescue.rescue_expired(doubt_wait=0))
        handing = race.start(lambda: hand_over([held(send)], lease=LEASE))
        handing.wait_until_blocked()
        halt.released.set()
        assert rescuing.result() == 1
        handed = handing.result()
    assert (handed.go, handed.withheld) == ([], {})
    assert status_of(send) == "queued"


# --- claim -----------------------------------------------------------------------------------


@pytest.mark.parametrize("skipping", [True, False], ids=["skip locked", "control"])
def test_two_claims_at_once_share_no_row_and_do_not_wait(
    skipping: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    campaign = campaign_to(6)
    build.build(campaign.pk, size=100)
    if not skipping:
        monkeypatch.setattr(sql, "CLAIM_QUEUED", sql.CLAIM_QUEUED.replace(" SKIP LOCKED", ""))
    with Race() as race:
        with transaction.atomic():
            mine = take([campaign.pk], 3)
            other = race.start(lambda: take([campaign.pk], 6, worker=2))
            if skipping:
                theirs = other.result()
            else:
                other.wait_until_blocked()
        if skipping:
            assert len(mine) == len(theirs) == 3
            assert {r.id for r in mine}.isdisjoint(r.id for r in theirs)
            assert len({r.token for r in mine + theirs}) == 6


def test_a_row_is_handed_over_by_the_claim_that_holds_it_alone() -> None:
    """Two lanes with the same row in memory, as after a rescue and a second claim."""
    campaign = campaign_to(1)
    build.build(campaign.pk, size=100)
    (zombie,) = take([campaign.pk], 1)
    Send.objects.update(lease_until=_just_now())
    rescue.rescue_expired(doubt_wait=0)
    (now_mine,) = take([campaign.pk], 1, worker=2)
    assert zombie.id == now_mine.id
    with Race() as race:
        # Both stand before the row's lock, then both go on.
        with transaction.atomic():
            Send.objects.select_for_update().get(pk=zombie.id)
            both = [
                race.start(partial(hand_over, [claimed], lease=LEASE))
                for claimed in (zombie, now_mine)
            ]
            for racer in both:
                racer.wait_until_blocked()
        first, second = (racer.result() for racer in both)
    assert (first.go, first.withheld) == ([], {})
    assert second.go == [now_mine]
    assert give_back([zombie]) == 0


# --- due -------------------------------------------------------------------------------------


@pytest.mark.parametrize("guarded", [True, False], ids=["compare-and-set", "control"])
def test_two_due_at_once_start_it_once(guarded: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """The compare-and-set decides; the gate only orders it with the rest, and stands open in
    both. The control takes the row's lock and the compare-and-set away."""
    campaign = campaign_to(0, status="approved")
    without_gate(monkeypatch)
    if not guarded:

        def only_write(found: Campaign, verb: str, expected: object, **changes: Any) -> None:
            Campaign.objects.filter(pk=found.pk).update(**changes)

        monkeypatch.setattr(lifecycle, "_compare_and_set", only_write)
        monkeypatch.setattr(
            type(Campaign.objects.all()), "select_for_update", lambda self, **_: self
        )
    with Race() as race:
        halt = race.halt()
        monkeypatch.setattr(lifecycle, "digest", halt.behind(lambda found: found.approved_digest))
        first = race.start_to(halt, lambda: lifecycle.due(campaign))
        second = race.start(lambda: lifecycle.due(Campaign.objects.get(pk=campaign.pk)))
        if guarded:
            second.wait_until_blocked()
        else:
            assert second.result() is True
        halt.released.set()
        results = sorted([first.result(), second.result()])
    assert results == ([False, True] if guarded else [True, True])
    assert _status(campaign) == "sending"


# --- building against importing --------------------------------------------------------------


@pytest.mark.parametrize("locked", [True, False], ids=["cursor lock", "control"])
def test_a_chunk_of_newcomers_against_the_closing_sweep(
    locked: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One builder sweeps and counts; another finds a newcomer beyond the cursor meanwhile. The
    sweep's count must not be older than the rows it closes."""
    campaign = campaign_to(2)
    assert build_chunk(campaign.pk, size=100) is not None
    if not locked:
        monkeypatch.setattr(build, "_sweep", _sweep_without_lock)
    # The sweep stands in its one statement: it counts rows, then waits for the campaign's row.
    with Race() as race:
        with transaction.atomic():
            Campaign.objects.select_for_update(no_key=True).get(pk=campaign.pk)
            sweeping = race.start(lambda: build_chunk(campaign.pk, size=100))
            sweeping.wait_until_blocked()
            member(campaign)
            chunk = build_chunk(campaign.pk, size=100)
            assert chunk is not None
            assert chunk.inserted == 1
        swept = sweeping.result()
    campaign.refresh_from_db()
    rows = Send.objects.filter(campaign=campaign).count()
    if locked:
        assert swept is None, "another builder moved on: its sweep comes later"
        build.build(campaign.pk, size=100)
        assert_identity(campaign)
    else:
        assert campaign.built_at is not None
        assert (campaign.audience, rows) == (2, 3), "control: a row without a person"


def _sweep_without_lock(cursor: Any, place: dict[str, int]) -> object:
    cursor.execute(sql.SWEEP, place)
    return build.Progress(inserted=cursor.fetchone()[0], done=True)
