"""Two things at once, on two connections, in an order that the test decides.

Nothing here sleeps for luck: a thread is stopped at a named point, or PostgreSQL itself says
that its backend waits for a lock.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any, Generic, TypeVar

import pytest
from django.db import connection, connections

from campaigns import gate

T = TypeVar("T")

#: Seconds after which a race that should have moved on is a failure.
DEADLINE = 15.0


class Racer(threading.Thread, Generic[T]):
    """Runs ``function`` in a thread, so on a connection of its own."""

    def __init__(self, function: Callable[[], T]) -> None:
        super().__init__(daemon=True)
        self.function = function
        self.pid = 0
        self.connected = threading.Event()
        self.value: T
        self.error: BaseException | None = None

    def run(self) -> None:
        try:
            with connection.cursor() as cursor:
                cursor.execute("SELECT pg_backend_pid()")
                (self.pid,) = cursor.fetchone()
            self.connected.set()
            self.value = self.function()
        except BaseException as error:
            self.error = error
        finally:
            self.connected.set()
            connections.close_all()

    def result(self) -> T:
        """What ``function`` returned, once it has; raises what it raised."""
        self.join(DEADLINE)
        assert not self.is_alive(), "the other side of the race did not come to an end"
        if self.error is not None:
            raise self.error
        return self.value

    def wait_until_blocked(self) -> None:
        """Until its backend waits for a lock that somebody else holds."""
        self.connected.wait(DEADLINE)
        deadline = time.monotonic() + DEADLINE
        while time.monotonic() < deadline:
            with connection.cursor() as cursor:
                cursor.execute("SELECT cardinality(pg_blocking_pids(%s))", [self.pid])
                (blockers,) = cursor.fetchone()
            if blockers:
                return
            assert self.is_alive(), f"it was not blocked but ended: {self.error or 'returned'}"
            time.sleep(0.003)
        pytest.fail("it was not blocked before the deadline")

    def kill_backend(self) -> None:
        """End its database session as a crash of the network or the server would."""
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_terminate_backend(%s, 5000)", [self.pid])


class Halt:
    """Stops the first racer that passes, until it is let go; everybody else walks through.

    ``behind`` wraps a function that the code under test calls at the wanted moment; the first
    ``passing`` calls are not it.
    """

    def __init__(self, passing: int = 0) -> None:
        self.passing = passing
        self.reached = threading.Event()
        self.released = threading.Event()

    def here(self) -> None:
        if isinstance(threading.current_thread(), Racer) and not self.reached.is_set():
            if self.passing:
                self.passing -= 1
                return
            self.reached.set()
            self.released.wait(DEADLINE)

    def behind(self, function: Callable[..., T]) -> Callable[..., T]:
        def halting(*args: Any, **kwargs: Any) -> T:
            value = function(*args, **kwargs)
            self.here()
            return value

        return halting


class Race:
    """A context: whoever still runs at its end is let go and waited for."""

    def __init__(self) -> None:
        self.racers: list[Racer[Any]] = []
        self.halts: list[Halt] = []

    def __enter__(self) -> Race:
        return self

    def __exit__(self, *_: object) -> None:
        for halt in self.halts:
            halt.released.set()
        for racer in self.racers:
            racer.join(DEADLINE)

    def start(self, function: Callable[[], T]) -> Racer[T]:
        racer = Racer(function)
        self.racers.append(racer)
        racer.start()
        return racer

    def halt(self, passing: int = 0) -> Halt:
        halt = Halt(passing)
        self.halts.append(halt)
        return halt

    def start_to(self, halt: Halt, function: Callable[[], T]) -> Racer[T]:
        """Start it and wait until it stands at ``halt``."""
        racer = self.start(function)
        deadline = time.monotonic() + DEADLINE
        while not halt.reached.wait(0.05):
            assert racer.is_alive(), f"it never came to the halt: {racer.error or 'returned'}"
            assert time.monotonic() < deadline, "it never came to the halt"
        return racer


def without_gate(monkeypatch: pytest.MonkeyPatch) -> None:
    """The control of a race: every gate stands open, all else is as it was."""
    monkeypatch.setattr(gate, "_TRY_SHARED", "SELECT 1 FROM unnest(%s::bigint[]) WHERE false")
    monkeypatch.setattr(gate, "_EXCLUSIVE", "SELECT %s")
