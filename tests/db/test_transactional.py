"""Messages to one person, asked for by code."""

from __future__ import annotations

import threading
from datetime import datetime, timedelta
from typing import Any

import psycopg
import pytest
from django.db import close_old_connections, connection, connections, transaction
from django.utils import timezone

from campaigns.lifecycle import CHANNEL
from campaigns.models import Content
from sending.models import Send
from sending.transactional import KeyReused, enqueue
from subscribers.addresses import erased_hashes
from subscribers.models import Account
from tests.factories import AccountFactory, ContentFactory, SubscriberFactory

pytestmark = pytest.mark.django_db


@pytest.fixture
def account() -> Account:
    return AccountFactory.create()


def ask(account: Account, **given: Any) -> Send:
    options: dict[str, Any] = {
        "kind": "confirm",
        "key": "42",
        "to": "ann@example.org",
        "context": {"first_name": "Ann", "list": [1, {"x": None}]},
        "expires": timezone.now() + timedelta(hours=1),
        **given,
    }
    if "content" not in options:
        options["content"] = ContentFactory.build(account=account)
    return enqueue(account, **options)


def test_a_message_is_a_queued_send_without_campaign(account: Account) -> None:
    person = SubscriberFactory.create(account=account)
    send = ask(account, subscriber=person, to=" Ann@EXAMPLE.org ")
    send.refresh_from_db()
    assert send.status == Send.Status.QUEUED
    assert send.job_id == f"message:{account.pk}:confirm:42"
    assert (send.campaign_id, send.subscriber_id) == (None, person.pk)
    assert send.email == "Ann@example.org"
    assert send.context == {"first_name": "Ann", "list": [1, {"x": None}]}
    assert send.content is not None
    assert send.content.account_id == account.pk


def test_asking_twice_gives_the_same_row(account: Account) -> None:
    first = ask(account)
    assert ask(account) == first
    assert ask(account, to="ANN@example.org", expires=timezone.now()) == first
    assert ask(account, content=first.content) == first
    assert Send.objects.count() == 1
    assert Content.objects.count() == 1


def test_asking_again_for_what_was_sent_sends_nothing_new(account: Account) -> None:
    first = ask(account)
    Send.objects.filter(pk=first.pk).update(status="sent", sent_at=timezone.now())
    assert ask(account).status == Send.Status.SENT


def test_asking_again_for_an_erased_person_is_known_by_the_hash(account: Account) -> None:
    first = ask(account)
    Send.objects.filter(pk=first.pk).update(
        email=None, email_hash=erased_hashes("ann@example.org")[0]
    )
    assert ask(account).pk == first.pk
    with pytest.raises(KeyReused):
        ask(account, to="bob@example.org")


@pytest.mark.parametrize(
    "other",
    [
        {"to": "bob@example.org"},
        {"context": {"first_name": "Bob"}},
        {"context": {}},
    ],
    ids=["address", "context", "no context"],
)
def test_a_key_stands_for_one_message(account: Account, other: dict[str, Any]) -> None:
    ask(account)
    with pytest.raises(KeyReused, match="confirm '42' is another message already"):
        ask(account, **other)
    assert Send.objects.count() == 1


@pytest.mark.parametrize("field", ["subject", "html", "text", "from_name", "account_fields"])
def test_a_key_stands_for_one_content(account: Account, field: str) -> None:
    ask(account)
    content = ContentFactory.build(account=account)
    setattr(content, field, {"name": "X"} if field == "account_fields" else "other")
    with pytest.raises(KeyReused):
        ask(account, content=content)
    assert Content.objects.count() == 1


def test_keys_are_the_account_s_and_the_kind_s_own(account: Account) -> None:
    other = AccountFactory.create()
    rows = {ask(account).pk, ask(account, kind="test").pk, ask(other).pk}
    assert len(rows) == 3


