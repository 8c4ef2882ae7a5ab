"""In which order the tests are dealt to several workers, so that nobody only waits."""

from __future__ import annotations

import re
from itertools import islice
from pathlib import Path

import pytest

#: Tests of real processes and browsers, which wait more than they compute.
_WAITING = re.compile("/tests/(crash|browser|embedding)/|/test_embedded_postgres.py$")
#: Of those the ones with the longest single tests: last, one would keep the whole run waiting.
_LONG = re.compile("/embedding/test_foreign_site|/crash/test_(demo|stalls|providers|restarts)")


def dealt(items: list[pytest.Item], workers: int) -> list[pytest.Item]:
    """Half of the workers begin with tests that wait, and the others compute meanwhile; what is
    left for the end is short. Within that the order stays as it is, a random one. ``worksteal``
    deals equal parts, one after the other, and takes from their ends for whoever has none."""
    beginning: list[list[pytest.Item]] = [[] for _ in range((workers + 1) // 2)]
    modules: dict[Path, list[pytest.Item]] = {}
    others = []
    for item in items:
        if _WAITING.search(item.path.as_posix()):
            modules.setdefault(item.path, []).append(item)
        else:
            others.append(item)
    longest_first = sorted(modules, key=lambda path: not _LONG.search(path.as_posix()))
    for number, module in enumerate(map(modules.__getitem__, longest_first)):
        beginning[number % len(beginning)] += module
    order: list[pytest.Item] = []
    rest, left = iter(others), len(items)
    for number in range(workers):
        size = left // (workers - number)
        part = beginning[number] if number < len(beginning) else []
        order += part
        order += islice(rest, max(0, size - len(part)))
        left -= size
    return [*order, *rest]
