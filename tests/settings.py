"""Settings of the test run: the project's own, in an environment that the shell cannot change.

Without ``DATABASE_URL`` the tests have an embedded cluster of their own, made for this run and
gone after it, so that two runs at once do not meet. With it they use that server, and need the
right to create databases.

The clusters of a run are in memory where there is plenty: the tests make and remove hundreds of
thousands of files, and a file system on a disk spends more time on that than on what is in them.
Elsewhere they are in ``var/tests``.
"""

from __future__ import annotations

import os
import secrets
import shutil
from pathlib import Path

for _name in list(os.environ):
    if _name.startswith("SENDONCE_") or _name in {
        "DEBUG",
        "EMAIL_URL",
        "ALLOWED_HOSTS",
        "ANYMAIL",
        "ANYMAIL_WEBHOOK_SECRET",
    }:
        del os.environ[_name]
os.environ["SECRET_KEY"] = "only-for-tests-0123456789-0123456789-0123456789"

from config import embedded  # noqa: E402
from config.settings import *  # noqa: E402, F403
from config.settings import DATABASES, VAR_DIR  # noqa: E402

MEMORY = Path("/dev/shm")
RUN_PREFIX = "sendonce-tests-"
_PLENTY = 6 << 30


def _memory_is_plenty() -> bool:
    """For a run's clusters, one to two gigabytes of them, and for all the rest of it."""
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
        available = next(int(line.split()[1]) for line in lines if line.startswith("MemAvailable:"))
        room = shutil.disk_usage(MEMORY).free
    except (OSError, StopIteration):
        return False
    return os.access(MEMORY, os.W_OK) and min(available << 10, room) > _PLENTY


if not os.environ.get("DATABASE_URL"):
    # The first process of the run names the directory, its xdist workers inherit the name.
    if "TEST_CLUSTER" not in os.environ:
        _parent = MEMORY if _memory_is_plenty() else VAR_DIR / "tests"
        os.environ["TEST_CLUSTER"] = str(_parent / f"{RUN_PREFIX}{secrets.token_hex(4)}")
    DATABASES["default"].update(
        embedded.database_settings(Path(os.environ["TEST_CLUSTER"]) / "postgres")
    )

# Two hashings per login add seconds to a suite, and prove nothing here.
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
# Looked up when asked for, not listed anew for every test client.
WHITENOISE_AUTOREFRESH = True
