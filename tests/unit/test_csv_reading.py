from __future__ import annotations

import codecs
import csv
import io
import tracemalloc

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from subscribers.csv_columns import (
    Columns,
    RowError,
    attribute_name,
    column_for,
    guard,
    has_email,
    unguard,
)
from subscribers.csv_reading import (
    MAX_CELL,
    MAX_RECORD,
    BadRecord,
    CsvReader,
    ImportRefused,
    Record,
)


def reader(content: str | bytes, **options: str) -> CsvReader:
    data = content.encode() if isinstance(content, str) else content
    return CsvReader(io.BytesIO(data), is_header=has_email, **options)


def rows(content: str | bytes, **options: str) -> list[tuple[int, list[str]]]:
    found = list(reader(content, **options))
    assert all(isinstance(item, Record) for item in found), found
    return [(item.line, item.cells) for item in found if isinstance(item, Record)]


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
def test_the_delimiter_is_found_by_the_email_column(delimiter: str) -> None:
    text = delimiter.join(["Name", "E-Mail", "Note, a; b"]) + "\n"
    text += delimiter.join(["Ann", "ann@example.org", "x"]) + "\n"
    if delimiter in ",;":
        text = text.replace("Note, a; b", '"Note, a; b"')
    found = reader(text)
    assert found.delimiter == delimiter
    assert found.header == ["Name", "E-Mail", "Note, a; b"]
    assert rows(text) == [(2, ["Ann", "ann@example.org", "x"])]


def test_excel_says_its_delimiter_in_the_first_line() -> None:
    assert rows("sep=;\r\nemail;x\r\nann@example.org;1\r\n") == [(3, ["ann@example.org", "1"])]


@pytest.mark.parametrize(
    ("mark", "encoding"),
    [
        (b"", "utf-8"),
        (codecs.BOM_UTF8, "utf-8"),
        (codecs.BOM_UTF16_LE, "utf-16-le"),
        (codecs.BOM_UTF16_BE, "utf-16-be"),
        (codecs.BOM_UTF32_LE, "utf-32-le"),
    ],
)
def test_the_byte_order_mark_tells_the_encoding(mark: bytes, encoding: str) -> None:
    data = mark + "email,name\r\nann@example.org,Zoë 山田\r\n".encode(encoding)
    assert reader(data).header == ["email", "name"]
    assert rows(data) == [(2, ["ann@example.org", "Zoë 山田"])]


def test_an_encoding_that_is_named_is_used() -> None:
    data = "email,name\nann@example.org,Zoë\n".encode("cp1252")
    assert rows(data, encoding="cp1252") == [(2, ["ann@example.org", "Zoë"])]


def test_another_encoding_is_not_guessed_and_the_line_is_told() -> None:
    good = "".join(f"p{i}@example.org,Zoë\n" for i in range(5000))
    data = b"email,name\n" + good.encode() + "q@example.org,Zoë\n".encode("cp1252")
    with pytest.raises(ImportRefused, match=r"^Line 5002 is not UTF-8; .*--encoding"):
        list(reader(data))


@pytest.mark.parametrize(
    ("data", "options", "why"),
    [
        (b"", {}, "empty"),
        (codecs.BOM_UTF8, {}, "empty"),
        (b"\n\r\n  \n", {}, "empty"),
        ("email\n".encode("utf-16-le"), {}, "UTF-16"),
        (b"\x00\x01\x02\n", {}, "no CSV file"),
        (b"e" * (MAX_RECORD + 10), {}, "first line is longer"),
        (b",".join(b"c%d" % i for i in range(10_000)), {}, "10000 columns"),
        (b'"email\n', {}, "can't be read as CSV"),
        (b"\xff\xfeemail", {}, "not UTF-16"),
        (b"em\xe4il\n", {}, "Line 1 is not UTF-8"),
        (b"email\n", {"encoding": "klingon"}, "no text encoding named 'klingon'"),
        (b"email\n", {"encoding": "hex"}, "no text encoding named 'hex'"),
        (b"email\n", {"delimiter": ";;"}, "one character"),
    ],
)
def test_a_file_without_a_readable_header_is_refused(
    data: bytes, options: dict[str, str], why: str
) -> None:
    with pytest.raises(ImportRefused) as caught:
        reader(data, **options)
    assert why in str(caught.value)
    assert "\n" not in str(caught.value)


def test_line_ends_may_be_mixed_and_blank_lines_are_passed_over() -> None:
    text = 'email,note\r\na@example.org,1\n\nb@example.org,"x\r\ny"\rc@example.org,3\r\n,\r\n'
    assert rows(text) == [
        (2, ["a@example.org", "1"]),
        (4, ["b@example.org", "x\r\ny"]),
        (6, ["c@example.org", "3"]),
    ]


