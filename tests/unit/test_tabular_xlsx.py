"""Sheets of Excel workbooks, as people make them."""

from __future__ import annotations

import datetime
import io
from typing import Any

import openpyxl
import pytest
from openpyxl.cell.rich_text import CellRichText, TextBlock
from openpyxl.cell.text import InlineFont

from subscribers.tabular import BadRecord, ImportRefused, Options, Plan, Record, RowError
from subscribers.tabular.records import FaultyCells
from subscribers.tabular.xlsx_reader import XlsxReader
from subscribers.tabular.xlsx_values import PLAIN, Shown, Unusable, number_text, style_of

from .workbooks import packed, parts, row


def reader(data: bytes, **options: Any) -> XlsxReader:
    return XlsxReader(io.BytesIO(data), **options)


def saved(book: openpyxl.Workbook) -> bytes:
    target = io.BytesIO()
    book.save(target)
    return target.getvalue()


def written(*rows: list[Any]) -> openpyxl.Workbook:
    book = openpyxl.Workbook()
    for cells in rows:
        book.active.append(cells)
    return book


def cells(*values: Any, formats: dict[int, str] | None = None) -> list[str]:
    """What one row of these values is read as."""
    book = written([f"c{place}" for place in range(len(values))], list(values))
    for place, code in (formats or {}).items():
        book.active.cell(2, place + 1).number_format = code
    (found,) = list(reader(saved(book)))
    assert isinstance(found, Record)
    return found.cells


def test_values_are_read_as_a_person_sees_or_would_write_them() -> None:
    found = cells(
        "ann@example.org",
        1,
        1.0,
        1.5,
        0.1,
        -3,
        True,
        False,
        datetime.date(2026, 11, 30),
        datetime.datetime(2026, 11, 30, 13, 45),
        datetime.datetime(2026, 11, 30),
        datetime.time(9, 30),
        "01234",
        "0049301234",
        491701234567,
        "Zo\u00eb \u5c71\u7530 \U0001f469",
        "two\nlines",
        None,
        " x ",
    )
    assert found == [
        "ann@example.org",
        "1",
        "1",
        "1.5",
        "0.1",
        "-3",
        "true",
        "false",
        "2026-11-30",
        "2026-11-30 13:45:00",
        "2026-11-30",
        "09:30:00",
        "01234",
        "0049301234",
        "491701234567",
        "Zo\u00eb \u5c71\u7530 \U0001f469",
        "two\nlines",
        "",
        " x ",
    ]


def test_a_format_of_zeros_keeps_those_of_a_postal_code() -> None:
    assert cells(1234, 7, 123456, formats={0: "00000", 1: "000", 2: "00000"}) == [
        "01234",
        "007",
        "123456",
    ]


def test_numbers_are_written_with_the_decimal_mark_of_the_options() -> None:
    data = saved(written(["email", "x", "y"], ["a@example.org", 1234.5, 1.234]))
    (found,) = list(reader(data, decimal=","))
    assert found == Record(2, ["a@example.org", "1234,5", "1,234"])


@pytest.mark.parametrize(
    ("raw", "style", "since_1904", "text"),
    [
        ("46356", (Shown.DATE, 0), False, "2026-11-30"),
        ("44894", (Shown.DATE, 0), True, "2026-11-30"),
        ("1", (Shown.DATE, 0), False, "1900-01-01"),
        ("59", (Shown.DATE, 0), False, "1900-02-28"),
        ("61", (Shown.DATE, 0), False, "1900-03-01"),
        ("2958465", (Shown.DATE, 0), False, "9999-12-31"),
        ("46356.5", (Shown.DATE, 0), False, "2026-11-30"),
        ("46356.999999", (Shown.MOMENT, 0), False, "2026-12-01"),
        ("0.5", (Shown.TIME, 0), False, "12:00:00"),
        ("1.5", (Shown.TIME, 0), False, "36:00:00"),
        ("1.0", PLAIN, False, "1"),
        ("4.91701234567E11", PLAIN, False, "491701234567"),
        ("0.30000000000000004", PLAIN, False, "0.30000000000000004"),
        ("1E-7", PLAIN, False, "1e-07"),
        ("12345678901234567890", PLAIN, False, "12345678901234567890"),
        ("-12", (Shown.NUMBER, 5), False, "-12"),
    ],
)
def test_a_number_as_text(raw: str, style: tuple[Shown, int], since_1904: bool, text: str) -> None:
    assert number_text(raw, style, since_1904=since_1904, decimal=".") == text


@pytest.mark.parametrize(
    ("raw", "shown"),
    [
        ("60", Shown.DATE),
        ("-1", Shown.DATE),
        ("2958466", Shown.DATE),
        ("1e300", Shown.MOMENT),
        ("nan", Shown.DATE),
        ("inf", Shown.NUMBER),
        ("x", Shown.NUMBER),
        ("1e999", Shown.NUMBER),
    ],
)
def test_a_number_that_is_no_day_or_none_at_all_is_unusable(raw: str, shown: Shown) -> None:
    with pytest.raises(Unusable):
        number_text(raw, (shown, 0), since_1904=False, decimal=".")


