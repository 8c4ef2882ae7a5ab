"""The life of an import from its upload to its end, and who runs it.

``draft`` (uploaded, to be mapped), ``queued`` (waiting or running), then ``done``, ``failed`` or
``canceled``.
"""

from __future__ import annotations

import hashlib
import logging
import time
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any
from uuid import UUID

from django.db import InterfaceError, OperationalError, transaction
from django.http import HttpRequest

from ..models import Account, AttributeDefinition, ImportChunk, ImportJob, Segment
from ..tabular import ImportRefused, Options, Plan, detect, open_table
from . import leases, running, sources, sql
from .dry import dry_run
from .leases import Canceled, Lost
from .report import Progress, report, step

__all__ = [
    "cancel",
    "create",
    "dry_run",
    "examine",
    "next_queued",
    "queue",
    "report",
    "run",
    "step",
    "store",
]

log = logging.getLogger("sendonce.import")

Status = ImportJob.Status


def create(
    account: Account, segment: Segment, *, file_name: str, by: Any = None, by_name: str = ""
) -> ImportJob:
    """A draft without a file. ``by``: a user. Raises ``ImportRefused``."""
    belongs(segment, account)
    return ImportJob.objects.create(
        account=account,
        segment=segment,
        file_name=printable(file_name)[:255],
        created_by=by,
        by_name=(by_name or (by.get_username() if by is not None else ""))[:200],
    )


def belongs(segment: Segment, account: Account) -> None:
    """Raises ``ImportRefused``: the segment is another account's."""
    if segment.account_id != account.pk:
        raise ImportRefused(f"The segment {segment.slug} is not one of the account {account.slug}.")


def printable(name: str) -> str:
    """A file's name without what PostgreSQL refuses: bytes that are no text, NUL."""
    return name.encode(errors="replace").decode().replace("\0", "?")


def store(job: ImportJob, data: Iterable[bytes]) -> None:
    """The uploaded file of a draft, over an earlier one; all of it or, on an error, none.

    Raises ``ImportRefused``: it is no draft any more.
    """
    digest, size = hashlib.sha256(), 0
    with transaction.atomic():
        _draft(job)
        ImportChunk.objects.filter(job=job).delete()
        for number, piece in enumerate(sources.pieces(data)):
            digest.update(piece)
            size += len(piece)
            ImportChunk.objects.create(job=job, number=number, data=piece)
        job.file_size, job.file_digest, job.preview = size, digest.hexdigest(), {}
        job.save(update_fields=["file_size", "file_digest", "preview"])


def examine(job: ImportJob, given: Options | None = None) -> None:
    """Fill the draft's ``options`` and ``preview`` with what its file shows, ``given`` first.

    Raises ``ImportRefused``: the file can't be read, or it is no draft any more.
    """
    with sources.uploaded(job.pk) as binary:
        definitions = AttributeDefinition.objects.filter(account_id=job.account_id)
        found = detect(binary, job.file_name, given, definitions=definitions)
    with transaction.atomic():
        _draft(job)
        job.options, job.preview = found.options.to_json(), found.preview()
        job.save(update_fields=["options", "preview"])


def queue(job: ImportJob, options: Options) -> None:
    """Have a draft run, by whoever asks for ``next_queued``.

    Raises ``ImportRefused``: its file can't be read so, or it is no draft any more.
    """
    with sources.uploaded(job.pk) as binary:
        header = open_table(binary, job.file_name, options).header
    Plan.understand(header, options, AttributeDefinition.objects.filter(account_id=job.account_id))
    with transaction.atomic():
        _draft(job)
        job.options, job.status = options.to_json(), Status.QUEUED
        job.save(update_fields=["options", "status"])


def _draft(job: ImportJob) -> None:
    """Hold the job's row, a draft, until the transaction ends."""
    found = ImportJob.objects.select_for_update(no_key=True).filter(pk=job.pk)
    if found.values_list("status", flat=True).first() != Status.DRAFT:
        raise ImportRefused("This import has been started, or has ended.")


def cancel(
    job_id: int,
    *,
    by: Any = None,
    by_name: str = "",
    why: str = "",
    request: HttpRequest | None = None,
) -> bool:
    """End a draft or a queued job; what is in stays. A running one stops at its next batch, for
    which this waits. ``False``: it had ended. ``request``: where it was asked for."""
    with transaction.atomic():
        job = (
            ImportJob.objects.select_for_update(no_key=True, of=("self",))
            .select_related("account", "segment")
            .filter(pk=job_id, status__in=[Status.DRAFT, Status.QUEUED])
            .first()
        )
        if job is None:
            return False
        running.end(job, Status.CANCELED, error=why, by=by, by_name=by_name, request=request)
    return True


def next_queued() -> int | None:
    """The oldest job that waits for a runner, or whose runner died. ``None``: there is none.

    An import from a path belongs to the command that has the file, unless that died when all
    rows were staged.
    """
    return leases.next_queued(sql.CHUNK)


def run(
    job_id: int,
    *,
    budget: float | None = None,
    progress: Progress | None = None,
    stopping: Callable[[], bool] | None = None,
    runner: UUID | None = None,
) -> bool:
    """Work on an uploaded import: to its end, for about ``budget`` seconds (one batch at least), or
    until ``stopping`` says so. ``True``: it has ended, well or not (see its ``status`` and
    ``error``). ``False``: there is more to do, or somebody else does it. ``runner``: as whom it has
    been taken already.

    A lost database raises Django's ``OperationalError``; the job stays queued.
    """
    runner = runner or leases.take(job_id)
    if runner is None:
        return not ImportJob.objects.filter(pk=job_id, status=Status.QUEUED).exists()
    uploaded = ImportChunk.objects.filter(job_id=job_id).exists()
    work = running.Run(
        job_id,
        runner,
        partial(sources.uploaded, job_id) if uploaded else None,
        deadline=None if budget is None else time.monotonic() + budget,
        stopping=stopping,
        progress=progress,
        # The command that has the file is told how it ended.
        keep=not uploaded,
    )
    try:
        try:
            if work.to_end():
                return True
        except ImportRefused as error:
            running.refuse(job_id, runner, error)
            return True
    except Canceled:
        return True
    except (Lost, running.NoFile):
        pass
    except (OperationalError, InterfaceError):
        raise  # the lease runs out
    except (KeyboardInterrupt, SystemExit):
        leases.give_back_anyhow(job_id, runner)
        raise
    except Exception as error:
        # It would fail again and again. The traceback is for the log, the page says that much.
        log.exception("import %s failed", job_id)
        running.refuse(job_id, runner, ImportRefused(f"An unexpected error: {error}"[:500]))
        return True
    leases.give_back(job_id, runner)
    return False
