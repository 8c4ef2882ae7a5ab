"""The demo's processes: started with an environment of their own, stopped whatever happens."""

from __future__ import annotations

import contextlib
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import FrameType, TracebackType
from typing import Any

#: Seconds for a child to start, and to end after SIGTERM before it is killed.
PATIENCE_S = 30.0
GRACE_S = 10.0
SIGNALS = (signal.SIGTERM, signal.SIGHUP)


class ChildFailed(Exception):
    """A process of the demo did not do its part; the message says which and what it said."""


class Child:
    """A ``manage.py`` command of its own; what it says goes to ``log``."""

    def __init__(
        self, name: str, arguments: Sequence[str], environment: Mapping[str, str], log: Path
    ) -> None:
        self.name = name
        self.log = log
        # env(1) sets the variables and becomes the program: only the settings module reads the
        # environment. In a session of its own, so that Ctrl-C stops the demo and the demo stops
        # its children, in order.
        with log.open("ab") as stream:
            self.process = subprocess.Popen(
                [
                    "env",
                    *(f"{name}={value}" for name, value in environment.items()),
                    *manage_command(),
                    *arguments,
                ],
                stdin=subprocess.DEVNULL,
                stdout=stream,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    @property
    def pid(self) -> int:
        return self.process.pid

    @property
    def exit_code(self) -> int | None:
        """None while it runs; negative: the signal that ended it."""
        return self.process.poll()

    def kill(self) -> None:
        """SIGKILL: what a crash or the kernel's memory killer does."""
        self.process.kill()
        self.process.wait()

    def stop(self) -> None:
        """SIGTERM, and SIGKILL when that does not help."""
        if self.exit_code is None:
            self.process.terminate()
            try:
                self.process.wait(GRACE_S)
            except subprocess.TimeoutExpired:
                self.kill()

    def await_line(self, beginning: str) -> str:
        """The rest of the first line that begins so. Raises ``ChildFailed`` without one."""
        found: list[str] = []

        def told() -> bool:
            ended = self.exit_code is not None  # before the last look at what it said
            for line in self.said().splitlines():
                if line.startswith(beginning):
                    found.append(line.removeprefix(beginning).strip())
                    return True
            if ended:
                raise ChildFailed(f"{self.name} ended: {self.last_words()}")
            return False

        if not wait_until(told, PATIENCE_S):
            raise ChildFailed(f"{self.name} does not start: {self.last_words()}")
        return found[0]

    def said(self) -> str:
        return self.log.read_text(errors="replace")

    def last_words(self) -> str:
        """Its last line."""
        lines = self.said().strip().splitlines()
        return lines[-1][:300] if lines else "it said nothing"


class Children:
    """Starts children and stops all of them at the end of the block, the last one first."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.all: list[Child] = []

    def __enter__(self) -> Children:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    def start(self, name: str, *arguments: str, environment: Mapping[str, str]) -> Child:
        """Run ``manage.py`` with ``arguments``; its output goes to a file named after it."""
        log = self.folder / f"{len(self.all) + 1:02}-{name.replace(' ', '-')}.log"
        child = Child(name, arguments, environment, log)
        self.all.append(child)
        return child

    def stop(self) -> None:
        """End those that still run; all hear of it before any is waited for."""
        with uninterrupted():
            running = [child for child in reversed(self.all) if child.exit_code is None]
            for child in running:
                child.process.terminate()
            for child in running:
                child.stop()


def manage_command() -> list[str]:
    """How to run a command of this project in another process."""
    script = Path(sys.argv[0])
    if script.name == "__main__.py" or not script.is_file():  # python -m django, or a test
        return [sys.executable, "-m", "django"]
    return [sys.executable, str(script)]


def wait_until(condition: Callable[[], bool], seconds: float) -> bool:
    """Whether it became true in time."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True


@contextlib.contextmanager
def ended_by_signals() -> Iterator[None]:
    """SIGTERM and SIGHUP unwind the block as Ctrl-C does, so that no child stays behind."""

    def end(number: int, frame: FrameType | None) -> None:
        raise SystemExit(128 + number)

    with _handling(end):
        yield


@contextlib.contextmanager
def uninterrupted() -> Iterator[None]:
    """A second Ctrl-C or SIGTERM does not stop the cleaning up."""
    with _handling(signal.SIG_IGN, *SIGNALS, signal.SIGINT):
        yield


@contextlib.contextmanager
def _handling(handler: Any, *numbers: signal.Signals) -> Iterator[None]:
    before = {number: signal.signal(number, handler) for number in numbers or SIGNALS}
    try:
        yield
    finally:
        for number, old in before.items():
            signal.signal(number, old)
