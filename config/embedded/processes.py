"""Which processes belong to a data directory: a server is known by its working directory.

A process id alone proves nothing, the system hands it out again. On Linux ``/proc`` tells the
directory, elsewhere ``lsof`` does.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Collection
from pathlib import Path

PROC = Path("/proc")
HAVE_PROC = (PROC / "self" / "cwd").exists()
SERVER = frozenset({"postgres"})
MAKERS = frozenset({"postgres", "initdb"})


def is_alive(pid: int) -> bool:
    """Whether any process, a zombie too, has ``pid``: what PostgreSQL itself looks at."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def belongs(pid: int, data: Path, programs: Collection[str] = SERVER) -> bool:
    """Whether ``pid`` is a running PostgreSQL process of the cluster in ``data``."""
    if not HAVE_PROC:
        return _listed(pid, data)
    try:
        where, there = os.stat(PROC / str(pid) / "cwd"), os.stat(data)
        program = os.path.basename(os.readlink(PROC / str(pid) / "exe"))
    except OSError:
        return False
    # A shell or an editor may stand in the directory too. A removed wheel: "postgres (deleted)".
    return os.path.samestat(where, there) and program.split()[0] in programs


def members(data: Path, programs: Collection[str] = SERVER) -> list[int]:
    """Every running PostgreSQL process of the cluster; empty where there is no ``/proc``."""
    if not HAVE_PROC:
        return []
    pids = (int(entry.name) for entry in PROC.iterdir() if entry.name.isdigit())
    return [pid for pid in pids if belongs(pid, data, programs)]


def _listed(pid: int, data: Path) -> bool:
    command = ["lsof", "-a", "-w", "-c", "postgres", "-d", "cwd", "-F", "n", "-p", str(pid)]
    try:
        output = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=30
        ).stdout
    except (OSError, subprocess.TimeoutExpired):
        # Not knowing, believe the pid file: a second server on one directory would be worse.
        return is_alive(pid)
    directories = [line[1:] for line in output.splitlines() if line.startswith("n")]
    return any(os.path.samefile(directory, data) for directory in directories)
