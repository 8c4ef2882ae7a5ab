"""The build beside one statement that inserts the same rows.

The raw statement is what one would write who has nothing to guarantee: a join of people and
memberships into a table with the same columns, indexes, checks and foreign keys, once, alone. It
looks at no suppression, leaves nothing to resume from and can't be drained before its end.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from .ledger_table import COLUMNS, SEND, empty, execute, processor_seconds, sending

if TYPE_CHECKING:
    from subscribers.models import Segment

RAW = "bench_raw"


@dataclass(frozen=True, slots=True)
class Built:
    """Seconds: of all, of the server's processor in it, of the longest chunk, of the closing
    sweep, and to the first rows."""

    whole: float
    cpu: float
    longest: float
    sweep: float
    first: float


def raw(segment: Segment) -> tuple[float, float]:
    """Seconds of the one statement, its commit included, and of the server's processor in it."""
    (campaign_id,) = sending(segment, 1)
    execute(f"CREATE TABLE {RAW} (LIKE {SEND} INCLUDING ALL)")
    foreign = execute(
        "SELECT conname, pg_get_constraintdef(oid) FROM pg_constraint "
        f"WHERE conrelid = '{SEND}'::regclass AND contype = 'f'"
    )
    for name, definition in foreign:
        execute(f'ALTER TABLE {RAW} ADD CONSTRAINT "{name}" {definition}')
    (options,) = execute(f"SELECT reloptions FROM pg_class WHERE oid = '{SEND}'::regclass")[0]
    execute(f"ALTER TABLE {RAW} SET ({', '.join(options or ['fillfactor=100'])})")
    execute("CHECKPOINT")
    cpu = processor_seconds()
    started = time.perf_counter()
    execute(
        f"INSERT INTO {RAW} ({COLUMNS}) "
        "SELECT p.account_id, %(campaign)s, p.id, p.email, "
        "'campaign:' || %(campaign)s || ':' || p.id, 'queued', '', 0, '{}', '', '', '', '' "
        "FROM sendonce_subscribers_subscriber p "
        "JOIN sendonce_subscribers_membership m ON m.subscriber_id = p.id "
        "WHERE m.segment_id = %(segment)s AND m.left_at IS NULL "
        "AND p.account_id = %(account)s AND p.status = 'confirmed'",
        {"campaign": campaign_id, "segment": segment.pk, "account": segment.account_id},
    )
    seconds = time.perf_counter() - started
    cpu = processor_seconds() - cpu
    execute(f"DROP TABLE {RAW}")
    empty()
    return seconds, cpu


def ours(segment: Segment, people: int) -> Built:
    """A build as a worker does it. Raises ``ValueError`` when its ledger does not add up."""
    from sending import build, ledger
    from subscribers.conf import conf

    (campaign_id,) = sending(segment, 1, built=False)
    execute("CHECKPOINT")
    steps = []
    span = conf.BUILD_CHUNK
    cpu = processor_seconds()
    begun = time.perf_counter()
    while True:
        at = time.perf_counter()
        step = build.build_chunk(campaign_id, size=span)
        steps.append(time.perf_counter() - at)
        if step is None or step.done:
            break
        span = build.next_size(span, step.inserted, conf.BUILD_CHUNK)
    whole = time.perf_counter() - begun
    cpu = processor_seconds() - cpu
    found = ledger.balance(campaign_id)
    if not found.built or not found.holds or found.counts["queued"] != people:
        raise ValueError(f"built {found}, but there are {people} people")
    empty()
    *chunks, sweep = steps
    return Built(whole, cpu, max(chunks), sweep, chunks[0])
