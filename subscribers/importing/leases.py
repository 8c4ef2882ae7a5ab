"""Who works on an import: one runner at a time, by a lease on the database's clock.

Every transaction of a runner begins by locking the job's row and looking whether it is still
the runner: one that lost its lease commits nothing more. Nobody takes over a row that is locked,
so a transaction that outlasts its lease is not done twice.
"""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db import Error, connection, transaction

from ..models import ImportJob

#: Seconds; renewed by every batch and chunk, which take about one.
LEASE = 30

_JOB = ImportJob._meta.db_table
_QUEUED = ImportJob.Status.QUEUED.value
_FREE = "(lease_until IS NULL OR lease_until <= clock_timestamp())"
_UNTIL = f"clock_timestamp() + interval '{LEASE} seconds'"

# Each statement sees what was committed before it, whatever the host's default is: the check
# for the erased must see those of the moment before. A runner that fell off the network holds
# no lock for ever.
_BEGIN = """
SET TRANSACTION ISOLATION LEVEL READ COMMITTED;
SET LOCAL idle_in_transaction_session_timeout = '60s'"""

_TAKE = f"""
UPDATE {_JOB} SET runner = %s, lease_until = {_UNTIL},
    started = COALESCE(started, clock_timestamp())
WHERE id = (SELECT id FROM {_JOB} WHERE id = %s AND status = '{_QUEUED}' AND {_FREE}
    FOR NO KEY UPDATE SKIP LOCKED)
RETURNING id"""

_HOLD = f"""
SELECT status, runner, staged_line, staged_at, cursor, segment_id FROM {_JOB}
WHERE id = %s FOR NO KEY UPDATE"""

_ADVANCE = f"""
UPDATE {_JOB} SET lease_until = {_UNTIL}, counts = counts || %(counts)s::jsonb, {{}}
WHERE id = %(job)s AND runner = %(runner)s AND status = '{_QUEUED}'"""

# A lease that ran out was not given back: its runner is dead. Without the file in the database
# such an import goes on elsewhere only when all of it is staged.
_NEXT = f"""
SELECT j.id FROM {_JOB} j
WHERE j.status = '{_QUEUED}' AND {_FREE} AND (
    EXISTS (SELECT 1 FROM {{chunks}} c WHERE c.job_id = j.id)
    OR (j.staged_at IS NOT NULL AND j.lease_until IS NOT NULL))
ORDER BY j.id LIMIT 1 FOR NO KEY UPDATE OF j SKIP LOCKED"""


class Lost(Exception):
    """Another runner has taken this import over."""


class Canceled(Exception):
    """The import was canceled, or ended otherwise, by somebody else."""


@dataclass(frozen=True, slots=True)
class Held:
    """The state of a job whose row this transaction holds."""

    staged_line: int
    staged_at: datetime | None
    cursor: str
    segment_id: int | None


def take(job_id: int) -> uuid.UUID | None:
    """Become the runner of a queued job. ``None``: it is not queued, or somebody works on it."""
    runner = uuid.uuid4()
    with connection.cursor() as cursor:
        cursor.execute(_TAKE, [runner, job_id])
        return runner if cursor.fetchone() else None


def give_back(job_id: int, runner: uuid.UUID) -> None:
    """Leave the rest to whoever comes next."""
    ImportJob.objects.filter(pk=job_id, runner=runner, status=_QUEUED).update(
        runner=None, lease_until=None
    )


def give_back_anyhow(job_id: int, runner: uuid.UUID) -> None:
    """``give_back`` of a process that was told to end, wherever it was: in the middle of a commit,
    say. If it can't, the lease runs out."""
    with contextlib.suppress(Error):
        if not connection.in_atomic_block:
            connection.close()  # whatever its transaction was about to do, it has not done
        elif connection.needs_rollback:
            return
        give_back(job_id, runner)


def in_this_transaction() -> None:
    """What the first statements of an import's own transaction set."""
    with connection.cursor() as cursor:
        cursor.execute(_BEGIN)


@contextmanager
def holding(job_id: int, runner: uuid.UUID) -> Iterator[tuple[Any, Held]]:
    """A transaction that holds the job's row, and what the row says.

    Raises ``Lost`` or ``Canceled``, and nothing is written.
    """
    outermost = not connection.in_atomic_block
    with transaction.atomic(), connection.cursor() as cursor:
        if outermost:
            cursor.execute(_BEGIN)
        cursor.execute(_HOLD, [job_id])
        row = cursor.fetchone()
        if row is None or row[0] != _QUEUED:
            raise Canceled
        if row[1] != runner:
            raise Lost
        yield cursor, Held(*row[2:])


def advance(
    cursor: Any, job_id: int, runner: uuid.UUID, counts: str, /, **changes: str | int | None
) -> None:
    """Move the job on and renew the lease, in a transaction that holds it. ``counts``: a JSON
    object, laid over what is there."""
    columns = ", ".join(f"{name} = %({name})s" for name in changes)
    cursor.execute(
        _ADVANCE.format(columns or "error = error"),
        {**changes, "counts": counts, "job": job_id, "runner": runner},
    )
    if cursor.rowcount != 1:
        raise Lost


def next_queued(chunks: str) -> int | None:
    """The oldest job that a runner without the file can work on; ``chunks``: their table."""
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(_NEXT.format(chunks=chunks))
        row = cursor.fetchone()
        return int(row[0]) if row else None
