"""Programs that run to their end, timed; none is left behind, whatever ends the benchmark."""

from __future__ import annotations

import contextlib
import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import FrameType, TracebackType

ROOT = Path(__file__).resolve().parents[2]
#: How long a program may take to end in order before it is killed: a sender has its 20 s for what
#: is on the wire, a benchmark then stops its server.
GRACE_S = 60.0


@dataclass(frozen=True, slots=True)
class Took:
    """Wall seconds, and processor seconds (user and system) of the programs and their children."""

    seconds: float
    cpu: float


class Failed(RuntimeError):
    """A program ended with another status than 0, or took too long."""


@contextlib.contextmanager
def started(
    command: Sequence[str], environ: Mapping[str, str] | None = None, output: int | None = None
) -> Iterator[subprocess.Popen[str]]:
    """A program in a process group of its own, which has ended when the block is left."""
    process = subprocess.Popen(
        command,
        cwd=ROOT,
        env=None if environ is None else dict(environ),
        stdin=subprocess.DEVNULL,
        stdout=output,
        text=True,
        start_new_session=True,
    )
    try:
        yield process
    finally:
        end(process)


def end(process: subprocess.Popen[str]) -> None:
    """Ask it to stop; what is left of its group after a while is killed. Not by SIGINT: whatever a
    shell runs in the background ignores that, and so do its children."""
    if process.poll() is None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGTERM)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(GRACE_S)
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def run(
    commands: Sequence[Sequence[str]],
    environ: Mapping[str, str] | None = None,
    patience: float = 600.0,
) -> Took:
    """Start all at once, wait for all. Raises ``Failed``."""
    before, started_at = _children_cpu(), time.perf_counter()
    with contextlib.ExitStack() as stack:
        running = [
            stack.enter_context(started(command, environ, subprocess.DEVNULL))
            for command in commands
        ]
        for process, command in zip(running, commands, strict=True):
            left = patience - (time.perf_counter() - started_at)
            try:
                status = process.wait(max(left, 0.1))
            except subprocess.TimeoutExpired:
                raise Failed(f"more than {patience:.0f} s: {' '.join(command)}") from None
            if status:
                raise Failed(f"exit status {status}: {' '.join(command)}")
        seconds = time.perf_counter() - started_at
    return Took(seconds, _children_cpu() - before)


def manage(*arguments: str) -> list[str]:
    return [sys.executable, str(ROOT / "manage.py"), *arguments]


def stop_like_ctrl_c() -> None:
    """SIGTERM and a hang-up unwind as Ctrl-C does, also where SIGINT was ignored at the start.
    Such an end, and one by ``Failed``, is told in a line."""
    sys.excepthook = _tell
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _interrupt)


def _interrupt(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def _tell(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    if issubclass(kind, KeyboardInterrupt):
        print("stopped", file=sys.stderr)
    elif issubclass(kind, Failed):
        print(f"error: {error}", file=sys.stderr)
    else:
        sys.__excepthook__(kind, error, trace)


def _children_cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
