"""An import by whoever has the file: the command, a script, the demo.

The same file again with the same options into the same segment goes on with an import that
stopped halfway.
"""

from __future__ import annotations

import os
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import BinaryIO

from django.db import InterfaceError, OperationalError, connection, transaction
from django.db.models import Q
from django.utils import timezone

from ..models import Account, AttributeDefinition, ImportJob, Segment
from ..tabular import ImportRefused, Options, Plan, open_table
from . import leases, running, sources
from .dry import tried
from .jobs import belongs, printable
from .leases import Canceled, Lost
from .mapping import mapped
from .rejects import commonest, why_not_writable, write_file
from .report import ImportReport, ImportStopped, Progress, Step, in_words, report, step

Status = ImportJob.Status

#: Seconds between two looks whether another run of the same import has ended.
_POLL = 0.5
#: How long an ended import is told to the same command, which died before it could tell.
_UNTOLD = timedelta(hours=1)


@dataclass(frozen=True)
class _Target:
    """What makes two imports the same."""

    account: Account
    segment: Segment
    options: Options
    digest: str
    size: int
    name: str
    by_name: str


def import_file(
    source: str | Path | BinaryIO,
    *,
    account: Account,
    segment: Segment,
    options: Options | None = None,
    columns: Mapping[str, str] | None = None,
    reject_file: str | Path | None = None,
    dry_run: bool = False,
    by_name: str = "",
    progress: Progress | None = None,
    waiting: Callable[[datetime], object] | None = None,
    tell: Callable[[ImportReport], object] | None = None,
    stopping: Callable[[], bool] | None = None,
) -> ImportReport:
    """Import a file (see ``tabular.columns`` for its columns) into a segment of an account.

    ``options.confirmed``: the sender vouches for the consent of these people; new and pending
    ones become ``confirmed``, unless their row says ``pending`` or ``unsubscribed``. Else new
    ones are ``pending`` and get no campaign until they confirm. ``existing="keep"`` leaves what
    is known of a person; they still join the segment, and a row that says ``unsubscribed`` or
    ``suppressed`` still holds. ``consent_source`` (default: the file's name) is kept with new
    and newly confirmed people whose row names none. ``atomic``: all or nothing. ``columns`` maps
    columns' names to targets (see ``Options.mapping``), the others mean what they are named.

    A row's cells that are not empty win over what is known; empty ones change nothing. Rows
    that can't be imported go into the reject file (made only if there are any; default: beside
    the file, ``.rejects.csv``, of a dry run ``.rejects-dry-run.csv``; none for a stream) and the
    others go in. Memory is bounded, whatever the file. A dry run does everything and takes it back.

    ``waiting`` is told until when another run of the same import has its lease; ``tell`` gets the
    report, and a run that dies before it returned is told again by the next one. ``stopping`` is
    asked between batches.

    Raises ``ImportRefused``: the file as a whole is no good, or can't be read, or the reject
    file can't be written, or the segment is another account's. Nothing was changed then, unless
    the message says so. Raises ``ImportStopped``: it was to stop, or the database or the file went
    away; the same call goes on.
    """
    belongs(segment, account)
    place = Path(source) if isinstance(source, str | Path) else None
    rejects = Path(reject_file) if reject_file else None
    if place is not None and rejects is None:
        # A try must not write over the rejects of the real one.
        ending = "rejects-dry-run" if dry_run else "rejects"
        rejects = place.with_name(f"{place.name}.{ending}.csv")
    if rejects is not None:
        refuse_reject_file(rejects, place)
    work = _Work(rejects, progress, stopping)
    try:
        with sources.opened(place if place is not None else source) as binary:  # type: ignore[arg-type]
            work.binary = binary
            work.target = _target(
                binary, account, segment, options or Options(), columns, place, by_name
            )
            found = work.try_it() if dry_run else work.do_it(waiting)
    except OSError as error:
        if isinstance(error, FileNotFoundError) and place is not None and not place.exists():
            raise ImportRefused(f"No such file: {place}") from error
        name = error.filename or place or "The file"
        raise ImportRefused(f"{name} can't be read or written: {error.strerror}.") from error
    except (OperationalError, InterfaceError) as error:
        raise ImportStopped(_stopped(error, work.last)) from error
    if tell is not None:
        tell(found)
    if found.job_id is not None:
        # From here on the same command is a new import.
        ImportJob.objects.filter(pk=found.job_id).exclude(status=Status.QUEUED).update(runner=None)
    return found


def _what_is_in(last: Step | None) -> str:
    writing = last is not None and last.phase == "writing" and last.done
    done = f"{last.done} of {last.total} rows" if last is not None and writing else "No rows"
    return f"{done} are in"


def _stopped(error: Exception, last: Step | None) -> str:
    why = (str(error).strip().splitlines() or ["no answer"])[0].rstrip(".")
    return (
        f"The database can't be used ({why}). {_what_is_in(last)}; the same command goes on from "
        "there."
    )


def refuse_reject_file(rejects: Path, source: Path | None) -> None:
    """Raises ``ImportRefused``: it would replace the file itself, or can't be written."""
    if _same(rejects, source):
        raise ImportRefused(f"{rejects} can't be the reject file: it is the file to be imported.")
    why = why_not_writable(rejects)
    if why:
        raise ImportRefused(f"{rejects} can't be the reject file: {why}.")


def _same(one: Path, other: Path | None) -> bool:
    try:
        return other is not None and one.samefile(other)
    except OSError:
        return False


