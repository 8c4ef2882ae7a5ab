"""``manage.py sender_status | head -1``: a reader that goes away is no error, and hides none."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable

import pytest

from tests.conftest import ROOT

ACCOUNT = "from subscribers.models import Account; Account.objects.create(slug='a', name='A')"


@pytest.mark.parametrize(
    "command",
    [
        ["sender_status"],
        ["sender_status", "--json"],
        ["ledger"],
        ["export_subscribers", "--account", "a"],
    ],
)
def test_a_reader_that_has_seen_enough_is_no_error(
    command: list[str],
    environ: dict[str, str],
    manage: Callable[..., subprocess.CompletedProcess[str]],
) -> None:
    assert manage("shell", "-c", ACCOUNT).returncode == 0
    reading, writing = os.pipe()
    os.close(reading)
    with open(writing, "wb") as closed:
        done = subprocess.run(
            [sys.executable, str(ROOT / "manage.py"), *command],
            cwd=ROOT,
            env=environ,
            stdin=subprocess.DEVNULL,
            stdout=closed,
            stderr=subprocess.PIPE,
            text=True,
            timeout=120,
        )
    assert (done.returncode, done.stderr) == (0, "")
