"""What is published: the three apps with all they need, and nothing of the runnable project."""

from __future__ import annotations

import zipfile
from email import message_from_bytes
from pathlib import Path

import pytest

from tests.conftest import ROOT

APPS = ("subscribers", "campaigns", "sending")
BYTECODE = "__pycache__"


@pytest.fixture(scope="module")
def files(wheel: Path) -> set[str]:
    with zipfile.ZipFile(wheel) as archive:
        return {name for name in archive.namelist() if not name.endswith("/")}


def test_the_wheel_holds_the_three_apps_only(files: set[str]) -> None:
    tops = {name.split("/")[0] for name in files}
    (metadata,) = {top for top in tops if top.endswith(".dist-info")}
    assert tops == {*APPS, metadata}


def test_the_wheel_holds_every_file_of_the_apps(files: set[str]) -> None:
    """Templates, styles, migrations and whatever comes to stand beside the code."""
    sources = {
        path.relative_to(ROOT).as_posix()
        for app in APPS
        for path in (ROOT / app).rglob("*")
        if path.is_file() and BYTECODE not in path.parts
    }
    assert {name for name in files if name.split("/")[0] in APPS} == sources


@pytest.mark.parametrize("app", APPS)
def test_every_app_is_typed_and_has_migrations(files: set[str], app: str) -> None:
    assert {f"{app}/py.typed", f"{app}/migrations/0001_initial.py"} <= files


@pytest.mark.parametrize(
    "name",
    [
        "subscribers/static/sendonce_subscribers/page.css",
        "subscribers/templates/sendonce_subscribers/unsubscribe.html",
        "campaigns/templates/admin/sendonce_campaigns/campaign/approve.html",
    ],
)
def test_the_wheel_holds_what_is_not_python(files: set[str], name: str) -> None:
    assert name in files


def test_the_metadata_is_typed_and_licensed(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (n for n in archive.namelist() if n.endswith(".dist-info/METADATA"))
        metadata = message_from_bytes(archive.read(name))
    assert metadata["Name"] == "django-sendonce"
    assert metadata["License-Expression"] == "MIT"
    assert "Typing :: Typed" in metadata.get_all("Classifier", [])
    needed = [line for line in metadata.get_all("Requires-Dist", []) if "extra ==" not in line]
    assert not any("environ" in line or "whitenoise" in line for line in needed), needed
