"""Writes for those who do not wait: what they lay down is written by a thread of its own.

A lane whose messages are under way has time until they are answered. So the clerk gathers what
comes from all of them, as long as each has said that it has time, and writes it in one transaction;
who wants an answer now has it written now.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Generic, NoReturn, TypeVar

Job = TypeVar("Job")
Result = TypeVar("Result")

#: Seconds without a job after which the thread ends; the next job starts another.
IDLE = 5.0


class Ticket(Generic[Result]):
    """For the result of a job that was laid down."""

    def __init__(self, hurry: Callable[[], None]) -> None:
        self._hurry = hurry
        self._done = threading.Lock()
        self._done.acquire()
        self._outcome: Callable[[], Result]

    def settle(self, outcome: Callable[[], Result]) -> None:
        """The job is done, or has failed: ``outcome`` says which."""
        self._outcome = outcome
        self._done.release()

    def result(self) -> Result:
        """What writing the job returned, or raises what it raised; blocks until it is done. To be
        asked once."""
        if not self._done.acquire(blocking=False):
            self._hurry()
            self._done.acquire()
        return self._outcome()


def _fail(error: BaseException) -> NoReturn:
    raise error


class Clerk(Generic[Job, Result]):
    """``write`` does several jobs, and returns for each what to call for its result."""

    def __init__(
        self, write: Callable[[Sequence[Job]], Sequence[Callable[[], Result]]], name: str
    ) -> None:
        self._write = write
        self._name = name
        self._changed = threading.Condition(threading.Lock())
        self._laid: list[tuple[Job, Ticket[Result]]] = []
        #: When the first of them is to be written (``time.monotonic``).
        self._due = 0.0
        self._works = False

    def lay(self, job: Job, patience: float) -> Ticket[Result]:
        """Have writing ``job`` begun within ``patience`` seconds; never blocks."""
        ticket: Ticket[Result] = Ticket(self._hurry)
        due = time.monotonic() + patience
        with self._changed:
            is_first = not self._laid or due < self._due
            if is_first:
                self._due = due
            self._laid.append((job, ticket))
            if not self._works:
                threading.Thread(target=self._run, name=self._name, daemon=True).start()
                self._works = True
            elif is_first:
                self._changed.notify()
        return ticket

    def _hurry(self) -> None:
        with self._changed:
            self._due = 0.0
            self._changed.notify()

    def _run(self) -> None:
        while laid := self._gathered():
            outcomes: Sequence[Callable[[], Result]]
            try:
                outcomes = self._write([job for job, _ in laid])
            except BaseException as error:
                outcomes = [partial(_fail, error)] * len(laid)
            for (_, ticket), outcome in zip(laid, outcomes, strict=True):
                ticket.settle(outcome)

    def _gathered(self) -> list[tuple[Job, Ticket[Result]]]:
        """What there is to do next; nothing: the thread ends."""
        with self._changed:
            if not self._changed.wait_for(lambda: self._laid, IDLE):
                self._works = False
                return []
            while (left := self._due - time.monotonic()) > 0:
                self._changed.wait(left)
            laid, self._laid = self._laid, []
            return laid
