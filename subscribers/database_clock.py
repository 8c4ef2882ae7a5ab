"""The clock that decides: the database's, which is the same for everybody."""

from __future__ import annotations

from datetime import datetime

from django.db import connection


def database_time() -> datetime:
    """What leases, retries, schedules and pauses go by. It runs on within a transaction."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT clock_timestamp()")
        row = cursor.fetchone()
    assert row is not None
    now: datetime = row[0]
    return now
