"""Records of a CSV file, whatever its lines hold."""

from __future__ import annotations

import csv
import io
import tracemalloc
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from subscribers.tabular.csv_reader import CsvReader
from subscribers.tabular.records import (
    MAX_CELL,
    MAX_RECORD,
    BadRecord,
    ImportRefused,
    Record,
)


def reader(content: str | bytes, **options: Any) -> CsvReader:
    data = content.encode() if isinstance(content, str) else content
    return CsvReader(io.BytesIO(data), **options)


def rows(content: str | bytes, **options: Any) -> list[tuple[int, list[str]]]:
    found = list(reader(content, **options))
    assert all(isinstance(item, Record) for item in found), found
    return [(item.line, item.cells) for item in found if isinstance(item, Record)]


def test_excel_says_its_delimiter_in_the_first_line() -> None:
    assert rows("sep=;\r\nemail;x\r\nann@example.org;1\r\n") == [(3, ["ann@example.org", "1"])]
    assert rows("SEP=|\nemail|x,y\nann@example.org|1,2\n") == [(3, ["ann@example.org", "1,2"])]
    assert rows("sep=;\nemail|x;y\na@example.org|1\n", delimiter="|")[0][0] == 3


def test_an_encoding_that_is_named_is_used() -> None:
    data = "email,name\nann@example.org,Zoë\n".encode("cp1252")
    assert rows(data, encoding="cp1252") == [(2, ["ann@example.org", "Zoë"])]
    assert rows(data, encoding="latin-1") == [(2, ["ann@example.org", "Zoë"])]


@pytest.mark.parametrize("encoding", ["utf-8", "cp1252", "shift_jis"])
def test_a_named_encoding_that_can_t_be_is_refused_with_the_line(encoding: str) -> None:
    data = b"email,name\na@example.org,Ann\nb@example.org,\x81\xff\n"
    with pytest.raises(ImportRefused, match=r"^Line 3 is not .*save it as UTF-8"):
        list(reader(data, encoding=encoding))


@pytest.mark.parametrize(
    ("data", "options", "why"),
    [
        (b"\xef\xbb\xbf", {}, "empty"),
        (b"\n\r\n  \n", {}, "empty"),
        (b"sep=;\n", {}, "empty"),
        (b",,,\n,\n", {}, "empty"),
        (b"name\x00,x\x01\x02\n", {}, "NUL"),
        (b"e" * (MAX_RECORD + 10), {}, "first line is longer"),
        (b",".join(b"c%d" % i for i in range(10_000)), {}, "10000 columns"),
        (b'"email\n', {}, "can't be read as CSV"),
        (b'"em"ail\n', {}, "can't be read as CSV"),
        (b"\xff\xfeemail", {}, "is not UTF-16"),
        (b"email\n", {"encoding": "klingon"}, "no text encoding named 'klingon'"),
        (b"email\n", {"encoding": "hex"}, "no text encoding named 'hex'"),
        (b"email\n", {"encoding": "punycode"}, "no text encoding named 'punycode'"),
        (b"email\n", {"encoding": "unicode_escape"}, "no text encoding named"),
    ],
)
def test_a_file_without_a_readable_first_row_is_refused(
    data: bytes, options: dict[str, str], why: str
) -> None:
    with pytest.raises(ImportRefused) as caught:
        reader(data, **options)
    assert why in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_name_may_span_lines() -> None:
    found = reader('"E-mail\r\naddress",x\r\nann@example.org,1\r\n')
    assert found.header == ["E-mail\r\naddress", "x"]
    assert list(found) == [Record(3, ["ann@example.org", "1"])]


def test_a_file_without_names_gives_its_first_row_too() -> None:
    text = "ann@example.org;Ann\nbob@example.org;Bob\n"
    found = reader(text, has_names=None)
    assert (found.has_names, found.header) == (False, ["column 1", "column 2"])
    assert list(found) == [
        Record(1, ["ann@example.org", "Ann"]),
        Record(2, ["bob@example.org", "Bob"]),
    ]
    assert reader(text, has_names=True).header == ["ann@example.org", "Ann"]
    assert reader("email;name\n" + text, has_names=None).has_names


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
        size = 64 * 1024 * 1024
        place = 0

        def read(self, size: int = -1) -> bytes:
            start, self.place = self.place, self.place + size
            if start >= self.size:
                return b""
            return (b"email\n" if not start else b"x" * 6) + b"x" * (size - 6)

        def seek(self, offset: int, whence: int = 0) -> int:
            self.place = offset
            return offset

    tracemalloc.start()
    try:
        found = list(CsvReader(Endless()))  # type: ignore[arg-type]
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert len(found) == 1
    assert peak < 16 * 1024 * 1024


def test_the_file_stays_open_and_its_bytes_are_counted() -> None:
    data = b"email\na@example.org\n"
    file = io.BytesIO(data)
    found = CsvReader(file)
    list(found)
    del found
    assert not file.closed
    found = CsvReader(file)
    list(found)
    assert found.position == len(data)


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
    found = reader(text.getvalue(), delimiter=",", encoding="utf-8")
    assert [row.cells for row in found if isinstance(row, Record)] == [r for r in table if any(r)]
