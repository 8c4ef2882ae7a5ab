"""The messages themselves, a file each, for somebody who wants to read what was sent."""

from __future__ import annotations

import re
from pathlib import Path

_NUMBER = re.compile(r"(\d+)-.*\.eml", re.DOTALL)
_UNSAFE = re.compile(r"[^A-Za-z0-9@._+=-]")
_LONGEST = 100


class Folder:
    """Files ``<number>-<recipient>.eml`` in ``path``, numbered on from those that are there.

    The folder is made if need be. Raises ``OSError`` when it can't be.
    """

    def __init__(self, path: str) -> None:
        self.path = Path(path)
        self.path.mkdir(parents=True, exist_ok=True)
        found = (_NUMBER.fullmatch(file.name) for file in self.path.iterdir())
        self._last = max((int(match[1]) for match in found if match), default=0)

    def keep(self, recipient: str, data: bytes) -> Path:
        """Write a message; never over another file. Raises ``OSError``."""
        self._last += 1
        file = self.path / f"{self._last}-{safe_name(recipient)}.eml"
        with file.open("xb") as stream:
            stream.write(data)
        return file


def safe_name(recipient: str) -> str:
    """The address as part of a file name: no separators, nothing but printable ASCII."""
    return _UNSAFE.sub("_", recipient)[:_LONGEST]
