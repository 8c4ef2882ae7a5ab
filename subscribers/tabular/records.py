"""What a file's reader hands out, what it refuses, and how much it holds in memory."""

from __future__ import annotations

from collections.abc import Iterator
from typing import BinaryIO, NamedTuple, Protocol

#: Characters of one record; a longer line is skipped without being held in memory.
MAX_RECORD = 256 * 1024
#: Characters of one cell: what Excel can hold.
MAX_CELL = 32_767
MAX_COLUMNS = 500


class ImportRefused(Exception):
    """The file as a whole can't be imported and nothing was changed; the message says why."""


class RowError(ValueError):
    """A row that can't be imported; the message says why, in one plain sentence."""


class Record(NamedTuple):
    """One record; ``line`` is its first line in the file (a sheet: its row), from 1."""

    line: int
    cells: list[str]


class BadRecord(NamedTuple):
    """One that can't be read; ``text`` is the beginning of it."""

    line: int
    reason: str
    text: str


class FaultyCells(list[str]):
    """Cells of which some hold no value to be used, such as ``#N/A``: ``faults`` says why, by
    their places. The row is refused only where such a column is imported."""

    faults: dict[int, str]


class Table(Protocol):
    """A file, opened: iterate once. Raises ``ImportRefused`` meanwhile where the file turns out
    not to be what it was taken for."""

    #: The names of the columns; made up (``column 1``) where the file has none.
    header: list[str]
    #: What people should know of how the file is read, in sentences.
    notes: list[str]

    @property
    def position(self) -> int:
        """Bytes of the file read so far (a sheet: in proportion)."""

    def __iter__(self) -> Iterator[Record | BadRecord]: ...


def size_of(binary: BinaryIO) -> int:
    """Bytes of a seekable file, which is at its beginning afterwards."""
    size = binary.seek(0, 2)
    binary.seek(0)
    return size
