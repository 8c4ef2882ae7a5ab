"""Claims from a small fresh table, from a big one with a pinned xmin, and of many campaigns."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator

import psycopg

from .ledger_table import SEND, execute

#: Rows of a claim: what eight lanes of twenty take at once, about.
TOTAL = 100
LEASE_S = 60.0
#: The hand-over and its outcome, as plain updates: what a claim meets is the versions they leave.
SENDING = (
    f"UPDATE {SEND} SET status = 'sending', attempts = attempts + 1, "
    "handed_at = clock_timestamp(), lease_until = clock_timestamp(), via = 'default:0' "
    "WHERE id = ANY(%s)"
)
SENT = (
    f"UPDATE {SEND} SET status = 'sent', sent_at = clock_timestamp(), lease_until = NULL, "
    "answer_stage = 'dot', answer_code = 250, answer_text = '2.0.0 Ok: queued as 4711ABCDEF', "
    "provider_message_id = 'r-' || id WHERE id = ANY(%s)"
)


@contextlib.contextmanager
def pinned_xmin(database_url: str) -> Iterator[None]:
    """Somebody who keeps a snapshot: nothing that dies from now on can be cleared away."""
    with psycopg.connect(database_url) as connection:
        connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        connection.execute(f"SELECT id FROM {SEND} LIMIT 1")
        yield


def claims(campaigns: list[int], rows: int, *, total: int = TOTAL) -> list[float]:
    """Seconds of each claim, until so many rows are claimed and sent or none is left."""
    from sending.queue import Rotation, claim

    rotation, seconds, done = Rotation(), [], 0
    rotation.refresh(campaigns)
    execute("SET synchronous_commit = off")
    while done < rows:
        at = time.perf_counter()
        taken = claim(rotation, worker_id=1, total=total, lease=LEASE_S, margin=10.0, blocked=[])
        seconds.append(time.perf_counter() - at)
        if not taken:
            break
        done += len(taken)
        ids = [row.id for row in taken]
        execute(SENDING, [ids])
        execute(SENT, [ids])
    execute("RESET synchronous_commit")
    return seconds


def reach_all(campaigns: list[int], *, total: int = TOTAL) -> tuple[int, list[float]]:
    """Claims until each campaign had a row, and the seconds of each. Raises ``ValueError`` when
    some campaign is not reached in the claims that fairness allows."""
    from sending.queue import Rotation, claim

    rotation, seconds, waiting = Rotation(), [], set(campaigns)
    rotation.refresh(campaigns)
    for _ in range(-(-len(campaigns) // total)):
        at = time.perf_counter()
        taken = claim(rotation, worker_id=1, total=total, lease=LEASE_S, margin=10.0, blocked=[])
        seconds.append(time.perf_counter() - at)
        waiting -= {row.campaign_id for row in taken if row.campaign_id is not None}
    if waiting:
        raise ValueError(f"{len(waiting)} of {len(campaigns)} campaigns were not reached")
    return len(seconds), seconds
