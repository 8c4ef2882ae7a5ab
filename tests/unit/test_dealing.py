"""The order in which the workers of a run begin: every test once, and waiting beside computing."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.conftest import ROOT
from tests.dealing import dealt


def made(folder: str, files: int, tests: int) -> list[Any]:
    paths = [ROOT / "tests" / folder / f"test_{n}.py" for n in range(files)]
    return [SimpleNamespace(path=path, number=n) for path in paths for n in range(tests)]


def waits(item: Any) -> bool:
    return Path(item.path).parent.name in {"crash", "browser"}


@pytest.mark.parametrize("workers", [1, 2, 3, 4, 5, 8])
def test_half_of_the_workers_begin_with_what_waits(workers: int) -> None:
    computing, waiting = made("db", 40, 11), [*made("crash", 9, 3), *made("browser", 7, 2)]
    items = [*computing[:100], *waiting, *computing[100:]]
    order: list[Any] = dealt(items, workers)
    assert sorted(map(id, order)) == sorted(map(id, items)), "each once"
    assert [item for item in order if not waits(item)] == computing, "in the order of before"

    share = len(order) / workers
    first = [
        order[round(number * share) : round((number + 1) * share)] for number in range(workers)
    ]
    beginning = [part for part in first if any(map(waits, part))]
    assert len(beginning) == (workers + 1) // 2
    for part in beginning:
        told = [waits(item) for item in part]
        assert told == sorted(told, reverse=True), "what waits comes first"


def test_what_waits_may_be_more_than_a_share_or_all() -> None:
    waiting = made("crash", 9, 3)
    for others in ([], made("unit", 1, 2)):
        order: list[Any] = dealt([*waiting, *others], 4)
        assert sorted(map(id, order)) == sorted(map(id, [*waiting, *others]))
