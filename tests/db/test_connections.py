"""The pool: few connections for many threads, and none that is in an unknown state."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from functools import partial

import pytest
from django.db import (
    OperationalError,
    ProgrammingError,
    connection,
    connections,
    transaction,
)

from campaigns.models import Campaign
from sending.connections import (
    LOST,
    Pool,
    PoolClosed,
    Unacknowledged,
    acknowledged,
    as_default,
)
from tests.factories import CampaignFactory

from .racing import DEADLINE, Halt, Race

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def pool() -> Iterator[Pool]:
    made = Pool(3)
    yield made
    made.close()


def _backend() -> int:
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_backend_pid()")
        return int(cursor.fetchone()[0])


def _execute(statement: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute(statement)


def _fail(pool: Pool, error: type[BaseException]) -> None:
    """Break off in the middle of a transaction."""
    with pool.lend(), transaction.atomic():
        CampaignFactory.create()
        raise error


def _sessions() -> set[int]:
    """Client sessions of this database besides the test's own."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT pid FROM pg_stat_activity WHERE datname = current_database()"
            " AND backend_type = 'client backend' AND pid <> pg_backend_pid()"
        )
        return {pid for (pid,) in cursor.fetchall()}


def test_twenty_threads_share_three_connections(pool: Pool) -> None:
    before = _sessions()
    backends: set[int] = set()
    out, most, lock = 0, 0, threading.Lock()

    def borrow() -> None:
        nonlocal out, most
        for _ in range(5):
            with pool.lend():
                with lock:
                    out += 1
                    most = max(most, out)
                with transaction.atomic():
                    backends.add(_backend())
                with lock:
                    out -= 1

    threads = [threading.Thread(target=borrow) for _ in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(DEADLINE)
    assert not any(thread.is_alive() for thread in threads)
    assert 1 <= len(backends) <= 3
    assert most <= 3
    # One of a test before may end only now.
    assert _sessions() - before == backends, "none beside those of the pool"


def test_a_borrower_waits_while_all_are_out(pool: Pool) -> None:
    with Race() as race:
        halts = [race.halt() for _ in range(3)]

        def borrow_until(halt: Halt) -> int:
            with pool.lend():
                backend = _backend()
                halt.here()
                return backend

        def last() -> int:
            with pool.lend():
                return _backend()

        staying = [race.start_to(halt, partial(borrow_until, halt)) for halt in halts]
        waiting = race.start(last)
        waiting.connected.wait(DEADLINE)
        waiting.join(0.05)
        assert waiting.is_alive()
        halts[1].released.set()
        assert waiting.result() == staying[1].result()


def test_orm_and_transactions_use_the_borrowed_connection(pool: Pool) -> None:
    own = _backend()
    with pool.lend() as wrapper, transaction.atomic():
        assert connections["default"] is wrapper
        CampaignFactory.create(name="made on a borrowed connection")
        assert _backend() != own
    assert _backend() == own
    assert Campaign.objects.get().name == "made on a borrowed connection"


def test_a_threads_own_connection_comes_back_after_the_loan(pool: Pool) -> None:
    own = connections["default"]
    own.ensure_connection()
    with pool.lend():
        assert connections["default"] is not own
    assert connections["default"] is own
    with pytest.raises(ZeroDivisionError), pool.lend():
        raise ZeroDivisionError
    assert connections["default"] is own


def test_a_thread_without_a_connection_is_left_without(pool: Pool) -> None:
    def lend_only() -> list[str]:
        connections.close_all()
        del connections["default"]
        with pool.lend():
            _backend()
        return [c.alias for c in connections.all(initialized_only=True)]

    with Race() as race:
        assert race.start(lend_only).result() == []


@pytest.mark.parametrize("error", [ZeroDivisionError, OperationalError, KeyboardInterrupt])
def test_after_an_error_the_connection_is_closed(pool: Pool, error: type[BaseException]) -> None:
    with pool.lend() as wrapper:
        first = _backend()
    with pytest.raises(error):
        _fail(pool, error)
    assert wrapper.connection is None
    with pool.lend():
        assert _backend() != first


def test_an_error_inside_a_transaction_leaves_nothing_behind(pool: Pool) -> None:
    with pytest.raises(ZeroDivisionError):
        _fail(pool, ZeroDivisionError)
    with pool.lend() as wrapper:
        assert not wrapper.in_atomic_block
        assert not Campaign.objects.exists()


def test_a_session_that_the_server_ended_is_replaced(pool: Pool) -> None:
    with pool.lend():
        first = _backend()
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_terminate_backend(%s, 5000)", [first])
    with pytest.raises(LOST), pool.lend(), transaction.atomic():
        _backend()
    with pool.lend():
        assert _backend() != first


def test_closing_the_pool_closes_what_is_idle() -> None:
    before = _sessions()
    pool = Pool(2)
    with pool.lend():
        _backend()
    assert len(_sessions() - before) == 1
    pool.close()
    # The server takes its time to notice.
    deadline = time.monotonic() + DEADLINE
    while _sessions() - before and time.monotonic() < deadline:
        time.sleep(0.005)
    assert not _sessions() - before


def test_a_closed_pool_lends_nothing_and_tells_those_who_wait() -> None:
    pool = Pool(1)

    def ask() -> bool:
        try:
            with pool.lend():
                return True
        except PoolClosed:
            return False

    with Race() as race:
        halt = race.halt()

        def stay() -> None:
            with pool.lend():
                halt.here()

        staying = race.start_to(halt, stay)
        waiting = [race.start(ask) for _ in range(3)]
        pool.close()
        assert [racer.result() for racer in waiting] == [False, False, False]
        halt.released.set()
        staying.result()
    assert ask() is False


def test_a_notice_is_no_warning() -> None:
    with acknowledged(connection), transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("DO $$ BEGIN RAISE NOTICE 'just so'; END $$")


def test_a_warning_is() -> None:
    with (
        pytest.raises(Unacknowledged, match="beware"),
        acknowledged(connection),
        transaction.atomic(),
        connection.cursor() as cursor,
    ):
        cursor.execute("DO $$ BEGIN RAISE WARNING 'beware'; END $$")
    with acknowledged(connection), connection.cursor() as cursor:
        cursor.execute("SELECT 1")


def test_an_error_inside_is_told_rather_than_the_warning() -> None:
    with pytest.raises(ProgrammingError, match="nothing"), acknowledged(connection):
        _execute("DO $$ BEGIN RAISE WARNING 'beware'; END $$; SELECT nothing()")


def test_loans_may_be_nested(pool: Pool) -> None:
    with pool.lend() as outer:
        with pool.lend() as inner:
            assert connections["default"] is inner
        assert connections["default"] is outer
        with as_default(inner):
            assert connections["default"] is inner
        assert connections["default"] is outer
