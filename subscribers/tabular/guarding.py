"""Cells that a spreadsheet would take for a formula: guarded by export, taken as they were by
import.

OWASP "CSV Injection": a cell that begins with ``=``, ``+``, ``-``, ``@``, tab, carriage return or
line feed may be computed; some programs look behind blanks first, or take full-width signs. And a
program that splits the file at other signs than commas (Excel, where the comma is the decimal
mark) finds the beginning of a cell in the middle of one.
"""

from __future__ import annotations

import re

_SIGNS = r"[=+\-@\uff1d\uff0b\uff0d\uff20]"
#: ... behind any number of apostrophes that were put there before.
FORMULA = re.compile(rf"'*[\t\r\n]|[\s']*{_SIGNS}")
_SEPARATES = re.compile(r"[;|\t\r\n]").search
#: Where another program would begin a cell or a row, and a formula with it.
_INNER = re.compile(rf"([;|\t\r\n][\s\"]*)(?='*{_SIGNS})")
_INNER_GUARDED = re.compile(rf"([;|\t\r\n][\s\"]*)'(?='*{_SIGNS})")


def guard(cell: str) -> str:
    """The cell as a spreadsheet shows it rather than computes it: an apostrophe before what
    would be a formula. ``unguard`` takes exactly that away."""
    if _SEPARATES(cell):
        cell = _INNER.sub(r"\1'", cell)
    # A letter or digit is where nearly every cell begins, and no formula.
    return f"'{cell}" if not cell[:1].isalnum() and FORMULA.match(cell) else cell


def unguard(cell: str) -> str:
    """Undo ``guard``. A foreign cell of apostrophe and formula loses the apostrophe too, which
    is what spreadsheets mean by it."""
    if "'" not in cell:
        return cell
    if cell[0] == "'" and FORMULA.match(cell, 1):
        cell = cell[1:]
    return _INNER_GUARDED.sub(r"\1", cell)
