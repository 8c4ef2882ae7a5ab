"""From bytes to records: delimiter, quotes and line ends of a CSV file, in bounded memory.

RFC 4180 with what spreadsheets make of it: a byte-order mark, ``sep=;`` as first line, any of
four delimiters, mixed line ends. A record that can't be read is told with its line and the
next line starts afresh, so one open quote does not swallow the rest of the file.
"""

from __future__ import annotations

import csv
import io
from collections import deque
from collections.abc import Iterator
from itertools import chain
from typing import BinaryIO

from . import encodings
from .delimiters import find_delimiter, holds_names
from .records import MAX_CELL, MAX_COLUMNS, MAX_RECORD, BadRecord, ImportRefused, Record

_SAMPLE = 64 * 1024
#: Lines that are read again behind quotes that were not closed: so many, and for each line of the
#: file so many more. A file of nothing else would be read for hours.
_AGAIN, _AGAIN_EACH = 2_000_000, 4


class _TooLong(Exception):
    pass


class _Lines:
    """The file's lines for ``csv.reader``, which asks for as many as a record needs.

    Keeps the lines of the record being read, so that they can be put back. A line beyond
    ``MAX_RECORD`` keeps its beginning only and raises ``_TooLong`` whenever it is asked for.
    """

    def __init__(self, text: io.TextIOWrapper) -> None:
        self.text = text
        self.number = 0
        self.taken: list[str] = []
        self.size = 0
        self._again: deque[str] = deque()

    def __iter__(self) -> _Lines:
        return self

    def __next__(self) -> str:
        line = self._again.popleft() if self._again else self._read()
        self.number += 1
        self.taken.append(line)
        self.size += len(line)
        if self.size > MAX_RECORD:
            raise _TooLong
        return line

    def begin(self) -> int:
        """Start a record; returns the number of its first line."""
        self.taken = []
        self.size = 0
        return self.number + 1

    def put_back(self, lines: list[str]) -> None:
        self._again.extendleft(reversed(lines))
        self.number -= len(lines)

    def _read(self) -> str:
        try:
            line = self.text.readline(MAX_RECORD + 1)
            if len(line) > MAX_RECORD and not line.endswith("\n"):
                rest = line
                while rest and not rest.endswith("\n"):
                    rest = self.text.readline(MAX_RECORD)
                line += "\n"
        except UnicodeError as error:
            raise self._undecodable() from error
        if not line:
            raise StopIteration
        # Bytes that don't decode come as lone surrogates, so that their line is known.
        if not line.isascii():
            try:
                line.encode()
            except UnicodeEncodeError as error:
                raise self._undecodable() from error
        return line

    def _undecodable(self) -> ImportRefused:
        name = encodings.shown(self.text.encoding)
        return ImportRefused(
            f"Line {self.number + 1} is not {name}; choose the file's encoding "
            "(for example Windows-1252), or save it as UTF-8."
        )


class _Raw(io.RawIOBase):
    """Any binary file as a raw one that is not closed with its readers; counts its bytes."""

    def __init__(self, binary: BinaryIO) -> None:
        self._binary = binary
        self.position = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        data = self._binary.read(len(buffer))
        buffer[: len(data)] = data
        self.position += len(data)
        return len(data)


