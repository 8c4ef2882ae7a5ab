"""Two people decide the same rows, evidence comes meanwhile, the connection dies."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from io import StringIO
from typing import Any

import pytest
from django.core.management import call_command
from django.db import connection
from django.http import HttpRequest
from django.utils import timezone

from campaigns import lifecycle
from campaigns.models import Campaign
from sending import doubt, doubt_decisions
from sending import settle as settling
from sending.doubt_decisions import Decided, decide
from sending.models import DeliveryEvent, Send
from sending.tracking import inbox
from subscribers.models import AuditEvent
from tests.factories import StaffFactory

from .racing import Halt, Race
from .rows import campaign_to, held, row, status_of, told
from .tracked import event_of

pytestmark = pytest.mark.django_db(transaction=True)

SAME = "somebody else decided the same meanwhile"
BUSY = "somebody decides about it, or a sender holds it, at this moment; try again"
ARRIVED = "it became known meanwhile that it arrived"


def by(user: Any) -> HttpRequest:
    request = HttpRequest()
    request.user = user
    request.META["REMOTE_ADDR"] = "127.0.0.1"
    return request


def decision(sends: list[Send], what: str) -> Callable[[], Decided]:
    request, asked = by(StaffFactory.create()), timezone.now()
    ids = [send.pk for send in sends]
    return lambda: decide(Send.objects.all(), ids, what, request=request, asked=asked)


def decided_halts(monkeypatch: pytest.MonkeyPatch, halt: Halt) -> None:
    """With all decided and nothing committed."""
    monkeypatch.setattr(doubt, "resolve", halt.behind(doubt.resolve))


@pytest.mark.parametrize("what", ["send_again", "treat_as_sent"])
def test_two_people_decide_the_same(what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    campaign = campaign_to(0)
    sends = [row(campaign, "in_doubt") for _ in range(3)]
    with Race() as race:
        halt = race.halt()
        decided_halts(monkeypatch, halt)
        first = race.start_to(halt, decision(sends, what))
        second = race.start(decision(sends, what))
        second.wait_until_blocked()
        halt.released.set()
        assert first.result() == Decided(3)
        assert second.result() == Decided(0, left=Counter({SAME: 3}))
    assert DeliveryEvent.objects.filter(kind=what).count() == 3
    assert AuditEvent.objects.count() == 1


def test_who_treats_as_sent_while_another_sends_again_is_told(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    campaign = campaign_to(0)
    send = row(campaign, "in_doubt")
    with Race() as race:
        halt = race.halt()
        decided_halts(monkeypatch, halt)
        again = race.start_to(halt, decision([send], "send_again"))
        # Its gate is closed: nobody waits there with a decision of less weight.
        assert decision([send], "treat_as_sent")() == Decided(0, left=Counter({BUSY: 1}))
        halt.released.set()
        assert again.result() == Decided(1)
    assert decision([send], "treat_as_sent")().left.keys() == {"it is being sent again already"}
    assert status_of(send) == "queued"


def test_a_webhook_settles_it_between_the_page_and_the_decision() -> None:
    campaign = campaign_to(0)
    send, other = row(campaign, "in_doubt"), row(campaign, "in_doubt")
    again = decision([send, other], "send_again")  # the page was asked now
    inbox.store([event_of(send, "delivered")])
    inbox.apply_waiting()
    assert again() == Decided(1, left=Counter({ARRIVED: 1}))
    assert (status_of(send), status_of(other)) == ("sent", "queued")


def test_an_acceptance_under_way_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    campaign = campaign_to(0)
    send = row(campaign, "in_doubt")
    claimed = held(send)
    with Race() as race:
        halt = race.halt()
        # With the gate and the row in hand.
        monkeypatch.setattr(settling, "_columns", halt.behind(settling._columns))
        worker = race.start_to(
            halt, lambda: settling.settle([told(claimed, "sent")], doubt_wait=600)
        )
        person = race.start(decision([send], "send_again"))
        person.wait_until_blocked()
        halt.released.set()
        worker.result()
        assert person.result() == Decided(0, left=Counter({ARRIVED: 1}))
    assert status_of(send) == "sent"
    assert not AuditEvent.objects.exists()


def test_a_cancel_that_is_ahead_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    campaign = campaign_to(0)
    send = row(campaign, "in_doubt")
    again = decision([send], "send_again")
    lifecycle.cancel(campaign, by=StaffFactory.create())
    (why,) = again().left
    assert why == "the campaign is canceled, nothing of it is sent again"
    assert status_of(send) == "in_doubt"


def test_the_record_and_the_decision_are_one_transaction(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    campaign = campaign_to(0, status="sent")
    send = row(campaign, "in_doubt")

    def fails(*_: Any, **__: Any) -> None:
        raise RuntimeError("no record")

    monkeypatch.setattr(doubt_decisions, "record", fails)
    with pytest.raises(RuntimeError, match="no record"):
        decision([send], "send_again")()
    campaign.refresh_from_db()
    assert (status_of(send), campaign.status) == ("in_doubt", "sent")
    assert not DeliveryEvent.objects.exists()


def typed(campaign: Campaign) -> Decided:
    """The same by the command."""
    call_command("resolve_doubt", campaign=str(campaign.pk), send_again=True, stdout=StringIO())
    return Decided(DeliveryEvent.objects.filter(kind="send_again").count())


@pytest.mark.parametrize("where", ["desk", "command"])
def test_when_the_connection_dies_nothing_was_decided_and_it_is_decided_once_more(
    where: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    campaign = campaign_to(0)
    send = row(campaign, "in_doubt")
    with Race() as race:
        halt = race.halt()
        decided_halts(monkeypatch, halt)
        again = decision([send], "send_again") if where == "desk" else lambda: typed(campaign)
        person = race.start_to(halt, again)
        person.kill_backend()
        halt.released.set()
        with pytest.raises(Exception, match=r"terminating|closed|lost"):
            person.result()
        assert (status_of(send), AuditEvent.objects.count()) == ("in_doubt", 0)
        assert again() == Decided(1)
    assert AuditEvent.objects.count() == 1


def test_an_answered_commit_that_nobody_heard_of_is_not_decided_twice() -> None:
    """The page was posted again: the first time had taken effect."""
    campaign = campaign_to(0)
    send = row(campaign, "in_doubt")
    again = decision([send], "send_again")
    assert again() == Decided(1)
    assert again() == Decided(0, left=Counter({SAME: 1}))
    # It left, and is in doubt anew: that is another doubt than the one that was asked about.
    Send.objects.update(status="in_doubt", handed_at=timezone.now(), claim_token="1" * 32)
    assert again().decided == 0
    assert status_of(send) == "in_doubt"
    assert connection.in_atomic_block is False
