"""Progress and report while the audience grows, in a host's own transaction (ATOMIC_REQUESTS)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import psycopg
import pytest
from django.db import connection, transaction

from campaigns.models import Campaign
from sending.progress_page import progress
from sending.reporting import report
from tests.factories import CampaignFactory, SendFactory

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.mark.parametrize("page", [progress, report])
def test_a_chunk_that_is_built_meanwhile(page: Callable[[Campaign], Any]) -> None:
    campaign = CampaignFactory.create(sending=True)
    SendFactory.create(campaign=campaign)
    Campaign.objects.filter(pk=campaign.pk).update(audience=1, built_at=None)
    campaign.refresh_from_db()
    known = connection.get_connection_params()
    names = ("dbname", "user", "host", "port", "password")
    other = psycopg.connect(**{name: known[name] for name in names if name in known})

    def grow_after(execute: Any, statement: str, parameters: Any, many: bool, context: Any) -> Any:
        answer = execute(statement, parameters, many, context)
        if "audience" in statement:
            other.execute(
                "UPDATE sendonce_campaigns_campaign SET audience = audience + 1 WHERE id = %s",
                [campaign.pk],
            )
            other.execute(
                "INSERT INTO sendonce_sending_ledgerchange "
                "(campaign_id, what, status, reason, hour, number) "
                "VALUES (%s, 0, 'queued', '', date_trunc('hour', now()), 1)",
                [campaign.pk],
            )
            other.commit()
        return answer

    with other, transaction.atomic(), connection.execute_wrapper(grow_after):
        assert page(campaign).holds
