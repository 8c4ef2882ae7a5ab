"""The wheel as it would be published, and a site that is not ours with that wheel in it."""

from __future__ import annotations

import compileall
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
