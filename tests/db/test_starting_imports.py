"""A sender runs the imports that wait, in a process of their own."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from django.conf import settings
from django.utils import timezone

from sending import clock, import_runner
from sending.import_runner import ImportRunner, command_line
from sending.models import Worker
from sending.shared import Shared
from sending.upkeep import Upkeep
from subscribers.importing import jobs

pytestmark = pytest.mark.django_db

#: A child that writes that it runs, then waits until it is told to end.
PATIENT = "import sys, time; open(sys.argv[1], 'a').write('x'); time.sleep(60)"
#: One that ends at once, with this exit code.
QUICK = "import sys; open(sys.argv[1], 'a').write('x'); sys.exit(int(sys.argv[2]))"
#: One that is asked to end and does not.
DEAF = (
    "import signal, sys, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); "
    "open(sys.argv[1], 'a').write('x'); time.sleep(60)"
)


class Queue:
    """What the importing app says about imports that wait."""

    def __init__(self) -> None:
        self.waiting: int | None = None
        self.asked = 0

    def next_queued(self) -> int | None:
        self.asked += 1
        return self.waiting


@pytest.fixture
def queue(monkeypatch: pytest.MonkeyPatch) -> Queue:
    made = Queue()
    monkeypatch.setattr(jobs, "next_queued", made.next_queued)
    return made


@pytest.fixture
def mark(tmp_path: Path) -> Path:
    return tmp_path / "started"


@pytest.fixture
def runner(mark: Path) -> Iterator[Callable[..., ImportRunner]]:
    made: list[ImportRunner] = []

    def make(code: str, *arguments: str) -> ImportRunner:
        made.append(ImportRunner([sys.executable, "-c", code, str(mark), *arguments]))
        return made[-1]

    yield make
    for one in made:
        child = one._child
        if child is not None and child.poll() is None:
            child.kill()
        one.stop()


def _until(happened: Callable[[], bool]) -> None:
    end = time.monotonic() + 30
    while not happened():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.01)


def _starts(mark: Path) -> int:
    return len(mark.read_text()) if mark.exists() else 0


def _worker(**fields: object) -> Worker:
    now = timezone.now()
    given = {"host": "a", "pid": 1, "lanes": 1, "started": now, "seen": now, **fields}
    return Worker.objects.create(**given)


def test_nothing_is_started_while_nothing_waits(
    queue: Queue, runner: Callable[..., ImportRunner]
) -> None:
    assert runner(PATIENT).look(1) is False
    assert queue.asked == 1


def test_one_child_is_started_and_no_second_one(
    queue: Queue, runner: Callable[..., ImportRunner], mark: Path
) -> None:
    queue.waiting = 7
    one = runner(PATIENT)
    assert one.look(1) is True
    assert one.look(1) is True
    _until(lambda: _starts(mark) == 1)
    assert queue.asked == 1


def test_a_child_that_is_done_is_reaped_and_the_next_import_starts_another(
    queue: Queue, runner: Callable[..., ImportRunner], mark: Path
) -> None:
    queue.waiting = 7
    one = runner(QUICK, "0")
    assert one.look(1) is True
    child = one._child
    assert child is not None
    child.wait()
    queue.waiting = None
    assert one.look(1) is False
    with pytest.raises(ChildProcessError):
        os.waitpid(child.pid, os.WNOHANG)
    queue.waiting = 8
    assert one.look(1) is True
    _until(lambda: _starts(mark) == 2)


def test_a_child_that_fails_is_started_again_later_and_later(
    queue: Queue, runner: Callable[..., ImportRunner], monkeypatch: pytest.MonkeyPatch
) -> None:
    queue.waiting = 7
    now = [1000.0]
    monkeypatch.setattr(clock, "now", lambda: now[0])
    monkeypatch.setattr(random, "uniform", lambda a, b: 1.0)
    one = runner(QUICK, "3")
    waits = []
    for _ in range(8):
        assert one.look(1) is True
        assert one._child is not None
        one._child.wait()
        assert one.look(1) is False
        waits.append(one._not_before - now[0])
        now[0] = one._not_before - 0.1
        assert one.look(1) is False, "not yet"
        now[0] = one._not_before
    assert waits == [5, 10, 20, 40, 80, 160, 300, 300]


def test_the_last_words_of_a_child_that_failed_are_logged(
    queue: Queue, runner: Callable[..., ImportRunner], caplog: pytest.LogCaptureFixture
) -> None:
    queue.waiting = 7
    one = runner("import sys; print('no such table', file=sys.stderr); sys.exit(1)")
    assert one.look(1) is True
    assert one._child is not None
    one._child.wait()
    one.look(1)
    (told,) = [r for r in caplog.records if getattr(r, "event", "") == "imports_failed"]
    assert told.__dict__["error"] == "exit code 1: no such table"


def test_a_program_that_is_not_there_is_a_failure_like_another(queue: Queue) -> None:
    queue.waiting = 7
    one = ImportRunner(["/nowhere/python"])
    assert one.look(1) is False
    assert one._failures == 1
    one.stop()


def test_a_stop_ends_the_child_and_starts_no_other(
    queue: Queue, runner: Callable[..., ImportRunner], mark: Path
) -> None:
    queue.waiting = 7
    one = runner(PATIENT)
    one.look(1)
    _until(lambda: _starts(mark) == 1)
    child = one._child
    assert child is not None
    one.terminate()
    one.stop()
    assert child.returncode == -signal.SIGTERM
    assert one.look(1) is False


def test_a_child_that_does_not_end_is_killed(
    queue: Queue,
    runner: Callable[..., ImportRunner],
    mark: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(import_runner, "LAST_BATCH", 0.05)
    queue.waiting = 7
    one = runner(DEAF)
    one.look(1)
    _until(lambda: _starts(mark) == 1)
    child = one._child
    assert child is not None
    one.stop()
    assert child.returncode == -signal.SIGKILL


# --- of several senders ----------------------------------------------------------------------


def test_the_oldest_that_lives_starts_at_once_and_others_only_when_nobody_has(
    queue: Queue, runner: Callable[..., ImportRunner], monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [1000.0]
    monkeypatch.setattr(clock, "now", lambda: now[0])
    _worker(ended=timezone.now())
    _worker(seen=timezone.now() - timedelta(minutes=5))
    _worker(only_campaign=7)  # sees to that alone
    first, second = _worker(), _worker()
    queue.waiting = 7
    later = runner(PATIENT)
    assert later.look(second.pk) is False
    now[0] += import_runner.PATIENCE - 0.1
    assert later.look(second.pk) is False
    queue.waiting = None
    assert later.look(second.pk) is False, "somebody works on it: the wait begins anew"
    queue.waiting = 7
    assert later.look(second.pk) is False
    now[0] += import_runner.PATIENCE
    assert later.look(second.pk) is True
    assert runner(PATIENT).look(first.pk) is True


# --- what the child is given -----------------------------------------------------------------


def test_the_child_has_this_process_s_settings_and_places() -> None:
    command = command_line()
    place = command.index("run_imports")
    assert command[0] == sys.executable
    assert command[place + 1] == f"--settings={settings.SETTINGS_MODULE}"
    command[place] = "diffsettings"
    done = subprocess.run(command, cwd="/", capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert f"ROOT_URLCONF = {settings.ROOT_URLCONF!r}" in done.stdout


@pytest.mark.parametrize(
    ("drain", "campaign", "asked"), [(False, None, 1), (True, None, 0), (False, 5, 0)]
)
def test_a_sender_with_a_task_of_its_own_runs_none(
    queue: Queue, drain: bool, campaign: int | None, asked: int
) -> None:
    shared = Shared(1, 1, 60, 10, 5, 600, 1, campaign_id=campaign)
    upkeep = Upkeep(shared, watch_drain=drain, patience=0)
    upkeep.step()
    upkeep.step()
    assert queue.asked == asked
