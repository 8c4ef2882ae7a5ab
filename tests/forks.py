"""Processes that start in a tenth of the time: forks of one that has imported everything.

A start of Django costs a second of CPU, nearly all of it for imports, and the tests make hundreds.
``python -m tests.forks`` sets Django up once and forgets the settings that this took; every start
is a fork of it with arguments, an environment, signals and an output of its own. It reads its
settings, runs the system checks and opens its connections as any new process does.
``tests/unit/test_forks.py`` compares the two. What is woven into a process from outside, as in
``tests.crash.killable``, has to replace a name in the module that calls it: that is loaded.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import json
import os
import runpy
import select
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import django
from django.conf import settings
from django.db import DEFAULT_DB_ALIAS, connections
from django.urls import get_resolver
from django.utils.functional import empty

ROOT = Path(__file__).resolve().parent.parent

#: What the setup does not import, and most processes use.
IMPORTED = [
    "django.contrib.postgres.serializers",
    "django.db.migrations.autodetector",
    "django.db.migrations.writer",
    "django.utils.translation.reloader",
    "manage",
    "sending.management.commands.run_sender",
]
#: Settings that no start has: where they show, the process has not read its own.
SETTINGS = {
    "DATABASE_URL": "postgresql://nobody@127.0.0.1:1/of-the-process-that-is-forked",
    "SECRET_KEY": "of-the-process-that-is-forked-0123456789-0123456789",
    "DJANGO_SETTINGS_MODULE": "config.settings",
}


class Forked:
    """A started process, with as much of ``subprocess.Popen`` as the tests use."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.returncode: int | None = None
        self.ended = threading.Event()

    def poll(self) -> int | None:
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        if not self.ended.wait(timeout):
            raise subprocess.TimeoutExpired(f"the fork {self.pid}", timeout or 0)
        assert self.returncode is not None
        return self.returncode

    def send_signal(self, number: int) -> None:
        if self.returncode is None:
            # It may have ended, and been waited for, at this moment.
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


class Forks:
    """The process that is forked. It starts with the first ``start``."""

    def __init__(self) -> None:
        self.process: subprocess.Popen[bytes] | None = None
        self._reader: threading.Thread | None = None
        self._started: SimpleQueue[Forked | None] = SimpleQueue()

    def start(
        self, command: list[str], *, env: dict[str, str], out: Path, err: Path | None = None
    ) -> Forked:
        """Run ``-m MODULE ...`` or ``FILE ...`` in the project's directory; what it says is
        appended to ``out``, and its errors to ``err`` if that is given."""
        # These are for the interpreter, which is there already.
        assert {name for name in env if name.startswith("PYTHON")} <= {"PYTHONUNBUFFERED"}
        if self.process is None:
            self._begin(env)
        assert self.process is not None
        assert self.process.stdin is not None
        order = {"command": command, "env": env, "out": str(out), "err": str(err or out)}
        self.process.stdin.write(json.dumps(order).encode() + b"\n")
        self.process.stdin.flush()
        made = self._started.get(timeout=120)
        assert made is not None, "the process to be forked has ended"
        return made

    def manage(
        self, *arguments: str, env: dict[str, str], timeout: float = 120
    ) -> subprocess.CompletedProcess[str]:
        """``manage.py`` to its end."""
        command = [str(ROOT / "manage.py"), *arguments]
        with tempfile.TemporaryDirectory() as folder:
            out, err = Path(folder, "out"), Path(folder, "err")
            process = self.start(command, env=env, out=out, err=err)
            try:
                code = process.wait(timeout)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
                raise
            said = out.read_text("utf-8"), err.read_text("utf-8")
            return subprocess.CompletedProcess(command, code, *said)

    def stop(self) -> None:
        if self.process is not None and self._reader is not None:
            assert self.process.stdin is not None
            assert self.process.stdout is not None
            self.process.stdin.close()
            self.process.wait(30)
            # Forks that a test has left running do not have this pipe, so it ends.
            self._reader.join(30)
            self.process.stdout.close()

    def _begin(self, env: dict[str, str]) -> None:
        names = ("PATH", "HOME", "TMPDIR", "LC_ALL", "PYTHONUNBUFFERED")
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.forks"],
            cwd=ROOT,
            env={name: env[name] for name in names if name in env},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        self._reader = threading.Thread(target=self._read, args=(self.process,), daemon=True)
        self._reader.start()

    def _read(self, process: subprocess.Popen[bytes]) -> None:
        running: dict[int, Forked] = {}
        assert process.stdout is not None
        for line in process.stdout:
            told = json.loads(line)
            if told["code"] is None:
                made = running[told["pid"]] = Forked(told["pid"])
                self._started.put(made)
            else:
                ended = running.pop(told["pid"])
                ended.returncode = told["code"]
                ended.ended.set()
        self._started.put(None)


