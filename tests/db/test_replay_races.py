"""Replays beside what else may happen to the row at the same moment, on two connections."""

from __future__ import annotations

import pytest
from django.db import transaction

from sending import doubt
from sending.models import Send
from sending.rescue import rescue_expired
from sending.settle import settle

from .racing import Race
from .rows import kinds_of, told
from .test_replay import _campaign, _claim, _fresh, _hand_over, _in_doubt, _replayed

pytestmark = pytest.mark.django_db(transaction=True)


def test_two_workers_replay_a_row_once() -> None:
    send = _in_doubt(_campaign())
    with Race() as race:
        with transaction.atomic():
            Send.objects.select_for_update().get(pk=send.pk)
            workers = [race.start(doubt.apply_policies) for _ in range(2)]
            for worker in workers:
                worker.wait_until_blocked()
        assert sorted(worker.result() for worker in workers) == [0, 1]
    assert (_fresh(send).status, send.replays, len(send.doubt_tokens)) == ("retry", 1, 1)
    assert kinds_of(send) == ["in_doubt", "replay"]


def test_a_person_and_a_worker_ask_for_it_at_once() -> None:
    """Whoever comes first has it; there is one open row and one token in doubt, not two."""
    send = _in_doubt(_campaign())
    with Race() as race:
        with transaction.atomic():
            Send.objects.select_for_update().get(pk=send.pk)
            worker = race.start(doubt.apply_policies)
            worker.wait_until_blocked()
            person = race.start(lambda: doubt.resolve([send], doubt.SEND_AGAIN))
            person.wait_until_blocked()
        assert worker.result() + person.result() == 1
    assert _fresh(send).status in ("retry", "queued")
    assert len(send.doubt_tokens) == 1


def test_an_acceptance_that_comes_while_the_replay_is_handed_over() -> None:
    """The first hand-over's answer and the replay's hand-over meet at the row: either the replay
    is not sent, or its row is sent already and its own answer changes nothing."""
    campaign = _campaign()
    send = _in_doubt(campaign)
    first = send.claim_token
    assert doubt.apply_policies() == 1
    claimed = _claim(campaign)
    assert first is not None
    accepted = told(claimed, "sent")._replace(token=first)
    with Race() as race:
        with transaction.atomic():
            Send.objects.select_for_update().get(pk=send.pk)
            answer = race.start(lambda: settle([accepted], doubt_wait=600))
            answer.wait_until_blocked()
            handing = race.start(lambda: _hand_over(claimed))
            handing.wait_until_blocked()
        assert answer.result() == {send.pk: "sent"}
        assert handing.result() == [], "the acceptance came first: nothing is sent again"
    assert _fresh(send).status == "sent"


def test_a_replay_that_is_on_the_wire_when_its_worker_dies_is_replayed_again() -> None:
    campaign = _campaign()
    send = _in_doubt(campaign)
    replay = _replayed(campaign)
    Send.objects.update(lease_until="2000-01-01T00:00:00Z")
    assert rescue_expired(doubt_wait=600) == 1
    assert (_fresh(send).status, send.claim_token) == ("in_doubt", replay.token)
    assert len(send.doubt_tokens) == 1
    assert send.settle_at is not None
