"""One runner's work on one job: stage, apply, end, for as long as it has time and the lease."""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, BinaryIO

from django.db import transaction

from .. import audit
from ..models import AttributeDefinition, ImportChunk, ImportJob
from ..tabular import ImportRefused, Options, Plan, open_table
from . import sql
from .applying import Applying
from .leases import advance, holding
from .report import Progress, in_words, report
from .sources import digest_of
from .staging import Emptied, Staging, unstage

Status = ImportJob.Status
#: With a limited time, an import that is one transaction is written only up to so many rows.
ROWS_AT_ONCE = 20_000


class NoFile(Exception):
    """The file is needed and is not in the database: only the command that has it can go on."""


@dataclass
class Run:
    """``to_end`` works on the job until it is done; raises ``ImportRefused``, ``NoFile``, and
    what ``leases`` raises. ``opened`` opens the file, in the job's state of reading it."""

    job_id: int
    runner: uuid.UUID
    opened: Callable[[], AbstractContextManager[BinaryIO]] | None
    #: Is the file a path's, which may change while it is read?
    may_change: bool = False
    #: The monotonic clock's time at which to stop.
    deadline: float | None = None
    #: Asked between batches and chunks: is it to stop?
    stopping: Callable[[], bool] | None = None
    progress: Progress | None = None
    dry: bool = False
    #: The lease stays with the ended job until the report has been told.
    keep: bool = False

    def to_end(self) -> bool:
        """``False``: the time was up, or it was to stop, before the end."""
        while True:
            try:
                return self._stage() and self._apply() and self._end()
            except Emptied:
                unstage(self.job_id, self.runner)

    def _job(self) -> ImportJob:
        return ImportJob.objects.select_related("account", "segment").get(pk=self.job_id)

    def _out_of_time(self) -> bool:
        if self.stopping is not None and self.stopping():
            return True
        return self.deadline is not None and time.monotonic() >= self.deadline

    def _stage(self) -> bool:
        job = self._job()
        if job.staged_at is not None:
            return True
        if self.opened is None:
            raise NoFile
        options = Options.from_json(job.options)
        with self.opened() as binary:
            table = open_table(binary, job.file_name, options)
            definitions = AttributeDefinition.objects.filter(account_id=job.account_id)
            plan = Plan.understand(table.header, options, definitions)
            self._describe(job, plan, table.notes)
            staging = Staging(
                job.pk,
                job.account_id,
                self.runner,
                table,
                plan,
                staged_line=job.staged_line,
                counts=job.counts,
                file_size=job.file_size,
                progress=self.progress,
            )
            return staging.run(self._out_of_time, lambda: self._check(binary, job))

    def _describe(self, job: ImportJob, plan: Plan, notes: list[str]) -> None:
        """What the report says of the columns; written before the first row is."""
        said: dict[str, Any] = {
            "attributes": plan.attributes,
            "ignored": plan.ignored,
            "notes": notes,
        }
        # Later the first chunk may have declared them.
        if not job.cursor:
            said["new_attributes"] = plan.new_attributes
        with holding(job.pk, self.runner) as (cursor, _):
            advance(
                cursor,
                job.pk,
                self.runner,
                _plain(said),
                preview=_plain({**job.preview, "header": plan.header}),
            )

    def _check(self, binary: BinaryIO, job: ImportJob) -> None:
        if self.may_change and digest_of(binary) != job.file_digest:
            raise ImportRefused("The file changed while it was read; nothing of it was imported.")

    def _apply(self) -> bool:
        job = self._job()
        options = Options.from_json(job.options)
        rows = job.counts.get("rows", 0)
        if options.atomic and self.deadline is not None and rows > ROWS_AT_ONCE:
            return False
        origin = f"import of {job.file_name}" if job.file_name else "import"
        parameters = {
            "account": job.account_id,
            "segment": job.segment_id,
            "confirmed": options.confirmed,
            "update": options.existing == "update",
            "consent_source": (options.consent_source or origin)[:200],
            "evidence": origin,
        }
        return Applying(
            job.pk,
            self.runner,
            parameters,
            counts=job.counts,
            whole=options.atomic,
            dry=self.dry,
            progress=self.progress,
        ).run(self._out_of_time)

    def _end(self) -> bool:
        if self.dry:
            return True
        with holding(self.job_id, self.runner):
            end(self._job(), Status.DONE, keep=self.keep)
        return True


def end(
    job: ImportJob,
    status: ImportJob.Status,
    *,
    error: str = "",
    keep: bool = False,
    by: Any = None,
    by_name: str = "",
) -> None:
    """The last word on a job, in a transaction that holds its row: uploaded pieces and staged
    rows go, and the people that the preview shows. ``by``: who ended it, if not who began it."""
    with transaction.atomic(), transaction.get_connection().cursor() as cursor:
        cursor.execute(
            _END.format(sql.JOB),
            {
                "job": job.pk,
                "status": status.value,
                "error": error,
                "keep": keep,
                "preview": _plain({"header": job.preview.get("header", [])}),
            },
        )
        cursor.execute(sql.UNSTAGE, [job.pk])
        ImportChunk.objects.filter(job_id=job.pk).delete()
        found = report(job)
        audit.record(
            job.account,
            f"import.{status.value}",
            by=job.created_by if by is None and not by_name else by,
            by_name=job.by_name if by is None and not by_name else by_name,
            subject=job.file_name,
            reason=error,
            detail={
                "import": job.pk,
                "segment": job.segment.slug if job.segment is not None else "",
                **{n: v for n, v in vars(found).items() if type(v) is int and n != "job_id"},
            },
        )


_END = """
UPDATE {} SET status = %(status)s, error = %(error)s, finished = clock_timestamp(),
    cursor = '', lease_until = NULL, runner = CASE WHEN %(keep)s THEN runner END,
    preview = %(preview)s::jsonb
WHERE id = %(job)s"""


def refuse(job_id: int, runner: uuid.UUID, error: ImportRefused) -> str:
    """The job has failed; returns why, and what of it is in nevertheless."""
    with holding(job_id, runner):
        job = ImportJob.objects.select_related("account", "segment").get(pk=job_id)
        said = in_words(job)
        why = f"{error} Before that, {said}; that stays." if said else str(error)
        end(job, Status.FAILED, error=why)
    return why


def _plain(data: dict[str, Any]) -> str:
    """JSON that PostgreSQL takes: it refuses NUL characters."""
    return json.dumps(data).replace("\\u0000", "\\ufffd")
