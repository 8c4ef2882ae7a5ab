"""What providers tell by webhook: stored at once by the web server, applied later by a worker.

Storing is one insert, so that the provider has its answer within milliseconds and nothing that
was answered with 200 is ever lost. Applying is idempotent and does not depend on the order in
which events came; see ``sending.tracking.rules`` for what they mean.
"""

from __future__ import annotations

import logging
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from django.db import InterfaceError, OperationalError, connection, transaction
from django.db.models.functions import Now
from django.utils import timezone

from campaigns.gate import try_shared
from campaigns.lifecycle import CHANNEL
from subscribers.addresses import canonical, erased_hashes
from subscribers.models import Suppression

from .. import sql
from ..models import ProviderEvent
from ..sql import tracking as statements
from . import archived, webhook_counts
from .effects import Tracked, Whom, write
from .matching import Told, match
from .reading import read
from .rules import ONCE, Result

__all__ = ["apply_waiting", "prune", "store", "take_in"]

log = logging.getLogger("sendonce.webhooks")

#: anymail's names of providers that give no metadata back; their events are found by the
#: message's id, which the ledger learns with the outcome.
WITHOUT_METADATA = ("MailerSend", "Postal")
#: Seconds for which their events wait for it.
PATIENCE = 600.0
#: Days that applied events are kept; the ledger's own events stay.
KEPT_DAYS = 90


def take_in(events: Iterable[Any], esp_name: str, others: Sequence[ProviderEvent] = ()) -> int:
    """Read and store the anymail events of one request, and ``others`` with them; returns how
    many were new. Raises ``django.db.Error`` subclasses: then nothing is stored."""
    readings = [read(event, esp_name, received=timezone.now()) for event in events]
    new = store([reading.row for reading in readings] + list(others))
    odd = Counter((r.row.esp, webhook_counts.ODD_TIME) for r in readings if r.odd_time)
    webhook_counts.count(odd)
    return new


def store(events: Sequence[ProviderEvent]) -> int:
    """Store unsaved events by one durable insert, and wake the workers; returns how many were
    new. What was stored before is counted as replayed, and changes nothing.

    Raises ``django.db.Error`` subclasses: then nothing is stored.
    """
    if not events:
        return 0
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(sql.DURABLE)
        cursor.execute(
            statements.STORE_EVENTS,
            {
                "event_ids": [e.event_id for e in events],
                "esps": [e.esp for e in events],
                "kinds": [e.kind for e in events],
                "job_ids": [e.job_id for e in events],
                "installations": [e.installation for e in events],
                "message_ids": [e.message_id for e in events],
                "recipients": [e.recipient for e in events],
                "ats": [e.at for e in events],
                "texts": [e.text for e in events],
            },
        )
        new = int(cursor.rowcount)
        # Nothing waits for an opening; a flood of them shall not keep the workers awake.
        if new and any(e.kind not in ONCE for e in events):
            cursor.execute("SELECT pg_notify(%s, 'events')", [CHANNEL])
    webhook_counts.count({(events[0].esp, webhook_counts.REPLAYED): len(events) - new})
    return new


class Waiting(NamedTuple):
    """A stored event that is not applied yet; see ``models.ProviderEvent``."""

    id: int
    event_id: str
    esp: str
    kind: str
    job_id: str
    installation: str
    message_id: str
    recipient: str
    at: datetime
    text: str


def apply_waiting(limit: int = 500) -> int:
    """Apply up to ``limit`` stored events, the oldest first; returns how many are done with.

    Any number of workers may run it: each takes events that no other has. One transaction with a
    durable commit, since it may suppress. Events of a campaign about which somebody decides at
    this moment are left for the next time. Raises ``OperationalError`` and ``InterfaceError`` of
    ``django.db``; nothing was changed then.
    """
    try:
        return _apply(limit, [])
    except (OperationalError, InterfaceError):
        raise
    except Exception:
        # One of them is more than we can do. The others must not wait for it for ever.
        log.exception("events not applied together, one by one now", extra={"event": "events"})
    done = 0
    while done < limit and (step := _apply_one()):
        done += step
    return done


