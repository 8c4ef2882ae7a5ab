"""Workbooks that are made to do harm, or are no workbooks: refused, in bounded memory."""

from __future__ import annotations

import io
import random
import struct
import subprocess
import sys
import zipfile
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from subscribers.tabular import BadRecord, ImportRefused, detect
from subscribers.tabular.records import MAX_CELL, MAX_COLUMNS
from subscribers.tabular.xlsx_package import MAX_PARTS
from subscribers.tabular.xlsx_reader import XlsxReader

from .workbooks import SHEET, packed, parts, row, sheet

MEGABYTE = 1 << 20


def refused(data: bytes) -> str:
    with pytest.raises(ImportRefused) as caught:
        list(XlsxReader(io.BytesIO(data)))
    message = str(caught.value)
    assert "\n" not in message
    assert message.endswith(".")
    return message


def changed(**members: Any) -> bytes:
    """A good workbook with other members; ``None``: without it."""
    found = parts(row(1, "email") + row(2, "a@example.org"), strings="<si><t>x</t></si>")
    names = {
        "sheet": SHEET,
        "strings": "xl/sharedStrings.xml",
        "book": "xl/workbook.xml",
        "types": "[Content_Types].xml",
        "rels": "_rels/.rels",
        "book_rels": "xl/_rels/workbook.xml.rels",
    }
    for name, content in members.items():
        if content is None:
            del found[names[name]]
        else:
            found[names.get(name, name)] = content
    return packed(found)


