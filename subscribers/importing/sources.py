"""Where an import's file comes from: a path, a stream, or the database."""

from __future__ import annotations

import hashlib
import io
import shutil
import tempfile
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from pathlib import Path
from typing import Any, BinaryIO, cast

from django.db.models.functions import Length

from ..models import ImportChunk

#: Bytes of a piece of an uploaded file.
PIECE = 512 * 1024


def digest_of(binary: BinaryIO) -> str:
    """SHA-256 of a seekable file, which is at its beginning afterwards."""
    binary.seek(0)
    found = hashlib.sha256()
    while data := binary.read(1024 * 1024):
        found.update(data)
    binary.seek(0)
    return found.hexdigest()


@contextmanager
def opened(source: Path | BinaryIO) -> Iterator[BinaryIO]:
    """A seekable file: the path's, the given one, or, of a stream, a copy on disk."""
    if isinstance(source, Path):
        with source.open("rb") as file:
            if file.seekable():
                yield file
            else:
                yield from _spooled(file)
    elif source.seekable():
        yield source
    else:
        yield from _spooled(source)


def _spooled(stream: BinaryIO) -> Iterator[BinaryIO]:
    with tempfile.TemporaryFile() as copy:
        shutil.copyfileobj(stream, copy, PIECE)
        copy.seek(0)
        yield cast(BinaryIO, copy)


def pieces(parts: Iterable[bytes]) -> Iterator[bytes]:
    """The same bytes, in pieces of ``PIECE``, the last one shorter."""
    waiting = bytearray()
    for part in parts:
        waiting += part
        while len(waiting) >= PIECE:
            yield bytes(waiting[:PIECE])
            del waiting[:PIECE]
    if waiting:
        yield bytes(waiting)


def uploaded(job_id: int) -> AbstractContextManager[BinaryIO]:
    """An uploaded file, read from the database piece by piece."""
    return closing(cast(BinaryIO, io.BufferedReader(_Uploaded(job_id), buffer_size=64 * 1024)))


class _Uploaded(io.RawIOBase):
    def __init__(self, job_id: int) -> None:
        self._job_id = job_id
        self._numbers: list[int] = []
        #: Where each piece begins, and the end.
        self._starts = [0]
        sizes = ImportChunk.objects.filter(job_id=job_id).annotate(size=Length("data"))
        for number, size in sizes.order_by("number").values_list("number", "size"):
            self._numbers.append(number)
            self._starts.append(self._starts[-1] + size)
        self._position = 0
        self._piece = -1
        self._data: Any = b""

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._position

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        base = (0, self._position, self._starts[-1])[whence]
        if base + offset < 0:
            raise ValueError("a position before the beginning of the file")
        self._position = base + offset
        return self._position

    def readinto(self, buffer: Any) -> int:
        if self._position >= self._starts[-1]:
            return 0
        piece = bisect_right(self._starts, self._position) - 1
        if piece != self._piece:
            chunk = ImportChunk.objects.get(job_id=self._job_id, number=self._numbers[piece])
            self._piece, self._data = piece, memoryview(chunk.data)
        start = self._position - self._starts[piece]
        part = self._data[start : start + len(buffer)]
        buffer[: len(part)] = part
        self._position += len(part)
        return len(part)