def test_an_open_quote_costs_its_own_line_only() -> None:
    text = (
        'email,name\na@example.org,"Ann\nb@example.org,Bob\nc@example.org,"C, D"\nd@example.org,D\n'
    )
    bad, *good = list(reader(text))
    assert isinstance(bad, BadRecord)
    assert (bad.line, bad.text) == (2, 'a@example.org,"Ann')
    assert good == [
        Record(3, ["b@example.org", "Bob"]),
        Record(4, ["c@example.org", "C, D"]),
        Record(5, ["d@example.org", "D"]),
    ]


def test_an_open_quote_at_the_end_of_a_long_file_costs_its_own_line_only() -> None:
    good = [f"p{i}@example.org,Person {i}\n" for i in range(20_000)]
    text = "email,name\n" + '"open,Ann\n' + "".join(good)
    found = list(reader(text))
    assert isinstance(found[0], BadRecord)
    assert "quote" in found[0].reason
    assert len(found) == 1 + len(good)
    assert found[-1] == Record(20_002, ["p19999@example.org", "Person 19999"])


@pytest.mark.parametrize("before", ["", '"'])
@pytest.mark.parametrize("end", ["\n", "\r\n", ""])
def test_a_line_of_a_megabyte_is_one_bad_record(before: str, end: str) -> None:
    long = before + "x" * 1_000_000 + end
    after = "b@example.org,Bob\n" if end else ""
    found = list(reader(f"email,name\na@example.org,Ann\n{long}{after}"))
    assert found[0] == Record(2, ["a@example.org", "Ann"])
    assert isinstance(found[1], BadRecord)
    assert found[1].line == 3
    assert "too long" in found[1].reason
    assert len(found[1].text) <= 200
    assert found[2:] == ([Record(4, ["b@example.org", "Bob"])] if end else [])


def test_a_long_line_behind_an_open_quote_loses_no_line_between() -> None:
    text = 'email,name\n"a\nb@example.org,Bob\n' + "x" * 400_000 + "\nc@example.org,Cy\n"
    kinds = [(type(item).__name__, item.line) for item in reader(text)]
    assert kinds == [("BadRecord", 2), ("Record", 3), ("BadRecord", 4), ("Record", 5)]


def test_a_cell_longer_than_a_spreadsheet_holds_is_a_bad_record() -> None:
    found = list(reader(f"email,note\na@example.org,{'x' * (MAX_CELL + 1)}\nb@example.org,y\n"))
    assert isinstance(found[0], BadRecord)
    assert str(MAX_CELL) in found[0].reason
    assert found[1] == Record(3, ["b@example.org", "y"])


def test_memory_stays_bounded_whatever_the_line() -> None:
    class Endless(io.RawIOBase):
        left = 64 * 1024 * 1024

        def read(self, size: int = -1) -> bytes:
            if self.left == 64 * 1024 * 1024:
                self.left -= 6
                return b"email\n"
            self.left -= size
            return b"x" * size if self.left > 0 else b""

    tracemalloc.start()
    try:
        found = list(CsvReader(Endless(), is_header=has_email))  # type: ignore[arg-type]
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert len(found) == 1
    assert peak < 8 * 1024 * 1024


def test_the_file_stays_open_for_whoever_opened_it() -> None:
    file = io.BytesIO(b"email\na@example.org\n")
    list(CsvReader(file, is_header=has_email))
    assert not file.closed


@settings(deadline=None)
@given(
    st.lists(
        st.lists(
            st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0")),
            min_size=2,
            max_size=4,
        ),
        max_size=8,
    )
)
def test_what_the_csv_module_writes_is_read_back(table: list[list[str]]) -> None:
    text = io.StringIO(newline="")
    csv.writer(text).writerows([["email", "b"], *table])
    found = [item.cells for item in reader(text.getvalue()) if isinstance(item, Record)]
    assert found == [row for row in table if any(row)]


@settings(deadline=None)
@given(st.text(max_size=12))
def test_unguard_undoes_guard(cell: str) -> None:
    assert unguard(guard(cell)) == cell


@settings(deadline=None)
@given(st.text(st.sampled_from("'=+-@\t\r\n a"), max_size=6))
def test_unguard_undoes_guard_where_it_matters(cell: str) -> None:
    assert unguard(guard(cell)) == cell


@pytest.mark.parametrize(
    "cell", ["=1+1", "+49", "-1", "@x", "\tx", "\rx", "\n=x", " =1", "'=1", "\uff1d1"]
)
def test_no_cell_is_a_formula(cell: str) -> None:
    assert guard(cell) == f"'{cell}"


@pytest.mark.parametrize("cell", ["", "ann@example.org", "O'Neil", "'quoted'", "1-2", "a=b"])
def test_what_is_no_formula_stays(cell: str) -> None:
    assert guard(cell) == cell