def mostly(size: int) -> str:
    """Text that deflate packs about 150 times: under the limit of what is suspicious."""
    noise = random.Random(4)
    block = "".join(noise.choices("0123456789abcdef", k=350)) + "a" * 33_000
    return block * (size // len(block) + 1)


@pytest.mark.parametrize(
    ("members", "why"),
    [
        ({"types": None}, "zip archive"),
        ({"rels": None}, "damaged"),
        ({"book": None}, "damaged"),
        ({"book_rels": None}, "no sheet that can be read"),
        ({"sheet": None}, "damaged"),
        ({"sheet": "no XML"}, "damaged"),
        ({"sheet": sheet("<row>")}, "damaged"),
        ({"sheet": ""}, "damaged"),
        ({"sheet": sheet("")}, "The sheet 'People' is empty"),
        ({"xl/vbaProject.bin": b"x"}, "macros"),
        ({"xl/workbook.bin": b"x"}, "binary workbook"),
        ({"mimetype": b"application/vnd.oasis.opendocument.spreadsheet"}, "OpenDocument"),
        ({"word/document.xml": b"<x/>"}, ".docx"),
    ],
)
def test_what_is_no_workbook_is_refused_in_words(members: dict[str, Any], why: str) -> None:
    assert why in refused(changed(**members))


BOMB = '<!DOCTYPE x [<!ENTITY a "aaaaaaaaaa">'
for _old, _new in pairwise("abcdefghi"):
    BOMB += f'<!ENTITY {_new} "{f"&{_old};" * 10}">'
BOMB += "]>"


@pytest.mark.parametrize("member", ["sheet", "strings", "book", "rels"])
@pytest.mark.parametrize(
    "head", [BOMB, '<!DOCTYPE x SYSTEM "file:///etc/hostname">', "<!DOCTYPE x>"]
)
def test_document_types_and_entities_are_refused(member: str, head: str) -> None:
    assert "document type" in refused(changed(**{member: f"{head}<x>&i;</x>"}))


def test_a_part_that_unpacks_to_too_much_is_refused_before_it_is_unpacked() -> None:
    data = changed(sheet=sheet(" " * (40 * MEGABYTE)))
    assert len(data) < MEGABYTE
    assert "unpacks to 40 MB" in refused(data)
    assert "unpacks to 20 MB" in refused(changed(book=" " * (20 * MEGABYTE)))


def test_a_size_that_is_a_lie_reads_no_more_than_it_says() -> None:
    data = bytearray(changed(sheet=sheet(row(1, "email") + " " * MEGABYTE)))
    place = data.rfind(SHEET.encode()) - 46
    assert data[place : place + 4] == b"PK\x01\x02"
    struct.pack_into("<I", data, place + 24, 200)
    assert "damaged" in refused(bytes(data))


def test_too_many_parts_are_refused_before_their_names_are_read() -> None:
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w") as archive:
        for number in range(MAX_PARTS + 1):
            archive.writestr(f"{number}", b"")
    assert f"too many parts; at most {MAX_PARTS}" in refused(target.getvalue())


def test_an_archive_in_the_archive_is_not_opened() -> None:
    inner = changed(sheet=sheet(" " * (40 * MEGABYTE)))
    data = changed(**{"xl/media/image1.png": inner, "xl/embeddings/a.xlsx": inner})
    assert XlsxReader(io.BytesIO(data)).header == ["email"]


def test_an_encrypted_part_is_refused() -> None:
    data = bytearray(changed())
    place = data.find(b"PK\x01\x02")
    data[place + 8] |= 1
    assert "encrypted" in refused(bytes(data))


@pytest.mark.parametrize("cut", [10, 400, 0.5, 0.9, -1])
def test_a_file_that_was_cut_is_refused(cut: float) -> None:
    data = changed()
    assert "damaged" in refused(data[: int(cut * len(data)) if isinstance(cut, float) else cut])


def test_bytes_that_were_turned_over_are_refused_or_read_never_worse() -> None:
    data = changed()
    noise = random.Random(12)
    for _ in range(300):
        wrong = bytearray(data)
        for _ in range(noise.randint(1, 4)):
            wrong[noise.randrange(len(wrong))] = noise.randrange(256)
        try:
            list(XlsxReader(io.BytesIO(bytes(wrong))))
        except ImportRefused:
            continue


@pytest.mark.parametrize(
    "rows",
    [
        '<row r="99999999999999999999"/>',
        '<row r="1048577"/>',
        '<row r="0"/>',
        '<row r="-1"/>',
        '<row r="x"/>',
        '<row r="5"/><row r="5"/>',
        '<row r="5"/><row r="4"/>',
        '<row r="1"><c r="XFE1"/></row>',
        '<row r="1"><c r="AAAAA1"/></row>',
        '<row r="1"><c r="1"/></row>',
        '<row r="1"><c r="B1" t="b"><v>1</v></c><c r="A1" t="b"><v>1</v></c></row>',
        '<row r="1"><c r="A1" s="99999999999"><v>1</v></c></row>',
        "<a>" * 100 + "</a>" * 100,
    ],
)
def test_numbers_that_no_sheet_has_are_refused(rows: str) -> None:
    assert "damaged" in refused(changed(sheet=sheet(rows)))


def test_too_many_columns() -> None:
    wide = row(1, *("c" for _ in range(10_000)))
    assert f"10000 columns; at most {MAX_COLUMNS}" in refused(changed(sheet=sheet(wide)))
    rows = row(1, "email") + row(2, "a@example.org", *("c" for _ in range(600)))
    found = list(XlsxReader(io.BytesIO(changed(sheet=sheet(rows + row(3, "b@example.org"))))))
    assert isinstance(found[0], BadRecord)
    assert f"at most {MAX_COLUMNS}" in found[0].reason
    assert found[1] == (3, ["b@example.org"])


def test_a_cell_or_a_row_that_is_too_long_is_a_bad_record() -> None:
    rows = (
        row(1, "email", "x")
        + row(2, "a@example.org", "x" * (MAX_CELL + 1))
        + row(3, *("x" * 30_000 for _ in range(20)))
        + row(4, "b@example.org", "y" * MAX_CELL)
    )
    long, wide, good = list(XlsxReader(io.BytesIO(changed(sheet=sheet(rows)))))
    assert isinstance(long, BadRecord)
    assert isinstance(wide, BadRecord)
    assert (long.line, "cell is longer" in long.reason) == (2, True)
    assert (wide.line, "row is longer" in wide.reason) == (3, True)
    assert len(wide.text) <= 200
    assert good == (4, ["b@example.org", "y" * MAX_CELL])


_MEASURE = """
import re, sys
import django
django.setup()
from pathlib import Path
from subscribers.tabular import BadRecord, ImportRefused
from subscribers.tabular.xlsx_reader import XlsxReader
def peak():
    # Not ru_maxrss, which begins with what the parent had.
    return int(re.search(r"VmHWM:\\s+(\\d+) kB", Path("/proc/self/status").read_text())[1])
def run(name):
    with open(name, "rb") as file:
        try:
            return sum(isinstance(row, BadRecord) for row in XlsxReader(file))
        except ImportRefused as error:
            return str(error)
run(sys.argv[1])
before = peak()
results = [run(name) for name in sys.argv[2:]]
print(peak() - before, *results, sep="\\n")
"""


def measured(tmp_path: Path, *books: bytes) -> tuple[int, list[str]]:
    """``(kilobytes that reading them added at most, what became of each)``."""
    names = []
    for number, data in enumerate((changed(), *books)):
        names.append(tmp_path / f"{number}.xlsx")
        names[-1].write_bytes(data)
    done = subprocess.run(
        [sys.executable, "-c", _MEASURE, *map(str, names)],
        env={"DJANGO_SETTINGS_MODULE": "tests.settings", "PATH": "/usr/bin:/bin"},
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    kilobytes, *results = done.stdout.splitlines()
    return int(kilobytes), results


def test_memory_stays_bounded_whatever_a_part_holds(tmp_path: Path) -> None:
    huge = mostly(48 * MEGABYTE)
    cells = [huge[place : place + 30_000] for place in range(0, 45 * MEGABYTE, 30_000)]
    long = row(1, "email", "x") + row(2, "a@example.org", huge)
    books = (
        changed(sheet=sheet(long)),
        changed(sheet=sheet(row(1, "email") + row(2, *cells))),
        changed(strings=f"<sst><si><t>{huge}</t></si></sst>"),
        changed(sheet=sheet(row(1, "email") + f'<row r="2" x="{huge}"/>')),
        changed(sheet=sheet(row(1, "email") + f"<!--{huge}-->")),
        changed(sheet=sheet(f'<row r="1"><c t="inlineStr"><is><{huge}/></is></c></row>')),
        changed(strings="<sst>" + "<si/>" * 3_000_000 + "</sst>"),
    )
    kilobytes, results = measured(tmp_path, *books)
    damaged = "The .xlsx file is damaged; open it in a spreadsheet program and save it again."
    assert results == ["1", "1", "0", damaged, damaged, damaged, "0"]
    assert kilobytes < 24 * 1024


def test_memory_does_not_grow_with_the_rows(tmp_path: Path) -> None:
    def book(rows: int) -> bytes:
        long = "x" * 300
        strings = "".join(f"<si><t>{n}{long}</t></si>" for n in range(rows))
        people = "".join(
            f'<row r="{n + 1}"><c t="s"><v>{n}</v></c><c r="B{n + 1}"><v>{n}</v></c></row>'
            for n in range(rows)
        )
        return changed(sheet=sheet(people), strings=f"<sst>{strings}</sst>")

    kilobytes, results = measured(tmp_path, book(60_000))
    assert results == ["0"]
    assert kilobytes < 12 * 1024


def test_what_a_workbook_is_refused_for_is_told_by_detect_too() -> None:
    with pytest.raises(ImportRefused, match="macros"):
        detect(io.BytesIO(changed(**{"xl/vbaProject.bin": b"x"})), "people.xlsx")