def set_up_and_forget() -> None:
    """All that starts have in common, and none of the settings: they are read when a start first
    asks for one. No connection is open after it, and no thread runs."""
    os.environ.update(SETTINGS)
    django.setup()
    # What the checks of the URLs need; the admin's are most of it.
    get_resolver().reverse_dict  # noqa: B018
    for name in IMPORTED:
        importlib.import_module(name)
    del connections[DEFAULT_DB_ALIAS]  # models ask it how long a name may be
    del connections.settings
    connections.__init__()  # type: ignore[misc]
    settings._wrapped = empty
    del sys.modules[SETTINGS["DJANGO_SETTINGS_MODULE"]]


def serve() -> dict[str, Any] | None:
    """Fork for every order, and tell of every end. Returns the order in the fork, and None in the
    process itself when nobody can give orders any more."""
    set_up_and_forget()
    gc.collect()
    gc.freeze()
    tell = os.dup(sys.stdout.fileno())
    woken, wake = os.pipe()
    os.set_blocking(wake, False)
    # A fork of it has the handlers that a new process would have.
    interrupt = signal.signal(signal.SIGINT, signal.SIG_IGN)
    child = signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(wake, warn_on_full_buffer=False)

    def say(pid: int, code: int | None) -> None:
        os.write(tell, json.dumps({"pid": pid, "code": code}).encode() + b"\n")

    orders = b""
    while True:
        ready, _, _ = select.select([0, woken], [], [])
        if woken in ready:
            os.read(woken, 4096)
            with contextlib.suppress(ChildProcessError):
                while (ended := os.waitpid(-1, os.WNOHANG))[0]:
                    say(ended[0], os.waitstatus_to_exitcode(ended[1]))
        if 0 in ready:
            given = os.read(0, 1 << 20)
            if not given:
                return None
            *lines, orders = (orders + given).split(b"\n")
            for line in lines:
                pid = os.fork()
                if pid:
                    say(pid, None)
                    continue
                signal.set_wakeup_fd(-1)
                signal.signal(signal.SIGCHLD, child)
                signal.signal(signal.SIGINT, interrupt)
                for descriptor in (tell, woken, wake):
                    os.close(descriptor)
                order: dict[str, Any] = json.loads(line)
                return order


def main() -> None:
    order = serve()
    if order is None:
        return
    for number, path, how in (
        (0, os.devnull, os.O_RDONLY),
        (1, order["out"], os.O_WRONLY | os.O_APPEND | os.O_CREAT),
        (2, order["err"], os.O_WRONLY | os.O_APPEND | os.O_CREAT),
    ):
        descriptor = os.open(path, how, 0o644)
        os.dup2(descriptor, number)
        os.close(descriptor)
    os.environ.clear()
    os.environ.update(order["env"])
    time.tzset()
    tempfile.tempdir = None
    command = order["command"]
    if command[0] == "-m":
        sys.argv = command[1:]
        runpy.run_module(command[1], run_name="__main__", alter_sys=True)
    else:
        sys.argv = command
        runpy.run_path(command[0], run_name="__main__")


if __name__ == "__main__":
    main()
