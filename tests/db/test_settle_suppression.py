"""Whom an outcome suppresses, in the transaction that writes it."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import OperationalError, connection

from campaigns.models import Campaign
from sending import events
from sending.models import DeliveryEvent
from sending.settle import settle
from subscribers import suppression
from subscribers.models import Suppression
from subscribers.suppression import is_suppressed

from .racing import Race
from .rows import campaign_to, held, row, status_of, told
from .settled import OTHERS, settle_one


@pytest.mark.django_db
@pytest.mark.parametrize("outcome", ["sent", *OTHERS])
def test_only_a_dead_address_is_suppressed(outcome: str) -> None:
    send = row(campaign_to(0), "sending")
    settle_one(send, outcome)
    assert is_suppressed(send.account, str(send.email)) is (outcome == "bounced")
    if outcome == "bounced":
        entry = Suppression.objects.get()
        assert (entry.account, entry.reason) == (send.account, "hard_bounce")
        assert "550 5.1.1 no such user" in entry.evidence


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("ends", [True, False], ids=["commits", "session dies"])
def test_a_bounce_and_its_suppression_are_one_transaction(
    ends: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    campaign = campaign_to(0)
    send = row(campaign, "sending")
    with Race() as race:
        halt = race.halt()
        # The suppression is written last, after the outcome and its event.
        monkeypatch.setattr(suppression, "_upsert", halt.behind(suppression._upsert))
        settling = race.start_to(halt, lambda: settle([told(held(send), "bounced")], doubt_wait=0))
        assert status_of(send) == "sending"
        assert not Suppression.objects.exists()
        if not ends:
            settling.kill_backend()
        halt.released.set()
        if ends:
            assert settling.result() == {send.pk: "bounced"}
        else:
            with pytest.raises(OperationalError):
                settling.result()
    assert status_of(send) == ("bounced" if ends else "sending")
    assert Suppression.objects.exists() is ends
    assert DeliveryEvent.objects.exists() is ends


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(
    ("outcome", "durable", "setting"),
    [("sent", False, "off"), ("failed", False, "off"), ("bounced", False, "on"),
     ("failed", True, "on")],
)  # fmt: skip
def test_only_an_outcome_that_suppresses_must_be_durable_at_once(
    outcome: str, durable: bool, setting: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = row(campaign_to(0), "sending")
    send = row(campaign_to(0), "sending")
    inside: list[str] = []
    record = events.record

    def spying(cursor: Any, notes: Any) -> None:
        cursor.execute("SHOW synchronous_commit")
        inside.append(cursor.fetchone()[0])
        record(cursor, notes)

    monkeypatch.setattr(events, "record", spying)
    # Events are only noted for what was refused, so a refusal goes with every acceptance.
    lot = [told(held(send), outcome), told(held(other), "failed")]
    settle(lot, doubt_wait=0, durable=durable)
    assert inside == [setting]
    with connection.cursor() as cursor:
        cursor.execute("SHOW synchronous_commit")
        assert cursor.fetchone() == ("on",)


@pytest.mark.django_db(transaction=True)
def test_two_lots_that_suppress_the_same_people_do_not_wait_in_a_circle(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Two campaigns to the same dead addresses, their rows in opposite order of ids."""
    first = campaign_to(2)
    people = list(first.account.subscribers.order_by("id"))
    second = campaign_to(0)
    Campaign.objects.filter(pk=second.pk).update(account=first.account)
    second.refresh_from_db()
    second.segments.set(first.segments.all())
    forth = [row(first, "sending", subscriber=p) for p in people]
    back = [row(second, "sending", subscriber=p) for p in reversed(people)]
    with Race() as race:
        halt = race.halt()
        # It stops when it has the first of the two addresses.
        monkeypatch.setattr(suppression, "_upsert", halt.behind(suppression._upsert))
        one = race.start_to(
            halt, lambda: settle([told(held(s), "bounced") for s in forth], doubt_wait=0)
        )
        two = race.start(lambda: settle([told(held(s), "bounced") for s in back], doubt_wait=0))
        two.wait_until_blocked()
        halt.released.set()
        assert len(one.result()) == len(two.result()) == 2
    assert Suppression.objects.count() == 2
