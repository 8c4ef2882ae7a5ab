"""The demo, small, as somebody who has just cloned it sees it."""

from __future__ import annotations

import contextlib
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import psutil
import psycopg
import pytest

from tests.conftest import ROOT

Manage = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def demo_environ(environ: dict[str, str], tmp_path: Path) -> dict[str, str]:
    return {**environ, "DEBUG": "true", "TMPDIR": str(tmp_path)}


def test_everybody_is_accounted_for_and_nobody_got_two(
    manage: Manage, demo_environ: dict[str, str], database_url: str, tmp_path: Path
) -> None:
    ended = manage(
        "demo", "--people", "120", "--no-serve", extra=demo_environ, timeout=250
    )  # fmt: skip
    assert ended.returncode == 0, ended.stdout + ended.stderr
    out = ended.stdout
    assert ended.stderr == ""
    facts = {
        name.strip(): int(number.replace(",", ""))
        for name, number in re.findall(r"^  (.+?)  +([\d,]+)  \S", out, re.MULTILINE)
    }
    assert facts["duplicates"] == 0
    assert facts["people in the audience"] == 120
    with psycopg.connect(database_url) as connection:
        counted: dict[str, int] = dict(
            connection.execute(
                "SELECT replace(status, '_', ' '), count(*) FROM sendonce_sending_send GROUP BY 1"
            ).fetchall()
        )
        (transport,) = connection.execute(
            "SELECT transport FROM sendonce_subscribers_account"
        ).fetchone() or ("",)
    assert {name: facts[name] for name in counted} == counted
    assert sum(counted.values()) == 120
    assert counted["bounced"] >= 1
    assert counted["in doubt"] >= 1
    assert (
        counted["sent"] <= facts["accepted by the server"] <= counted["sent"] + counted["in doubt"]
    )
    assert "kill -9" in out
    assert "120 = " in out
    assert "PASSED" in out
    assert re.search(r"^  demo-approver +\w+-\w+-\w+ ", out, re.MULTILINE)
    assert transport == "default"
    assert list(tmp_path.glob("sendonce-demo-*")) == []


def test_an_interrupted_demo_leaves_no_process_and_the_next_cleans_up(
    manage: Manage, demo_environ: dict[str, str]
) -> None:
    for number in (signal.SIGINT, signal.SIGTERM):
        with subprocess.Popen(
            [sys.executable, str(ROOT / "manage.py"), "demo", "--people", "300", "--no-serve"],
            cwd=ROOT,
            env=demo_environ,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            # A shell starts what it runs in the background with SIGINT ignored.
            preexec_fn=_heed_interrupts,
        ) as demo:
            _interrupt(demo, number)
    ended = manage("ledger", extra=demo_environ)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert ended.stdout.count("canceled") >= 1, "the second demo canceled what the first left"


def _heed_interrupts() -> None:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def _interrupt(demo: subprocess.Popen[str], number: signal.Signals) -> None:
    """Send the signal once something was sent; all of them must end, without a traceback."""
    assert demo.stdout is not None
    # Whatever goes wrong, the pipe closes and the test goes on.
    watchdog = threading.Timer(120, demo.kill)
    watchdog.start()
    said = ""
    for line in demo.stdout:
        said += line
        if " of 300 done" in line:
            break
    children = psutil.Process(demo.pid).children(recursive=True)
    assert len(children) == 3, said
    demo.send_signal(number)
    said += demo.stdout.read()
    code = demo.wait()
    watchdog.cancel()
    _, alive = psutil.wait_procs(children, timeout=30)
    for child in alive:
        with contextlib.suppress(psutil.NoSuchProcess):
            child.kill()
    assert alive == []
    assert code == 128 + number, said
    assert "Traceback" not in said


@pytest.mark.parametrize(
    ("arguments", "debug", "words"),
    [
        (["--people", "3"], "true", "--people must be 20 to 100,000, not 3"),
        (["--people", "999999999"], "true", "--people must be"),
        ([], "false", "set DEBUG=true"),
    ],
)
def test_it_refuses_with_one_line(
    manage: Manage, demo_environ: dict[str, str], arguments: list[str], debug: str, words: str
) -> None:
    ended = manage("demo", "--no-serve", *arguments, extra={**demo_environ, "DEBUG": debug})
    assert ended.returncode == 2
    assert words in ended.stderr
    assert len(ended.stderr.splitlines()) == 1
    assert ended.stdout == ""


def test_it_does_not_run_beside_another_sender(
    manage: Manage, environ: dict[str, str], demo_environ: dict[str, str]
) -> None:
    with subprocess.Popen(
        [sys.executable, str(ROOT / "manage.py"), "run_sender"],
        cwd=ROOT,
        env={**environ, "EMAIL_URL": "smtp://127.0.0.1:1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as sender:
        try:
            assert sender.stdout is not None
            assert "sender_started" in sender.stdout.readline()
            ended = manage("demo", "--no-serve", extra=demo_environ)
        finally:
            sender.terminate()
    assert ended.returncode == 2, ended.stdout
    assert "a sender runs already" in ended.stderr