def _target(
    binary: BinaryIO,
    account: Account,
    segment: Segment,
    options: Options,
    columns: Mapping[str, str] | None,
    place: Path | None,
    by_name: str,
) -> _Target:
    """Refuses a file that can't be imported before anything is written."""
    binary.seek(0)
    name = printable(place.name) if place is not None else ""
    header = open_table(binary, name, options).header
    definitions = AttributeDefinition.objects.filter(account=account)
    if columns:
        options = replace(options, mapping=mapped(header, columns, definitions))
    Plan.understand(header, options, definitions)
    digest = sources.digest_of(binary)
    size = binary.seek(0, os.SEEK_END)
    return _Target(account, segment, options, digest, size, name[:255], by_name)


class _Work:
    binary: BinaryIO
    target: _Target

    def __init__(
        self,
        rejects: Path | None,
        progress: Progress | None,
        stopping: Callable[[], bool] | None,
    ) -> None:
        self.rejects = rejects
        self.stopping = stopping
        self.told = progress
        self.last: Step | None = None

    def progress(self, step: Step) -> None:
        self.last = step
        if self.told is not None:
            self.told(step)

    def try_it(self) -> ImportReport:
        files: list[Path | None] = []
        reasons: list[tuple[str, int]] = []
        target = self.target
        job = ImportJob(
            account=target.account,
            segment=target.segment,
            file_name=target.name,
            file_size=target.size,
            file_digest=target.digest,
        )

        def note(copy: ImportJob) -> None:
            files.append(self._write_rejects(copy))
            reasons.extend(commonest(copy))

        found = tried(
            job,
            target.options,
            self._opened,
            progress=self.progress,
            before_the_end=note,
        )
        found.reject_file, found.reasons = files[0], reasons
        return found

    def do_it(self, waiting: Callable[[datetime], object] | None) -> ImportReport:
        job_id = _find_or_create(self.target)
        runner = self._take(job_id, waiting)
        if runner is not None:
            self.last = step(ImportJob.objects.get(pk=job_id))
            self._run(job_id, runner)
        job = ImportJob.objects.get(pk=job_id)
        if job.status == Status.CANCELED:
            raise ImportRefused(" ".join(["The import was canceled.", _what_stays(job)]).strip())
        if job.status == Status.FAILED:
            raise ImportRefused(job.error)
        found = report(job)
        found.reasons = commonest(job)
        try:
            found.reject_file = self._write_rejects(job)
        except OSError as error:
            raise ImportStopped(
                f"The import is done, but its reject file {self.rejects} can't be written: "
                f"{error.strerror}. The same command tells its result and writes the file again."
            ) from error
        return found

    def _run(self, job_id: int, runner: uuid.UUID) -> None:
        work = running.Run(
            job_id,
            runner,
            self._opened,
            may_change=True,
            stopping=self.stopping,
            progress=self.progress,
            keep=True,
        )
        try:
            try:
                ended = work.to_end()
            except ImportRefused as error:
                why = running.refuse(job_id, runner, error)
                raise ImportRefused(why) from error
            if not ended:
                raise ImportStopped(
                    f"Stopped. {_what_is_in(self.last)}; the same command goes on where it stopped."
                )
        except ImportRefused:
            raise
        except Canceled:
            pass
        except Lost:
            raise ImportStopped(
                "Another run has taken this import over; the same command tells how it ends."
            ) from None
        except (OperationalError, InterfaceError):
            raise  # the lease runs out
        except BaseException:
            leases.give_back_anyhow(job_id, runner)
            raise

    def _take(self, job_id: int, waiting: Callable[[datetime], object] | None) -> uuid.UUID | None:
        """``None``: it has ended meanwhile."""
        told: datetime | None = None
        while True:
            runner = leases.take(job_id)
            if runner is not None:
                return runner
            job = ImportJob.objects.get(pk=job_id)
            if job.status != Status.QUEUED:
                return None
            if waiting is not None and job.lease_until is not None and told is None:
                told = job.lease_until
                waiting(told)
            time.sleep(_POLL)

    @contextmanager
    def _opened(self) -> Iterator[BinaryIO]:
        self.binary.seek(0)
        yield self.binary

    def _write_rejects(self, job: ImportJob) -> Path | None:
        return write_file(job, self.rejects) if self.rejects is not None else None


def _what_stays(job: ImportJob) -> str:
    said = in_words(job)
    return f"Before that, {said}; that stays." if said else ""


def _find_or_create(target: _Target) -> int:
    """The same import, if it stopped halfway or ended untold; else a new one."""
    # Two that begin at the same moment are one import.
    key = f"sendonce-import:{target.account.pk}:{target.segment.pk}:{target.digest}"
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))", [key])
        same = ImportJob.objects.filter(
            account=target.account,
            segment=target.segment,
            file_digest=target.digest,
            options=target.options.to_json(),
            chunks=None,
        )
        untold = Q(status=Status.DONE, runner__isnull=False, finished__gt=timezone.now() - _UNTOLD)
        found = same.filter(Q(status=Status.QUEUED) | untold).order_by("-id").first()
        if found is None:
            found = ImportJob.objects.create(
                account=target.account,
                segment=target.segment,
                file_name=target.name,
                file_size=target.size,
                file_digest=target.digest,
                options=target.options.to_json(),
                status=Status.QUEUED,
                by_name=target.by_name[:200],
            )
        return int(found.pk)
