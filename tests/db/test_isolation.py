"""Whoever passes a gate reads with a snapshot per statement, whatever the host's default is."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.db import connection

from campaigns import lifecycle
from campaigns.editing import edit
from campaigns.models import Campaign
from sending import doubt, rescue
from sending.build import build_chunk
from sending.handover import give_back, hand_over
from sending.models import Send
from sending.outcomes import Answer, Outcome, Stage
from sending.settle import Settlement, settle
from subscribers.hooks import withdraw_leavers
from tests.db.rows import campaign_to, held, row
from tests.factories import CampaignFactory


@pytest.fixture
def repeatable_read_host(transactional_db: None) -> Iterator[list[str]]:
    """A host whose sessions default to REPEATABLE READ; yields the levels seen at gates."""
    seen: list[str] = []

    def look(execute: Callable[..., Any], sql: str, params: Any, many: bool, context: Any) -> Any:
        if "pg_advisory_xact_lock" in sql:
            with context["connection"].connection.cursor() as raw:
                seen.append(raw.execute("SHOW transaction_isolation").fetchone()[0])
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
    "settle": _settle,
    "rescue": _rescue,
    "leave": _leave,
    "send again": lambda c: doubt.resolve([row(c, "in_doubt")], doubt.SEND_AGAIN),
    "treat as sent": lambda c: doubt.resolve([row(c, "in_doubt")], doubt.TREAT_AS_SENT),
}


@pytest.mark.parametrize("verb", VERBS)
def test_a_verb_at_the_gate_is_read_committed(verb: str, repeatable_read_host: list[str]) -> None:
    VERBS[verb](campaign_to(1, built_at=None) if verb == "build" else campaign_to(1))
    assert set(repeatable_read_host) == {"read committed"}


def test_approve_and_edit_are_too(repeatable_read_host: list[str]) -> None:
    campaign = CampaignFactory.create()
    edit(campaign, version=campaign.version, values={"subject": "Another"})
    assert set(repeatable_read_host) == {"read committed"}
