"""Rescue: rows whose worker is gone. The lease in the row decides, by the database's clock.

``claimed`` goes back where it came from, no attempt spent; ``sending`` becomes ``in_doubt``:
it may have left. A late answer of a worker that was only slow still settles it, by token.
"""

from __future__ import annotations

import contextlib
import logging
from typing import Any

from django.db import connection, transaction
from django.db.models.functions import Now

from campaigns.gate import try_shared
from subscribers.conf import conf

from . import events, sql
from .models import Worker
from .transports import UnknownTransport, transport
from .withheld import WITHHELD

log = logging.getLogger("sendonce.sender")

#: Upper bits of the session lock's key ("WRK"), beside the campaign's gate ("SEN").
_WORKER_LOCKS = 0x57524B << 40


def worker_lock_key(worker_id: int) -> int:
    """The advisory lock that a worker holds in its session, on direct connections."""
    return _WORKER_LOCKS | (worker_id & ((1 << 40) - 1))


def rescue_expired(*, doubt_wait: float) -> int:
    """Rescue every row whose lease has run out; returns how many.

    ``doubt_wait``: seconds that an account's policy waits after the lease.
    """
    given = {"doubt_wait": doubt_wait, "replay_wait": replay_wait()}
    rows, _ = _rescue(sql.EXPIRED_CAMPAIGNS, sql.RESCUE_EXPIRED, given)
    return rows


def rescue_dead(*, doubt_wait: float, me: int | None = None) -> int:
    """Rescue the rows of workers whose session lock is free: they lost their session, so most
    likely they died. Only relabels, which is safe if they live; returns how many rows.

    Only right without a pooler between, see ``SENDONCE["DIRECT_CONNECTION"]``.
    """
    rescued = 0
    waits = {"doubt_wait": doubt_wait, "replay_wait": replay_wait()}
    suspects = Worker.objects.filter(ended__isnull=True, locked=True)
    if me is not None:
        suspects = suspects.exclude(pk=me)
    for worker_id in list(suspects.values_list("pk", flat=True)):
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute("SELECT pg_try_advisory_xact_lock(%s)", [worker_lock_key(worker_id)])
            (free,) = cursor.fetchone()
        if not free:
            continue
        rows, complete = _rescue(
            sql.DEAD_CAMPAIGNS, sql.RESCUE_DEAD, {"worker": worker_id, **waits}
        )
        rescued += rows
        if not complete:
            continue  # it stays a suspect, or its rows would wait for their leases
        Worker.objects.filter(pk=worker_id, ended__isnull=True).update(
            ended=Now(), note="found dead: its session was gone"
        )
    return rescued


def replay_wait() -> float:
    """Seconds after a lease until a hand-over in doubt may be replayed: the longest answer
    time-out of the transports that deduplicate, since a lost worker's request may still run."""
    waits = [0.0]
    for alias in conf.TRANSPORTS:
        with contextlib.suppress(UnknownTransport):
            found = transport(alias)
            waits.append(found.answer_timeout if found.deduplicates else 0.0)
    return max(waits)


def _rescue(campaigns_sql: str, rescue_sql: str, given: dict[str, Any]) -> tuple[int, bool]:
    """How many rows, and whether no campaign was left out because somebody decides about it."""
    with connection.cursor() as cursor:
        cursor.execute(campaigns_sql, given)
        campaigns = [campaign_id for (campaign_id,) in cursor.fetchall()]
    rescued, complete = 0, True
    for campaign_id in campaigns:
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute(sql.READ_COMMITTED)
            if campaign_id is not None and try_shared(cursor, [campaign_id]):
                complete = False  # a decision is under way; the next look, in a second, finds them
                continue
            cursor.execute(rescue_sql, {**given, "campaign": campaign_id})
            rows = cursor.fetchall()
            events.record(
                cursor, [_lost(*row) for row in rows if row[2] in ("in_doubt", "canceled")]
            )
            rescued += len(rows)
        if rows:
            log.warning(
                "rows of a lost worker rescued",
                extra={
                    "event": "rescued",
                    "campaign": campaign_id,
                    "rows": len(rows),
                    "in_doubt": sum(row[2] == "in_doubt" for row in rows),
                },
            )
    return rescued, complete


def _lost(send_id: int, account_id: int, status: str, attempts: int, reason: str) -> events.Note:
    if reason != "worker_lost":
        # It was only claimed, and its campaign was canceled meanwhile.
        return events.Note(
            send_id=send_id,
            account_id=account_id,
            kind=status,
            stage="local",
            reason="canceled",
            text=WITHHELD["canceled"],
        )
    return events.Note(
        send_id=send_id,
        account_id=account_id,
        kind=status,
        reason="worker_lost",
        text="the sender stopped between hand-over and answer; it may have been sent",
        attempt=attempts,
    )
