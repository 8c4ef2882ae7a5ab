"""Settings of the test run: the project's own, in an environment that the shell cannot change.

Without ``DATABASE_URL`` the tests have an embedded cluster of their own, made for this run in
``var/tests`` and gone after it, so that two runs at once do not meet. With it they use that
server, and need the right to create databases.
"""

from __future__ import annotations

import os
import secrets
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

if not os.environ.get("DATABASE_URL"):
    # The first process of the run names the directory, its xdist workers inherit the name.
    if "TEST_CLUSTER" not in os.environ:
        os.environ["TEST_CLUSTER"] = str(VAR_DIR / "tests" / f"run-{secrets.token_hex(4)}")
    DATABASES["default"].update(
        embedded.database_settings(Path(os.environ["TEST_CLUSTER"]) / "postgres")
    )

# Two hashings per login add seconds to a suite, and prove nothing here.
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
# Looked up when asked for, not listed anew for every test client.
WHITENOISE_AUTOREFRESH = True
