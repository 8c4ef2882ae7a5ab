"""A file looked at: how it is to be read, and what its columns probably mean."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass, field, replace
from itertools import islice
from typing import Any, BinaryIO

from subscribers.attributes.values import guess_kind

from .columns import Named, meanings
from .csv_reader import CsvReader
from .delimiters import is_address
from .guarding import unguard
from .kinds import find_format
from .local_ways import find_date_order, find_decimal
from .options import EXACTLY, Options
from .records import BadRecord, ImportRefused, Record, Table
from .xlsx_reader import XlsxReader

#: Rows of a preview, and characters that it shows of a cell.
SAMPLE_ROWS = 10
SAMPLE_CELL = 200
#: Rows from which kinds are guessed, and characters after which there are enough.
_JUDGED = 200
_SAMPLE_SIZE = 1 << 20


@dataclass(frozen=True)
class Detected:
    """What ``detect`` found; ``preview`` is all but the options as JSON."""

    options: Options
    #: As ``Table.header``, each name cut to ``SAMPLE_CELL`` characters.
    header: list[str]
    #: The first rows, of the header's width, each cell cut to ``SAMPLE_CELL`` characters.
    rows: list[list[str]]
    #: A target for each column, as ``Options.mapping`` has them.
    targets: list[str]
    #: For each column the kind of which its values are (``AttributeDefinition.Kind``).
    kinds: list[str]
    #: How the file is read, in sentences.
    notes: list[str] = field(default_factory=list)
    #: Names of the sheets of a workbook that can be chosen.
    sheets: list[str] = field(default_factory=list)

    def preview(self) -> dict[str, Any]:
        """Plain JSON data without NUL characters, which PostgreSQL refuses."""
        data = asdict(replace(self, options=Options()))
        del data["options"]
        clean: dict[str, Any] = _without_nul(data)
        return clean


def detect(
    binary: BinaryIO,
    file_name: str = "",
    given: Options | None = None,
    *,
    header: bool | None = None,
    definitions: Iterable[Named] = (),
) -> Detected:
    """How this file is to be read: ``given`` completed where it is blank. ``header``: does the
    first row hold names? ``None``: as it looks. ``definitions`` of the account's attributes tell
    columns by their labels.

    Reads all of a CSV file, to be sure of its encoding. ``options.mapping`` is filled only where
    the columns' names don't say it all; decimal mark and order of days are found only where
    nothing was given. Raises ``ImportRefused``.
    """
    first_look, given = given is None, given or Options()
    table = _open(binary, given, header)
    sample, bad = _sample(table)
    names = [unguard(name) for name in table.header]
    rows = [_fitted(row.cells, len(names)) for row in sample]
    columns = [[row[place] for row in rows] for place in range(len(names))]
    targets = meanings(names, definitions) if table.has_names else [""] * len(names)
    notes = list(table.notes)
    options = replace(
        given,
        format="xlsx" if isinstance(table, XlsxReader) else "csv",
        encoding=table.encoding,
        delimiter=table.delimiter,
        sheet=table.sheet,
        header=table.has_names,
    )
    if not table.has_names:
        notes.append("The first row holds a person already, so columns have no names.")
    if "email" not in targets:
        place = _addresses(columns)
        if place is not None:
            targets[place] = "email"
            options = replace(options, mapping=tuple(targets))
            notes.append(f"The addresses are taken from \u201c{names[place].strip()[:40]}\u201d.")
    if len(given.mapping) == len(names):
        targets = list(given.mapping)
        options = replace(options, mapping=given.mapping)
    elif given.mapping:
        notes.append("The columns are others than before; say again what they mean.")
    if isinstance(table, XlsxReader) and table.hidden_rows:
        notes.append("Rows that are hidden in the sheet, by a filter for example, are read too.")
    if bad:
        notes.append(f"Line {bad[0].line} can't be read: {bad[0].reason}")
    if first_look:
        options, more = _local_ways(options, columns)
        notes += more
    kinds = [
        guess_kind(column) if target.startswith(EXACTLY) or not target else "text"
        for column, target in zip(columns, targets, strict=True)
    ]
    return Detected(
        options=options,
        header=[name[:SAMPLE_CELL] for name in names],
        rows=[[cell[:SAMPLE_CELL] for cell in row] for row in rows[:SAMPLE_ROWS]],
        targets=targets,
        kinds=[str(kind) for kind in kinds],
        notes=notes,
        sheets=list(table.sheets),
    )


def open_table(binary: BinaryIO, file_name: str = "", options: Options | None = None) -> Table:
    """The file, to be iterated once, read as the options say; what is blank in them is found.

    ``binary`` is seekable and stays open. Raises ``ImportRefused``.
    """
    options = options or Options()
    return _open(binary, options, options.header)


def _open(binary: BinaryIO, options: Options, header: bool | None) -> CsvReader | XlsxReader:
    kind = find_format(binary)
    if options.format and options.format != kind:
        raise ImportRefused(
            "The file is no .xlsx file." if kind == "csv" else "The file is no CSV file."
        )
    if kind == "xlsx":
        return XlsxReader(binary, sheet=options.sheet, has_names=header, decimal=options.decimal)
    return CsvReader(
        binary, encoding=options.encoding, delimiter=options.delimiter, has_names=header
    )


def _sample(table: CsvReader | XlsxReader) -> tuple[list[Record], list[BadRecord]]:
    good: list[Record] = []
    bad: list[BadRecord] = []
    size = 0
    for row in islice(table, _JUDGED):
        if isinstance(row, Record):
            good.append(row)
            size += sum(map(len, row.cells))
        else:
            bad.append(row)
        if size > _SAMPLE_SIZE:
            break
    return good, bad


def _local_ways(options: Options, columns: list[list[str]]) -> tuple[Options, list[str]]:
    order, notes = find_date_order(columns)
    if options.format == "csv":
        decimal, more = find_decimal(columns)
        return replace(options, date_order=order, decimal=decimal), more + notes
    return replace(options, date_order=order), notes


def _fitted(cells: list[str], wide: int) -> list[str]:
    return [unguard(cell) for cell in cells[:wide]] + [""] * (wide - len(cells))


def _addresses(columns: list[list[str]]) -> int | None:
    """The one column of addresses; ``None``: there is none, or more than one."""
    found = [
        place
        for place, column in enumerate(columns)
        if column and sum(map(is_address, column)) > 0.5 * len(column)
    ]
    return found[0] if len(found) == 1 else None


def _without_nul(data: Any) -> Any:
    if isinstance(data, str):
        return data.replace("\0", "\ufffd")
    if isinstance(data, list):
        return [_without_nul(item) for item in data]
    if isinstance(data, dict):
        return {key: _without_nul(value) for key, value in data.items()}
    return data
