"""Subscribers from a CSV file: all good rows of it in one transaction, or nothing.

An import adds and completes; it never brings anybody back. Whoever unsubscribed or was erased
stays as they are, a suppression stands, and who left the segment has left it.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, closing, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO, Literal

from django.db import connection, transaction

from . import hooks
from . import import_sql as sql
from .addresses import AddressError, erased_hashes
from .csv_columns import Columns, RowError, has_email
from .csv_reading import BadRecord, CsvReader, ImportRefused
from .models import Account, Segment
from .rejects import RejectFile
from .suppression import hold_erasures

__all__ = ["ImportRefused", "ImportReport", "import_csv"]

#: ``(bytes of the file read, rows read)``, told now and then.
Progress = Callable[[int, int], None]

ERASED = "This person was erased on request; only their own new sign-up brings them back."

_STEP = 1000
_BATCH = 5000


@dataclass
class ImportReport:
    """What became of the rows. Each row is counted in one of ``imported``, ``updated``,
    ``unchanged``, ``unsubscribed``, ``duplicates`` and ``rejected``; they add up to ``rows``.
    """

    rows: int = 0
    #: New subscribers.
    imported: int = 0
    #: Known ones of whom something changed, the segment included.
    updated: int = 0
    unchanged: int = 0
    #: Known ones who had unsubscribed: left as they were.
    unsubscribed: int = 0
    #: Rows whose address comes again further down; the last one counts.
    duplicates: int = 0
    rejected: int = 0
    #: Of the people in the file, those who get no mail because their address is suppressed.
    suppressed: int = 0
    #: Of the new ones, those who must confirm first.
    pending: int = 0
    reject_file: Path | None = None
    dry_run: bool = False
    attributes: list[str] = field(default_factory=list)
    ignored: list[str] = field(default_factory=list)


def import_csv(
    source: str | Path | BinaryIO,
    *,
    account: Account,
    segment: Segment,
    confirmed: bool = False,
    existing: Literal["update", "keep"] = "update",
    consent_source: str = "",
    encoding: str | None = None,
    delimiter: str | None = None,
    reject_file: str | Path | None = None,
    dry_run: bool = False,
    progress: Progress | None = None,
) -> ImportReport:
    """Import a CSV file (see ``csv_columns`` for its columns) into a segment of an account.

    ``confirmed``: the sender vouches for the consent of these people; new and pending ones
    become ``confirmed``, unless their row says ``pending`` or ``unsubscribed``. Else new ones
    are ``pending`` and get no campaign until they confirm. ``existing="keep"`` leaves what is
    known of a person; they still join the segment, and a row that says ``unsubscribed`` or
    ``suppressed`` still holds. ``consent_source`` (default: the file's name) is kept with new
    and newly confirmed people whose row names none.

    A row's cells that are not empty win over what is known; empty ones change nothing. Rows
    that can't be imported go into the reject file (made only if there are any; default: beside
    the file, ``.rejects.csv``; none for a stream) and the others go in. Memory is bounded,
    whatever the file. A dry run does everything and takes it back.

    Raises ``ImportRefused``: the file as a whole is no good, or can't be read, or the reject
    file can't be written, or the segment is another account's. Nothing was changed then.
    """
    if segment.account_id != account.pk:
        raise ImportRefused(f"The segment {segment.slug} is not one of the account {account.slug}.")
    path = Path(source) if isinstance(source, str | Path) else None
    rejects_path = Path(reject_file) if reject_file else None
    if path is not None and rejects_path is None:
        rejects_path = path.with_name(f"{path.name}.rejects.csv")
    if rejects_path is not None and (rejects_path.is_dir() or _same(rejects_path, path)):
        raise ImportRefused(f"{rejects_path} can't be the reject file.")
    origin = f"import of {_printable(path.name)}" if path else "import"
    parameters = {
        "account": account.pk,
        "segment": segment.pk,
        "confirmed": confirmed,
        "update": existing == "update",
        "consent_source": (consent_source or origin)[:200],
        "evidence": origin,
    }
    job = _Import(parameters, dry_run)
    try:
        with _opened(source) as file:
            return job.run(file, encoding, delimiter, rejects_path, progress)
    except OSError as error:
        name = error.filename or path or "The file"
        raise ImportRefused(f"{name} can't be read or written: {error.strerror}.") from error


def _opened(source: str | Path | BinaryIO) -> AbstractContextManager[BinaryIO]:
    """A path opened, to be closed; a file as it is, to stay open."""
    return Path(source).open("rb") if isinstance(source, str | Path) else nullcontext(source)


def _printable(name: str) -> str:
    """A file's name without bytes that are no text, which PostgreSQL would refuse."""
    return name.encode(errors="replace").decode()


