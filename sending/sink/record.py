"""The sink's record: one JSON line per event, durable before the client hears of it."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any


def read_record(path: str | os.PathLike[str]) -> list[dict[str, Any]]:
    """All whole lines of a record; a line torn by a kill is left out. No file: no lines."""
    try:
        raw = Path(path).read_bytes()
    except FileNotFoundError:
        return []
    found = []
    for line in raw.split(b"\n"):
        try:
            entry = json.loads(line)
        except ValueError:
            continue
        if isinstance(entry, dict):
            found.append(entry)
    return found


def accepted(record: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """The lines of messages that the sink took, whatever the client heard of it."""
    return [entry for entry in record if entry.get("accepted")]


class Recorder:
    """Appends lines and fsyncs once for all connections that wait for it.

    Lines queue up while the event loop works through what has arrived; one write and one fsync
    then serve them all. Without a path nothing is kept, and nobody waits.
    """

    def __init__(self, path: str | os.PathLike[str] | None) -> None:
        self._lines: list[bytes] = []
        self._waiting: list[Callable[[], None]] = []
        self._file: int | None = None
        self._scheduled = False
        if path is not None:
            self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o644)
            end = os.lseek(self._file, 0, os.SEEK_END)
            if end and os.pread(self._file, 1, end - 1) != b"\n":
                os.write(self._file, b"\n")  # a line torn by a kill must not swallow the next

    def add(self, entry: dict[str, Any], then: Callable[[], None] | None = None) -> None:
        """Queue ``entry``; ``then`` is called once it is on the disk."""
        if self._file is not None:
            self._lines.append(json.dumps(entry, ensure_ascii=False).encode() + b"\n")
        if then is not None:
            self._waiting.append(then)
        if not self._scheduled:
            self._scheduled = True
            asyncio.get_running_loop().call_soon(self.flush)

    def flush(self) -> None:
        """Write and fsync what is queued, then tell those who wait."""
        self._scheduled = False
        lines, self._lines = self._lines, []
        waiting, self._waiting = self._waiting, []
        if lines and self._file is not None:
            data = memoryview(b"".join(lines))
            while data:
                data = data[os.write(self._file, data) :]
            if waiting:
                os.fdatasync(self._file)
        for then in waiting:
            then()

    def close(self) -> None:
        """Write what is queued and close the file."""
        self.flush()
        if self._file is not None:
            os.close(self._file)
            self._file = None
