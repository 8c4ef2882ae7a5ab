"""The queue that stands in the indexes for the status, and what that is for."""

from __future__ import annotations

import pytest
from django.db import connection
from django.test import Client

from sending.models import Send
from sending.queue import renew
from sending.sql.tables import SEND

from .commands import ONE_OF_EACH, campaign_with
from .handed import hand_over_rows
from .rows import LEASE, campaign_to, held, row

pytestmark = pytest.mark.django_db


def heap_only() -> tuple[int, int]:
    """``(updates, heap-only ones)`` of the ledger in this transaction."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT n_tup_upd, n_tup_hot_upd FROM pg_stat_xact_user_tables WHERE relname = %s",
            [SEND],
        )
        updates, hot = cursor.fetchone()
    return updates, hot


def test_each_status_has_its_queue() -> None:
    campaign = campaign_with(ONE_OF_EACH)
    found = dict(campaign.sends.values_list("status", "queue"))
    assert found == {status: Send.QUEUE_OF.get(status) for status in Send.Status.values}


def test_a_hand_over_and_a_renewal_write_no_index() -> None:
    campaign = campaign_to(0)
    rows = [row(campaign, "claimed") for _ in range(3)]
    before = heap_only()
    assert len(hand_over_rows(*rows).go) == 3
    assert heap_only() == (before[0] + 3, before[1] + 3)
    assert renew([held(send) for send in rows], lease=LEASE, margin=1.0) == 3
    assert heap_only() == (before[0] + 6, before[1] + 6)


@pytest.mark.parametrize("status", Send.Status.values)
def test_the_list_of_a_status_asks_for_its_queue(status: str, superuser_client: Client) -> None:
    campaign_with(ONE_OF_EACH)
    shown = superuser_client.get("/admin/sendonce_sending/send/", {"status__exact": status})
    (found,) = shown.context["cl"].result_list
    assert found.status == status
    assert ('"queue" = ' in str(shown.context["cl"].queryset.query)) == (status in Send.QUEUE_OF)
