"""The import rule, sending -> campaigns -> subscribers, and who may read the environment."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
APPS = ("subscribers", "campaigns", "sending")
FORBIDDEN = {
    "subscribers": {"campaigns", "sending", "config", "tests"},
    "campaigns": {"sending", "config", "tests"},
    "sending": {"config", "tests"},
}
#: What the wheel may import beside Django and itself; optional features import lazily.
SITE_ONLY = {"environ", "whitenoise"}


def sources(*folders: str) -> Iterator[Path]:
    for folder in folders:
        yield from sorted((ROOT / folder).rglob("*.py"))


def imported_packages(tree: ast.AST, package: list[str]) -> Iterator[tuple[int, str]]:
    """(line, top-level name) of every import, also inside functions and ``TYPE_CHECKING``.

    ``package`` is the dotted path of the module's package, for relative imports; one that
    leaves the top-level package shows as the empty name.
    """
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield node.lineno, alias.name.split(".")[0]
        elif isinstance(node, ast.ImportFrom):
            if node.level:
                base = package[: len(package) - node.level + 1]
                yield node.lineno, base[0] if base else ""
            elif node.module:
                yield node.lineno, node.module.split(".")[0]
        elif (
            isinstance(node, ast.Call)
            and _called(node.func) in {"import_module", "__import__"}
            and node.args
            and isinstance(name := node.args[0], ast.Constant)
        ):
            yield node.lineno, str(name.value).split(".")[0]


def environment_reads(tree: ast.AST) -> Iterator[int]:
    """Lines that touch the environment, save naming the default settings module."""
    allowed = {
        id(node.func.value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr == "setdefault"
        and isinstance(node.args[0], ast.Constant)
        and node.args[0].value == "DJANGO_SETTINGS_MODULE"
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and node.attr in {"environ", "getenv", "environb"}:
            if _called(node.value) == "os" and id(node) not in allowed:
                yield node.lineno
        elif isinstance(node, ast.ImportFrom) and node.module == "os":
            if {alias.name for alias in node.names} & {"environ", "getenv", "environb"}:
                yield node.lineno
        elif isinstance(node, ast.Import | ast.ImportFrom):
            names = [alias.name for alias in node.names]
            if isinstance(node, ast.ImportFrom):
                names = [node.module or ""]
            if "environ" in names:
                yield node.lineno


def _called(node: ast.AST) -> str:
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""


@pytest.mark.parametrize("app", APPS)
def test_an_app_imports_only_downwards(app: str) -> None:
    wrong = [
        f"{path.relative_to(ROOT)}:{line} imports {name or 'beyond its package'}"
        for path in sources(app)
        for line, name in imported_packages(
            ast.parse(path.read_text()), list(path.relative_to(ROOT).parent.parts)
        )
        if name in FORBIDDEN[app] | SITE_ONLY | {""}
    ]
    assert wrong == []


def test_only_the_settings_read_the_environment() -> None:
    readers = {
        f"{path.relative_to(ROOT)}:{line}"
        for path in [*sources("config", *APPS), ROOT / "manage.py"]
        for line in environment_reads(ast.parse(path.read_text()))
        # It parses with django-environ what the settings hand it.
        if path.relative_to(ROOT).as_posix() not in {"config/settings.py", "config/environment.py"}
    }
    assert readers == set()


def test_the_parsing_of_the_environment_does_not_read_it() -> None:
    tree = ast.parse((ROOT / "config/environment.py").read_text())
    reads = {
        node.attr
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and node.attr in {"environ", "getenv", "ENVIRON"}
    }
    assert reads == set()


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("import sending.queue", ["sending"]),
        ("from sending import queue", ["sending"]),
        ("def f():\n    from sending.queue import claim", ["sending"]),
        ("from ..sending import queue", [""]),
        ("from .models import Campaign", ["campaigns"]),
        ("from . import gate", ["campaigns"]),
        ("import importlib\nimportlib.import_module('sending.queue')", ["importlib", "sending"]),
        ("__import__('sending')", ["sending"]),
    ],
)
def test_every_way_to_import_is_seen(source: str, found: list[str]) -> None:
    seen = [name for _, name in imported_packages(ast.parse(source), ["campaigns"])]
    assert sorted(seen) == sorted(found)


@pytest.mark.parametrize(
    ("source", "seen"),
    [
        ("import os\nos.environ['X']", True),
        ("import os\nos.getenv('X')", True),
        ("from os import environ", True),
        ("import environ", True),
        ("from environ import Env", True),
        ("import os\nos.environ.setdefault('DJANGO_SETTINGS_MODULE', 'config.settings')", False),
        ("import os\nos.environ.setdefault('X', 'y')", True),
        ("request.environ['X']", False),
    ],
)
def test_every_way_to_read_the_environment_is_seen(source: str, seen: bool) -> None:
    assert bool(list(environment_reads(ast.parse(source)))) is seen
