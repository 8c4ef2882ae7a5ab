"""How a transaction of the protocol begins, whatever the host's defaults are: with a snapshot
per statement, and with an end to it should its process be stopped in the middle."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Any

import pytest
from django.db import connection

from campaigns import gate, lifecycle
from campaigns.editing import edit
from campaigns.errors import GateBusy
from campaigns.models import Campaign
from sending import doubt, events, rescue, sql
from sending.build import build_chunk
from sending.connections import LOST, Pool
from sending.handover import Handed, give_back, hand_over
from sending.models import Send
from sending.outcomes import Answer, Outcome, Stage
from sending.settle import Settlement, settle
from sending.sql.tables import SEND
from subscribers.hooks import withdraw_leavers
from tests.db.racing import Race
from tests.db.rows import campaign_to, held, row, status_of
from tests.factories import CampaignFactory

IDLE = "idle_in_transaction_session_timeout"


def _idle_limit() -> str:
    with connection.cursor() as cursor:
        cursor.execute(f"SHOW {IDLE}")
        return str(cursor.fetchone()[0])


@pytest.fixture
def repeatable_read_host(transactional_db: None) -> Iterator[list[str]]:
    """A host whose sessions default to REPEATABLE READ; yields the levels seen at gates and
    where rows change, each with the time after which an idle session is ended."""
    seen: list[str] = []

    def look(execute: Callable[..., Any], sql: str, params: Any, many: bool, context: Any) -> Any:
        if "advisory_xact_lock" in sql or f"UPDATE {SEND}" in sql:
            with context["connection"].connection.cursor() as raw:
                level = raw.execute("SHOW transaction_isolation").fetchone()[0]
                limit = raw.execute(f"SHOW {IDLE}").fetchone()[0]
                seen.append(f"{level}, {limit}")
        return execute(sql, params, many, context)

    with connection.cursor() as cursor:
        cursor.execute("SET default_transaction_isolation = 'repeatable read'")
    with connection.execute_wrapper(look):
        yield seen
    connection.close()


def _settle(campaign: Campaign) -> None:
    send = row(campaign, "sending")
    said = Answer(Stage.DOT, 250)
    token = send.claim_token
    assert token is not None
    settle([Settlement(send.pk, token, campaign.pk, str(Outcome.SENT), said, "")], doubt_wait=0)


def _rescue(campaign: Campaign) -> None:
    send = row(campaign, "sending")
    Send.objects.filter(pk=send.pk).update(lease_until="2020-01-01T00:00Z")
    rescue.rescue_expired(doubt_wait=0)


def _leave(campaign: Campaign) -> None:
    send = row(campaign)
    assert send.subscriber is not None
    send.subscriber.memberships.all().delete()
    withdraw_leavers([send.subscriber.pk])


VERBS: dict[str, Callable[[Campaign], Any]] = {
    "pause": lifecycle.pause,
    "cancel": lifecycle.cancel,
    "finish": lifecycle.finish,
    "build": lambda c: build_chunk(c.pk, size=10),
    "hand over": lambda c: hand_over([held(row(c, "claimed"))], lease=60),
    "give back": lambda c: give_back([held(row(c, "claimed"))]),
    "give back late": lambda c: give_back([held(row(c, "in_doubt"))]),
    "settle": _settle,
    "rescue": _rescue,
    "leave": _leave,
    "send again": lambda c: doubt.resolve([row(c, "in_doubt")], doubt.SEND_AGAIN),
    "treat as sent": lambda c: doubt.resolve([row(c, "in_doubt")], doubt.TREAT_AS_SENT),
}


@pytest.mark.parametrize("verb", VERBS)
def test_a_verb_at_the_gate_is_read_committed(verb: str, repeatable_read_host: list[str]) -> None:
    before = _idle_limit()
    VERBS[verb](campaign_to(1, built_at=None) if verb == "build" else campaign_to(1))
    assert set(repeatable_read_host) == {"read committed, 15s"}
    assert _idle_limit() == before != "15s", "it ends with the transaction"


def test_approve_and_edit_are_too(repeatable_read_host: list[str]) -> None:
    campaign = CampaignFactory.create()
    edit(campaign, version=campaign.version, values={"subject": "Another"})
    assert set(repeatable_read_host) == {"read committed, 15s"}
    assert _idle_limit() != "15s"


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("limited", [True, False], ids=["idle limit", "control"])
def test_whoever_is_stopped_at_the_gate_does_not_hold_it_for_ever(
    limited: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    campaign = campaign_to(0)
    send = row(campaign, "claimed")
    durable = sql.DURABLE.replace("15s", "100ms" if limited else "0")
    monkeypatch.setattr(sql, "DURABLE", durable)
    pool = Pool(1)

    def hand() -> Handed:
        with pool.lend():
            return hand_over([held(send)], lease=60)

    with closing(pool), Race() as race:
        halt = race.halt()
        monkeypatch.setattr(events, "record", halt.behind(events.record))
        stopped = race.start_to(halt, hand)
        if not limited:
            monkeypatch.setattr(gate, "DECISION_PATIENCE", "SET LOCAL lock_timeout = '300ms'")
            with pytest.raises(GateBusy):
                lifecycle.pause(campaign)
            return
        lifecycle.pause(campaign)
        halt.released.set()
        with pytest.raises(LOST):
            stopped.result()
    assert status_of(send) == "claimed", "it finds out, and sends nothing"
