"""Two claims at once, and opt-outs between claim and hand-over, beside their controls."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from functools import partial
from typing import Any

import pytest
from django.db import transaction
from django.utils import timezone

from sending import build, rescue, sql
from sending.handover import give_back, hand_over
from sending.models import Send
from subscribers.consent import pause, unsubscribe
from subscribers.suppression import suppress

from .race_rules import just_now
from .racing import Race
from .rows import LEASE, campaign_to, held, row, status_of, take

pytestmark = pytest.mark.django_db(transaction=True)


# --- the second statement --------------------------------------------------------------------


OPT_OUTS: dict[str, Callable[[Send], object]] = {
    "suppressed": lambda send: suppress(send.account_id, str(send.email), "complaint"),
    "suppressed for all": lambda send: suppress(None, str(send.email), "manual"),
    "erased": lambda send: suppress(send.account_id, str(send.email), "erased"),
    "unsubscribed": lambda send: unsubscribe(_person(send), evidence="a link"),
    "left": lambda send: _person(send).memberships.update(left_at=timezone.now()),
    "paused": lambda send: pause(_person(send), timezone.now() + timedelta(days=1)),
    "deleted": lambda send: _person(send).delete(),
}


def _person(send: Send) -> Any:
    assert send.subscriber is not None
    return send.subscriber


@pytest.mark.parametrize("statements", [2, 1], ids=["two statements", "control"])
@pytest.mark.parametrize("opt_out", ["suppressed", "erased", "unsubscribed", "left", "paused"])
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
    Send.objects.update(lease_until=just_now())
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
