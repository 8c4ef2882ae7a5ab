"""The rows that an import could not take, each with its line and the reason, as a file.

It has the columns of the imported file behind two of its own, so that it can be mended and
imported as it is.
"""

from __future__ import annotations

import contextlib
import csv
import io
import os
import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

from django.db import connection

from ..models import ImportJob, ImportReject
from ..tabular.columns import REJECT_COLUMNS
from ..tabular.guarding import guard

#: Rows that are fetched at once.
_ROWS = 2000


# A row's values stand in quotes, and as what could be meant by a number.
_COMMONEST = f"""
SELECT regexp_replace(regexp_replace(reason,
        '\u201c[^\u201d]*\u201d|(?<![[:alnum:]])''[^'']*''(?![[:alnum:]])', '\u2026', 'g'),
        'write [-+0-9.,]+ or [-+0-9.,]+$', 'write it in one way.') AS kind, count(*)
FROM {ImportReject._meta.db_table} WHERE job_id = %(job)s
GROUP BY 1 ORDER BY 2 DESC, 1 LIMIT %(most)s"""


class Writable(Protocol):
    """A text file, or Django's ``HttpResponse``."""

    def write(self, text: str, /) -> object: ...


def lines(job: ImportJob) -> Iterator[str]:
    """The file's text in pieces, for a response that streams; the header alone if no rows were
    rejected."""
    buffer = io.StringIO()
    writer = csv.writer(buffer)
    writer.writerow([*REJECT_COLUMNS, *(guard(name) for name in job.preview.get("header", []))])
    after = -1
    while True:
        rows = list(
            job.rejects.filter(line__gt=after)
            .order_by("line")
            .values_list("line", "reason", "cells")[:_ROWS]
        )
        for line, reason, cells in rows:
            writer.writerow([line, guard(reason), *(guard(cell) for cell in cells)])
        yield buffer.getvalue()
        if len(rows) < _ROWS:
            return
        after = rows[-1][0]
        buffer.seek(0)
        buffer.truncate()


def write_csv(job: ImportJob, target: Writable) -> None:
    """Write the file to ``target``."""
    for piece in lines(job):
        target.write(piece)


def write_file(job: ImportJob, path: Path) -> Path | None:
    """Write it under this name, over an older one, readable by its owner alone: it holds
    addresses. It appears when it is complete. ``None``: there are no rejects, and no file.

    Raises ``OSError``.
    """
    if not job.rejects.exists():
        return None
    draft = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    try:
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with open(descriptor, "w", encoding="utf-8", newline="") as file:
            write_csv(job, file)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            draft.unlink()
        raise
    return path


def commonest(job: ImportJob, most: int = 5) -> list[tuple[str, int]]:
    """The commonest reasons, without what a row held, and how many rows have each."""
    with connection.cursor() as cursor:
        cursor.execute(_COMMONEST, {"job": job.pk, "most": most})
        return [(reason, number) for reason, number in cursor.fetchall()]


def why_not_writable(path: Path) -> str:
    """Why no file can be written under this name; blank: it probably can."""
    if path.is_dir():
        return "Is a directory"
    if not path.parent.is_dir():
        return "No such directory"
    return "" if os.access(path.parent, os.W_OK | os.X_OK) else "Permission denied"
