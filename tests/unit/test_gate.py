"""The gate's keys, and in which order gates are taken."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from campaigns import gate
from sending.rescue import worker_lock_key
from subscribers import suppression

IDS = st.integers(1, (1 << 40) - 1)


class _Cursor:
    """Writes down what it is asked to lock."""

    def __init__(self) -> None:
        self.taken: list[tuple[str, int]] = []
        self.first = ""
        self.closed: set[int] = set()

    def fetchall(self) -> list[tuple[int]]:
        return [(n,) for n, (_, key) in enumerate(self.taken, 1) if key in self.closed]

    def execute(self, statement: str, parameters: list[Any] | None = None) -> None:
        self.first = self.first or statement
        if parameters is not None:
            keys = parameters[0] if isinstance(parameters[0], list) else parameters
            self.taken += [(statement, key) for key in keys]


def _shared(ids: Iterable[int]) -> list[tuple[str, int]]:
    cursor: Any = _Cursor()
    assert gate.try_shared(cursor, ids) == set()
    taken: list[tuple[str, int]] = cursor.taken
    return taken


@pytest.mark.parametrize("ids", [[], [7], [3, 1, 2], [2, 2, 1, 1]])
def test_gates_are_taken_once_each_in_ascending_order(ids: list[int]) -> None:
    """One question for all of them, however many campaigns a lot is of."""
    taken = _shared(ids)
    assert [key for _, key in taken] == [gate.key(i) for i in sorted(set(ids))]
    assert all("lock_shared" in statement for statement, _ in taken)


def test_trying_asks_at_every_gate_in_that_order_and_tells_the_closed_ones() -> None:
    cursor: Any = _Cursor()
    cursor.closed = {gate.key(2)}
    assert gate.try_shared(cursor, [3, 2, 1, 2]) == {2}
    assert [key for _, key in cursor.taken] == [gate.key(i) for i in (1, 2, 3)]
    (statement,) = {statement for statement, _ in cursor.taken}
    assert "pg_try_advisory_xact_lock_shared" in statement


def test_a_decision_takes_the_gate_alone_and_as_a_statement_of_its_own() -> None:
    cursor: Any = _Cursor()
    gate.enter_exclusive(cursor, 5)
    ((statement, key),) = cursor.taken
    assert key == gate.key(5)
    assert statement == "SELECT pg_advisory_xact_lock(%s)"
    assert cursor.first == gate.READ_COMMITTED


@given(one=IDS, other=IDS)
def test_every_campaign_has_a_gate_of_its_own(one: int, other: int) -> None:
    assert (gate.key(one) == gate.key(other)) is (one == other)
    assert 0 < gate.key(one) < 1 << 63, "a bigint of PostgreSQL"


@given(one=IDS, other=IDS)
def test_gates_worker_locks_and_imports_do_not_meet(one: int, other: int) -> None:
    assert gate.key(one) != worker_lock_key(other)
    assert gate.key(one) >> 40 != suppression._NAMESPACE >> 40 != worker_lock_key(other) >> 40