def _apply_one() -> int:
    taken: list[int] = []
    try:
        return _apply(1, taken)
    except (OperationalError, InterfaceError):
        raise
    except Exception:
        log.exception("an event can't be applied", extra={"event": "events", "ids": taken})
    return ProviderEvent.objects.filter(pk__in=taken, applied_at__isnull=True).update(
        applied_at=Now(), result=str(Result.ERROR)
    )


def _apply(limit: int, taken: list[int]) -> int:
    """As ``apply_waiting``; ``taken`` gets the numbers of the events that are looked at."""
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(sql.DURABLE)
        cursor.execute(
            statements.TAKE_EVENTS,
            {"patient": list(WITHOUT_METADATA), "patience": PATIENCE, "limit": limit},
        )
        waiting = [Waiting(*row) for row in cursor.fetchall()]
        if not waiting:
            return 0
        taken.extend(e.id for e in waiting)
        found = match(
            [Told(e.id, e.job_id, e.installation, e.message_id, e.recipient) for e in waiting]
        )
        closed = try_shared(cursor, {f.campaign_id for f in found.values() if f.campaign_id})
        done = [e for e in waiting if found[e.id].campaign_id not in closed]
        wanted = {f.send_id for e in done if (f := found[e.id]).send_id is not None}
        here: set[int] = set()
        if wanted:
            cursor.execute(sql.LOCK_ROWS, {"ids": sorted(wanted)})
            here = {send_id for (send_id,) in cursor.fetchall()}
        # A row may have been pruned since, too, while we came to its lock.
        late = archived.whom(e for e in done if found[e.id].send_id not in here)
        sends: dict[int, list[Tracked]] = defaultdict(list)
        rowless: list[tuple[Whom, Tracked]] = []
        results: dict[int, Result] = {}
        for e in done:
            tracked = Tracked(
                e.id, e.event_id, e.esp, e.kind, e.message_id, e.recipient, e.at, e.text
            )
            send_id, known = found[e.id].send_id, late.get(e.id)
            if send_id is not None and send_id in here:
                sends[send_id].append(tracked)
            elif isinstance(known, Whom):
                rowless.append((known, tracked))
            else:
                results[e.id] = known or found[e.id].refusal or Result.UNKNOWN_JOB
        erased: set[int] = set()
        if sends or rowless:
            results |= write(cursor, sends, erased, rowless)
        erased |= _about_erased([e for e in done if e.id not in erased and _is_odd(results[e.id])])
        _mark(cursor, done, results, erased)
    return len(done)


def _is_odd(result: Result) -> bool:
    return result not in (Result.APPLIED, Result.IGNORED)


def _about_erased(events: Iterable[Waiting]) -> set[int]:
    """Those events without a row of ours whose recipient was erased: the address must not stay
    for being told late."""
    told: dict[str, set[int]] = defaultdict(set)
    for e in events:
        for digest in erased_hashes(canonical(e.recipient)) if e.recipient else ():
            told[digest].add(e.id)
    known = Suppression.objects.filter(email_hash__in=list(told)).values_list(
        "email_hash", flat=True
    )
    return {event_id for digest in known for event_id in told[str(digest)]} if told else set()


def _mark(
    cursor: Any, done: Sequence[Waiting], results: dict[int, Result], erased: set[int]
) -> None:
    cursor.execute(
        statements.MARK_APPLIED,
        {
            "ids": [e.id for e in done],
            "results": [str(results[e.id]) for e in done],
            "erased": [e.id in erased for e in done],
        },
    )
    counts = Counter((e.esp, str(results[e.id])) for e in done if _is_odd(results[e.id]))
    webhook_counts.add(cursor, counts)


def prune(*, days: int = KEPT_DAYS, step: int = 5000) -> int:
    """Delete applied events that are older than ``days``, at most ``step`` of them; returns how
    many. The ledger remembers an event's id, so that one told again later still counts once."""
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(sql.RELAXED)
        cursor.execute(statements.PRUNE_EVENTS, {"days": days, "step": step})
        return int(cursor.rowcount)
