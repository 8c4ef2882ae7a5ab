"""One runner's work on one job: stage, apply, end, for as long as it has time and the lease."""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, BinaryIO

from django.db import transaction
from django.http import HttpRequest

from .. import audit
from ..models import AttributeDefinition, ImportChunk, ImportJob, Segment
from ..references import is_used
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
    #: Definitions that are not in the database yet: those of an import that is tried.
    more: Sequence[AttributeDefinition] = ()
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
        if job.staged_line:
            self._check_kinds(job)
        with self.opened() as binary:
            table = open_table(binary, job.file_name, options)
            definitions = list(AttributeDefinition.objects.filter(account_id=job.account_id))
            known = {definition.key for definition in definitions}
            definitions += [made for made in self.more if made.key not in known]
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
                dry=self.dry,
            )
            return staging.run(self._out_of_time, lambda: self._check(binary, job))

    def _describe(self, job: ImportJob, plan: Plan, notes: list[str]) -> None:
        """What the report says of the columns; written before the first row is."""
        said: dict[str, Any] = {
            "attributes": plan.attributes,
            "ignored": plan.ignored,
            "notes": notes,
            "kinds": _kinds(job.account_id, plan.attributes),
        }
        # Later the first chunk may have declared them.
        if not job.cursor:
            said["new_attributes"] = plan.new_attributes
            said["new_labels"] = plan.new_labels
        with holding(job.pk, self.runner) as (cursor, _):
            advance(
                cursor,
                job.pk,
                self.runner,
                _plain(said),
                preview=_plain({**job.preview, "header": plan.header}),
            )

    def _check_kinds(self, job: ImportJob) -> None:
        """Raises ``Emptied``: what is staged was read by other kinds of attributes than there are
        now, and has to be read again."""
        said: dict[str, Any] = job.counts
        if "kinds" not in said or self.dry:
            return
        if _kinds(job.account_id, said["attributes"]) != said["kinds"]:
            raise Emptied

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
            check=lambda: self._check_kinds(job),
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
    request: HttpRequest | None = None,
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
            request=request,
            detail={
                "import": job.pk,
                "segment": job.segment.slug if job.segment is not None else "",
                **{n: v for n, v in vars(found).items() if type(v) is int and n != "job_id"},
            },
        )
        if job.status == Status.DRAFT:
            _give_up_segment(job, by=by, by_name=by_name, request=request)


def _give_up_segment(
    job: ImportJob, *, by: Any, by_name: str, request: HttpRequest | None = None
) -> None:
    """Delete the segment that was made for a draft, if nobody has used or changed it since."""
    name = job.preview.get("new_segment")
    if not name or job.segment_id is None:
        return
    # Held against whoever would refer to it; who holds it uses it.
    segment = (
        Segment.objects.select_for_update(skip_locked=True, of=("self",))
        .filter(pk=job.segment_id, name=name, description="")
        .first()
    )
    others = ImportJob.objects.filter(segment=segment).exclude(pk=job.pk)
    if segment is None or others.exists() or is_used(segment, apart_from={ImportJob}):
        return
    segment.delete()
    audit.record(
        job.account,
        "segment.delete",
        by=by,
        by_name=by_name,
        subject=name,
        reason="It was made for an import that was canceled.",
        request=request,
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


def _kinds(account_id: int, keys: list[str]) -> dict[str, list[Any]]:
    """Of those of the attributes that are no texts; undefined ones are taken for texts."""
    rows = AttributeDefinition.objects.filter(account_id=account_id, key__in=keys)
    return {row.key: [row.kind, row.choices] for row in rows.exclude(kind="text")}


def _plain(data: dict[str, Any]) -> str:
    """JSON that PostgreSQL takes: it refuses NUL characters."""
    return json.dumps(data).replace("\\u0000", "\\ufffd")
