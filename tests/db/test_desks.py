"""Several lots in one transaction: what each lane finds is about its own lot alone."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest
from django.db import connection, transaction
from django.db.utils import DataError

from campaigns import gate
from sending.connections import Busy
from sending.desk import _Place
from sending.desks import Desks, Lot
from sending.models import Send
from sending.queue import Claimed
from sending.settle import Settlement
from sending.shared import Shared
from sending.transports import Transport
from subscribers.suppression import suppress
from tests.crash.conftest import wait_until

from .racing import Race
from .rows import LEASE, campaign_to, held, row, status_of, told

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def desks() -> Iterator[Desks]:
    shared = Shared(
        lanes=2, lot_limit=20, lease=LEASE, margin=10, freshness=5, doubt_wait=600, poll=1
    )  # fmt: skip
    yield shared.desks
    shared.pool.close()


def together(desks: Desks, lots: list[list[Claimed]]) -> list[Any]:
    return desks._hand_over([Lot(rows, "default:1", 0.0) for rows in lots])


def settled(desks: Desks, lots: list[list[Settlement]]) -> list[Any]:
    """What lanes find that came while another one wrote (see ``tests/unit/test_desk.py``)."""
    places: list[_Place[Any, Any]] = [_Place(lot) for lot in lots]
    desks._settling._do(places)
    return [place.error or place.result for place in places]


def test_each_lane_gets_what_the_check_found_about_its_own_rows(desks: Desks) -> None:
    one, other = campaign_to(0), campaign_to(0)
    gone, fine, mine = row(one, "claimed"), row(one, "claimed"), row(other, "claimed")
    suppress(one.account, str(gone.email), "manual")
    stranger = held(row(other, "claimed"), token=uuid.uuid4())
    first, second = [held(gone), held(fine)], [held(mine), stranger]
    a, b = together(desks, [first, second])
    assert (a.go, a.withheld, a.busy) == ([first[1]], {gone.pk: "suppressed"}, [])
    assert (b.go, b.withheld, b.busy) == ([second[0]], {}, []), "who lost a row is told nothing"
    assert [status_of(s) for s in (gone, fine, mine)] == ["suppressed", "sending", "sending"]


def test_lots_of_a_busy_campaign_come_back_and_the_others_go(desks: Desks) -> None:
    busy, free = campaign_to(0), campaign_to(0)
    kept, goes = row(busy, "claimed"), row(free, "claimed")
    with Race() as race, transaction.atomic(), connection.cursor() as cursor:
        gate.enter_exclusive(cursor, busy.pk)
        lots = [[held(kept)], [held(goes)]]
        a, b = race.start(lambda: together(desks, lots)).result()
    assert ([r.id for r in a.busy], a.go) == ([kept.pk], [])
    assert ([r.id for r in b.go], b.busy) == ([goes.pk], [])


def test_two_tokens_of_one_row_are_told_apart(desks: Desks) -> None:
    """In one lane's lot; those of two lanes are never in one transaction."""
    send = row(campaign_to(0), "claimed")
    old, new = held(send, token=uuid.uuid4()), held(send)
    (found,) = together(desks, [[old, new]])
    assert (found.go, found.withheld) == ([new], {})


def test_outcomes_of_two_lots_are_each_lanes_own(desks: Desks) -> None:
    campaign = campaign_to(0)
    first, second = row(campaign, "sending"), row(campaign, "sending")
    lots = [[told(held(first), "sent")], [told(held(second), "bounced")]]
    assert settled(desks, lots) == [{first.pk: "sent"}, {second.pk: "bounced"}]


def test_who_decides_about_one_campaign_keeps_no_other_lots_outcomes(desks: Desks) -> None:
    busy, free = campaign_to(0), campaign_to(0)
    kept, goes = row(busy, "sending"), row(free, "sending")
    lots = [[told(held(kept), "sent")], [told(held(goes), "sent")]]
    with Race() as race, transaction.atomic(), connection.cursor() as cursor:
        gate.enter_exclusive(cursor, busy.pk)
        found = race.start(lambda: settled(desks, lots)).result()
    assert isinstance(found[0], Busy)
    assert found[1] == {goes.pk: "sent"}
    assert [status_of(s) for s in (kept, goes)] == ["sending", "sent"]


def test_an_outcome_that_the_database_refuses_keeps_no_other_lots(desks: Desks) -> None:
    campaign = campaign_to(0)
    odd, fine = row(campaign, "sending"), row(campaign, "sending")
    said = told(held(odd), "sent")
    wrong = said._replace(answer=said.answer._replace(code=99_999))
    lots = [[wrong], [told(held(fine), "sent")]]
    found = settled(desks, lots)
    assert isinstance(found[0], DataError)
    assert found[1] == {fine.pk: "sent"}
    assert [status_of(s) for s in (odd, fine)] == ["sending", "sent"]


def test_the_same_row_under_two_tokens_loses_neither_outcome(desks: Desks) -> None:
    send = row(campaign_to(0), "in_doubt")
    late, now = uuid.uuid4(), held(send)
    Send.objects.filter(pk=send.pk).update(doubt_tokens=[late])
    lot = [told(now, "in_doubt"), told(held(send, token=late), "sent")]
    assert settled(desks, [lot]) == [{send.pk: "sent"}]
    assert status_of(send) == "sent"


def _somebody_waits_for_a_lock() -> bool:
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1 FROM pg_locks WHERE NOT granted")
        return cursor.fetchone() is not None


def test_a_row_that_somebody_else_has_locked_keeps_its_own_lane_only(desks: Desks) -> None:
    campaign = campaign_to(0)
    kept, goes = row(campaign, "sending"), row(campaign, "sending")
    with Race() as race:
        with transaction.atomic():
            Send.objects.select_for_update().get(pk=kept.pk)
            first = race.start(lambda: desks.settle([told(held(kept), "sent")]))
            wait_until(_somebody_waits_for_a_lock, "the lane to wait for the row")
            other = race.start(lambda: desks.settle([told(held(goes), "sent")]))
            assert other.result() == {goes.pk: "sent"}
            assert status_of(kept) == "sending"
        assert first.result() == {kept.pk: "sent"}


def test_many_lanes_move_their_lots_with_two_connections(desks: Desks) -> None:
    campaign = campaign_to(0)
    sends = [row(campaign, "claimed") for _ in range(12)]
    over = Transport("default", "django.core.mail.backends.locmem.EmailBackend")

    def move(send: Send) -> dict[int, str]:
        rows = desks.hand_over([held(send)], over).go
        return desks.settle([told(r, "sent") for r in rows])

    with Race() as race:
        lanes = [race.start(partial(move, send)) for send in sends]
        assert [lane.result() for lane in lanes] == [{s.pk: "sent"} for s in sends]
    assert {status_of(s) for s in sends} == {"sent"}
