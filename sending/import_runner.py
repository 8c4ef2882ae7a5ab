"""Imports that wait are run by a child process of a sender, so that parsing slows no lane.

The lease of an import decides who works on it, so that two children at once are harmless. Of
several senders the oldest starts one at once; the others only when nobody has after a while.
"""

from __future__ import annotations

import contextlib
import logging
import os
import random
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from typing import IO

from django.conf import settings
from django.db.models.functions import Now

from subscribers.importing import jobs

from . import clock
from .alive import ALIVE_WITHIN
from .models import Worker

log = logging.getLogger("sendonce.sender")

#: Seconds for which an import waits for the oldest sender before another takes care of it.
PATIENCE = 15.0
#: Seconds before a child is started again after it failed; doubled with each failure.
FIRST_WAIT, LONGEST_WAIT = 5.0, 300.0
#: Seconds that a child has to end its batch when the sender stops. What it has not done then is
#: done by the next one: only whole batches count.
LAST_BATCH = 10.0
#: ``manage.py`` with the places to import from as its first argument.
_START = (
    "import os, sys; sys.path[:] = sys.argv.pop(1).split(os.pathsep); sys.argv[0] = 'manage.py'; "
    "from django.core.management import execute_from_command_line as run; run(sys.argv)"
)
#: Characters of a failed child's last words that are logged.
_WORDS = 2000


class ImportRunner:
    """At most one child; ``look`` and ``stop`` are for one thread, ``terminate`` for any."""

    def __init__(self, command: Sequence[str] | None = None) -> None:
        self._command = command
        self._child: subprocess.Popen[bytes] | None = None
        self._said: IO[bytes] | None = None
        self._failures = 0
        self._not_before = 0.0
        self._waits_since: float | None = None
        self._stopping = False

    def look(self, worker_id: int) -> bool:
        """See to a child that has ended, and start one if an import waits; True if one runs."""
        if self._child is not None and not self._reap(self._child):
            return True
        if self._stopping or clock.now() < self._not_before:
            return False
        if jobs.next_queued() is None:
            self._waits_since = None
            return False
        now = clock.now()
        if self._waits_since is None:
            self._waits_since = now
        if not _is_oldest(worker_id) and now - self._waits_since < PATIENCE:
            return False
        self._start()
        return self._child is not None

    def terminate(self) -> None:
        """The child is to end after its batch; no other is started."""
        self._stopping = True
        child = self._child
        if child is not None and child.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                child.terminate()

    def stop(self) -> None:
        """``terminate`` and wait for it, ``LAST_BATCH`` at most: then it is killed."""
        self.terminate()
        child = self._child
        if child is None:
            return
        try:
            child.wait(LAST_BATCH)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()
        self._forget()

    def _start(self) -> None:
        self._said = tempfile.TemporaryFile()  # noqa: SIM115 (closed when the child is gone)
        try:
            self._child = subprocess.Popen(
                self._command or command_line(),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=self._said,
                # Ctrl-C is for the sender, which tells its child.
                start_new_session=True,
            )
        except OSError as error:
            self._failed(str(error))
            return
        log.info("imports started", extra={"event": "imports_started", "pid": self._child.pid})
        if self._stopping:
            self.terminate()

    def _reap(self, child: subprocess.Popen[bytes]) -> bool:
        """Whether the child has ended."""
        code = child.poll()
        if code is None:
            return False
        if code == 0 or self._stopping:
            self._failures = 0
            self._forget()
            log.info("imports done", extra={"event": "imports_done", "pid": child.pid})
        else:
            self._failed(f"exit code {code}: {self._last_words()}")
        return True

    def _failed(self, why: str) -> None:
        wait = min(FIRST_WAIT * 2**self._failures, LONGEST_WAIT) * random.uniform(0.8, 1.2)
        self._failures += 1
        self._not_before = clock.now() + wait
        self._forget()
        log.error(
            "imports failed, trying again",
            extra={"event": "imports_failed", "error": why, "wait": round(wait, 1)},
        )

    def _last_words(self) -> str:
        if self._said is None:
            return ""
        self._said.seek(0, os.SEEK_END)
        self._said.seek(max(0, self._said.tell() - _WORDS))
        return self._said.read().decode("utf-8", "replace").strip()

    def _forget(self) -> None:
        self._child = None
        self._waits_since = None
        if self._said is not None:
            self._said.close()
            self._said = None


def command_line() -> list[str]:
    """``run_imports`` with the settings that this process has loaded, from where it imports: its
    own command may have added to ``sys.path``. The environment is inherited."""
    places = os.pathsep.join(path or os.getcwd() for path in sys.path)
    settings_module = f"--settings={settings.SETTINGS_MODULE}"
    return [sys.executable, "-c", _START, places, "run_imports", settings_module]


def _is_oldest(worker_id: int) -> bool:
    """Whether no sender that lives has a lower number; one for a single campaign sees to none."""
    return not Worker.objects.filter(
        pk__lt=worker_id,
        ended__isnull=True,
        seen__gt=Now() - ALIVE_WITHIN,
        only_campaign__isnull=True,
    ).exists()
