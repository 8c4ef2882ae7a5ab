"""The second phase: staged rows become people, a chunk along their addresses in a transaction.

Where a chunk ended is written in its own transaction (``ImportJob.cursor``), with its counts. So
a chunk is done once, whatever dies and whoever goes on.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

from django.db import transaction

from .. import hooks
from ..addresses import erased_hashes
from ..suppression import hold_erasures
from ..tabular import ImportRefused
from . import sql
from .leases import advance, holding
from .report import ALSO, APPLIED, ERASED, MOVED, SEGMENT_GONE, Progress, Step, applied
from .staging import must_be_staged

#: Rows of a chunk, and a few more where the last person has several.
ROWS = 10_000
_BATCH = 5000


class Applying:
    """Applies the staged rows of one job. ``parameters``: those of the statements in ``sql``,
    but for the chunk's own; ``check`` is called in each chunk; ``dry``: does everything and takes
    it back, chunk by chunk."""

    def __init__(
        self,
        job_id: int,
        runner: uuid.UUID,
        parameters: dict[str, Any],
        *,
        counts: dict[str, Any],
        check: Callable[[], object],
        whole: bool,
        dry: bool,
        progress: Progress | None,
    ) -> None:
        self.job_id = job_id
        self.runner = runner
        self.parameters = {**parameters, "job": job_id, "size": ROWS}
        self.counts = counts
        self.check = check
        self.whole = whole
        self.dry = dry
        self.progress = progress

    def run(self, out_of_time: Callable[[], bool]) -> bool:
        """Apply what is not applied yet. ``False``: the time was up before the end."""
        while self._chunk():
            if self.progress is not None:
                rows = self.counts.get("rows", 0)
                total = rows - self.counts.get("bad", 0)
                self.progress(Step("writing", applied(self.counts), total, rows))
            if out_of_time():
                return False
        return True

    def _chunk(self) -> bool:
        """One transaction; ``False``: there was nothing left."""
        with holding(self.job_id, self.runner) as (cursor, held):
            must_be_staged(cursor, self.job_id)
            self.check()
            chunk = {**self.parameters, "after": held.cursor}
            cursor.execute(sql.ALONG_THE_INDEX)
            chunk["upto"] = self._upto(cursor, chunk)
            if chunk["upto"] is None:
                cursor.execute(sql.AS_BEFORE)
                return False
            if held.segment_id != chunk["segment"]:
                raise ImportRefused(SEGMENT_GONE)
            with transaction.atomic() if self.dry else nullcontext():
                found, refused = self._settle(cursor, chunk)
                if self.dry:
                    transaction.set_rollback(True)
            if refused:
                # Without the address: the record must not bring back what was to be forgotten.
                lines = (f"{self.job_id}\t{line}\t{why}\t[]\n" for line, why in refused)
                with cursor.copy(sql.COPY_REJECTS) as copy:
                    copy.write("".join(lines))
            counts = {
                **self.counts,
                **{n: self.counts.get(n, 0) + found[n] for n in (*APPLIED, *ALSO)},
            }
            advance(cursor, self.job_id, self.runner, json.dumps(counts), cursor=str(chunk["upto"]))
        self.counts = counts
        return True

    def _upto(self, cursor: Any, chunk: dict[str, Any]) -> str | None:
        """The last address of the chunk; ``None``: there is none."""
        if not self.whole and (row := _row(cursor, sql.UPTO, chunk)):
            return str(row[0])
        row = _row(cursor, sql.LAST, chunk)
        return str(row[0]) if row else None

    def _settle(
        self, cursor: Any, chunk: dict[str, Any]
    ) -> tuple[dict[str, int], list[tuple[int, str]]]:
        """The chunk's counts, and the lines that were refused now, with the reason."""
        cursor.execute(sql.TABLES)
        cursor.execute(sql.PEOPLE, chunk)
        cursor.execute(sql.AS_BEFORE)
        people, rows = _row(cursor, sql.COUNT_PEOPLE)
        found = {"duplicates": rows - people}
        hold_erasures(chunk["account"])
        if _row(cursor, sql.HOLD_SEGMENT, chunk) is None:
            raise ImportRefused(SEGMENT_GONE)
        refused = [(line, ERASED) for line in self._refuse_erased(cursor, chunk)]
        refused += [(line, MOVED) for line in self._refuse_moved(cursor, chunk)]
        people -= len(refused)
        if not chunk["after"] and self.counts.get("new_attributes"):
            keys = self.counts["new_attributes"]
            labels = self.counts.get("new_labels") or [""] * len(keys)
            cursor.execute(sql.DECLARE, {**chunk, "keys": keys, "labels": labels})
        cursor.execute(sql.UPSERT, chunk)
        if cursor.rowcount != people:
            cursor.execute(sql.SAME, chunk)
        cursor.execute(sql.SUPPRESS, chunk)
        joined = _row(cursor, sql.JOIN, chunk)[0]
        new, changed, unsubscribed, pending, suppressed = _row(cursor, sql.COUNT, chunk)
        if not self.dry:
            self._withdraw(cursor)
        found |= {
            "imported": new,
            "updated": changed + joined,
            "unchanged": people - new - changed - joined - unsubscribed,
            "unsubscribed": unsubscribed,
            "erased": len(refused),
            "pending": pending,
            "suppressed": suppressed,
        }
        return found, refused

    def _withdraw(self, cursor: Any) -> None:
        """Whom the file unsubscribes is taken out of running campaigns."""
        cursor.execute(sql.LEFT)
        left = [row[0] for row in cursor.fetchall()]
        if left:
            transaction.on_commit(lambda: hooks.withdraw_leavers(left), robust=True)

    def _refuse_erased(self, cursor: Any, chunk: dict[str, Any]) -> list[int]:
        """Take the people who were erased out again; returns their lines."""
        if not _row(cursor, sql.ANY_ERASED, chunk)[0]:
            return []
        erased: list[int] = []
        cursor.execute(sql.WALK_PEOPLE)
        while batch := _next_people(cursor):
            lines = {digest: line for line, email in batch for digest in erased_hashes(email)}
            cursor.execute(sql.FIND_ERASED, {**chunk, "hashes": list(lines)})
            erased += {lines[row[0]] for row in cursor.fetchall()}
        cursor.execute(sql.END_WALK)
        if erased:
            cursor.execute(sql.DROP_PEOPLE, {"lines": erased})
        return sorted(erased)

    def _refuse_moved(self, cursor: Any, chunk: dict[str, Any]) -> list[int]:
        """Take those out whose person is known under another address; returns their lines."""
        if not _row(cursor, sql.ANY_MOVED, chunk)[0]:
            return []
        cursor.execute(sql.FIND_MOVED, chunk)
        moved = [row[0] for row in cursor.fetchall()]
        if moved:
            cursor.execute(sql.DROP_PEOPLE, {"lines": moved})
        return sorted(moved)


def _next_people(cursor: Any) -> list[tuple[int, str]]:
    cursor.execute(sql.NEXT_PEOPLE.format(_BATCH))
    return list(cursor.fetchall())


def _row(cursor: Any, statement: str, parameters: dict[str, Any] | None = None) -> Any:
    cursor.execute(statement, parameters)
    return cursor.fetchone()
