"""From bytes to records: encoding, delimiter and line ends of a CSV file, in bounded memory.

RFC 4180 with what spreadsheets make of it: a byte-order mark, ``sep=;`` as first line, any of
four delimiters, mixed line ends. A record that can't be read is told with its line and the
next line starts afresh, so one open quote does not swallow the rest of the file.
"""

from __future__ import annotations

import codecs
import csv
import io
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import BinaryIO

#: Characters of one record; a longer line is skipped without being held in memory.
MAX_RECORD = 256 * 1024
#: Characters of one cell: what Excel can hold.
MAX_CELL = 32_767
MAX_COLUMNS = 500
DELIMITERS = (",", ";", "\t", "|")

# Longest first: UTF-32's little-endian mark begins with UTF-16's.
_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)


class ImportRefused(Exception):
    """The file as a whole can't be imported and nothing was changed; the message says why."""


@dataclass(frozen=True, slots=True)
class Record:
    """One record; ``line`` is its first line in the file, from 1."""

    line: int
    cells: list[str]


@dataclass(frozen=True, slots=True)
class BadRecord:
    """One that can't be read; ``text`` is the beginning of it."""

    line: int
    reason: str
    text: str


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
        return ImportRefused(
            f"Line {self.number + 1} is not {self.text.encoding.upper().removesuffix('-SIG')}; "
            "if the file has another encoding, name it with --encoding (for example cp1252)."
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
    """The records of a CSV file after its header, each a ``Record`` or a ``BadRecord``.

    ``is_header`` judges a candidate header (``True``: this is one) and so picks the delimiter;
    where none pleases it, the delimiter that makes most columns is taken.

    Raises ``ImportRefused``, at once or while iterating: empty, not the encoding it was taken
    for, no readable header, more than ``MAX_COLUMNS`` columns. Without a byte-order mark and
    without ``encoding`` the file must be UTF-8: a wrong guess would store wrong names.
    """

    def __init__(
        self,
        binary: BinaryIO,
        *,
        is_header: Callable[[list[str]], bool],
        encoding: str | None = None,
        delimiter: str | None = None,
    ) -> None:
        self._raw = _Raw(binary)
        buffered = io.BufferedReader(self._raw, buffer_size=64 * 1024)
        self.encoding = encoding_of(buffered.peek(4)[:4], encoding)
        self._lines = _Lines(
            io.TextIOWrapper(buffered, encoding=self.encoding, errors="surrogateescape", newline="")
        )
        self.delimiter, self.header = self._read_header(is_header, delimiter)
        self._reader = csv.reader(self._lines, delimiter=self.delimiter, strict=True)

    def __iter__(self) -> Iterator[Record | BadRecord]:
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
        self._lines.put_back(taken[1:])
        return BadRecord(first, reason, taken[0][:200].rstrip("\r\n"))

    def _read_header(
        self, is_header: Callable[[list[str]], bool], delimiter: str | None
    ) -> tuple[str, list[str]]:
        line = self._first_line()
        if line[:4].lower() == "sep=" and len(line.rstrip("\r\n")) == 5:
            delimiter = delimiter or line[4]
            line = self._first_line()
        if delimiter is not None and (len(delimiter) != 1 or delimiter in '"\r\n'):
            raise ImportRefused(f"The delimiter must be one character, not {delimiter!r}.")
        if "\0" in line:
            raise ImportRefused(
                "The first line holds NUL characters: this is no CSV file, or one in UTF-16 "
                "without byte-order mark (name it with --encoding utf-16-le)."
            )
        best: tuple[str, list[str]] = (delimiter or ",", [])
        for candidate in (delimiter,) if delimiter else DELIMITERS:
            names = _split(line, candidate)
            if is_header(names):
                best = (candidate, names)
                break
            if len(names) > len(best[1]):
                best = (candidate, names)
        if not best[1]:
            raise ImportRefused("The first line can't be read as CSV; it must hold column names.")
        if len(best[1]) > MAX_COLUMNS:
            raise ImportRefused(
                f"The file has {len(best[1])} columns; at most {MAX_COLUMNS} can be imported."
            )
        return best

    def _first_line(self) -> str:
        while True:
            self._lines.begin()
            try:
                line = next(self._lines)
            except StopIteration:
                raise ImportRefused("The file is empty.") from None
            except _TooLong:
                raise ImportRefused(
                    f"The first line is longer than {MAX_RECORD} characters; "
                    "it must hold column names."
                ) from None
            if line.strip():
                return line


def encoding_of(start: bytes, given: str | None) -> str:
    """The codec for a file that starts with these (up to 4) bytes.

    A byte-order mark tells; else what was given; else UTF-8. Raises ``ImportRefused`` for a
    name that is no text encoding.
    """
    for mark, codec in _MARKS:
        if start.startswith(mark):
            return codec
    if given is None:
        return "utf-8"
    try:
        codec_info = codecs.lookup(given)
        "".encode(given)  # refuses bytes-to-bytes codecs such as hex
    except (LookupError, ValueError):
        raise ImportRefused(f"There is no text encoding named {given!r}.") from None
    return codec_info.name


def _split(line: str, delimiter: str) -> list[str]:
    """The cells of one line; none where it can't be read with this delimiter."""
    try:
        return next(csv.reader([line], delimiter=delimiter, strict=True), [])
    except csv.Error:
        return []
