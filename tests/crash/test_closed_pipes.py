"""``manage.py sender_status | head -1``: a reader that goes away is no error, and hides none."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable

import pytest

from tests.conftest import ROOT

ACCOUNT = "from tests.factories import AccountFactory; AccountFactory.create(slug='a')"
BROKEN = "from tests.db.commands import campaign_with; campaign_with({'sent': 3}, audience=4)"


@pytest.mark.parametrize(
    ("command", "given", "code", "words"),
    [
        (["sender_status"], ACCOUNT, 0, ""),
        (["sender_status", "--json"], ACCOUNT, 0, ""),
        (["ledger"], ACCOUNT, 0, ""),
        (["ledger"], BROKEN, 1, "the ledger does not add up for campaign"),
        (["export_subscribers", "--account", "a"], ACCOUNT, 0, ""),
    ],
)
def test_a_reader_that_has_seen_enough_is_no_error(
    command: list[str],
    given: str,
    code: int,
    words: str,
    environ: dict[str, str],
    manage: Callable[..., subprocess.CompletedProcess[str]],
) -> None:
    made = manage("shell", "-c", given)
    assert made.returncode == 0, made.stderr
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
    assert done.returncode == code
    assert words in done.stderr
    assert "Pipe" not in done.stderr
    assert bool(done.stderr) == bool(words)


@pytest.mark.parametrize("command", ["sender_status", "ledger"])
@pytest.mark.parametrize(
    ("output", "code", "words"), [(">&-", 0, ""), (">/dev/full", 2, "The output can't be written")]
)
def test_an_output_that_takes_nothing_is_no_ledger_that_does_not_add_up(
    command: str, output: str, code: int, words: str, environ: dict[str, str]
) -> None:
    done = subprocess.run(
        ["sh", "-c", f'exec "$@" {output}', "sh", sys.executable, str(ROOT / "manage.py"), command],
        cwd=ROOT,
        env=environ,
        stdin=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        timeout=120,
    )
    assert (done.returncode, "Traceback" in done.stderr) == (code, False), done.stderr
    assert words in done.stderr
