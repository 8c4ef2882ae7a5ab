"""An import is killed, and the same command goes on: the same people, counts and rejects."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.db import connection

from config.embedded.cluster import Cluster
from subscribers.models import (
    Account,
    AuditEvent,
    ImportChunk,
    ImportJob,
    ImportRow,
    Membership,
    Segment,
    Subscriber,
)
from subscribers.suppression import suppress
from tests.crash.conftest import wait_until
from tests.db.imports import outcome
from tests.factories import AccountFactory, SegmentFactory
from tests.forks import Forked, Forks

PEOPLE = 330


def people_file(path: Path) -> Path:
    """330 people in no order: some twice, some known, some who left or were erased, some bad."""
    rows = []
    for n in range(PEOPLE):
        mixed = n * 7919 % PEOPLE
        rows.append(f"P{mixed}@example.org,N° {n},{n % 3 or ''},{'manual' if n % 50 == 9 else ''}")
        if n % 11 == 0:
            rows.append(f"bad {n},\\,,")
        if n % 7 == 0:
            rows.append(f"p{mixed}@example.org,again {n},,")
    path.write_text("email,name,size,suppressed\n" + "\n".join(rows) + "\n")
    return path


def make_account(slug: str) -> Account:
    """One that knows some of the people."""
    account = AccountFactory.create(slug=slug)
    segment = SegmentFactory.create(account=account, slug="all")
    for n in range(0, PEOPLE, 20):
        person = Subscriber.objects.create(
            account=account,
            email=f"p{n}@example.org",
            status="unsubscribed" if n % 40 else "pending",
            attributes={"name": "known"},
        )
        if n % 60 == 0:
            Membership.objects.create(segment=segment, subscriber=person)
        suppress(account, f"p{n + 3}@example.org", "erased")
    return account


class Importers:
    """Starts ``import_subscribers`` processes and sees to their end."""

    def __init__(self, environ: dict[str, str], file: Path, log: Path, forks: Forks) -> None:
        self.environ = environ
        self.file = people_file(file)
        self.log = log
        self.forks = forks
        self.running: list[Forked] = []

    def start(
        self, slug: str, *more: str, point: str = "never", count: int = 1, by: str = "SIGKILL"
    ) -> Forked:
        command = ["-m", "tests.crash.killable_import", point, str(count), by]
        command += ["import_subscribers", str(self.file), "--account", slug, "--segment", "all"]
        process = self.forks.start([*command, "--confirmed", *more], env=self.environ, out=self.log)
        self.running.append(process)
        return process

    def run(self, slug: str, *more: str, **killed: Any) -> int:
        """To its end; what it said is in the log."""
        self.log.write_text("")
        return self.start(slug, *more, **killed).wait(60)

    def killed(self, slug: str, *more: str, **killed: Any) -> bool:
        """Was it killed? The lease is then taken to have run out."""
        code = self.run(slug, *more, **killed)
        assert code in (0, -signal.SIGKILL), self.log.read_text()
        expire_leases()
        return code != 0

    def rejects(self) -> str:
        path = self.file.with_name(f"{self.file.name}.rejects.csv")
        text = path.read_text()
        path.unlink()
        return text

    def stop_all(self) -> None:
        for process in self.running:
            if process.poll() is None:
                process.send_signal(signal.SIGCONT)
                process.kill()
            process.wait()


def expire_leases() -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE sendonce_subscribers_importjob SET lease_until = now() "
            "WHERE lease_until IS NOT NULL"
        )


@pytest.fixture
def importers(
    environ: dict[str, str], own_database: str, tmp_path: Path, forks: Forks
) -> Iterator[Importers]:
    made = Importers(environ, tmp_path / "people.csv", tmp_path / "imports.log", forks)
    yield made
    made.stop_all()


@pytest.fixture
def undisturbed(importers: Importers) -> dict[str, Any]:
    """What an import leaves behind that nothing happened to, its reject file and its words."""
    make_account("calm")
    assert importers.run("calm") == 0, importers.log.read_text()
    found = what_is_left(importers, "calm")
    assert len(found["rejects"]) == 30 + 17
    assert len(found["people"]) == PEOPLE - 17
    assert found["counts"]["duplicates"] > 40
    assert found["counts"]["updated"]
    assert found["counts"]["unsubscribed"]
    assert found["staged"] == 0
    return found


def what_is_left(importers: Importers, slug: str) -> dict[str, Any]:
    job = ImportJob.objects.get(account__slug=slug)
    assert job.runner is None
    audited = AuditEvent.objects.filter(account__slug=slug).values_list("verb", flat=True)
    return {
        **outcome(job),
        "said": importers.log.read_text(),
        "file": importers.rejects(),
        "audited": list(audited),
    }


@pytest.mark.parametrize(
    ("point", "count"),
    [
        # While the file is read: the job is found, its columns are told, then a batch.
        pytest.param("commit:before", 4, marks=pytest.mark.soak),
        ("commit:after", 3),
        ("row", 60),
        # The last one is empty, and the end comes behind it.
        ("chunk:after", 2),
        ("tell:before", 1),
        ("tell:after", 1),
    ],
)
def test_killed_again_and_again_it_ends_as_if_nothing_had_happened(
    importers: Importers, undisturbed: dict[str, Any], point: str, count: int
) -> None:
    make_account("wild")
    kills = 0
    while importers.killed("wild", point=point, count=count):
        kills += 1
        assert ImportJob.objects.filter(account__slug="wild").count() <= 1
        assert kills < 40, "it makes no headway"
        if point.startswith("tell"):
            count = 2
    assert kills >= {"commit:before": 10, "commit:after": 10, "row": 5, "chunk:after": 4}.get(
        point, 1
    )
    assert what_is_left(importers, "wild") == undisturbed


def test_atomic_means_all_or_nothing(importers: Importers, undisturbed: dict[str, Any]) -> None:
    account = make_account("wild")
    before = Subscriber.objects.filter(account=account).count()
    # Its commits: the job, the columns, eight or nine batches, and then all people.
    for count in (4, 10):
        assert importers.killed("wild", "--atomic", point="commit:before", count=count)
        assert Subscriber.objects.filter(account=account).count() == before
    assert not importers.killed("wild", "--atomic")
    assert what_is_left(importers, "wild") == undisturbed


def test_a_runner_that_was_taken_for_dead_writes_nothing_more(
    importers: Importers, undisturbed: dict[str, Any]
) -> None:
    make_account("wild")
    slow = importers.start("wild", point="chunk:after", count=3, by="SIGSTOP")
    job = ImportJob.objects.filter(account__slug="wild", counts__has_key="imported")
    wait_until(lambda: job.exists() and _is_stopped(slow), "the first standing still")
    expire_leases()
    assert importers.run("wild") == 0, importers.log.read_text()
    found = what_is_left(importers, "wild")
    slow.send_signal(signal.SIGCONT)
    assert slow.wait(60) in (0, 2), importers.log.read_text()
    assert found == undisturbed
    assert outcome(ImportJob.objects.get(account__slug="wild")).items() <= undisturbed.items()


def _is_stopped(process: Forked) -> bool:
    return Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()[0] == "T"


def test_two_at_once_are_one_import(importers: Importers, undisturbed: dict[str, Any]) -> None:
    make_account("wild")
    importers.log.write_text("")
    first = importers.start("wild", point="chunk:after", count=1, by="SIGSTOP")
    wait_until(lambda: _is_stopped(first), "the first standing still")
    second = importers.start("wild")  # while the first is at work, however fast that is
    wait_until(lambda: "waiting for its end" in importers.log.read_text(), "the second waiting")
    first.send_signal(signal.SIGCONT)
    assert [first.wait(60), second.wait(60)] == [0, 0], importers.log.read_text()
    found = {**what_is_left(importers, "wild"), "said": ""}
    assert found == {**undisturbed, "said": ""}
    # The second waited for the first and tells the same.
    summary = undisturbed["said"].splitlines()[0]
    assert importers.log.read_text().splitlines().count(summary) == 2


def test_another_runner_goes_on_without_the_file(
    importers: Importers, undisturbed: dict[str, Any]
) -> None:
    make_account("wild")
    assert importers.killed("wild", point="chunk:after", count=3)
    importers.file.unlink()
    done = importers.forks.manage("run_imports", env=importers.environ)
    assert done.returncode == 0, done.stderr
    assert undisturbed["said"].splitlines()[0] in done.stdout
    left = outcome(ImportJob.objects.get(account__slug="wild"))
    assert left == {name: undisturbed[name] for name in left}


@pytest.mark.parametrize("chunks", [0, 3])
def test_the_server_crashes_when_rows_are_staged(
    own_cluster: Cluster,
    environ: dict[str, str],
    tmp_path: Path,
    forks: Forks,
    chunks: int,
) -> None:
    importers = Importers(environ, tmp_path / "people.csv", tmp_path / "imports.log", forks)
    try:
        make_account("calm")
        assert importers.run("calm") == 0, importers.log.read_text()
        undisturbed = what_is_left(importers, "calm")
        make_account("wild")
        if chunks:
            assert importers.killed("wild", point="chunk:after", count=chunks)
        else:
            assert importers.killed("wild", point="row", count=320)
        assert ImportRow.objects.exists()
        connection.close()
        server = own_cluster.server()
        assert server is not None
        os.kill(server, signal.SIGKILL)
        wait_until(lambda: own_cluster.server() is None, "the server's end")
        own_cluster.ensure()
        assert not ImportRow.objects.exists(), "what is tested here"
        assert not importers.killed("wild")
        assert what_is_left(importers, "wild") == undisturbed
    finally:
        importers.stop_all()


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"email," + b",".join(b"c%d" % n for n in range(10_000)) + b"\na@example.org\n", "10001"),
        (b"\0\0\0\0", "NUL"),
        (b"email\n" * 3 + b"a@example.org\n\xff\xfe\xff\n", ""),
        (b"x" * 3_000_000, "longer than"),
        (b"PK\x03\x04 not really", ""),
    ],
    ids=["10,000 columns", "NUL", "bytes", "huge line", "no zip"],
)
def test_a_bad_file_is_one_plain_line_and_nothing_half_written(
    importers: Importers, content: bytes, why: str
) -> None:
    make_account("wild")
    before = Subscriber.objects.count()
    importers.file.write_bytes(content)
    code = importers.run("wild", "--encoding", "utf-8")
    said = importers.log.read_text()
    assert code == 2, said
    assert len(said.splitlines()) == 1
    assert len(said) < 500
    assert why in said
    assert Subscriber.objects.count() == before
    assert not ImportRow.objects.exists()
    assert not ImportChunk.objects.exists()
    assert Segment.objects.filter(memberships__isnull=False).distinct().count() == 1


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(
    ("point", "count"),
    [("row", 120), ("commit:before", 3), ("commit:after", 3), ("chunk:after", 2)],
)
def test_sigterm_ends_it_in_order_and_the_next_run_goes_on_at_once(
    importers: Importers, undisturbed: dict[str, Any], point: str, count: int
) -> None:
    make_account("ended")
    code = importers.run("ended", point=point, count=count, by="SIGTERM")
    assert code == 2, importers.log.read_text()
    assert "are in; the same command goes on" in importers.log.read_text()
    assert ImportJob.objects.get(account__slug="ended").lease_until is None
    assert importers.run("ended") == 0, importers.log.read_text()
    assert what_is_left(importers, "ended") == undisturbed
