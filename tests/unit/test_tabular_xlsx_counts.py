"""Workbooks of a few kilobytes that hold far more of something than any program writes."""

from __future__ import annotations

import io
import struct
import zipfile
from typing import Any

import pytest

from subscribers.tabular import ImportRefused, xlsx_reader
from subscribers.tabular.xlsx_package import MAX_PARTS
from subscribers.tabular.xlsx_reader import XlsxReader
from subscribers.tabular.xlsx_values import style_of

from .workbooks import packed, parts, row

#: What Excel keeps of formats of cells.
KEPT = 65_490


def styled(formats: str) -> bytes:
    rows = row(1, "email") + row(2, "ann@example.org")
    return packed(parts(rows, styles=f"<cellXfs>{formats}</cellXfs>"))


def hiding(hidden: int, *, says: int) -> bytes:
    """A good workbook with a 64-bit end of its directory, of which ``hidden`` entries are of
    nothing; the usual end ``says`` how many there are."""
    data = packed(parts(row(1, "email") + row(2, "ann@example.org")))
    end = data.rfind(b"PK\5\6")
    count, size, offset = struct.unpack_from("<HII", data, end + 10)
    entries = b"".join(
        struct.pack(
            "<4s4B4HL2L5H2L", b"PK\1\2", 20, 3, 20, 0, 0, 0, 0, 0, 0, 0, 0, 8, 0, 0, 0, 0, 0, 0
        )
        + b"%08x" % number
        for number in range(hidden)
    )
    directory = data[offset : offset + size] + entries
    place, many = offset + len(directory), count + hidden
    return (
        data[:offset]
        + directory
        + struct.pack("<4sQ2H2L4Q", b"PK\6\6", 44, 45, 45, 0, 0, many, many, len(directory), offset)
        + struct.pack("<4sLQL", b"PK\6\7", 0, place, 1)
        + struct.pack("<4s4H2LH", b"PK\5\6", 0, 0, says, says, 46, offset, 0)
    )


def test_more_formats_of_cells_than_a_workbook_has_are_refused() -> None:
    with pytest.raises(ImportRefused, match="damaged"):
        XlsxReader(io.BytesIO(styled("<xf/>" * (KEPT + 1_000))))


def test_formats_that_are_the_same_are_kept_once(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []

    def counted(number: int, codes: dict[int, str]) -> Any:
        asked.append(number)
        return style_of(number, codes)

    monkeypatch.setattr(xlsx_reader, "style_of", counted)
    data = styled('<xf numFmtId="14"/><xf/>' * (KEPT // 2))
    assert list(XlsxReader(io.BytesIO(data))) == [(2, ["ann@example.org"])]
    assert sorted(asked) == [0, 14]


@pytest.mark.parametrize("hidden", [1, MAX_PARTS + 1])
def test_a_64_bit_end_does_not_hide_a_long_directory(
    hidden: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = hiding(hidden, says=1)
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        assert len(archive.infolist()) > hidden

    def opened(*_: object) -> None:
        raise AssertionError("its directory was read")

    monkeypatch.setattr(zipfile, "ZipFile", opened)
    with pytest.raises(ImportRefused, match=f"too many parts; at most {MAX_PARTS}"):
        XlsxReader(io.BytesIO(data))
