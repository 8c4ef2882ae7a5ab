"""A picture's file without what cameras and editors wrote into it: where and when it was taken,
by whom and with what, an earlier version in small.

Nothing is decoded and encoded anew: what can be seen, frames of animations among it, stays bit by
bit. Each format's file is a row of parts; those are kept that say how the picture looks, and no
other, known or not. What stands behind its end is left out, too: phones put videos there.
"""

from __future__ import annotations

import re
import struct
import zlib
from collections.abc import Callable, Iterator

#: A part that a program shows the picture wrongly without: which side is up (Exif 2.32, 4.6.4 A).
ORIENTATION = 0x0112


class Unreadable(ValueError):
    """The file is not built as its format says."""


def without_metadata(data: bytes, kind: str, orientation: int = 1) -> bytes:
    """The file of a ``kind`` (``PNG``, ``JPEG``, ``GIF``, ``WEBP``) with only what its look needs.

    ``orientation``: 2 to 8 stays in it, as the only thing of Exif. Raises ``Unreadable``.
    """
    try:
        return _FORMATS[kind](data, _exif(orientation) if 2 <= orientation <= 8 else b"")
    except (IndexError, struct.error) as error:
        raise Unreadable(f"this {kind} ends before its end") from error


def _exif(orientation: int) -> bytes:
    """A TIFF of one field, a 16-bit number (TIFF 6.0, section 2)."""
    return b"II*\0" + struct.pack("<IHHHIHHI", 8, 1, ORIENTATION, 3, 1, orientation, 0, 0)


# --- JPEG (ITU-T T.81, annex B) ------------------------------------------------------------------

_EOI, _SOS, _COM = 0xD9, 0xDA, 0xFE
_APP = range(0xE0, 0xF0)
#: How the colours are meant: JFIF, a colour profile, Adobe's transform.
_KEPT_APP = {0xE0: b"JFIF\0", 0xE2: b"ICC_PROFILE\0", 0xEE: b"Adobe"}
#: The bits of a scan have FF only before 00 or a restart (D0 to D7); more FF may fill a gap.
_MARKER = re.compile(rb"\xff([^\x00\x01\xd0-\xd7\xff])")


def _jpeg(data: bytes, exif: bytes) -> bytes:
    if data[:2] != b"\xff\xd8":
        raise Unreadable("no JPEG")
    jfif, parts = b"", []
    if exif:
        body = b"Exif\0\0" + exif
        parts.append(b"\xff\xe1" + struct.pack(">H", len(body) + 2) + body)
    for marker, part in _segments(data):
        if marker in _APP:
            if not part[4:].startswith(_KEPT_APP.get(marker, b"\xff")):
                continue
            if marker == 0xE0:
                jfif = jfif or _without_thumbnail(part)
            else:
                parts.append(part)
        elif marker != _COM:
            parts.append(part)
    # JFIF's own goes before all else.
    return b"".join((data[:2], jfif, *parts))


def _without_thumbnail(jfif: bytes) -> bytes:
    """Version and density alone: an earlier version of the picture in small may follow (JFIF 1.02,
    page 5). A shorter one is none to programs either."""
    if len(jfif) < 16:
        return b""
    return b"\xff\xe0\x00\x10" + jfif[4:16] + b"\0\0"


