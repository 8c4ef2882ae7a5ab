"""Real senders, a real sink, a database of the test's own that several processes share."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest
from django.contrib.contenttypes.models import ContentType
from django.db import DEFAULT_DB_ALIAS, connections
from pytest_django import DjangoDbBlocker

from campaigns import lifecycle
from campaigns.models import Campaign
from config import embedded
from config.embedded.base import DatabaseWrapper
from config.embedded.cluster import Cluster
from sending.connections import as_default
from sending.sink.record import read_record
from subscribers.models import Account, Membership, Segment, Subscriber
from tests.conftest import ROOT
from tests.forks import Forked, Forks


@contextmanager
def orm_on(wrapper: Any) -> Iterator[None]:
    """The test's thread uses ``wrapper``, a connection to another database than the worker's, in
    which content types may have other numbers."""
    with as_default(wrapper):
        ContentType.objects.clear_cache()
        yield
    ContentType.objects.clear_cache()
    wrapper.close()


@pytest.fixture
def own_database(database_url: str, django_db_blocker: DjangoDbBlocker) -> Iterator[str]:
    """The ORM of this test writes, and commits, to the database that its processes use."""
    with django_db_blocker.unblock():
        wrapper = connections.create_connection(DEFAULT_DB_ALIAS)
        wrapper.settings_dict = {
            **wrapper.settings_dict,
            "NAME": psycopg.conninfo.conninfo_to_dict(database_url)["dbname"],
        }
        with orm_on(wrapper):
            yield database_url


class Sink:
    """The sink's process and its fsynced record, the oracle of these tests."""

    def __init__(self, record: Path, arguments: list[str]) -> None:
        self.record = record
        self.arguments = arguments
        self.port = 0
        self.process: subprocess.Popen[str] | None = None

    def start(self) -> None:
        self.process = subprocess.Popen(
            [
                sys.executable,
                "-m",
                "sending.sink",
                "--port",
                str(self.port),
                "--record",
                str(self.record),
                *self.arguments,
            ],
            cwd=ROOT,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        self.port = int(line.strip().rsplit(":", 1)[1])

    def stop(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            assert self.process.stdout is not None
            self.process.stdout.close()
            self.process = None

    def accepted(self) -> list[dict[str, Any]]:
        return [e for e in read_record(self.record) if e.get("accepted")]

    def wait_for(self, count: int, seconds: float = 60) -> None:
        """Wait until so many were accepted."""
        wait_until(lambda: len(self.accepted()) >= count, f"{count} accepted", seconds)


@pytest.fixture
def sink(tmp_path: Path) -> Iterator[Callable[..., Sink]]:
    """``sink("--delay", "0.01")`` starts one; it ends with the test."""
    started: list[Sink] = []

    def start(*arguments: str) -> Sink:
        made = Sink(tmp_path / f"sink-{len(started)}.jsonl", list(arguments))
        made.start()
        started.append(made)
        return made

    yield start
    for made in started:
        made.stop()


class Senders:
    """Starts ``run_sender`` processes and sees to their end."""

    def __init__(self, environ: dict[str, str], log: Path, forks: Forks) -> None:
        self.environ = environ
        self.log = log
        self.forks = forks
        self.running: list[Forked | subprocess.Popen[bytes]] = []

    def start(self, *arguments: str, **extra: str) -> Forked:
        return self._spawn([str(ROOT / "manage.py"), "run_sender", *arguments], extra)

    def start_anew(self, *arguments: str, **extra: str) -> subprocess.Popen[bytes]:
        """With an interpreter of its own, as a supervisor starts it."""
        with self.log.open("ab") as log:
            process = subprocess.Popen(
                [sys.executable, str(ROOT / "manage.py"), "run_sender", *arguments],
                cwd=ROOT,
                env={**self.environ, **extra},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
            )
        self.running.append(process)
        return process

    def start_killable(self, point: str, count: int, *arguments: str, **extra: str) -> Forked:
        """One that kills itself at a point of ``tests.crash.killable``."""
        command = ["-m", "tests.crash.killable", point, str(count), "run_sender", *arguments]
        return self._spawn(command, extra)

    def drain(self, *arguments: str, **extra: str) -> None:
        """Run one to the end of ``--drain``; it must exit 0."""
        process = self.start("--drain", *arguments, **extra)
        try:
            code = process.wait(120)
        except subprocess.TimeoutExpired:
            pytest.fail(f"not drained after two minutes:\n{self.log.read_text()}")
        assert code == 0, self.log.read_text()

    def _spawn(self, command: list[str], extra: dict[str, str]) -> Forked:
        process = self.forks.start(command, env={**self.environ, **extra}, out=self.log)
        self.running.append(process)
        return process

    def stop_all(self) -> None:
        for process in self.running:
            if process.poll() is None:
                process.send_signal(signal.SIGCONT)
                process.kill()
            process.wait()


@pytest.fixture
def senders(
    environ: dict[str, str], own_database: str, tmp_path: Path, forks: Forks
) -> Iterator[Senders]:
    made = Senders(environ, tmp_path / "senders.log", forks)
    yield made
    made.stop_all()


@pytest.fixture
def own_cluster(
    cluster: Cluster,
    environ: dict[str, str],
    django_db_blocker: DjangoDbBlocker,
    migrated_data: Path,
) -> Iterator[Cluster]:
    """A server of this test's own, migrated; the ORM of the test and the senders use it."""
    subprocess.run(["cp", "-a", str(migrated_data), str(cluster.data)], check=True)
    cluster.ensure()
    environ["DATABASE_URL"] = cluster.url()
    with django_db_blocker.unblock():
        settings = connections.create_connection(DEFAULT_DB_ALIAS).settings_dict
        wrapper = DatabaseWrapper({**settings, **embedded.database_settings(cluster.data)})
        with orm_on(wrapper):
            yield cluster


def make_campaign(addresses: list[str], *, slug: str = "crash", **account: Any) -> Campaign:
    """An approved campaign to these addresses, due now."""
    account.setdefault("from_email", "news@example.org")
    owner = Account.objects.create(
        name="Crash test", slug=slug, postal_address="1 Example Street", **account
    )
    segment = Segment.objects.create(account=owner, name="All", slug="all")
    people = Subscriber.objects.bulk_create(
        Subscriber(account=owner, email=address, status="confirmed", attributes={"name": f"N° {n}"})
        for n, address in enumerate(addresses)
    )
    Membership.objects.bulk_create(Membership(segment=segment, subscriber=p) for p in people)
    campaign = Campaign.objects.create(
        account=owner,
        name="Crash",
        subject="For {{ name }}",
        body='<p>Hello {{ name }}</p><p><a href="{{ unsubscribe_url }}">Leave</a></p>',
    )
    campaign.segments.add(segment)
    return lifecycle.approve(campaign, by=None)


def addresses(count: int, prefix: str = "p") -> list[str]:
    return [f"{prefix}-{n}@example.org" for n in range(count)]


def wait_until(happened: Callable[[], bool], what: str, seconds: float = 60) -> None:
    """Poll until it happened; fails with ``what`` after a bound that only a fault reaches."""
    end = time.monotonic() + seconds
    while not happened():
        if time.monotonic() > end:
            pytest.fail(f"waited {seconds} s for: {what}")
        time.sleep(0.02)