@pytest.mark.parametrize(
    "bad",
    [
        {"kind": ""},
        {"kind": "a:b"},
        {"kind": "a b"},
        {"kind": "-a"},
        {"kind": "naïve"},
        {"kind": "a\n"},
        {"key": ""},
        {"key": "a b"},
        {"key": "a\x00"},
        {"key": "a\u200b"},
        {"key": "a\n"},
        {"key": "k" * 300},
        {"to": "nobody"},
        {"to": "a@example.org\r\nBcc: b@example.org"},
        {"context": {"x": {1, 2}}},
        {"context": {"x": float("nan")}},
        {"context": {"x": "\x00"}},
        {"context": {"x": "\\\x00"}},
        {"context": {"x": "\ud800"}},
        {"context": [1]},
        {"expires": datetime(2030, 1, 1)},
    ],
    ids=repr,
)
def test_bad_input_is_refused_and_nothing_is_written(account: Account, bad: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        ask(account, **bad)
    assert not Send.objects.exists()
    assert not Content.objects.exists()


@pytest.mark.parametrize("key", ["a:b", "ann@example.org", "2026-01-31T03:00Z", "ключ", "\\u0000"])
def test_a_key_is_whatever_the_caller_has(account: Account, key: str) -> None:
    assert ask(account, key=key).job_id.endswith(f":confirm:{key}")


def test_text_that_only_looks_like_a_nul_is_fine(account: Account) -> None:
    assert ask(account, context={"x": "\\u0000"}).context == {"x": "\\u0000"}


def test_the_longest_key_fits(account: Account) -> None:
    room = 300 - len(f"message:{account.pk}:confirm:")
    assert len(ask(account, key="k" * room).job_id) == 300
    with pytest.raises(ValueError, match="too long"):
        ask(account, key="k" * (room + 1))


def test_content_and_subscriber_must_be_the_account_s(account: Account) -> None:
    with pytest.raises(ValueError, match="the content belongs to another account"):
        ask(account, content=ContentFactory.create())
    with pytest.raises(ValueError, match="the subscriber belongs to another account"):
        ask(account, subscriber=SubscriberFactory.create())


@pytest.mark.django_db(transaction=True)
def test_it_is_there_when_the_caller_s_transaction_commits_and_wakes_a_worker() -> None:
    account = AccountFactory.create()

    class Undone(Exception):
        pass

    def undone() -> None:
        with transaction.atomic():
            ask(account, key="undone")
            raise Undone

    with psycopg.connect(_conninfo(), autocommit=True) as listener:
        listener.execute(f"LISTEN {CHANNEL}")
        with pytest.raises(Undone):
            undone()
        ask(account, key="done")
        heard = list(listener.notifies(timeout=30, stop_after=1))
    assert [notice.payload for notice in heard] == ["message"]
    assert list(Send.objects.values_list("job_id", flat=True)) == [
        f"message:{account.pk}:confirm:done"
    ]
    assert Content.objects.count() == 1


@pytest.mark.django_db(transaction=True)
def test_of_two_callers_at_once_one_makes_the_row() -> None:
    account = AccountFactory.create()
    made: list[Send] = []

    def second() -> None:
        close_old_connections()
        try:
            made.append(ask(account))
        finally:
            connections.close_all()

    thread = threading.Thread(target=second)
    with transaction.atomic():
        first = ask(account)
        thread.start()
        _until_somebody_waits()
    thread.join(30)
    assert [send.pk for send in made] == [first.pk]
    assert Send.objects.count() == 1
    assert Content.objects.count() == 1, "the loser's content must not stay behind"


def _until_somebody_waits() -> None:
    """Until another session waits for a lock of this one (pg_stat_activity would not do: it
    stands still within a transaction)."""
    pause = threading.Event()
    for _ in range(1500):
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT count(*) FROM pg_locks "
                "WHERE NOT granted AND pg_backend_pid() = ANY(pg_blocking_pids(pid))"
            )
            if cursor.fetchone()[0]:
                return
        pause.wait(0.02)
    raise AssertionError("the second caller does not wait for the first")


def _conninfo() -> str:
    given = connection.get_connection_params()
    wanted = ("dbname", "user", "password", "host", "port")
    return psycopg.conninfo.make_conninfo(**{k: v for k, v in given.items() if k in wanted})
