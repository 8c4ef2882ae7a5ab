"""An export as a streamed answer, and a client that goes away or is slow."""

from __future__ import annotations

import io
import socket
import time
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit
from urllib.request import urlopen

import pytest
from django.db import connection
from django.http import HttpRequest, StreamingHttpResponse
from django.urls import path
from psycopg.pq import TransactionStatus

from subscribers import exporting
from subscribers.exporting import export_chunks, export_csv
from subscribers.models import Account, Subscriber
from tests.factories import AccountFactory, SegmentFactory, SubscriberFactory


def download(request: HttpRequest) -> StreamingHttpResponse:
    return StreamingHttpResponse(export_chunks(Account.objects.get()))


urlpatterns = [path("people.csv", download)]


def crowd(size: int, name: str = "Zo\u00eb") -> Account:
    account = AccountFactory.create()
    Subscriber.objects.bulk_create(
        Subscriber(account=account, email=f"p{n}@example.org", attributes={"name": name})
        for n in range(size)
    )
    return account


def status() -> TransactionStatus:
    return TransactionStatus(connection.connection.info.transaction_status)


def whole(account: Account) -> bytes:
    target = io.StringIO(newline="")
    export_csv(target, account=account)
    return target.getvalue().encode()


@pytest.mark.django_db
def test_the_chunks_are_the_same_file() -> None:
    account = crowd(1_201)
    chunks = list(export_chunks(account))
    assert len(chunks) == 4
    assert b"".join(chunks) == whole(account)


@pytest.mark.django_db
def test_another_account_s_segment_is_refused_before_the_answer_begins() -> None:
    with pytest.raises(ValueError, match="not one of the account"):
        export_chunks(AccountFactory.create(), SegmentFactory.create())


@pytest.mark.django_db(transaction=True)
def test_a_client_that_goes_away_ends_the_snapshot() -> None:
    answer = StreamingHttpResponse(export_chunks(crowd(1_201)))
    parts: Iterator[bytes] = iter(answer)
    assert next(parts).startswith(b"email,")
    assert next(parts).startswith(b"p0@example.org")
    assert status() == TransactionStatus.INTRANS
    answer.close()
    assert not connection.in_atomic_block
    assert connection.connection is None or status() == TransactionStatus.IDLE
    account = AccountFactory.create()
    SubscriberFactory.create(account=account)
    assert whole(account).count(b"\n") == 2


@pytest.mark.django_db(transaction=True)
def test_a_download_that_was_never_begun_holds_nothing() -> None:
    account = crowd(3)
    answer = StreamingHttpResponse(export_chunks(account))
    assert not connection.in_atomic_block
    answer.close()
    assert status() == TransactionStatus.IDLE


@pytest.mark.django_db(transaction=True)
def test_a_slow_client_gets_the_same_snapshot_without_holding_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    account = crowd(1_201)
    expected = whole(account)
    monkeypatch.setattr(exporting, "PATIENCE", -1.0)
    chunks = export_chunks(account)
    found = [next(chunks)]
    assert status() == TransactionStatus.INTRANS
    found.append(next(chunks))
    assert status() == TransactionStatus.IDLE
    SubscriberFactory.create(account=account, email="late@example.org")
    found += chunks
    assert b"".join(found) == expected


@pytest.mark.django_db(transaction=True)
def test_what_is_committed_meanwhile_is_not_half_in_it() -> None:
    account = crowd(1_201)
    expected = whole(account)
    chunks = export_chunks(account)
    found = [next(chunks)]
    other = connection.copy()
    try:
        with other.cursor() as cursor:
            cursor.execute(
                f'UPDATE {Subscriber._meta.db_table} SET attributes = \'{{"new": "x"}}\' '
                "WHERE account_id = %s",
                [account.pk],
            )
    finally:
        other.close()
    found += chunks
    assert b"".join(found) == expected
    assert whole(account) != expected


def open_snapshots() -> int:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() "
            "AND pid <> pg_backend_pid() AND backend_type = 'client backend' "
            "AND xact_start IS NOT NULL"
        )
        return int(cursor.fetchone()[0])


@pytest.mark.django_db(transaction=True)
def test_a_real_client_that_goes_away_leaves_no_snapshot(live_server: Any, settings: Any) -> None:
    settings.ROOT_URLCONF = __name__
    account = crowd(6_000, "x" * 4_000)
    server = urlsplit(live_server.url)
    with socket.create_connection((server.hostname, server.port), timeout=30) as client:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        client.sendall(b"GET /people.csv HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert b" 200 " in client.recv(200)
        # More than fits between the two: the server waits for this client.
        deadline = time.monotonic() + 30
        while not open_snapshots() and time.monotonic() < deadline:
            time.sleep(0.05)
        assert open_snapshots() == 1
    deadline = time.monotonic() + 30
    while open_snapshots() and time.monotonic() < deadline:
        time.sleep(0.05)
    assert open_snapshots() == 0
    with urlopen(f"{live_server.url}/people.csv", timeout=60) as answer:
        assert answer.read() == whole(account)
