"""In which encoding a text file is written.

A byte-order mark tells; else UTF-8 is what decodes as UTF-8 from the first byte to the last, which
other text does not by accident. What is neither is guessed, and the guess is told.
"""

from __future__ import annotations

import codecs
import re
from collections import Counter
from collections.abc import Iterator
from typing import BinaryIO

from .records import ImportRefused

_BLOCK = 1 << 20

# Longest first: UTF-32's little-endian mark begins with UTF-16's.
_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
#: Codecs of Python's that are no encodings of files.
_NO_FILES = frozenset({"idna", "punycode", "raw_unicode_escape", "unicode_escape", "undefined"})
_NAMES = {
    "cp1251": "Windows-1251 (Cyrillic)",
    "cp1252": "Windows-1252 (Western European)",
    "cp850": "code page 850 (MS-DOS)",
    "mac_roman": "Mac OS Roman",
    "utf-16-be": "UTF-16, big-endian",
    "utf-16-le": "UTF-16, little-endian",
}
_ASCII = bytes(range(128))
#: In Windows-1251, with Yo.
_CYRILLIC_LETTERS = bytes([0xA8, 0xB8, *range(0xC0, 0x100)])
_RUN = re.compile(rb"[\x80-\xff]{3,}")
_MULTIBYTE = re.compile(rb"[\xc3-\xf4][\x80-\xbf]{1,3}")
#: A byte that is not ASCII, with its neighbours.
_PLACE = re.compile(rb"(?s)(?<=(.))([\x80-\xff])(?=(.))")
#: So many of them tell an encoding.
_ENOUGH = 50_000
#: Letters of Western European names, as they stand in texts; the rest is rare there.
_LETTERS = frozenset("àáâãäåæçèéêëìíîïñòóôõöøùúûüýÿßœšžÀÁÂÄÅÆÇÈÉÊËÍÎÑÓÔÖØÙÚÛÜŒŠŽ")
_SIGNS = frozenset("\u2018\u2019\u201c\u201d\u2013\u2014\u2026\u00a0\u00ab\u00bb\u20ac°ºª´·")


def find_encoding(binary: BinaryIO, given: str = "") -> tuple[str, list[str]]:
    """``(codec, notes)`` for a seekable file, which is at its beginning afterwards.

    A byte-order mark wins over what was ``given``. Raises ``ImportRefused``: a name that is no
    text encoding, or without one a file of which the encoding can't be told; with the line.
    """
    binary.seek(0)
    start = binary.read(4096)
    binary.seek(0)
    codec = _given(given) if given else ""
    for mark, marked in _MARKS:
        if start.startswith(mark):
            if codec and not codec.startswith(marked.removesuffix("-sig")):
                return marked, [f"Read as {shown(marked)}, as its byte-order mark says."]
            return marked, []
    if codec:
        return codec, []
    wide = _wide(start)
    if wide:
        return wide, [f"Read as {shown(wide)}, without a byte-order mark."]
    try:
        wrong = _first_wrong_byte(binary)
        if wrong is None:
            return "utf-8", []
        guess = _guess(binary, wrong)
    finally:
        binary.seek(0)
    note = (
        f"Read as {shown(guess)}: the file is not UTF-8, and this is a guess. "
        "If names look wrong in the preview, choose its encoding."
    )
    return guess, [note]


def shown(codec: str) -> str:
    """The encoding's name as people know it."""
    return _NAMES.get(codec, codec.upper().removesuffix("-SIG"))


def _given(name: str) -> str:
    try:
        found = codecs.lookup(name).name
        "".encode(name)  # refuses bytes-to-bytes codecs such as hex
    except (LookupError, ValueError):
        found = "undefined"
    if found.replace("-", "_") in _NO_FILES:
        raise ImportRefused(f"There is no text encoding named {name[:60]!r}.")
    return found


def _wide(start: bytes) -> str:
    """UTF-16 without a mark: every second byte of plain letters is zero."""
    if b"\0" not in start:
        return ""
    even, odd = start[0::2].count(0), start[1::2].count(0)
    half = len(start) // 2
    if odd > half * 0.3 and even <= half * 0.01:
        return "utf-16-le"
    if even > half * 0.3 and odd <= half * 0.01:
        return "utf-16-be"
    return ""


def _first_wrong_byte(binary: BinaryIO) -> int | None:
    """Where the file stops to be UTF-8; ``None``: nowhere."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    before = 0
    while True:
        block = binary.read(_BLOCK)
        pending = len(decoder.getstate()[0])
        try:
            decoder.decode(block, final=not block)
        except UnicodeDecodeError as error:
            return before - pending + error.start
        if not block:
            return None
        before += len(block)


def _guess(binary: BinaryIO, wrong: int) -> str:
    bytes_seen: set[int] = set()
    places: Counter[tuple[bytes, bytes, bytes]] = Counter()
    total = multibyte = runs = cyrillic = 0
    for block in _blocks(binary):
        if b"\0" in block:
            raise ImportRefused(
                "The file holds NUL characters: it is no text file, or one in an encoding that "
                "must be named."
            )
        high = block.translate(None, _ASCII)
        bytes_seen.update(high)
        total += len(high)
        cyrillic += len(high.translate(None, _CYRILLIC_LETTERS))
        multibyte += sum(map(len, _MULTIBYTE.findall(block)))
        runs += sum(map(len, _RUN.findall(block)))
        if places.total() < _ENOUGH:
            places.update(_PLACE.findall(block))
    if multibyte > total * 0.7 and total >= 8:
        raise ImportRefused(
            f"Line {_line_of(binary, wrong)} is not UTF-8, though other lines are; "
            "mend that line, or name the file's encoding if it has another."
        )
    if runs > total * 0.5 and total >= 8:
        # Not Western: there, letters that are not ASCII stand between others that are.
        if cyrillic < total * 0.03:
            return "cp1251"
        raise ImportRefused(
            f"Line {_line_of(binary, wrong)} is not UTF-8, and which encoding the file has can't "
            "be told; name it (for example Shift_JIS, GB18030 or Windows-1250), or save the "
            "file as UTF-8."
        )
    possible = [codec for codec in ("cp1252", "mac_roman", "cp850") if _decodes(codec, bytes_seen)]
    # Of equals the first: the others are rare.
    return max(possible, key=lambda codec: _score(codec, places))


def _decodes(codec: str, found: set[int]) -> bool:
    try:
        bytes(found).decode(codec)
    except UnicodeDecodeError:
        return False
    return True


def _score(codec: str, places: Counter[tuple[bytes, bytes, bytes]]) -> int:
    """How often the text makes sense in this encoding, less how often it does not."""
    score = 0
    for (before, byte, after), times in places.items():
        one, character, two = (part.decode(codec, "replace") for part in (before, byte, after))
        if character in _LETTERS:
            # A capital begins a word, or stands among capitals.
            capital = not one.isalpha() or (one.isupper() and not two.islower())
            sense = character.islower() or capital
        else:
            inside = one.isalpha() and two.isalpha()
            sense = character in _SIGNS and (character == "\u2019" or not inside)
        score += times if sense else -times
    return score


def _line_of(binary: BinaryIO, offset: int) -> int:
    lines, left = 1, offset
    for block in _blocks(binary):
        part = block[:left]
        # A carriage return alone ends a line too.
        lines += part.count(b"\n") + part.count(b"\r") - part.count(b"\r\n")
        left -= len(part)
        if not left:
            break
    return lines


def _blocks(binary: BinaryIO) -> Iterator[bytes]:
    binary.seek(0)
    return iter(lambda: binary.read(_BLOCK), b"")
