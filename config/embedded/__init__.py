"""PostgreSQL out of a wheel, for a machine that has none: demos, tests, one host.

A Django database backend (``ENGINE = "config.embedded"``) over a cluster in a directory of its
own. The server starts with the first connection that finds none, is shared by every process
that names the same directory, and outlives them all; ``python -m config.embedded stop`` ends it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from .cluster import DATABASE, USER
from .sockets import PORT, socket_directory


def database_settings(data: Path, *, name: str = DATABASE) -> dict[str, Any]:
    """The ``DATABASES`` entry for the cluster in ``data``; touches nothing on disk."""
    return {
        "ENGINE": "config.embedded",
        "NAME": name,
        "USER": USER,
        "HOST": str(socket_directory(data)),
        "PORT": str(PORT),
        "OPTIONS": {"data_directory": str(data)},
    }
