"""What imports leave behind, and when it goes."""

from __future__ import annotations

from datetime import timedelta

from django.db import connection, transaction

from ..models import ImportJob
from . import running, sql

#: Rejected rows hold people's data: kept as long as somebody may mend them.
REJECTS = timedelta(days=30)
#: A draft that nobody starts, an import from a file whose command nobody repeats.
ABANDONED = timedelta(days=7)

_BATCH = 10_000
Status = ImportJob.Status

_OLD_REJECTS = f"""
DELETE FROM {sql.REJECT} WHERE ctid = ANY(ARRAY(
    SELECT r.ctid FROM {sql.REJECT} r JOIN {sql.JOB} j ON j.id = r.job_id
    WHERE j.finished < now() - interval '{REJECTS.days} days' LIMIT {_BATCH}))"""

# One look at the index for each job that has staged rows, not one for each row.
_LEFT_OVER = f"""
WITH RECURSIVE staged AS (
    SELECT min(job_id) AS id FROM {sql.STAGED}
    UNION ALL
    SELECT (SELECT min(job_id) FROM {sql.STAGED} WHERE job_id > staged.id) FROM staged
    WHERE staged.id IS NOT NULL)
SELECT id FROM staged WHERE id IS NOT NULL AND NOT EXISTS (
    SELECT 1 FROM {sql.JOB} j WHERE j.id = staged.id AND j.status = '{Status.QUEUED.value}')"""

_THEN = f"now() - interval '{ABANDONED.days} days'"
_FORGOTTEN = f"""
SELECT id FROM {sql.JOB} j
WHERE ((status = '{Status.DRAFT.value}' AND created < {_THEN})
    OR (status = '{Status.QUEUED.value}' AND COALESCE(lease_until, started, created) < {_THEN}
        AND NOT EXISTS (SELECT 1 FROM {sql.CHUNK} c WHERE c.job_id = j.id)))"""
# Somebody may have gone on with it since.
_STILL = f"{_FORGOTTEN} AND id = %s FOR NO KEY UPDATE SKIP LOCKED"


def prune() -> None:
    """Delete what is not needed any more. The jobs with their counts stay. Repeatable; done by
    whoever runs imports."""
    with connection.cursor() as cursor:
        cursor.execute(_FORGOTTEN)
        for (job_id,) in cursor.fetchall():
            _give_up(job_id)
        cursor.execute(_LEFT_OVER)
        for (job_id,) in cursor.fetchall():
            cursor.execute(sql.UNSTAGE, [job_id])
        while True:
            cursor.execute(_OLD_REJECTS)
            if cursor.rowcount < _BATCH:
                break


def _give_up(job_id: int) -> None:
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(_STILL, [job_id])
        if cursor.fetchone():
            job = ImportJob.objects.select_related("account", "segment").get(pk=job_id)
            why = f"Nobody went on with it for {ABANDONED.days} days."
            running.end(job, Status.CANCELED, error=why, by_name="Sendonce")
