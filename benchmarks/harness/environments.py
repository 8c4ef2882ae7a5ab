"""An environment for each peer under ``var/bench``, made by ``venv`` and ``pip install``.

What is installed is pinned in ``benchmarks/peers/NAME.txt``; an environment is made anew when that
file or the Python changes, and a half made one is never used.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib
import shutil
import subprocess
import sys
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from .timing import ROOT

FOLDER = ROOT / "var" / "bench"
PINS = ROOT / "benchmarks" / "peers"


class Unavailable(RuntimeError):
    """A peer can't be installed here; says why in one line."""


def python_for(peer: str, least: tuple[int, int]) -> Path:
    """The Python of the peer's environment, made if need be. Raises ``Unavailable``."""
    base = _interpreter(least)
    pins = PINS / f"{peer}.txt"
    digest = hashlib.sha256(pins.read_bytes() + base.encode()).hexdigest()[:12]
    folder = FOLDER / f"{peer}-{digest}"
    python = folder / "bin" / "python"
    if not (folder / ".complete").exists():
        shutil.rmtree(folder, ignore_errors=True)
        # One write: others install at the same time.
        sys.stderr.write(f"installing {peer} into var/bench ...\n")
        _call([base, "-m", "venv", str(folder)], peer)
        quiet = ["--quiet", "--disable-pip-version-check"]
        _call([str(python), "-m", "pip", "install", *quiet, "-r", str(pins)], peer)
        (folder / ".complete").touch()
    return python


def make(peers: Iterable[str]) -> None:
    """The environments of all of them, side by side: most of an installation is waiting."""

    def attempt(peer: str) -> None:
        with contextlib.suppress(Unavailable):
            python_for(peer, least_python(peer))

    with ThreadPoolExecutor() as pool:
        list(pool.map(attempt, peers))


def least_python(peer: str) -> tuple[int, int]:
    module = importlib.import_module(f"benchmarks.peers.{peer}")
    return getattr(module, "LEAST_PYTHON", (3, 11))


def version_of(package: str, python: Path) -> str:
    """The version of an installed package, with its Django's."""
    code = (
        "import sys; from importlib.metadata import version; "
        "print(version(sys.argv[1]), 'with Django', version('django'))"
    )
    found = subprocess.run(
        [str(python), "-c", code, package], capture_output=True, text=True, check=True, timeout=60
    )
    return found.stdout.strip()


def _interpreter(least: tuple[int, int]) -> str:
    """This Python, or else the oldest installed one that is new enough."""
    if sys.version_info[:2] >= least:
        return sys.executable
    found = subprocess.run(
        [str(ROOT / ".ci" / "pythons")], capture_output=True, text=True, check=True, timeout=120
    )
    for line in found.stdout.splitlines():
        version, _, path = line.partition(" ")
        major, minor = version.split(".")
        if (int(major), int(minor)) >= least:
            return path
    raise Unavailable(f"needs Python {least[0]}.{least[1]} or newer, which is not installed")


def _call(command: list[str], peer: str) -> None:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    except subprocess.TimeoutExpired:
        raise Unavailable(f"{peer}: its installation took too long") from None
    if done.returncode:
        lines = [line for line in done.stderr.splitlines() if line.startswith("ERROR")]
        said = (lines or done.stderr.splitlines() or ["no reason given"])[-1]
        raise Unavailable(f"{peer} can't be installed: {said}")
