"""Rescue against outcomes and hand-overs, on two connections, beside its control."""

from __future__ import annotations

import pytest
from django.db import connection

from sending import rescue, sql
from sending.handover import hand_over
from sending.settle import settle

from .race_rules import just_now, stop_before_commit
from .racing import Race
from .rows import LEASE, campaign_to, held, row, status_of, told

pytestmark = pytest.mark.django_db(transaction=True)


#: The rescue that others have: look for what is late, then take it, by id.
_READ = f"SELECT id FROM {sql.SEND} WHERE status = 'sending' AND lease_until < clock_timestamp()"
_THEN_WRITE = f"UPDATE {sql.SEND} SET status = 'in_doubt', lease_until = NULL WHERE id = ANY(%s)"


@pytest.mark.parametrize("careful", [True, False], ids=["one statement", "control"])
def test_rescue_does_not_overwrite_an_outcome_that_was_faster(careful: bool) -> None:
    campaign = campaign_to(0)
    send = row(campaign, "sending", lease_until=just_now())
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
    send = row(campaign, "sending", lease_until=just_now())
    with Race() as race:
        halt = race.halt()
        stop_before_commit(monkeypatch, halt)
        writing = race.start_to(halt, lambda: settle([told(held(send), "failed")], doubt_wait=0))
        assert rescue.rescue_expired(doubt_wait=0) == 0
        halt.released.set()
        writing.result()
    assert status_of(send) == "failed"


def test_an_outcome_that_waits_behind_the_rescue_settles_the_doubt(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    campaign = campaign_to(0)
    send = row(campaign, "sending", lease_until=just_now())
    with Race() as race:
        halt = race.halt()
        stop_before_commit(monkeypatch, halt)
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
    send = row(campaign, "claimed", lease_until=just_now())
    with Race() as race:
        halt = race.halt()
        stop_before_commit(monkeypatch, halt)
        rescuing = race.start_to(halt, lambda: rescue.rescue_expired(doubt_wait=0))
        handing = race.start(lambda: hand_over([held(send)], lease=LEASE))
        handing.wait_until_blocked()
        halt.released.set()
        assert rescuing.result() == 1
        handed = handing.result()
    assert (handed.go, handed.withheld) == ([], {})
    assert status_of(send) == "queued"
