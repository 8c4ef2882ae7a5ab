"""Pictures as people upload them, made without the library that the code under test reads with."""

from __future__ import annotations

import struct
import zlib


def _chunk(kind: bytes, data: bytes) -> bytes:
    check = zlib.crc32(kind + data)
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", check)


def png(width: int, height: int, *, rows: int | None = None) -> bytes:
    """A black picture; ``rows``: of how many there are pixels, by default all."""
    header = struct.pack(">IIBBBBB", width, height, 1, 0, 0, 0, 0)
    line = b"\0" * (1 + (width + 7) // 8)
    pixels = zlib.compress(line * (height if rows is None else rows), 9)
    return (
        b"\x89PNG\r\n\x1a\n"
        + _chunk(b"IHDR", header)
        + _chunk(b"IDAT", pixels)
        + _chunk(b"IEND", b"")
    )


def gif(width: int, height: int) -> bytes:
    """A one-pixel picture on a screen of this size."""
    screen = struct.pack("<HH", width, height)
    return (
        b"GIF89a" + screen + b"\x80\x00\x00\x00\x00\x00\xff\xff\xff"
        b",\x00\x00\x00\x00\x01\x00\x01\x00\x00\x02\x02D\x01\x00;"
    )