class CsvReader:
    """The records of a CSV file (a ``Table``), each a ``Record`` or a ``BadRecord``.

    ``binary`` is seekable and stays open. ``has_names``: the first row holds the names of the
    columns; ``None``: unless it holds an address. Blank ``encoding`` and ``delimiter`` are found.

    Raises ``ImportRefused``, at once or while iterating: empty, not the encoding it was taken
    for, no readable first row, more than ``MAX_COLUMNS`` columns.
    """

    def __init__(
        self,
        binary: BinaryIO,
        *,
        encoding: str = "",
        delimiter: str = "",
        has_names: bool | None = True,
    ) -> None:
        self.sheet = ""
        self.sheets: list[str] = []
        self.encoding, self.notes = encodings.find_encoding(binary, encoding)
        sample = binary.read(_SAMPLE)
        binary.seek(0)
        self._raw = _Raw(binary)
        self._lines = _Lines(
            io.TextIOWrapper(
                io.BufferedReader(self._raw, buffer_size=64 * 1024),
                encoding=self.encoding,
                errors="surrogateescape",
                newline="",
            )
        )
        self.delimiter = self._first_line(delimiter) or _find_delimiter(sample, self.encoding)
        self._read_again = 0
        self._reader = csv.reader(self._lines, delimiter=self.delimiter, strict=True)
        first = self._first_row()
        self.has_names = holds_names(first.cells) if has_names is None else has_names
        self._before: list[Record] = [] if self.has_names else [first]
        self.header = (
            first.cells
            if self.has_names
            else [f"column {place + 1}" for place in range(len(first.cells))]
        )

    def __iter__(self) -> Iterator[Record | BadRecord]:
        return chain(self._before, self._records())

    def _records(self) -> Iterator[Record | BadRecord]:
        lines, reader = self._lines, self._reader
        while True:
            first = lines.begin()
            try:
                cells = next(reader)
            except StopIteration:
                return
            except (csv.Error, _TooLong) as error:
                yield self._bad(first, error)
                continue
            if lines.size > MAX_CELL and any(len(cell) > MAX_CELL for cell in cells):
                reason = f"A cell is longer than {MAX_CELL} characters."
                yield BadRecord(first, reason, lines.taken[0][:200])
            elif any(cells):
                yield Record(first, cells)

    @property
    def position(self) -> int:
        """Bytes of the file read so far."""
        return self._raw.position

    def _bad(self, first: int, error: Exception) -> BadRecord:
        taken = self._lines.taken
        too_long = isinstance(error, _TooLong) or "field larger" in str(error)
        if too_long and len(taken) == 1:
            reason = f"The line or a cell of it is too long ({len(taken[0])} characters or more)."
        elif too_long or "unexpected end" in str(error):
            reason = "A quote is not closed; a quote inside a quoted cell must be doubled."
        else:
            reason = f"The line can't be read as CSV ({error})."
        # What an open quote took in are lines of their own.
        self._read_again += len(taken) - 1
        if self._read_again > _AGAIN + _AGAIN_EACH * first:
            raise ImportRefused(
                f"Too many quotes are not closed, the last of them in line {first}; a quote inside "
                "a quoted cell must be doubled."
            )
        self._lines.put_back(taken[1:])
        return BadRecord(first, reason, taken[0][:200].rstrip("\r\n"))

    def _first_line(self, delimiter: str) -> str:
        """Pass over blank lines and Excel's ``sep=;``, which names a delimiter unless one is
        given."""
        lines = self._lines
        while True:
            lines.begin()
            try:
                line = next(lines)
            except StopIteration:
                raise ImportRefused("The file is empty.") from None
            except _TooLong:
                raise ImportRefused(
                    f"The first line is longer than {MAX_RECORD} characters; "
                    "it must hold column names."
                ) from None
            if line[:4].lower() == "sep=" and len(line.rstrip("\r\n")) == 5:
                delimiter = delimiter or line[4]
            elif line.strip():
                break
        if "\0" in line:
            raise ImportRefused(
                "The first line holds NUL characters: this is no CSV file, or one in an "
                "encoding that must be named (for example UTF-16)."
            )
        lines.put_back([line])
        return delimiter

    def _first_row(self) -> Record:
        for row in self._records():
            if isinstance(row, BadRecord):
                raise ImportRefused(
                    f"The first row can't be read as CSV, it must hold column names: {row.reason}"
                )
            if len(row.cells) > MAX_COLUMNS:
                raise ImportRefused(
                    f"The file has {len(row.cells)} columns; at most {MAX_COLUMNS} can be imported."
                )
            return row
        raise ImportRefused("The file is empty.")


def _find_delimiter(sample: bytes, encoding: str) -> str:
    text = sample.decode(encoding, errors="replace")
    first, _, rest = text.lstrip("\ufeff\r\n").partition("\n")
    text = rest if first[:4].lower() == "sep=" else text
    return find_delimiter(text.lstrip(), whole=len(sample) < _SAMPLE)
