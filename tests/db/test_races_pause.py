"""Hand-overs against ``pause`` and ``cancel``, on two connections, beside their controls."""

from __future__ import annotations

import pytest
from django.db import transaction

from campaigns import hooks, lifecycle
from sending.handover import hand_over

from .race_rules import gate_or_control, stop_before_commit
from .racing import Race, without_gate
from .rows import LEASE, campaign_to, held, row, status_of

pytestmark = pytest.mark.django_db(transaction=True)


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
        stop_before_commit(monkeypatch, halt)
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
        stop_before_commit(monkeypatch, halt)
        handing = race.start_to(halt, lambda: hand_over([held(first)], lease=LEASE))
        pausing = race.start(lambda: lifecycle.pause(campaign))
        pausing.wait_until_blocked()
        claimed = held(second)
        assert hand_over([claimed], lease=LEASE).busy == [claimed]
        assert status_of(second) == "claimed"
        halt.released.set()
        assert len(handing.result().go) == 1
        pausing.result()