def _segments(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Each marker with what belongs to it, the bits of a scan to its header."""
    found = _MARKER.search(data, 2)
    while found:
        at, marker = found.start(), found[1][0]
        if marker == _EOI:
            yield marker, found[0]
            return
        end = at + 2 + struct.unpack_from(">H", data, at + 2)[0]
        found = _MARKER.search(data, end)
        if marker == _SOS:
            end = found.start() if found else len(data)
        yield marker, data[at:end]


# --- PNG (PNG, third edition, section 11; APNG) --------------------------------------------------

_PNG = b"\x89PNG\r\n\x1a\n"
_PNG_KEPT = frozenset(
    b"IHDR PLTE IDAT IEND tRNS bKGD cHRM gAMA iCCP sBIT sRGB cICP mDCV cLLI pHYs "
    b"acTL fcTL fdAT".split()
)


def _png(data: bytes, exif: bytes) -> bytes:
    if data[:8] != _PNG:
        raise Unreadable("no PNG")
    parts, at = [_PNG], 8
    while at < len(data):
        length, name = struct.unpack_from(">I4s", data, at)
        end = at + 12 + length
        if end > len(data):
            raise Unreadable("a PNG's chunk is longer than the file")
        if name in _PNG_KEPT:
            parts.append(data[at:end])
        if name == b"IHDR" and exif:
            check = zlib.crc32(b"eXIf" + exif)
            parts.append(struct.pack(">I", len(exif)) + b"eXIf" + exif + struct.pack(">I", check))
        at = end
        if name == b"IEND":
            break
    return b"".join(parts)


# --- WebP (RFC 9649, section 2) ------------------------------------------------------------------

_WEBP_KEPT = frozenset((b"VP8X", b"ICCP", b"ANIM", b"ANMF", b"ALPH", b"VP8 ", b"VP8L"))
#: Flags of VP8X.
_HAS_EXIF, _HAS_XMP = 0x08, 0x04


def _webp(data: bytes, exif: bytes) -> bytes:
    if data[:4] != b"RIFF" or data[8:12] != b"WEBP":
        raise Unreadable("no WebP")
    parts: list[tuple[bytes, bytes]] = []
    at = 12
    stop = min(len(data), 8 + struct.unpack_from("<I", data, 4)[0])
    while at < stop:
        name, length = struct.unpack_from("<4sI", data, at)
        end = at + 8 + length + length % 2
        if name in _WEBP_KEPT:
            parts.append((name, data[at + 8 : at + 8 + length]))
        at = end
    if parts and parts[0][0] == b"VP8X":
        # Without it a file has no place for Exif.
        flags = parts[0][1][0] & ~(_HAS_EXIF | _HAS_XMP)
        if exif:
            flags |= _HAS_EXIF
            parts.append((b"EXIF", exif))
        parts[0] = (b"VP8X", bytes((flags,)) + parts[0][1][1:])
    body = b"WEBP" + b"".join(
        name + struct.pack("<I", len(part)) + part + b"\0" * (len(part) % 2) for name, part in parts
    )
    return b"RIFF" + struct.pack("<I", len(body)) + body


# --- GIF (GIF89a) --------------------------------------------------------------------------------

_IMAGE, _EXTENSION, _TRAILER = 0x2C, 0x21, 0x3B
_COMMENT, _APPLICATION = 0xFE, 0xFF
#: How often it repeats, and its colour profile.
_GIF_KEPT = (b"NETSCAPE2.0", b"ANIMEXTS1.0", b"ICCRGBG1012")


def _gif(data: bytes, exif: bytes) -> bytes:
    if data[:6] not in (b"GIF87a", b"GIF89a"):
        raise Unreadable("no GIF")
    at = 13 + _colours(data[10])
    parts = [data[:at]]
    while at < len(data) and data[at] != _TRAILER:
        kept = True
        if data[at] == _IMAGE:
            end = _behind_blocks(data, at + 10 + _colours(data[at + 9]) + 1)
        elif data[at] == _EXTENSION:
            end = _behind_blocks(data, at + 2)
            is_application = data[at + 1] == _APPLICATION
            kept = not is_application or data[at + 3 : at + 14] in _GIF_KEPT
            kept = kept and data[at + 1] != _COMMENT
        else:
            raise Unreadable("a GIF's block begins otherwise")
        if kept:
            parts.append(data[at:end])
        at = end
    return b"".join((*parts, b"\x3b"))


def _colours(flags: int) -> int:
    """Bytes of the table of colours that these flags announce."""
    return 3 * 2 ** ((flags & 7) + 1) if flags & 0x80 else 0


def _behind_blocks(data: bytes, at: int) -> int:
    while data[at]:
        at += data[at] + 1
    return at + 1


_FORMATS: dict[str, Callable[[bytes, bytes], bytes]] = {
    "JPEG": _jpeg,
    "PNG": _png,
    "WEBP": _webp,
    "GIF": _gif,
}