@pytest.mark.parametrize(
    ("code", "shown"),
    [
        ("General", Shown.NUMBER),
        ("0.00", Shown.NUMBER),
        ("0.00E+00", Shown.NUMBER),
        ('#,##0.00 "days"', Shown.NUMBER),
        ("[Red]0", Shown.NUMBER),
        ("[$-409]0", Shown.NUMBER),
        (r"0\d", Shown.NUMBER),
        ("yyyy-mm-dd", Shown.DATE),
        ("DD/MM/YYYY", Shown.DATE),
        ("[$-407]d. mmmm yyyy", Shown.DATE),
        ("mmm", Shown.DATE),
        ("yyyy-mm-dd hh:mm", Shown.MOMENT),
        ("h:mm AM/PM", Shown.TIME),
        ("[h]:mm", Shown.TIME),
        ("mm:ss", Shown.TIME),
        ("0;[Red]-d", Shown.NUMBER),
    ],
)
def test_a_format_s_code_tells_days_from_numbers(code: str, shown: Shown) -> None:
    assert style_of(164, {164: code}) == (shown, 0)


def test_built_in_formats_need_no_code() -> None:
    assert style_of(14, {}) == (Shown.DATE, 0)
    assert style_of(22, {}) == (Shown.MOMENT, 0)
    assert style_of(20, {}) == (Shown.TIME, 0)
    assert style_of(2, {}) == PLAIN


def test_rich_text_is_its_text_without_its_reading_aid() -> None:
    rich = CellRichText("Z", TextBlock(InlineFont(b=True), "o\u00eb"), " M\u00fcller")
    assert cells(rich) == ["Zo\u00eb M\u00fcller"]
    strings = (
        '<si><r><t>\u5c71</t></r><r><t xml:space="preserve">\u7530 </t></r>'
        '<rPh sb="0" eb="1"><t>\u30e4\u30de</t></rPh></si><si><t>a_x000D_b</t></si><si/>'
    )
    rows = (
        row(1, "email", "b", "c")
        + '<row r="2"><c r="A2" t="s"><v>0</v></c><c r="B2" t="s"><v>1</v></c>'
        '<c r="C2" t="s"><v>2</v></c></row>'
    )
    (found,) = list(reader(packed(parts(rows, strings=strings))))
    assert found == Record(2, ["\u5c71\u7530 ", "a\rb", ""])


def test_of_formulas_the_stored_value_counts() -> None:
    rows = (
        row(1, "email", "x", "y")
        + '<row r="2"><c r="A2" t="str"><f>B2&amp;"@"</f><v>ann@example.org</v></c>'
        '<c r="B2"><f>1+1</f><v>2</v></c><c r="C2" t="str"><f>""</f><v></v></c></row>'
    )
    assert list(reader(packed(parts(rows)))) == [Record(2, ["ann@example.org", "2", ""])]


@pytest.mark.parametrize(
    ("cell", "why"),
    [
        ('<c r="B2"><f>1+1</f></c>', "no stored value"),
        ('<c r="B2"><f>1+1</f><v/></c>', "no stored value"),
        ('<c r="B2" t="e"><v>#N/A</v></c>', "the error #N/A"),
        ('<c r="B2" t="e"><f>1/0</f><v>#DIV/0!</v></c>', "the error #DIV/0!"),
        ('<c r="B2" t="s"><v>99</v></c>', "text is missing"),
        ('<c r="B2" t="s"><v>-1</v></c>', "text is missing"),
        ('<c r="B2" t="s"><v>x</v></c>', "text is missing"),
        ('<c r="B2"><v>many</v></c>', "no number"),
    ],
)
def test_a_cell_without_a_value_to_be_used_costs_its_row(cell: str, why: str) -> None:
    rows = row(1, "email", "x") + (
        f'<row r="2"><c r="A2" t="inlineStr"><is><t>a@example.org</t></is></c>{cell}</row>'
    )
    found = reader(packed(parts(rows)))
    (record,) = list(found)
    assert isinstance(record, Record)
    assert isinstance(record.cells, FaultyCells)
    with pytest.raises(RowError, match=f"^x: .*{why}"):
        Plan.understand(found.header, Options()).read(record.cells)
    passed = Plan.understand(found.header, Options(mapping=("email", "")))
    assert passed.read(record.cells).email == "a@example.org"


def test_of_merged_cells_the_first_one_has_the_value() -> None:
    book = written(["email", "a", "b"], ["a@example.org", "both", None])
    book.active.merge_cells("B2:C2")
    assert list(reader(saved(book))) == [Record(2, ["a@example.org", "both", ""])]


