"""The file of rows that an import could not take, each with its line and the reason.

It has the columns of the imported file behind two of its own, so that it can be mended and
imported as it is. It appears under its name only when the import has succeeded.
"""

from __future__ import annotations

import contextlib
import csv
import os
import secrets
from pathlib import Path
from typing import IO, Any

from .csv_columns import REJECT_COLUMNS, guard


class RejectFile:
    """Counts rejected rows and, with a ``path``, writes them; no rejects, no file.

    Raises ``OSError`` where it can't be written. The file is readable by its owner alone: it
    holds addresses.
    """

    def __init__(self, path: Path | None, header: list[str]) -> None:
        self.count = 0
        self._path = path
        self._header = header
        self._draft: Path | None = None
        self._file: IO[str] | None = None
        self._writer: Any = None

    def add(self, line: int, reason: str, cells: list[str]) -> None:
        """``cells`` as they were in the row, without any apostrophes that guard formulas."""
        self.count += 1
        if self._path is None:
            return
        if self._writer is None:
            self._open(self._path)
        self._writer.writerow([line, reason, *(guard(c.replace("\0", "\ufffd")) for c in cells)])

    def complete(self) -> None:
        """All rejects are on disk, not yet under the file's name."""
        if self._file is not None:
            self._file.flush()
            os.fsync(self._file.fileno())

    def publish(self) -> Path | None:
        """Give the file its name, over an older one; returns it, or ``None`` for no rejects.

        The import stands by now, so a name that can't be given is no error: the file then
        keeps the name it was written under, which is returned.
        """
        draft, self._draft = self._draft, None
        if draft is None or self._path is None:
            return None
        try:
            draft.replace(self._path)
        except OSError:
            return draft
        return self._path

    def close(self) -> None:
        """Take away what was not published."""
        if self._file is not None:
            self._file.close()
        if self._draft is not None:
            with contextlib.suppress(OSError):
                self._draft.unlink()

    def _open(self, path: Path) -> None:
        self._draft = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
        descriptor = os.open(self._draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        self._file = open(descriptor, "w", encoding="utf-8", newline="")  # noqa: SIM115
        self._writer = csv.writer(self._file)
        self._writer.writerow([*REJECT_COLUMNS, *(guard(name) for name in self._header)])
