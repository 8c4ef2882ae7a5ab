"""The desk: who writes for whom, and whose error is whose. No database: it knows none."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from django.db import OperationalError
from psycopg.errors import LockNotAvailable

from sending.connections import LOST, Busy, Unacknowledged
from sending.desk import Desk

DEADLINE = 20.0


class Book:
    """Writes jobs (pairs of a kind and a number) down; the first write waits for ``go``."""

    def __init__(self, refuse: Callable[[Sequence[Any]], None] = lambda jobs: None) -> None:
        self.pages: list[list[Any]] = []
        self.begun = threading.Event()
        self.go = threading.Event()
        self._refuse = refuse

    def write(self, jobs: Sequence[Any]) -> list[str]:
        self.pages.append(list(jobs))
        if len(self.pages) == 1:
            self.begun.set()
            assert self.go.wait(DEADLINE)
        self._refuse(jobs)
        return [f"{kind}{number} done" for kind, number in jobs]


class Lane(threading.Thread):
    def __init__(self, desk: Desk[Any, str], job: Any) -> None:
        super().__init__(daemon=True)
        self.desk, self.job = desk, job
        self.found: str | BaseException = "nothing"

    def run(self) -> None:
        try:
            self.found = self.desk.put(self.job)
        except BaseException as error:
            self.found = error


def ten_rows(job: Any) -> range:
    """Job 7 has the rows 70 to 79."""
    return range(job[1] * 10, job[1] * 10 + 10)


def desk_of(book: Book, most: int = 100) -> Desk[Any, str]:
    return Desk(book.write, together=lambda job: job[0], rows=ten_rows, most=most)


def crowd(book: Book, desk: Desk[Any, str], jobs: Sequence[Any]) -> list[Lane]:
    """The first writes, the others come meanwhile, in this order; then it goes on."""
    lanes = [Lane(desk, job) for job in jobs]
    lanes[0].start()
    assert book.begun.wait(DEADLINE)
    for count, lane in enumerate(lanes[1:], 1):
        lane.start()
        end = time.monotonic() + DEADLINE
        while len(desk._waiting) < count and time.monotonic() < end:
            time.sleep(0.001)
    book.go.set()
    for lane in lanes:
        lane.join(DEADLINE)
        assert not lane.is_alive()
    return lanes


def test_who_comes_alone_writes_at_once() -> None:
    book = Book()
    book.go.set()
    desk = desk_of(book)
    assert [desk.put(("a", n)) for n in range(3)] == ["a0 done", "a1 done", "a2 done"]
    assert book.pages == [[("a", 0)], [("a", 1)], [("a", 2)]]


def test_who_comes_while_somebody_writes_is_written_with_those_who_wait_too() -> None:
    book = Book()
    lanes = crowd(book, desk_of(book), [("a", n) for n in range(5)])
    assert book.pages == [[("a", 0)], [("a", n) for n in (1, 2, 3, 4)]]
    assert [lane.found for lane in lanes] == [f"a{n} done" for n in range(5)]


def test_only_jobs_of_one_kind_are_written_together() -> None:
    book = Book()
    jobs = [("a", 0), ("b", 1), ("a", 2), ("b", 3)]
    lanes = crowd(book, desk_of(book), jobs)
    assert book.pages == [[("a", 0)], [("b", 1), ("b", 3)], [("a", 2)]]
    assert [lane.found for lane in lanes] == [f"{kind}{n} done" for kind, n in jobs]


def test_a_write_has_no_more_rows_than_allowed() -> None:
    book = Book()
    crowd(book, desk_of(book, most=25), [("a", n) for n in range(6)])
    assert [len(page) for page in book.pages] == [1, 2, 2, 1]


def test_a_job_larger_than_allowed_is_written_all_the_same() -> None:
    book = Book()
    lanes = crowd(book, desk_of(book, most=5), [("a", 0), ("a", 1), ("a", 2)])
    assert [len(page) for page in book.pages] == [1, 1, 1]
    assert lanes[2].found == "a2 done"


def test_two_jobs_with_a_row_in_common_are_never_in_one_transaction() -> None:
    """A row that was rescued and claimed again, under two tokens."""
    book = Book()
    jobs = [("a", 0), ("a", 1), ("a", 1), ("a", 2)]
    lanes = crowd(book, desk_of(book), jobs)
    assert book.pages == [[("a", 0)], [("a", 1), ("a", 2)], [("a", 1)]]
    assert [lane.found for lane in lanes] == ["a0 done", "a1 done", "a1 done", "a2 done"]


@pytest.mark.parametrize("error", [*LOST, Unacknowledged])
def test_a_database_that_is_lost_is_the_error_of_all_in_the_transaction(
    error: type[Exception],
) -> None:
    def refuse(jobs: Sequence[Any]) -> None:
        if len(jobs) > 1:
            raise error("gone")

    book = Book(refuse)
    desk = desk_of(book)
    lanes = crowd(book, desk, [("a", n) for n in range(4)])
    assert lanes[0].found == "a0 done"
    assert [type(lane.found) for lane in lanes[1:]] == [error] * 3
    assert len(book.pages) == 2, "nobody's rows are tried again without a look at what became"
    assert desk.put(("a", 9)) == "a9 done", "the desk goes on"


@pytest.mark.parametrize("error", [Busy, ValueError])
def test_a_job_that_cannot_be_written_keeps_nobody_elses(error: type[Exception]) -> None:
    def refuse(jobs: Sequence[Any]) -> None:
        if ("a", 2) in jobs:
            raise error("not this one")

    book = Book(refuse)
    desk = desk_of(book)
    lanes = crowd(book, desk, [("a", n) for n in range(4)])
    found = [lane.found for lane in lanes]
    assert [found[0], found[1], found[3]] == ["a0 done", "a1 done", "a3 done"]
    assert isinstance(found[2], error)
    assert book.pages[1:] == [[("a", 1), ("a", 2), ("a", 3)], [("a", 1)], [("a", 2)], [("a", 3)]]
    assert desk.put(("a", 9)) == "a9 done"


def test_who_waits_for_somebody_elses_lock_does_so_away_from_the_desk() -> None:
    """One row that another session holds must not keep every lane of the process."""
    held = OperationalError("lock timeout")
    held.__cause__ = LockNotAvailable()

    def refuse(jobs: Sequence[Any]) -> None:
        if ("a", 2) in jobs:
            raise held

    book = Book(refuse)
    by_hand: list[Any] = []

    def alone(job: Any) -> str:
        by_hand.append(job)
        return f"{job[0]}{job[1]} by hand"

    desk: Desk[Any, str] = Desk(
        book.write, alone=alone, together=lambda job: job[0], rows=ten_rows, most=100
    )
    lanes = crowd(book, desk, [("a", n) for n in range(4)])
    assert [lane.found for lane in lanes] == [
        "a0 done", "a1 by hand", "a2 by hand", "a3 by hand",
    ]  # fmt: skip
    assert len(book.pages) == 2, "the desk did not wait for it again"
    assert sorted(by_hand) == [("a", 1), ("a", 2), ("a", 3)]
    assert desk.put(("a", 9)) == "a9 done"


def test_a_writer_that_is_interrupted_leaves_nobody_waiting() -> None:
    def refuse(jobs: Sequence[Any]) -> None:
        if jobs[0] == ("a", 0):
            raise KeyboardInterrupt

    book = Book(refuse)
    lanes = crowd(book, desk_of(book), [("a", n) for n in range(3)])
    assert isinstance(lanes[0].found, KeyboardInterrupt)
    assert [lane.found for lane in lanes[1:]] == ["a1 done", "a2 done"]


def test_many_lanes_have_each_job_written_once() -> None:
    written: list[Any] = []

    def write(jobs: Sequence[Any]) -> list[str]:
        written.extend(jobs)
        return [f"{kind}{number} done" for kind, number in jobs]

    desk: Desk[Any, str] = Desk(
        write, together=lambda job: job[0], rows=lambda job: [job[1]], most=7
    )
    wrong: list[Any] = []

    def work(lane: int) -> None:
        for n in range(200):
            job = ("ab"[n % 2], lane * 1000 + n)
            if desk.put(job) != f"{job[0]}{job[1]} done":
                wrong.append(job)

    lanes = [threading.Thread(target=work, args=(n,), daemon=True) for n in range(16)]
    for lane in lanes:
        lane.start()
    for lane in lanes:
        lane.join(DEADLINE)
        assert not lane.is_alive()
    assert wrong == []
    assert len(written) == len(set(written)) == 16 * 200