def test_empty_rows_and_columns_behind_the_data_are_passed_over() -> None:
    book = written(["email", "a"], ["a@example.org", 1], [None, None], ["b@example.org"])
    book.active.cell(900, 30).number_format = "00000"
    found = reader(saved(book))
    assert found.header == ["email", "a"]
    assert list(found) == [Record(2, ["a@example.org", "1"]), Record(4, ["b@example.org", ""])]


def test_empty_rows_before_the_names_are_passed_over() -> None:
    rows = f'<row r="1"/><row r="2"><c r="A2"/></row>{row(5, "email")}{row(7, "a@example.org")}'
    found = reader(packed(parts(rows)))
    assert (found.header, list(found)) == (["email"], [Record(7, ["a@example.org"])])


def test_the_first_visible_sheet_is_read_unless_another_is_named() -> None:
    book = written(["hidden"], ["x"])
    book.active.title = "Draft"
    book.active.sheet_state = "hidden"
    book.create_sheet("People").append(["email"])
    book.create_sheet("Old people").append(["mail"])
    data = saved(book)
    found = reader(data)
    assert (found.sheet, found.header, found.sheets) == (
        "People",
        ["email"],
        ["People", "Old people"],
    )
    assert found.notes == [
        "Read from the sheet \u201cPeople\u201d; the workbook also has: Old people."
    ]
    assert reader(data, sheet="Old people").header == ["mail"]
    assert reader(data, sheet="Draft").header == ["hidden"]
    with pytest.raises(ImportRefused, match="no sheet 'Other'; it has: People, Old people"):
        reader(data, sheet="Other")


def test_a_chart_is_no_sheet_of_people() -> None:
    book = openpyxl.Workbook()
    book.remove(book.active)
    book.create_chartsheet("Chart")
    book.create_sheet("People").append(["email"])
    assert reader(saved(book)).sheet == "People"


def test_days_since_1904() -> None:
    styles = '<cellXfs><xf numFmtId="0"/><xf numFmtId="14"/></cellXfs>'
    rows = row(1, "email") + '<row r="2"><c r="A2" s="1"><v>0</v></c></row>'
    data = packed(parts(rows, styles=styles, book='<workbookPr date1904="1"/>'))
    assert list(reader(data)) == [Record(2, ["1904-01-01"])]


def test_days_may_be_stored_as_iso_8601() -> None:
    rows = row(1, "email", "b") + (
        '<row r="2"><c t="d"><v>2026-11-30T00:00:00Z</v></c>'
        '<c t="d"><v>2026-11-30T12:30:00</v></c></row>'
    )
    assert list(reader(packed(parts(rows)))) == [Record(2, ["2026-11-30", "2026-11-30T12:30:00"])]


def test_names_of_elements_may_have_a_prefix() -> None:
    members = parts()
    members["xl/worksheets/sheet1.xml"] = (
        '<x:worksheet xmlns:x="y"><x:sheetData><x:row r="1"><x:c r="B1" t="inlineStr"><x:is>'
        "<x:t>email</x:t></x:is></x:c></x:row></x:sheetData></x:worksheet>"
    )
    assert reader(packed(members)).header == ["", "email"]


def test_only_the_sheet_s_data_is_read() -> None:
    members = parts(row(1, "email"))
    members["xl/worksheets/sheet1.xml"] = (
        members["xl/worksheets/sheet1.xml"]
        .replace("</sheetData>", "</sheetData><controls><from><row>5</row></from></controls>")
        .replace(
            "<sheetData>", '<dimension ref="A1:XFD1048576"/><cols><row/><c/></cols><sheetData>'
        )
    )
    found = reader(packed(members))
    assert (found.header, list(found)) == (["email"], [])


def test_a_sheet_without_names_gives_its_first_row_too() -> None:
    found = reader(packed(parts(row(1, "a@example.org", "Ann"))), has_names=None)
    assert found.header == ["column 1", "column 2"]
    assert list(found) == [Record(1, ["a@example.org", "Ann"])]


def test_wider_rows_are_told_from_empty_cells_behind() -> None:
    rows = row(1, "email") + row(2, "a@example.org", "") + row(3, "b@example.org", "x")
    found = reader(packed(parts(rows)))
    plan = Plan.understand(found.header, Options())
    good, bad = list(found)
    assert isinstance(good, Record)
    assert isinstance(bad, Record)
    assert plan.read(good.cells).email == "a@example.org"
    with pytest.raises(RowError, match="2 cells, the header 1"):
        plan.read(bad.cells)


def test_the_position_moves_to_the_file_s_size() -> None:
    data = saved(written(["email"], *([f"p{i}@example.org"] for i in range(5000))))
    found = reader(data)
    places = [found.position for _ in found]
    assert places == sorted(places)
    assert 0 < places[0] < places[-1] <= len(data)
    assert found.position == len(data)


def test_rows_that_a_filter_hides_are_counted() -> None:
    rows = row(1, "email") + row(2, "a@example.org").replace("<row", '<row hidden="1"')
    found = reader(packed(parts(rows)))
    assert not any(isinstance(record, BadRecord) for record in found)
    assert found.hidden_rows == 1
