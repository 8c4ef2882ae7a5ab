"""What is found in a file: its kind, how it is read, and what its columns may mean."""

from __future__ import annotations

import io
import json
import zipfile
from typing import Any

import openpyxl
import pytest

from subscribers.models import AttributeDefinition
from subscribers.tabular import (
    Detected,
    ImportRefused,
    Options,
    Plan,
    Record,
    detect,
    open_table,
)
from subscribers.tabular.kinds import find_format


def found(content: str | bytes, given: Options | None = None, **options: Any) -> Detected:
    data = content.encode() if isinstance(content, str) else content
    return detect(io.BytesIO(data), "people.csv", given, **options)


def zipped(**members: bytes) -> bytes:
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w") as archive:
        for name, content in members.items():
            archive.writestr(name.replace("_", "."), content)
    return target.getvalue()


OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(504)


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"", "The file is empty"),
        (b"<!DOCTYPE html><html><body><table>", "web page"),
        (b"\xef\xbb\xbf\r\n <HTML xmlns:x=", "web page"),
        ("<html><table>".encode("utf-16"), "web page"),
        (b"<table><tr><td>email</td>", "web page"),
        (b'<?xml version="1.0"?><html xmlns="x">', "web page"),
        (b'<?xml version="1.0"?><?mso-application progid="Excel.Sheet"?>', "XML"),
        (b'{"people": [{"email": "ann@example.org"}]}', "JSON"),
        (b'[{"email": "ann@example.org"}]', "JSON"),
        (b'\n{\n  "email": "ann@example.org",', "JSON"),
        (b"[]", "JSON"),
        (b"PK\x03\x04garbage", "damaged"),
        (zipped(people_csv=b"email\n"), "zip archive; unpack it"),
        (OLE, "old Office file, or an encrypted one"),
        (OLE + "Workbook".encode("utf-16-le"), "old Excel file (.xls)"),
        (OLE + b"x" * 100_000 + "EncryptedPackage".encode("utf-16-le"), "encrypted"),
        (b"\x1f\x8b\x08\x00", "gzip"),
        (b"7z\xbc\xaf\x27\x1c", "7z"),
        (b"Rar!\x1a\x07\x00", "RAR"),
        (b"%PDF-1.7", "PDF"),
        (b"{\\rtf1\\ansi", "RTF"),
        (b"SQLite format 3\0", "SQLite"),
        (b"\x89PNG\r\n\x1a\n", "picture"),
        (b"\x7fELF\x02\x01\x01" + bytes(64), "NUL"),
    ],
)
def test_what_is_no_table_is_refused_by_its_name(data: bytes, why: str) -> None:
    with pytest.raises(ImportRefused) as caught:
        found(data)
    assert why in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "text",
    ["{name},email\nAnn,ann@example.org\n", "[x];email\n1;a@example.org\n", "<b>,email\n1,2\n"],
)
def test_brackets_alone_make_no_other_file(text: str) -> None:
    assert find_format(io.BytesIO(text.encode())) == "csv"


def test_a_file_of_another_kind_than_it_was_is_refused() -> None:
    with pytest.raises(ImportRefused, match=r"no \.xlsx file"):
        found("email\n", Options(format="xlsx"))
    book = io.BytesIO()
    openpyxl.Workbook().save(book)
    with pytest.raises(ImportRefused, match="no CSV file"):
        open_table(book, "", Options(format="csv"))


def test_all_that_is_found_is_told() -> None:
    text = "E-Mail;Name;Visits;Born;VIP;;Notes\n" + "".join(
        f"p{n}@example.org;Zo\u00eb;{n},5;{n + 1}.11.2026;{('nein', 'ja')[n % 2]};;{'x' * 300}\n"
        for n in range(20)
    )
    seen = found(text.encode("cp1252"))
    assert seen.options == Options(
        format="csv", encoding="cp1252", delimiter=";", decimal=",", date_order="dmy"
    )
    assert seen.header == ["E-Mail", "Name", "Visits", "Born", "VIP", "", "Notes"]
    assert seen.targets == [
        "email",
        "attribute:name",
        "attribute:visits",
        "attribute:born",
        "attribute:vip",
        "",
        "attribute:notes",
    ]
    assert seen.kinds == ["text", "text", "number", "date", "boolean", "text", "text"]
    assert len(seen.rows) == 10
    assert seen.rows[0][:5] == ["p0@example.org", "Zo\u00eb", "0,5", "1.11.2026", "nein"]
    assert [len(row) for row in seen.rows] == [7] * 10
    assert len(seen.rows[0][6]) == 200
    assert ["Windows-1252" in note for note in seen.notes] == [True, False, False]
    assert "decimal comma" in seen.notes[1]
    assert "day first" in seen.notes[2]


def test_what_was_found_reads_the_file_again_in_the_same_way() -> None:
    data = "sep=|\nname|mail\nZo\u00eb|ann@example.org\n".encode("utf-16")
    seen = found(data)
    table = open_table(io.BytesIO(data), "", Options.from_json(seen.options.to_json()))
    plan = Plan.understand(table.header, seen.options)
    rows = [plan.read(row.cells) for row in table if isinstance(row, Record)]
    assert [(row.email, row.attributes) for row in rows] == [
        ("ann@example.org", '{"name":"Zo\u00eb"}')
    ]


