"""The database connections of one sender process: four at most, whatever the number of lanes.

Django keeps a connection per thread; a process of fifty lanes would hold fifty. Here lanes
borrow one of a few for the length of a transaction. A borrowed connection becomes the thread's
own ``default`` connection, so that ``transaction.atomic``, the ORM and every verb of the
project work on it unchanged.
"""

from __future__ import annotations

import contextlib
import logging
import queue
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from django.db import (
    DEFAULT_DB_ALIAS,
    InterfaceError,
    InternalError,
    OperationalError,
    connections,
)
from django.db.backends.base.base import BaseDatabaseWrapper

log = logging.getLogger("sendonce.sender")

#: What says "the database is not there (any more)", as against "the statement is wrong".
#: A lock or statement time-out is an OperationalError too: to try again is right for both.
LOST = (OperationalError, InterfaceError)
#: The SQLSTATE with which PostgreSQL ends a session that was stopped inside a transaction.
IDLE_IN_TRANSACTION = "25P03"


class Busy(OperationalError):
    """A decision about a campaign is under way; nothing was written, try again in a moment.

    Raised instead of waiting at the gate, so that one campaign's decision never keeps the few
    connections of a process from all the others.
    """


class Unacknowledged(OperationalError):
    """COMMIT came back with a warning: the standby did not confirm. Nothing may be sent."""


class PoolClosed(Exception):
    """The sender has ended and lends no connections any more."""


class Pool:
    """``size`` connections, borrowed by threads one transaction at a time.

    ``verify`` runs on each connection when it is new: it may lead to another server than the
    last one did. What it raises, ``lend`` raises.
    """

    def __init__(self, size: int, verify: Callable[[], object] | None = None) -> None:
        self._verify = verify
        self._idle: queue.LifoQueue[BaseDatabaseWrapper | None] = queue.LifoQueue()
        self._closed = False
        for _ in range(size):
            self._idle.put(None)

    @contextmanager
    def lend(self) -> Iterator[BaseDatabaseWrapper]:
        """A connection as this thread's default one; waits while all are out.

        After any error it is closed rather than returned open: its state is unknown. A session
        that PostgreSQL has ended for being idle inside a transaction is one of ``LOST``.
        """
        wrapper = self._idle.get()
        if self._closed:
            self._idle.put(wrapper)  # for the next one who waits
            raise PoolClosed("the sender has ended; its connections are closed")
        if wrapper is None:
            wrapper = connections.create_connection(DEFAULT_DB_ALIAS)
            wrapper.inc_thread_sharing()
        try:
            with as_default(wrapper):
                if self._verify is not None and wrapper.connection is None:
                    self._verify()
                yield wrapper
        except Busy:
            raise  # rolled back, and the connection is as good as before
        except BaseException as error:
            close_quietly(wrapper)
            # The driver files it under internal errors, and those are faults of ours.
            if (
                isinstance(error, InternalError)
                and getattr(error.__cause__, "sqlstate", None) == IDLE_IN_TRANSACTION
            ):
                raise OperationalError(str(error)) from error
            raise
        finally:
            self._idle.put(wrapper)

    def close(self) -> None:
        """Close what is idle; borrowed connections close when their process ends. Whoever asks
        for one from now on gets ``PoolClosed``."""
        self._closed = True
        with contextlib.suppress(queue.Empty):
            while True:
                wrapper = self._idle.get_nowait()
                if wrapper is not None:
                    close_quietly(wrapper)
        self._idle.put(None)  # lets those who wait find out


@contextmanager
def as_default(wrapper: BaseDatabaseWrapper) -> Iterator[None]:
    """Make ``wrapper`` the calling thread's default connection for the length of the block."""
    own = [c for c in connections.all(initialized_only=True) if c.alias == DEFAULT_DB_ALIAS]
    connections[DEFAULT_DB_ALIAS] = wrapper
    try:
        yield
    finally:
        # The thread's own connection, where it has one (the main thread of a command), comes
        # back: forgotten, it would be left open.
        if own:
            connections[DEFAULT_DB_ALIAS] = own[0]
        else:
            del connections[DEFAULT_DB_ALIAS]


def close_quietly(wrapper: BaseDatabaseWrapper) -> None:
    """Close, whatever state it is in; a broken connection may fail to."""
    try:
        wrapper.close()
    except Exception:
        log.debug("closing a broken connection failed", exc_info=True)


@contextmanager
def acknowledged(wrapper: Any) -> Iterator[None]:
    """Around a transaction whose COMMIT must be clean.

    PostgreSQL commits locally and sends a WARNING when the wait for a synchronous standby is
    canceled: the hand-over may be lost in a failover. Raises ``Unacknowledged`` then.
    """
    wrapper.ensure_connection()
    raw = wrapper.connection
    warnings: list[str] = []

    def note(diagnostic: Any) -> None:
        if diagnostic.severity_nonlocalized in {"WARNING", "ERROR"}:
            warnings.append(str(diagnostic.message_primary))

    raw.add_notice_handler(note)
    try:
        yield
    finally:
        if not raw.closed:
            raw.remove_notice_handler(note)
    if warnings:
        raise Unacknowledged(f"the commit came back with a warning: {warnings[0]}")
