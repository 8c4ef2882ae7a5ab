"""Migration 0005 counts what there is, once, and can be taken back."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from typing import Any

import psycopg
import pytest

from sending.sql.tables import ARCHIVED, EVENT, LEDGER_CHANGE, LEDGER_COUNT, SEND

MAKE = """
from django.utils import timezone
from campaigns.models import Campaign
from sending.models import ArchivedCount, DeliveryEvent, Send
from subscribers.models import Account
owner = Account.objects.create(name="A", slug="a", from_email="a@example.org")
campaign = Campaign.objects.create(account=owner, name="C", subject="S", body="B")
now = timezone.now()
for n in range(5):
    sent = n < 2
    send = Send.objects.create(
        account=owner, campaign=campaign, email=f"p{n}@example.org", job_id=f"j{n}",
        status="sent" if sent else "queued", sent_at=now if sent else None)
    if sent:
        DeliveryEvent.objects.create(send=send, account=owner, kind="delivered")
ArchivedCount.objects.create(campaign=campaign, status="sent", reason="", number=7, at=now)
"""


@pytest.fixture
def migrate(manage: Callable[..., subprocess.CompletedProcess[str]]) -> Callable[[str], None]:
    def to(name: str) -> None:
        done = manage("migrate", "sendonce_sending", name, "--verbosity", "0")
        assert done.returncode == 0, done.stderr

    return to


def test_what_there_is_is_counted_once(
    database_url: str, migrate: Callable[[str], None], manage: Callable[..., Any]
) -> None:
    made = manage("shell", "--no-imports", "-c", MAKE)
    assert made.returncode == 0, made.stderr
    with psycopg.connect(database_url) as connection:
        counted = totals(connection)
        assert counted == [
            (0, "queued", 3),
            (0, "sent", 9),
            (1, "delivered", 2),
        ]
    migrate("0004_scale")
    with psycopg.connect(database_url) as connection:
        left = connection.execute(
            "SELECT count(*) FROM pg_trigger WHERE tgname LIKE 'sendonce_count_%' "
            "AND NOT tgisinternal"
        ).fetchone()
        assert left == (0,)
        assert connection.execute("SELECT to_regclass(%s)", [LEDGER_CHANGE]).fetchone() == (None,)
    migrate("0005_counters")
    with psycopg.connect(database_url) as connection:
        assert totals(connection) == counted
        connection.execute(f"UPDATE {SEND} SET status = 'failed' WHERE status = 'queued'")
        connection.execute(f"DELETE FROM {EVENT}")
        connection.execute(f"DELETE FROM {ARCHIVED}")
        assert totals(connection) == [(0, "failed", 3), (0, "sent", 2), (2, "delivered", 2)]


def totals(connection: psycopg.Connection[Any]) -> list[Any]:
    return connection.execute(
        "SELECT what, status, sum(number)::int FROM ("
        f"SELECT what, status, number FROM {LEDGER_COUNT} UNION ALL "
        f"SELECT what, status, number FROM {LEDGER_CHANGE}) t "
        "GROUP BY what, status HAVING sum(number) <> 0 ORDER BY what, status"
    ).fetchall()
