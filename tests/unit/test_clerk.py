"""What is laid down is written together, soon, and at once when somebody waits for it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial

import pytest

from sending import clerk
from sending.clerk import Clerk


class Writer:
    """What was written together; ``gate`` holds the writing up."""

    def __init__(self) -> None:
        self.batches: list[list[int]] = []
        self.gate = threading.Event()
        self.gate.set()

    def write(self, jobs: Sequence[int]) -> list[Callable[[], int]]:
        self.batches.append(list(jobs))
        assert self.gate.wait(15)
        return [partial(self._told, job) for job in jobs]

    def _told(self, job: int) -> int:
        if job < 0:
            raise ValueError(f"job {job}")
        return job * 10


@pytest.fixture
def writer(monkeypatch: pytest.MonkeyPatch) -> Iterator[Writer]:
    made = Writer()
    monkeypatch.setattr(clerk, "IDLE", 0.1)
    yield made
    made.gate.set()
    end = time.monotonic() + 15
    while any(thread.name == "test-clerk" for thread in threading.enumerate()):
        assert time.monotonic() < end, "the thread ends when there is nothing to do"
        time.sleep(0.01)


def _clerk(writer: Writer) -> Clerk[int, int]:
    return Clerk(writer.write, "test-clerk")


def test_what_was_gathered_is_written_together_when_somebody_waits(writer: Writer) -> None:
    desk = _clerk(writer)
    tickets = [desk.lay(job, 60) for job in (1, -2, 3)]
    assert tickets[2].result() == 30
    assert writer.batches == [[1, -2, 3]]
    assert tickets[0].result() == 10
    with pytest.raises(ValueError, match="job -2"):
        tickets[1].result()


def test_nobody_waits_for_the_patience_of_another(writer: Writer) -> None:
    desk = _clerk(writer)
    desk.lay(1, 60)
    desk.lay(2, 0.01)
    end = time.monotonic() + 15
    while not writer.batches:
        assert time.monotonic() < end
        time.sleep(0.01)
    assert writer.batches == [[1, 2]]


def test_what_comes_while_it_writes_is_the_next_to_be_written(writer: Writer) -> None:
    desk = _clerk(writer)
    writer.gate.clear()
    first = desk.lay(1, 60)
    waiting = threading.Thread(target=first.result)
    waiting.start()
    while not writer.batches:
        time.sleep(0.01)
    others = [desk.lay(job, 60) for job in (2, 3)]
    writer.gate.set()
    waiting.join(15)
    assert [ticket.result() for ticket in others] == [20, 30]
    assert writer.batches == [[1], [2, 3]]


def test_a_thread_that_had_nothing_to_do_is_started_again(writer: Writer) -> None:
    desk = _clerk(writer)
    assert desk.lay(1, 60).result() == 10
    while any(thread.name == "test-clerk" for thread in threading.enumerate()):
        time.sleep(0.01)
    assert desk.lay(2, 60).result() == 20


def test_a_fault_of_the_writing_reaches_everybody_and_the_next_is_written(writer: Writer) -> None:
    faults = [RuntimeError("a bug")]

    def buggy(jobs: Sequence[int]) -> list[Callable[[], int]]:
        if faults:
            raise faults.pop()
        return writer.write(jobs)

    desk: Clerk[int, int] = Clerk(buggy, "test-clerk")
    tickets = [desk.lay(job, 60) for job in (1, 2)]
    for ticket in tickets:
        with pytest.raises(RuntimeError, match="a bug"):
            ticket.result()
    assert desk.lay(3, 60).result() == 30
