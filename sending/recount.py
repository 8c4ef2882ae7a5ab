"""The counters compared with what they count, and mended.

A transaction changes rows and counters alike, so in every snapshot they differ by the same, whoever
works meanwhile: what one statement finds is the error itself, and is mended by adding it.
"""

from __future__ import annotations

from dataclasses import dataclass

from django.db import connection, transaction

from . import sql
from .models import Counted
from .sql import counters as statements


@dataclass(frozen=True, slots=True)
class Drift:
    """``counted`` by the counters, ``there`` in truth. ``status`` is an event's kind where
    ``what`` is ``Counted.EVENTS``."""

    what: int
    status: str
    reason: str
    there: int
    counted: int

    @property
    def missing(self) -> int:
        """What is to be added to the counter."""
        return self.there - self.counted


def event_drift(campaign_id: int) -> list[Drift]:
    """Where counters of the campaign's events are wrong. Reads all of its events. Rows are
    compared by ``ledger.balance``."""
    with connection.cursor() as cursor:
        cursor.execute(statements.EVENT_DRIFT, {"campaign": campaign_id})
        return [Drift(Counted.EVENTS, *row) for row in cursor.fetchall()]


def rebuild(campaign_id: int) -> list[tuple[int, str, str, int]]:
    """Mend the counters of a campaign; returns ``(what, status, reason, added)`` of those that
    were wrong. Exact while workers run: it locks nothing that they need. One statement that
    reads the campaign's rows and events; whoever comes meanwhile waits, and finds nothing."""
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(sql.READ_COMMITTED)
        cursor.execute("SET LOCAL lock_timeout = 0")
        cursor.execute(statements.LOCK)
        cursor.execute(statements.UNMARK)
        # A statement of its own, with a snapshot younger than the lock: what somebody else has
        # just mended must not be added twice.
        cursor.execute(statements.REBUILD, {"campaign": campaign_id})
        return cursor.fetchall()
