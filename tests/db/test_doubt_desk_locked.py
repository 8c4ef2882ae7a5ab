"""A row that somebody else holds for long is left, and the page says so."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.utils import timezone

from campaigns import gate
from campaigns.models import Campaign
from sending import sql
from sending.models import Send
from tests.factories import CampaignFactory

from .doubtful import doubtful, of, post, said

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.mark.parametrize("decision", ["treat_as_sent", "send_again"])
def test_a_row_that_is_held_for_long(
    decision: str, superuser_client: Client, monkeypatch: Any
) -> None:
    short = sql.READ_COMMITTED.replace("lock_timeout = '10s'", "lock_timeout = '200ms'")
    monkeypatch.setattr(sql, "READ_COMMITTED", short)
    # Whoever sends again stands alone behind the gate, and waits for rows as long as for that.
    patience = gate.DECISION_PATIENCE.replace("'20s'", "'200ms'")
    monkeypatch.setattr(gate, "DECISION_PATIENCE", patience)
    campaign: Campaign = CampaignFactory.create(sending=True)
    rows = doubtful(2, campaign)
    with _other() as other:
        other.execute(f"SELECT 1 FROM sendonce_sending_send WHERE id = {rows[1].pk} FOR UPDATE")
        answer = post(
            superuser_client, of(campaign), decision=decision, which="all", confirmed="yes",
            asked=timezone.now().isoformat(),
        )  # fmt: skip
        other.rollback()
    # After ten seconds the time of one request is over: the page asks whether to go on.
    assert answer.status_code in (200, 302)
    assert any("try again" in line for line in said(answer)), said(answer)
    assert Send.objects.filter(status=Send.Status.IN_DOUBT).count() == 2


def _other() -> Any:
    import psycopg

    known = connection.get_connection_params()
    names = ("dbname", "user", "host", "port", "password")
    return psycopg.connect(**{name: known[name] for name in names if name in known})
