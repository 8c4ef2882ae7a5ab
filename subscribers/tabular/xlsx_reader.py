"""The rows of one sheet of an Excel workbook (``.xlsx``), in bounded memory.

Of formulas the stored value counts. A cell that shows an error, or whose formula has no stored
value, makes its row faulty where its column is imported: nobody comes in with half an address.
What the file says of its own dimensions is not believed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import chain
from typing import BinaryIO

from .delimiters import holds_names
from .records import (
    MAX_CELL,
    MAX_COLUMNS,
    MAX_RECORD,
    BadRecord,
    FaultyCells,
    ImportRefused,
    Record,
    size_of,
)
from .xlsx_package import DAMAGED, Attributes, Package, Walk
from .xlsx_strings import SharedStrings
from .xlsx_values import PLAIN, Style, Unusable, iso_text, number_text, style_of, unescaped

_MAX_ROW = 1_048_576
_MAX_COLUMN = 16_384
#: Formats of cells; Excel keeps 65,490.
_MAX_STYLES = 66_000
_LETTERS = re.compile(r"([A-Z]{1,3})[0-9]*\Z")
_NO_VALUE = "its formula has no stored value; open the file in a spreadsheet program and save it."


class XlsxReader:
    """The records of a sheet (a ``Table``), each a ``Record`` or a ``BadRecord``; ``line`` is the
    row's number in the sheet.

    ``binary`` is seekable and stays open. ``sheet``: its name; blank: the first visible one.
    ``has_names``: the first row holds the names of the columns; ``None``: unless it holds an
    address. ``decimal``: what numbers are written with.

    Raises ``ImportRefused``, at once or while iterating.
    """

    encoding = ""
    delimiter = ""

    def __init__(
        self,
        binary: BinaryIO,
        *,
        sheet: str = "",
        has_names: bool | None = True,
        decimal: str = ".",
    ) -> None:
        self._size = size_of(binary)
        self._package = Package(binary)
        book = _Workbook(self._package)
        self.sheet, part = book.choose(sheet)
        self.sheets = book.visible
        self.notes = _notes(self.sheet, self.sheets)
        self._part_size = max(self._package.size(part), 1) if part in self._package else 1
        self._rows = _Rows(book, SharedStrings(self._package, book.strings), decimal)
        self._walk = Walk(start=self._rows.started, end=self._rows.ended, text=self._rows.text)
        self._stream = self._package.open(part)
        self._records = self._read()
        first = self._first_row()
        self.has_names = holds_names(first.cells) if has_names is None else has_names
        self._before: list[Record] = [] if self.has_names else [first]
        wide = len(first.cells)
        self.header = (
            list(first.cells)
            if self.has_names
            else [f"column {place + 1}" for place in range(wide)]
        )

    def __iter__(self) -> Iterator[Record | BadRecord]:
        return chain(self._before, self._records)

    @property
    def position(self) -> int:
        """Bytes of the file read so far, in proportion to what was read of the sheet."""
        return int(self._size * min(self._walk.read / self._part_size, 1.0))

    @property
    def hidden_rows(self) -> int:
        """Rows so far that the sheet hides, by a filter for example; they are read as well."""
        return self._rows.hidden

    def _read(self) -> Iterator[Record | BadRecord]:
        rows = self._rows.found
        with self._stream:
            for _ in self._walk.through(self._stream):
                yield from rows
                rows.clear()

    def _first_row(self) -> Record:
        for row in self._records:
            if isinstance(row, BadRecord):
                raise ImportRefused(
                    f"The first row can't be read, it must hold column names: {row.reason}"
                )
            return row
        raise ImportRefused(f"The sheet {self.sheet!r} is empty.")


def _notes(sheet: str, sheets: list[str]) -> list[str]:
    others = [name for name in sheets if name != sheet]
    if not others:
        return []
    more = ", ".join(name[:40] for name in others[:5]) + (", ..." if len(others) > 5 else "")
    return [f"Read from the sheet \u201c{sheet}\u201d; the workbook also has: {more}."]


class _Workbook:
    """Which sheets there are, and how numbers are shown."""

    def __init__(self, package: Package) -> None:
        main = next(
            (name for kind, name in package.related("").values() if kind == "officeDocument"), ""
        )
        if main not in package:
            raise ImportRefused(DAMAGED)
        related = package.related(main)
        self.since_1904 = False
        self.visible: list[str] = []
        self._parts: dict[str, str] = {}
        for event, element, attributes in package.elements(main):
            if event != "start":
                continue
            if element == "workbookPr":
                self.since_1904 = attributes.get("date1904", "") in ("1", "true", "on")
            elif element == "sheet":
                self._add_sheet(attributes, related)
        self.strings = next((n for kind, n in related.values() if kind == "sharedStrings"), None)
        styles = next((n for kind, n in related.values() if kind == "styles"), None)
        self.styles = _styles(package, styles) if styles else []

    def choose(self, sheet: str) -> tuple[str, str]:
        """``(name, part)`` of the sheet of this name; blank: the first visible one."""
        name = sheet or (self.visible[0] if self.visible else "")
        if name not in self._parts:
            known = ", ".join(shown[:40] for shown in self.visible[:10])
            raise ImportRefused(
                f"The workbook has no sheet {sheet[:60]!r}; it has: {known}."
                if sheet
                else "The workbook has no sheet that can be read."
            )
        return name, self._parts[name]

    def _add_sheet(self, attributes: Attributes, related: dict[str, tuple[str, str]]) -> None:
        relation = next((v for k, v in attributes.items() if k.rpartition(":")[2] == "id"), "")
        kind, part = related.get(relation, ("", ""))
        name = attributes.get("name", "")
        if kind == "worksheet" and name:
            self._parts[name] = part
            if attributes.get("state", "visible") == "visible":
                self.visible.append(name)


def _styles(package: Package, name: str) -> list[Style]:
    codes: dict[int, str] = {}
    numbers: list[int] = []
    inside = False
    for event, element, attributes in package.elements(name):
        if element == "cellXfs":
            inside = event == "start"
        elif event == "start" and element == "numFmt":
            codes[_int(attributes.get("numFmtId", ""))] = attributes.get("formatCode", "")
        elif event == "start" and element == "xf" and inside:
            numbers.append(_int(attributes.get("numFmtId", "0")))
            if len(numbers) > _MAX_STYLES:
                raise ImportRefused(DAMAGED)
    styles = {number: style_of(number, codes) for number in set(numbers)}
    return [styles[number] for number in numbers]


class _Rows:
    """Takes the events of a sheet, and makes ``found`` of them."""

    def __init__(self, book: _Workbook, strings: SharedStrings, decimal: str) -> None:
        self.found: list[Record | BadRecord] = []
        #: The first row's width; 0: it is still to come.
        self.wide = 0
        self.hidden = 0
        self._strings, self._decimal = strings, decimal
        self._styles, self._since_1904 = book.styles, book.since_1904
        self._line = 0
        self._inside = self._in_row = self._open = self._phonetic = False
        self._begin_row()
        self._begin_cell({})

    def started(self, element: str, attributes: Attributes) -> None:
        if not self._inside:
            self._inside = element == "sheetData"
        elif element == "c":
            self._begin_cell(attributes)
        elif element == "v":
            self._open = self._has_value = True
        elif element == "t":
            self._open = not self._phonetic
            self._has_value = True
        elif element == "f":
            self._formula = True
        elif element == "rPh":
            self._phonetic = True
        elif element == "row":
            number = attributes.get("r")
            line = self._line + 1 if number is None else _int(number)
            if not self._line < line <= _MAX_ROW:
                raise ImportRefused(DAMAGED)
            self._line, self._in_row = line, True
            self.hidden += attributes.get("hidden", "") in ("1", "true")
            self._begin_row()

    def text(self, text: str) -> None:
        if self._open and self._room > 0:
            self._parts.append(text[: self._room])
            self._room -= len(text)

    def ended(self, element: str) -> None:
        if element == "v" or element == "t":
            self._open = False
        elif element == "c":
            if self._in_row:
                self._end_cell()
        elif element == "rPh":
            self._phonetic = False
        elif element == "row":
            if self._in_row:
                self._in_row = False
                self._end_row()
        elif element == "sheetData":
            self._inside = False

    def _begin_row(self) -> None:
        self._cells: list[str] = []
        self._faults: dict[int, str] = {}
        self._next = self._chars = 0
        self._bad = ""

    def _begin_cell(self, attributes: Attributes) -> None:
        self._place = self._next
        reference = attributes.get("r")
        if reference is not None:
            self._place = _column(reference)
        self._type = attributes.get("t", "n")
        self._style = attributes.get("s", "")
        self._parts: list[str] = []
        self._room = MAX_CELL + 1
        self._open = self._has_value = self._formula = False

    def _end_cell(self) -> None:
        place = self._place
        if not len(self._cells) <= place < _MAX_COLUMN:
            raise ImportRefused(DAMAGED)
        self._next = place + 1
        raw = "".join(self._parts)
        try:
            value = self._value(raw)
        except Unusable as error:
            value = raw
            self._faults[place] = str(error)
        if not value and place not in self._faults:
            return
        if place >= MAX_COLUMNS:
            self._bad = f"The row has {place + 1} columns; at most {MAX_COLUMNS} can be imported."
            return
        self._chars += len(value)
        if len(value) > MAX_CELL:
            self._bad = f"A cell is longer than {MAX_CELL} characters."
        elif self._chars > MAX_RECORD:
            self._bad = f"The row is longer than {MAX_RECORD} characters."
        else:
            self._cells += [""] * (place - len(self._cells))
            self._cells.append(value)

    def _value(self, raw: str) -> str:
        kind = self._type
        if kind == "s":
            try:
                return self._strings[int(raw)]
            except (ValueError, IndexError):
                raise Unusable("Its text is missing; save the file again.") from None
        if kind == "e":
            raise Unusable(f"It shows the error {raw[:20]}.")
        if not self._has_value:
            if self._formula:
                raise Unusable(_NO_VALUE)
            return ""
        if kind in ("str", "inlineStr"):
            return unescaped(raw)
        if not raw:
            if self._formula:
                raise Unusable(_NO_VALUE)
            return ""
        if kind == "b":
            return "true" if raw.strip() in ("1", "true") else "false"
        if kind == "d":
            return iso_text(raw)
        number = _int(self._style) if self._style else 0
        style = self._styles[number] if number < len(self._styles) else PLAIN
        return number_text(raw.strip(), style, since_1904=self._since_1904, decimal=self._decimal)

    def _end_row(self) -> None:
        if self._bad:
            text = ", ".join(self._cells)[:200]
            self.found.append(BadRecord(self._line, self._bad, text))
            return
        if not any(self._cells) and not self._faults:
            return
        cells = self._cells
        if self._faults:
            cells = FaultyCells(cells)
            cells.faults = self._faults
        self.wide = self.wide or len(cells)
        cells += [""] * (self.wide - len(cells))
        self.found.append(Record(self._line, cells))


def _column(reference: str) -> int:
    found = _LETTERS.match(reference[:20])
    if found is None:
        raise ImportRefused(DAMAGED)
    place = 0
    for letter in found[1]:
        place = place * 26 + ord(letter) - 64
    return place - 1


def _int(text: str) -> int:
    if not text.isascii() or not text.isdigit() or len(text) > 9:
        raise ImportRefused(DAMAGED)
    return int(text)
