"""Workbooks made part by part, so that they can be wrong in every way."""

from __future__ import annotations

import io
import zipfile
from typing import Any

MAIN = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
PACKAGE = "http://schemas.openxmlformats.org/package/2006/relationships"
SHEET = "xl/worksheets/sheet1.xml"


def relations(**targets: tuple[str, str]) -> str:
    """``id=(kind, target)``."""
    inner = "".join(
        f'<Relationship Id="{name}" Type="{OFFICE}/{kind}" Target="{target}"/>'
        for name, (kind, target) in targets.items()
    )
    return f'<Relationships xmlns="{PACKAGE}">{inner}</Relationships>'


def sheet(rows: str) -> str:
    return f'<worksheet xmlns="{MAIN}"><sheetData>{rows}</sheetData></worksheet>'


def parts(
    rows: str = "", *, strings: str | None = None, styles: str | None = None, book: str = ""
) -> dict[str, Any]:
    """The parts of a workbook of one sheet. ``rows``, ``strings`` and ``styles`` are XML."""
    related = {"rId1": ("worksheet", "worksheets/sheet1.xml")}
    found: dict[str, Any] = {
        "[Content_Types].xml": "<Types/>",
        "_rels/.rels": relations(rId1=("officeDocument", "xl/workbook.xml")),
        "xl/workbook.xml": f'<workbook xmlns="{MAIN}" xmlns:r="{OFFICE}">{book}'
        '<sheets><sheet name="People" sheetId="1" r:id="rId1"/></sheets></workbook>',
        SHEET: sheet(rows),
    }
    if strings is not None:
        related["rId2"] = ("sharedStrings", "sharedStrings.xml")
        found["xl/sharedStrings.xml"] = f'<sst xmlns="{MAIN}">{strings}</sst>'
    if styles is not None:
        related["rId3"] = ("styles", "/xl/styles.xml")
        found["xl/styles.xml"] = f'<styleSheet xmlns="{MAIN}">{styles}</styleSheet>'
    found["xl/_rels/workbook.xml.rels"] = relations(**related)
    return found


def packed(members: dict[str, Any]) -> bytes:
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return target.getvalue()


def row(number: int, *cells: str) -> str:
    """A row of inline texts."""
    inner = "".join(f'<c t="inlineStr"><is><t>{cell}</t></is></c>' for cell in cells)
    return f'<row r="{number}">{inner}</row>'
