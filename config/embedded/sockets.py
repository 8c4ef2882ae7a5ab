"""Where the server of a cluster puts its socket."""

from __future__ import annotations

import hashlib
import os
import stat
import tempfile
from pathlib import Path

from .errors import EmbeddedError
from .identity import Identity

PORT = 5432
#: ``sun_path`` holds 108 bytes with its end mark on Linux, 104 elsewhere.
SOCKET_PATH_LIMIT = 103


def socket_directory(data: Path) -> Path:
    """Where the server of ``data`` puts its socket: there, or, when the path does not fit into a
    socket address, a private directory named after it. A comma separates hosts for libpq."""
    socket = data / f".s.PGSQL.{PORT}"
    if len(os.fsencode(socket)) <= SOCKET_PATH_LIMIT and "," not in str(data):
        return data
    digest = hashlib.sha256(os.fsencode(data)).hexdigest()[:16]
    return Path(tempfile.gettempdir()) / f"sendonce-{digest}"


def prepare(data: Path, owner: Identity) -> None:
    """Make the socket directory of ``data``, where it is one of its own. Raises ``EmbeddedError``
    for one that is not ``owner``'s or ours."""
    directory = socket_directory(data)
    if directory == data:
        return
    directory.mkdir(mode=0o700, exist_ok=True)
    found = directory.lstat()
    # Anybody may have made this name in the shared directory, and would hold our socket.
    if not stat.S_ISDIR(found.st_mode) or found.st_uid not in {os.geteuid(), owner.uid}:
        raise EmbeddedError(f"{directory} belongs to somebody else: remove it, or set TMPDIR.")
    directory.chmod(0o700)
    owner.own(directory)
