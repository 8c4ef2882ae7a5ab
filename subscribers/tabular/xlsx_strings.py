"""The texts that the cells of a workbook share, kept on disk: there may be millions of them."""

from __future__ import annotations

import os
import tempfile
import weakref
from array import array
from functools import lru_cache

from .records import MAX_CELL, ImportRefused
from .xlsx_package import MAX_PART, Attributes, Package, Walk
from .xlsx_values import unescaped

#: Four bytes of memory each.
MAX_STRINGS = 8_000_000
_MAX_BYTES = MAX_PART // 2
#: Bytes that are read at once, and how many such blocks are kept: texts are mostly used in order.
_BLOCK = 16 * 1024
_BLOCKS = 256


class SharedStrings:
    """By number; an ``IndexError`` for one that there is not. A text longer than a cell may be
    is cut one character behind that."""

    def __init__(self, package: Package, name: str | None) -> None:
        self._ends = array("I", [0])
        self._parts: list[str] | None = None
        self._room = 0
        self._phonetic = False
        self._open = False
        if name is None or name not in package:
            return
        with tempfile.TemporaryFile() as self._file:
            self._read(package, name)
            self._file.flush()
            # Not a map into memory: its pages would count as the process's.
            descriptor = os.dup(self._file.fileno())
        weakref.finalize(self, os.close, descriptor)
        self._block = lru_cache(_BLOCKS)(
            lambda number: os.pread(descriptor, _BLOCK, number * _BLOCK)
        )

    def __getitem__(self, number: int) -> str:
        if number < 0:
            raise IndexError(number)
        start, end = self._ends[number], self._ends[number + 1]
        first, last = start // _BLOCK, (end - 1) // _BLOCK
        if last <= first:
            data = self._block(first)
        else:
            data = b"".join(map(self._block, range(first, last + 1)))
        return data[start - first * _BLOCK : end - first * _BLOCK].decode()

    def _read(self, package: Package, name: str) -> None:
        walk = Walk(start=self._started, end=self._ended, text=self._text)
        with package.open(name, _MAX_BYTES) as stream:
            for _ in walk.through(stream):
                pass

    def _started(self, element: str, attributes: Attributes) -> None:
        if element == "si":
            self._parts, self._room = [], MAX_CELL + 1
        elif element == "rPh":
            self._phonetic = True
        elif element == "t":
            self._open = not self._phonetic

    def _text(self, text: str) -> None:
        if self._open and self._room > 0 and self._parts is not None:
            self._parts.append(text[: self._room])
            self._room -= len(text)

    def _ended(self, element: str) -> None:
        if element == "t":
            self._open = False
        elif element == "rPh":
            self._phonetic = False
        elif element == "si" and self._parts is not None:
            data = unescaped("".join(self._parts)).encode()
            self._file.write(data)
            self._ends.append(self._ends[-1] + len(data))
            self._parts = None
            if len(self._ends) > MAX_STRINGS:
                raise ImportRefused(
                    f"The .xlsx file holds more than {MAX_STRINGS} different texts; "
                    "save the list as CSV (UTF-8)."
                )