@pytest.mark.parametrize(
    ("text", "header"),
    [("ann@example.org,Ann\nbob@example.org,Bob\n", False), ("ann@example.org\n", False)],
)
def test_a_file_without_names_is_mapped_by_what_is_in_it(text: str, header: bool) -> None:
    seen = found(text)
    assert seen.options.header is header
    assert seen.targets[0] == "email"
    assert seen.options.mapping == tuple(seen.targets)
    table = open_table(io.BytesIO(text.encode()), "", seen.options)
    assert len(list(table)) == text.count("\n")
    assert Plan.understand(table.header, seen.options).ignored == table.header[1:]
    assert any("no names" in note for note in seen.notes)


def test_addresses_are_found_under_a_name_that_says_nothing() -> None:
    seen = found("Contact,Name\nann@example.org,Ann\nbob@example.org,Bob\n")
    assert seen.options.mapping == ("email", "attribute:name")
    assert any("\u201cContact\u201d" in note for note in seen.notes)
    two = found("From,To\nann@example.org,x@example.org\n")
    assert two.options.mapping == ()
    assert two.targets == ["attribute:from", "attribute:to"]
    assert found("Name\nAnn\n").targets == ["attribute:name"]


def test_what_was_chosen_stands() -> None:
    text = "email;a|b\nann@example.org;1|2\n"
    assert found(text, Options(delimiter="|")).header == ["email;a", "b"]
    names = found("a@example.org,b\n", header=True)
    assert (names.options.header, names.header) == (True, ["a@example.org", "b"])
    kept = Options(existing="keep", confirmed=True, consent_source="fair", atomic=True)
    seen = found(text, kept).options
    assert (seen.existing, seen.confirmed, seen.consent_source, seen.atomic) == (
        "keep",
        True,
        "fair",
        True,
    )
    mapped = found("x,y\na@example.org,b\n", Options(mapping=("email", "attribute:z")))
    assert mapped.targets == ["email", "attribute:z"]
    assert mapped.options.mapping == ("email", "attribute:z")
    other = found("x,y,z\na@example.org,b,c\n", Options(mapping=("email", "attribute:z")))
    assert other.options.mapping == ("email", "attribute:y", "attribute:z")
    assert any("others than before" in note for note in other.notes)


def test_labels_of_defined_attributes_tell_columns() -> None:
    definition = AttributeDefinition(key="born", label="Geburtstag", kind="date")
    seen = found("email,Geburtstag\na@example.org,2000-01-01\n", definitions=[definition])
    assert seen.targets == ["email", "attribute:born"]


@pytest.mark.parametrize(
    ("values", "decimal"),
    [
        (["1,5", "2"], ","),
        (["1.234,50"], ","),
        (["1,5", "1.5"], "."),
        (["1,234"], "."),
        (["1.5"], "."),
        (["1,5", "x"], "."),
    ],
)
def test_a_decimal_comma_is_taken_only_where_nothing_else_fits(
    values: list[str], decimal: str
) -> None:
    text = "email;n\n" + "".join(f"a@example.org;{value}\n" for value in values)
    assert found(text).options.decimal == decimal


@pytest.mark.parametrize(
    ("values", "order", "note"),
    [
        (["30/11/2026", "1/2/2026"], "dmy", "day first"),
        (["11/30/2026", "1/2/2026"], "mdy", "month first"),
        (["1/2/2026"], "ymd", "two ways"),
        (["11/30/2026", "30/11/2026"], "ymd", "two ways"),
        (["1.2.2026"], "dmy", "day first"),
        (["2026-02-01"], "ymd", ""),
        (["1/2/2026", "soon"], "ymd", ""),
    ],
)
def test_the_order_of_days_is_taken_only_where_they_show_it(
    values: list[str], order: str, note: str
) -> None:
    text = "email;d\n" + "".join(f"a@example.org;{value}\n" for value in values)
    seen = found(text)
    assert seen.options.date_order == order
    assert note in " ".join(seen.notes)


def test_a_preview_can_be_stored_as_json() -> None:
    seen = found('email,a\nann@example.org,x\0y\nbob@example.org,"open\n')
    data = json.loads(json.dumps(seen.preview()))
    assert set(data) == {"header", "rows", "targets", "kinds", "notes", "sheets"}
    assert "\\u0000" not in json.dumps(data)
    assert any("Line 3 can't be read" in note for note in data["notes"])


def test_a_workbook_s_sheets_are_offered() -> None:
    book = openpyxl.Workbook()
    book.active.append(["email", "Plan"])
    book.active.append(["ann@example.org", 1.5])
    book.create_sheet("More").append(["mail"])
    target = io.BytesIO()
    book.save(target)
    seen = detect(target, "people.xlsx")
    assert seen.options == Options(format="xlsx", sheet="Sheet")
    assert (seen.sheets, seen.kinds) == (["Sheet", "More"], ["text", "number"])
    assert detect(target, "", Options(sheet="More")).header == ["mail"]


def test_rows_that_a_filter_hides_are_told() -> None:
    book = openpyxl.Workbook()
    book.active.append(["email"])
    book.active.append(["ann@example.org"])
    book.active.row_dimensions[2].hidden = True
    target = io.BytesIO()
    book.save(target)
    assert any("hidden" in note for note in detect(target).notes)
