"""The first phase: the file's good rows into the staging table, its bad ones into the rejects.

A batch is read without a transaction and written in a short one, which also moves the job on. So
a batch is there with what the job says of it, or not at all; and the file may itself come from
the database, over the same connection.
"""

from __future__ import annotations

import json
import re
import time
import uuid
from collections.abc import Callable
from typing import Any

from ..addresses import AddressError, canonical, lower
from ..suppression import erased_among, hold_erasing
from ..tabular import BadRecord, Plan, RowError, Table
from . import sql
from .leases import Lost, advance, holding
from .report import REFUSED, Progress, Step

#: Rows and characters after which a batch is written.
ROWS = 10_000
CHARACTERS = 4 * 1024 * 1024
#: ... and seconds, well below ``leases.LEASE``: rows that are refused are slow and small, and
#: passing over those that are staged already takes as long as reading them took.
SECONDS = 2.0
#: Rows between two looks at the clock.
_LOOK = 500
#: What is said of a row with an error that names somebody who was erased.
NOT_KEPT = "The row has an error. It is not kept: it names a person who was erased on request."
#: What may be an address in a cell.
_ADDRESS = re.compile(r"[^\s<>()\[\],;:\"\u201c\u201d]+@[^\s<>()\[\],;:\"\u201c\u201d]+")


class Emptied(Exception):
    """The staged rows are gone: the server crashed, or another one took over."""


class Staging:
    """Stages one table. ``counts`` is what the job says so far of ``rows`` and ``bad``."""

    def __init__(
        self,
        job_id: int,
        account_id: int,
        runner: uuid.UUID,
        table: Table,
        plan: Plan,
        *,
        staged_line: int,
        counts: dict[str, Any],
        file_size: int,
        progress: Progress | None,
        dry: bool = False,
    ) -> None:
        self.job_id = job_id
        self.account_id = account_id
        self.runner = runner
        self.table = table
        self.plan = plan
        self.line = staged_line
        self.rows = counts.get("rows", 0)
        self.bad = counts.get("bad", 0)
        self.file_size = file_size
        self.progress = progress
        self.dry = dry
        self._staged_line = staged_line
        self._good: list[str] = []
        self._rejects: list[tuple[int, str, list[str]]] = []
        self._characters = 0

    def run(self, out_of_time: Callable[[], bool], check: Callable[[], None]) -> bool:
        """Stage what is not staged yet. ``check`` is called when the file has been read, and may
        refuse it. ``False``: the time was up before the end."""
        read, prefix, done = self.plan.read, f"{self.job_id}\t", self._staged_line
        good = self._good
        written, looks = time.monotonic(), 0
        for item in self.table:
            line = item.line
            looks += 1
            late = not looks % _LOOK and time.monotonic() - written >= SECONDS
            if line <= done:
                if late:
                    self._renew()
                    written = time.monotonic()
                continue
            # Something at least in each batch: one that is cut by time alone must move on.
            late = late and self.line > self._staged_line
            if len(good) >= ROWS or self._characters >= CHARACTERS or late:
                self._write(last=False)
                if out_of_time():
                    return False
                good, written = self._good, time.monotonic()
            self.rows += 1
            self.line = line
            if isinstance(item, BadRecord):
                self._reject(line, item.reason, [item.text])
                continue
            try:
                row = read(item.cells)
            except (RowError, AddressError) as error:
                self._reject(line, str(error), self.plan.plain(item.cells))
                continue
            text = "\t".join(row)
            if "\\" in text or "\n" in text or "\r" in text or text.count("\t") != 6:
                text = "\t".join(map(_escaped, row))
            good.append(f"{prefix}{line}\t{text}\n")
            self._characters += len(text)
        check()
        self._write(last=True)
        return True

    def _renew(self) -> None:
        """The lease goes on while there is nothing to write."""
        with holding(self.job_id, self.runner) as (cursor, _):
            advance(cursor, self.job_id, self.runner, "{}")

    def _reject(self, line: int, reason: str, cells: list[str]) -> None:
        self.bad += 1
        self._rejects.append((line, reason, [c.replace("\0", "\ufffd") for c in cells]))
        self._characters += sum(map(len, cells))

    def _reject_lines(self) -> list[str]:
        """For COPY; of rows that name somebody who was erased neither the cells nor the words that
        may quote them: the record must not bring back what was to be forgotten."""
        named = [
            {lower(canonical(word)) for cell in cells for word in _ADDRESS.findall(cell)}
            for _, _, cells in self._rejects
        ]
        every = set().union(*named)
        if every and not self.dry:
            # One that commits before this batch is seen; one that comes later finds its rejects.
            hold_erasing(self.account_id)
        erased = erased_among(self.account_id, every) if every else set()
        lines = []
        for (line, reason, cells), names in zip(self._rejects, named, strict=True):
            if not erased.isdisjoint(names):
                reason, cells = NOT_KEPT, []
            shown = json.dumps(cells, ensure_ascii=False)
            lines.append(f"{self.job_id}\t{line}\t{_escaped(reason)}\t{_escaped(shown)}\n")
        return lines

    def _write(self, *, last: bool) -> None:
        with holding(self.job_id, self.runner) as (cursor, held):
            if held.staged_line != self._staged_line:
                raise Lost
            if not held.staged_line:
                cursor.execute(sql.MARK, [self.job_id])
            else:
                must_be_staged(cursor, self.job_id)
            _copy(cursor, sql.COPY, self._good)
            _copy(cursor, sql.COPY_REJECTS, self._reject_lines())
            advance(
                cursor,
                self.job_id,
                self.runner,
                json.dumps({"rows": self.rows, "bad": self.bad}),
                staged_line=self.line,
                bytes_read=self.table.position,
            )
            if last:
                cursor.execute(_STAGED, [self.job_id])
        self._staged_line = self.line
        self._good, self._rejects, self._characters = [], [], 0
        if self.progress is not None:
            self.progress(Step("reading", self.table.position, self.file_size, self.rows))


_STAGED = f"""
UPDATE {sql.JOB} SET staged_at = clock_timestamp() WHERE id = %s"""


def must_be_staged(cursor: Any, job_id: int) -> None:
    """Raises ``Emptied``."""
    cursor.execute(sql.MARKED, [job_id])
    if not cursor.fetchone()[0]:
        raise Emptied


def unstage(job_id: int, runner: uuid.UUID) -> None:
    """Back to the beginning of the file. What was applied stays so, with its place."""
    with holding(job_id, runner) as (cursor, _):
        cursor.execute(sql.UNSTAGE, [job_id])
        cursor.execute(sql.FORGET_REJECTS, [job_id, list(REFUSED)])
        advance(
            cursor,
            job_id,
            runner,
            '{"rows": 0, "bad": 0}',
            staged_line=0,
            bytes_read=0,
            staged_at=None,
        )


def _copy(cursor: Any, statement: str, lines: list[str]) -> None:
    if lines:
        with cursor.copy(statement) as copy:
            copy.write("".join(lines).encode(errors="replace"))


def _escaped(value: str) -> str:
    """As COPY's text format wants it."""
    return (
        value.replace("\\", "\\\\").replace("\t", "\\t").replace("\n", "\\n").replace("\r", "\\r")
    )