@pytest.mark.parametrize(
    "name",
    [
        "email",
        "E-Mail",
        " EMAIL ",
        "e_mail",
        "Email Address",
        "E-Mail-Adresse",
        "Correo electrónico",
        "Courriel",
        "mail",
        "\ufeffEmail",
        "address",
    ],
)
def test_the_address_column_has_many_names(name: str) -> None:
    columns = Columns.understand(["first name", name])
    assert columns.system == {"email": 1}
    assert [key for _, key in columns.attributes] == ["first_name"]


def test_the_surest_name_wins_and_the_street_is_an_attribute() -> None:
    columns = Columns.understand(["Address", "Email"])
    assert columns.system == {"email": 1}
    assert columns.attributes == [(0, "address")]


@pytest.mark.parametrize(
    ("header", "why"),
    [
        (["name", "phone"], "no e-mail column"),
        (["ann@example.org", "Ann"], "no e-mail column"),
        (["email", "E-Mail"], "Two columns"),
        (["email", "status", "Status"], "Two columns are named status"),
        (["email", "First name", "first-name"], "2 columns are named first_name"),
        (["email", "x" * 101], "longer than 100"),
    ],
)
def test_a_header_that_says_too_little_or_too_much_is_refused(header: list[str], why: str) -> None:
    with pytest.raises(ImportRefused, match=why):
        Columns.understand(header)


@pytest.mark.parametrize(
    ("name", "key"),
    [
        ("First Name", "first_name"),
        (" city ", "city"),
        ("_private", "private"),
        ("prénom", "prénom"),
        ("2nd line (home)", "2nd_line_home"),
        ("姓名", "姓名"),
        ("---", ""),
    ],
)
def test_attributes_are_named_as_templates_can_spell_them(name: str, key: str) -> None:
    assert attribute_name(name) == key
    assert attribute_name(key) == key


@settings(deadline=None)
@given(st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=20))
def test_any_attribute_survives_the_way_through_a_header(name: str) -> None:
    name = name.strip()
    column = column_for(name)
    columns = Columns.understand(["email", guard(column)])
    assert [key for _, key in columns.attributes] == ([name] if name else [])


@pytest.mark.parametrize(
    "name", ["email", "status", "Time zone", "mail", "First Name", "suppressed"]
)
def test_an_attribute_that_reads_as_something_else_is_exported_under_its_exact_name(
    name: str,
) -> None:
    assert column_for(name) == f"attribute:{name}"


def read(header: str, cells: str) -> dict[str, str]:
    return Columns.understand(header.split("|")).read(cells.split("|"))._asdict()


def test_a_row_says_what_its_cells_say() -> None:
    row = read(
        "email|Status|Locale|Time Zone|Consent source|Suppressed|Name|City",
        'ANN@Example.ORG |Pending|pt-BR|Europe/Paris|fair 2026|Hard_Bounce| Zoë "Z" |',
    )
    assert row == {
        "email": "ANN@example.org",
        "status": "pending",
        "attributes": '{"name":"Zoë \\"Z\\""}',
        "locale": "pt-BR",
        "timezone": "Europe/Paris",
        "consent_source": "fair 2026",
        "suppressed": "hard_bounce",
    }


def test_empty_cells_behind_the_last_column_do_no_harm() -> None:
    assert read("email|a", "a@example.org|1||")["attributes"] == '{"a":"1"}'


def test_a_guarded_address_is_read_without_its_apostrophe() -> None:
    assert read("email", "'+ann@example.org")["email"] == "+ann@example.org"


@pytest.mark.parametrize(
    ("header", "cells", "why"),
    [
        ("email|a", "a@example.org", "1 cells, the header 2"),
        ("email|a", "a@example.org|1|2", "3 cells, the header 2"),
        ("email|a", "a@example.org|x\0y", "NUL"),
        ("email|status", "a@example.org|gold", "none of pending, confirmed, unsubscribed"),
        ("email|timezone", "a@example.org|Mars/Olympus", "no time zone"),
        ("email|timezone", "a@example.org|../../etc/passwd", "no time zone"),
        ("email|locale", "a@example.org|English please", "no locale"),
        ("email|consent source", f"a@example.org|{'x' * 201}", "longer than 200"),
        ("email|suppressed", "a@example.org|erased", "none of complaint"),
    ],
)
def test_a_row_that_makes_no_sense_is_refused_with_the_reason(
    header: str, cells: str, why: str
) -> None:
    with pytest.raises(RowError, match=why):
        read(header, cells)


def test_a_reject_file_can_be_imported_again() -> None:
    columns = Columns.understand(["reject_line", "reject_reason", "email", "name"])
    assert columns.ignored == ["reject_line", "reject_reason"]
    assert columns.attributes == [(3, "name")]
