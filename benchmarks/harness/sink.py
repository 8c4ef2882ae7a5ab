"""Postfix's ``smtp-sink``, which all contestants send to, and ``smtp-source``, the ceiling."""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from .message import FROM, address

ROOT = Path(__file__).resolve().parents[2]
HOW_TO_GET = "install Postfix for them (Debian, Ubuntu: apt-get install postfix)"
SESSIONS = 20


def find(name: str) -> str | None:
    return shutil.which(name, path=f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin")


def missing_tools() -> list[str]:
    return [name for name in ("smtp-sink", "smtp-source") if find(name) is None]


@dataclass(frozen=True)
class Sink:
    port: int
    process: subprocess.Popen[bytes]

    @property
    def email_url(self) -> str:
        return f"smtp://127.0.0.1:{self.port}"

    def bytes_read(self) -> int:
        """Since its start; 0 where the kernel doesn't tell."""
        try:
            return int(Path(f"/proc/{self.process.pid}/io").read_text().split()[1])
        except (OSError, ValueError, IndexError):
            return 0


@contextlib.contextmanager
def running() -> Iterator[Sink]:
    """A sink on a free port of 127.0.0.1, ended with the block: Postfix's, else our own.

    Raises ``RuntimeError`` when it does not start.
    """
    port = free_port()
    tool = find("smtp-sink")
    if tool is None:
        print(f"note: smtp-sink is missing, ours is slower: {HOW_TO_GET}", file=sys.stderr)
        command = [sys.executable, "-m", "sending.sink", "--port", str(port)]
    else:
        unprivileged = ["-u", "nobody"] if os.geteuid() == 0 else []
        command = [tool, *unprivileged, f"127.0.0.1:{port}", "1000"]
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL, start_new_session=True)
    try:
        _wait_for(port)
        yield Sink(port, process)
    finally:
        process.kill()
        process.wait()


def source_command(port: int, messages: int) -> list[str]:
    """``smtp-source`` with the size of the benchmarks' message, on 20 open sessions.

    Raises ``RuntimeError`` when it isn't installed.
    """
    tool = find("smtp-source")
    if tool is None:
        raise RuntimeError(f"smtp-source is missing: {HOW_TO_GET}")
    size = ["-d", "-s", str(SESSIONS), "-l", "6000", "-m", str(messages)]
    return [tool, *size, "-f", FROM, "-t", address(1), f"127.0.0.1:{port}"]


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _wait_for(port: int) -> None:
    for _ in range(200):
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.05)
    raise RuntimeError("the sink did not start")
