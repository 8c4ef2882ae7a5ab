"""An import that is tried: everything is done, told and taken back."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from functools import partial
from typing import BinaryIO

from django.db import connection, transaction

from ..models import AttributeDefinition, ImportJob
from ..tabular import Options
from .leases import in_this_transaction, take
from .report import ImportReport, Progress, report
from .running import Run
from .sources import uploaded


def dry_run(job: ImportJob, options: Options, *, progress: Progress | None = None) -> ImportReport:
    """What a draft's import would do. Raises ``ImportRefused``."""
    return tried(job, options, partial(uploaded, job.pk), progress=progress)


def tried(
    job: ImportJob,
    options: Options,
    opened: Callable[[], AbstractContextManager[BinaryIO]],
    *,
    progress: Progress | None,
    more: Sequence[AttributeDefinition] = (),
    before_the_end: Callable[[ImportJob], None] = lambda job: None,
) -> ImportReport:
    """The import of a copy of ``job``, which may be unsaved, in one transaction that is rolled
    back. What a chunk locks is free again when the chunk is counted. ``before_the_end`` sees the
    job with its rejects. ``more``: definitions that are to be made first; they are not written,
    for what is written here is locked until the end."""
    outermost = not connection.in_atomic_block
    with transaction.atomic():
        if outermost:
            in_this_transaction()
        copy = ImportJob.objects.create(
            account_id=job.account_id,
            segment_id=job.segment_id,
            file_name=job.file_name,
            file_size=job.file_size,
            file_digest=job.file_digest,
            options=options.to_json(),
            status=ImportJob.Status.QUEUED,
        )
        runner = take(copy.pk)
        assert isinstance(runner, uuid.UUID)
        Run(copy.pk, runner, opened, progress=progress, dry=True, more=more).to_end()
        copy.refresh_from_db()
        before_the_end(copy)
        found = report(copy)
        transaction.set_rollback(True)
    found.dry_run, found.job_id = True, None
    return found
