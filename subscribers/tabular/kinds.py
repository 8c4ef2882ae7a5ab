"""What kind of file this is, whatever its name says; what can't be read is told in words."""

from __future__ import annotations

import json
from typing import BinaryIO

from .records import ImportRefused

_START = 4096
_OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
#: How far to look for the names inside of an OLE file.
_OLE_REACH = 8 << 20

_SAVE = "open it in a spreadsheet program and save it as .xlsx or CSV (UTF-8)"
_FOREIGN: tuple[tuple[bytes, str], ...] = (
    (b"\x1f\x8b", "The file is compressed (gzip); unpack it first."),
    (b"BZh91AY&SY", "The file is compressed (bzip2); unpack it first."),
    (b"\xfd7zXZ\0", "The file is compressed (xz); unpack it first."),
    (b"7z\xbc\xaf\x27\x1c", "The file is a 7z archive; unpack it first."),
    (b"Rar!\x1a\x07", "The file is a RAR archive; unpack it first."),
    (b"%PDF", "The file is a PDF; export the list itself as CSV or .xlsx."),
    (b"{\\rtf", "The file is a text document (RTF); save the list as CSV or .xlsx."),
    (b"SQLite format 3\0", "The file is an SQLite database; export the table as CSV."),
    (b"PAR1\x15", "The file is a Parquet file; export it as CSV."),
    (b"\x89PNG", "The file is a picture; a list as CSV or .xlsx is needed."),
    (b"\xff\xd8\xff", "The file is a picture; a list as CSV or .xlsx is needed."),
    (b"GIF89a", "The file is a picture; a list as CSV or .xlsx is needed."),
)


def find_format(binary: BinaryIO) -> str:
    """``csv`` or ``xlsx``: what to read this seekable file as; a zip file is an ``xlsx`` until
    its reader says otherwise. The file is at its beginning afterwards.

    Raises ``ImportRefused`` for what is neither; the message says what it is and what to do.
    """
    binary.seek(0)
    start = binary.read(_START)
    try:
        if not start:
            raise ImportRefused("The file is empty.")
        if start.startswith((b"PK\x03\x04", b"PK\x05\x06")):
            return "xlsx"
        if start.startswith(_OLE):
            raise ImportRefused(_ole(start + binary.read(_OLE_REACH)))
        for mark, reason in _FOREIGN:
            if start.startswith(mark):
                raise ImportRefused(reason)
        _refuse_markup(start)
    finally:
        binary.seek(0)
    return "csv"


def _ole(data: bytes) -> str:
    if "EncryptedPackage".encode("utf-16-le") in data:
        return "The file is encrypted; open it with its password and save it without one."
    if "Workbook".encode("utf-16-le") in data or "Book".encode("utf-16-le") in data:
        return f"The file is an old Excel file (.xls); {_SAVE}."
    return f"The file is an old Office file, or an encrypted one; {_SAVE}, without a password."


def _refuse_markup(start: bytes) -> None:
    text = start.removeprefix(b"\xef\xbb\xbf").replace(b"\0", b"").lstrip(b"\xff\xfe \t\r\n")
    head = text[:1024].lower()
    if head.startswith((b"<!doctype html", b"<html", b"<head", b"<body", b"<table", b"<meta")) or (
        head.startswith((b"<?xml", b"<!--")) and b"<html" in head
    ):
        raise ImportRefused(
            "The file is a web page (HTML), as some sites name .xls or .csv; "
            f"{_SAVE}. If the page asks you to sign in, the download has failed."
        )
    if head.startswith(b"<?xml"):
        raise ImportRefused(f"The file is XML; {_SAVE}.")
    if text[:1] in (b"{", b"[") and _is_json(text):
        raise ImportRefused("The file is JSON; convert it to CSV, with one row for each person.")


def _is_json(text: bytes) -> bool:
    """Does it begin as JSON of objects does? A CSV cell may begin with a bracket, too."""
    plain = text.decode("utf-8", "replace").lstrip("[ \t\r\n")
    if not plain.startswith("{"):
        try:
            json.loads(text)
        except ValueError:
            return False
        return True
    rest = plain[1:].lstrip()
    return rest.startswith(('"', "}"))