def _same(path: Path, other: Path | None) -> bool:
    return other is not None and path.exists() and other.exists() and path.samefile(other)


class _Import:
    """One run: read into staging, then settle what it means for the people."""

    def __init__(self, parameters: dict[str, Any], dry_run: bool) -> None:
        self.parameters = parameters
        self.report = ImportReport(dry_run=dry_run)

    def run(
        self,
        file: BinaryIO,
        encoding: str | None,
        delimiter: str | None,
        rejects_path: Path | None,
        progress: Progress | None,
    ) -> ImportReport:
        reader = CsvReader(file, is_header=has_email, encoding=encoding, delimiter=delimiter)
        columns = Columns.understand(reader.header)
        report = self.report
        report.attributes = [name for _, name in columns.attributes]
        report.ignored = columns.ignored
        with closing(RejectFile(rejects_path, columns.header)) as rejects:
            outermost = not connection.in_atomic_block
            with transaction.atomic():
                with connection.cursor() as cursor:
                    if outermost:
                        cursor.execute(sql.FRESH_SNAPSHOTS)
                    cursor.execute(sql.STAGING)
                    self._stage(cursor, reader, columns, rejects, progress)
                    self._settle(cursor, rejects)
                report.rejected = rejects.count
                # Before the commit: an import whose rejects can't be written is refused.
                rejects.complete()
                if report.dry_run:
                    transaction.set_rollback(True)
            report.reject_file = rejects.publish()
        return report

    def _stage(
        self,
        cursor: Any,
        reader: CsvReader,
        columns: Columns,
        rejects: RejectFile,
        progress: Progress | None,
    ) -> None:
        rows = 0
        with cursor.copy(sql.COPY) as copy:
            for item in reader:
                rows += 1
                if progress is not None and rows % _STEP == 0:
                    progress(reader.position, rows)
                if isinstance(item, BadRecord):
                    rejects.add(item.line, item.reason, [item.text])
                    continue
                try:
                    row = columns.read(item.cells)
                except (RowError, AddressError) as error:
                    rejects.add(item.line, str(error), columns.plain(item.cells))
                    continue
                copy.write_row((item.line, *row))
        if progress is not None:
            progress(reader.position, rows)
        self.report.rows = rows

    def _settle(self, cursor: Any, rejects: RejectFile) -> None:
        report, parameters = self.report, self.parameters
        cursor.execute(sql.PEOPLE)
        cursor.execute(sql.ANALYZE_PEOPLE)
        people = _row(cursor, "SELECT count(*) FROM sendonce_people")[0]
        report.duplicates = report.rows - rejects.count - people
        hold_erasures(parameters["account"])
        if _row(cursor, sql.HOLD_SEGMENT, parameters) is None:
            raise ImportRefused("The segment was deleted meanwhile.")
        people -= self._refuse_erased(cursor, rejects)
        cursor.execute(sql.UPSERT, parameters)
        cursor.execute(sql.ANALYZE_CHANGED)
        cursor.execute(sql.SUPPRESS, parameters)
        joined = _row(cursor, sql.JOIN, parameters)[0]
        (
            report.imported,
            changed,
            report.unsubscribed,
            report.pending,
            report.suppressed,
        ) = _row(cursor, sql.COUNT, parameters)
        report.updated = changed + joined
        report.unchanged = people - report.imported - report.updated - report.unsubscribed
        cursor.execute(sql.LEFT)
        left = [row[0] for row in cursor.fetchall()]
        if left and not report.dry_run:
            transaction.on_commit(lambda: hooks.withdraw_leavers(left), robust=True)

    def _refuse_erased(self, cursor: Any, rejects: RejectFile) -> int:
        """Take the people who were erased out again; returns how many there were."""
        parameters = self.parameters
        if not _row(cursor, sql.ANY_ERASED, parameters)[0]:
            return 0
        erased: list[int] = []
        cursor.execute(sql.WALK_PEOPLE)
        while batch := self._next_people(cursor):
            lines = {digest: line for line, email in batch for digest in erased_hashes(email)}
            cursor.execute(sql.FIND_ERASED, {**parameters, "hashes": list(lines)})
            erased += {lines[row[0]] for row in cursor.fetchall()}
        cursor.execute(sql.END_WALK)
        cursor.execute(sql.DROP_PEOPLE, {"lines": erased})
        for line in sorted(erased):
            # Without the address: the file must not bring back what was to be forgotten.
            rejects.add(line, ERASED, [])
        return len(erased)

    def _next_people(self, cursor: Any) -> list[tuple[int, str]]:
        cursor.execute(sql.NEXT_PEOPLE.format(_BATCH))
        return list(cursor.fetchall())


def _row(cursor: Any, statement: str, parameters: dict[str, Any] | None = None) -> Any:
    cursor.execute(statement, parameters)
    return cursor.fetchone()
