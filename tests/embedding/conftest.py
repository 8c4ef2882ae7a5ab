"""The wheel as it would be published, and a site that is not ours with that wheel in it."""

from __future__ import annotations

import compileall
import json
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import ROOT

PROJECT = Path(__file__).parent / "project"
BUILD = "import sys; from setuptools import build_meta; build_meta.build_wheel(sys.argv[1])"
#: Each command as ``python -m django`` runs it; what they say is parted by a line of its own.
COMMANDS = """
import json, sys
from django.core.management import execute_from_command_line
for command in json.loads(sys.argv[1]):
    execute_from_command_line(["django-admin", *command])
    print("\\x1e", flush=True)
"""


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built from a copy: setuptools writes beside the sources, and ships what an earlier build
    left there."""
    folder = tmp_path_factory.mktemp("wheel")
    ignored = shutil.ignore_patterns(
        ".*", "var", "build", "dist", "out", "*.egg-info", "__pycache__", "node_modules"
    )
    shutil.copytree(ROOT, folder / "source", ignore=ignored)
    done = subprocess.run(
        [sys.executable, "-c", BUILD, str(folder)],
        cwd=folder / "source",
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    (built,) = folder.glob("*.whl")
    return built


@pytest.fixture(scope="session")
def site_packages(wheel: Path) -> Path:
    """A folder with the wheel's files; before it on ``sys.path`` nothing else has our names."""
    folder = wheel.parent / "site-packages"
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder)
    # Commands here leave no byte code behind, so each would compile all of it.
    assert compileall.compile_dir(folder, quiet=1)
    return folder


Run = Callable[..., str]
Commands = Callable[..., list[str]]


@pytest.fixture
def host(
    site_packages: Path,
    bare_environ: dict[str, str],
    empty_database_url: str,
    tmp_path: Path,
) -> Run:
    """Runs Python in the foreign site: ``host("-m", "django", "check")``; its output.

    Keywords are its environment. A command that fails, fails the test.
    """
    environ = {
        **bare_environ,
        "PYTHONPATH": f"{site_packages}:{PROJECT}",
        "PYTHONDONTWRITEBYTECODE": "1",
        "DJANGO_SETTINGS_MODULE": "settings",
        "DATABASE_URL": empty_database_url,
        "MAIL_FOLDER": str(tmp_path / "mail"),
    }

    def run(*arguments: str, **extra: str) -> str:
        done = subprocess.run(
            [sys.executable, *arguments],
            cwd=tmp_path,
            env={**environ, **extra},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=120,
        )
        assert done.returncode == 0, f"{arguments}\n{done.stdout}\n{done.stderr}"
        return done.stdout

    return run


@pytest.fixture
def commands(host: Run) -> Commands:
    """Runs Django's commands in the foreign site one after the other, in one process: a start
    takes longer than most of them. What each said; the first that fails ends it."""

    def run(*given: str, **extra: str) -> list[str]:
        """``"migrate --verbosity 0"``: words are parted by blanks."""
        said = host("-c", COMMANDS, json.dumps([line.split() for line in given]), **extra)
        *parts, rest = said.split("\x1e\n")
        assert (len(parts), rest) == (len(given), "")
        return parts

    return run
