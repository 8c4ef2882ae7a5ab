"""The same import again: going on, taking over, beginning anew."""

from __future__ import annotations

import io
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from django.db import OperationalError, connection
from django.utils import timezone

from subscribers.importing import (
    ImportRefused,
    ImportStopped,
    Options,
    Step,
    files,
    import_file,
    jobs,
    leases,
    staging,
)
from subscribers.importing.applying import Applying
from subscribers.importing.pruning import prune
from subscribers.models import (
    AuditEvent,
    ImportChunk,
    ImportJob,
    ImportReject,
    ImportRow,
    Segment,
    Subscriber,
)
from tests.db.racing import Race
from tests.factories import (
    ImportChunkFactory,
    ImportJobFactory,
    ImportRejectFactory,
    ImportRowFactory,
)

from . import imports
from .imports import counts, load, members

pytestmark = pytest.mark.django_db

segment = imports.segment

TEXT = "email\n" + "".join(f"p{n:03}@example.org\n" for n in range(45)) + "bad\n"


class Halted(Exception):
    pass


@pytest.fixture(autouse=True)
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(staging, "ROWS", 10)
    monkeypatch.setattr("subscribers.importing.applying.ROWS", 10)


def halt_at(phase: str, done: int) -> object:
    """A ``progress`` that ends the import there, as ctrl-c does."""

    def progress(step: Step) -> None:
        if step.phase == phase and step.done >= done:
            raise Halted

    return progress


def halted(segment: Segment, phase: str, done: int, text: str = TEXT) -> ImportJob:
    with pytest.raises(Halted):
        load(text, segment, confirmed=True, progress=halt_at(phase, done))
    return ImportJob.objects.get()


@pytest.mark.parametrize(("phase", "done"), [("reading", 1), ("writing", 10), ("writing", 30)])
def test_the_same_import_goes_on_where_it_stopped(segment: Segment, phase: str, done: int) -> None:
    job = halted(segment, phase, done)
    assert (job.status, job.runner, job.lease_until) == ("queued", None, None)
    assert Subscriber.objects.count() == (done if phase == "writing" else 0)
    steps: list[Step] = []
    report = load(TEXT, segment, confirmed=True, progress=steps.append)
    assert report.job_id == job.pk
    assert counts(report) == {"imported": 45, "rejected": 1}
    first = {"reading": ("reading", 20), "writing": ("writing", done + 10)}[phase]
    assert (steps[0].phase, steps[0].rows if phase == "reading" else steps[0].done) == first
    assert len(members(segment)) == 45


@pytest.mark.parametrize("other", ["options", "file", "segment"])
def test_another_import_does_not_go_on_with_it(segment: Segment, other: str) -> None:
    job = halted(segment, "writing", 10)
    text = TEXT + "more@example.org\n" if other == "file" else TEXT
    if other == "segment":
        segment = Segment.objects.create(account=segment.account, name="Other", slug="other")
    report = import_file(
        io.BytesIO(text.encode()),
        account=segment.account,
        segment=segment,
        options=Options(confirmed=other != "options"),
    )
    assert report.job_id != job.pk
    assert report.imported + report.updated + report.unchanged == 45 + (other == "file")


def test_an_import_that_has_ended_begins_anew(segment: Segment) -> None:
    first = load(TEXT, segment, confirmed=True)
    again = load(TEXT, segment, confirmed=True)
    assert again.job_id != first.job_id
    assert counts(again) == {"unchanged": 45, "rejected": 1}


def test_an_import_that_ended_untold_is_told_by_the_next_one(segment: Segment) -> None:
    def die(report: object) -> None:
        raise Halted

    with pytest.raises(Halted):
        load(TEXT, segment, confirmed=True, tell=die)
    told = load(TEXT, segment, confirmed=True)
    assert counts(told) == {"imported": 45, "rejected": 1}
    assert ImportJob.objects.count() == 1
    assert counts(load(TEXT, segment, confirmed=True)) == {"unchanged": 45, "rejected": 1}


def test_a_reject_file_that_fails_at_the_end_is_written_by_the_next_one(
    segment: Segment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    path = tmp_path / "people.csv"
    path.write_text(TEXT)
    with monkeypatch.context() as disk:
        disk.setattr(files, "write_file", full)
        with pytest.raises(ImportStopped, match=r"is done, but .*rejects.csv .*No space left"):
            load(path, segment, confirmed=True)
    report = load(path, segment, confirmed=True)
    assert counts(report) == {"imported": 45, "rejected": 1}
    assert report.reject_file is not None
    assert "bad" in report.reject_file.read_text()


def test_a_database_that_goes_away_is_told_with_what_is_in(
    segment: Segment, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = halted(segment, "writing", 20)

    def fail(*_: object) -> None:
        raise OperationalError("server closed the connection unexpectedly\n\tThis probably means")

    with monkeypatch.context() as broken:
        broken.setattr(Applying, "_settle", fail)
        with pytest.raises(ImportStopped) as caught:
            load(TEXT, segment, confirmed=True)
    assert str(caught.value) == (
        "The database can't be used (server closed the connection unexpectedly). 20 of 45 rows "
        "are in; the same command goes on from there."
    )
    job.refresh_from_db()
    assert job.status == "queued"


def test_an_untold_end_of_long_ago_is_not_told(segment: Segment) -> None:
    load(TEXT, segment, confirmed=True)
    ImportJob.objects.update(
        runner="00000000-0000-4000-8000-000000000000",
        finished=timezone.now() - timedelta(hours=2),
    )
    assert counts(load(TEXT, segment, confirmed=True)) == {"unchanged": 45, "rejected": 1}


def test_while_another_run_has_the_lease_the_same_command_waits(
    segment: Segment, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = halted(segment, "writing", 10)
    assert leases.take(job.pk) is not None
    monkeypatch.setattr(files, "_POLL", 0)
    told: list[datetime] = []

    def waiting(until: datetime) -> None:
        told.append(until)
        # As if so long had passed.
        ImportJob.objects.update(lease_until=timezone.now())

    report = load(TEXT, segment, confirmed=True, waiting=waiting)
    assert counts(report) == {"imported": 45, "rejected": 1}
    assert len(told) == 1
    assert told[0] > timezone.now() + timedelta(seconds=leases.LEASE - 20)


@pytest.mark.parametrize("phase", ["reading", "writing"])
def test_a_runner_that_lost_its_lease_writes_nothing_more(segment: Segment, phase: str) -> None:
    def takes_over(step: Step) -> None:
        if step.phase == phase and (step.rows == 10 or step.done == 10):
            ImportJob.objects.update(lease_until=timezone.now() - timedelta(seconds=1))
            assert leases.take(ImportJob.objects.get().pk) is not None

    with pytest.raises(ImportStopped, match="taken this import over"):
        load(TEXT, segment, confirmed=True, progress=takes_over)
    job = ImportJob.objects.get()
    assert (job.status, job.lease_until is None) == ("queued", False)
    assert ImportRow.objects.exclude(line=0).count() == (10 if phase == "reading" else 45)
    assert Subscriber.objects.count() == (10 if phase == "writing" else 0)


@pytest.mark.django_db(transaction=True)
def test_a_row_that_is_locked_is_not_taken_over(segment: Segment) -> None:
    """A transaction that outlasts its lease is not done twice."""
    job = halted(segment, "writing", 10)
    runner = leases.take(job.pk)
    assert runner is not None
    with Race() as race, leases.holding(job.pk, runner):
        ImportJob.objects.update(lease_until=timezone.now() - timedelta(seconds=1))
        assert race.start(lambda: leases.take(job.pk)).result() is None
        assert race.start(jobs.next_queued).result() is None
    ImportJob.objects.update(lease_until=timezone.now() - timedelta(seconds=1))
    assert leases.take(job.pk) is not None


@pytest.mark.parametrize(("phase", "done"), [("reading", 1), ("writing", 20)])
def test_a_staging_table_that_lost_its_rows_is_filled_again(
    segment: Segment, phase: str, done: int
) -> None:
    """As after a crash of the server: the table has no write-ahead log."""
    halted(segment, phase, done)
    ImportRow.objects.all().delete()
    report = load(TEXT, segment, confirmed=True)
    assert counts(report) == {"imported": 45, "rejected": 1}
    assert ImportReject.objects.count() == 1
    assert len(members(segment)) == 45


def test_rows_lost_while_they_are_written_are_noticed_by_the_next_chunk(segment: Segment) -> None:
    def lose(step: Step) -> None:
        if step.phase == "writing" and step.done == 20 and ImportRow.objects.exists():
            ImportRow.objects.all().delete()

    assert counts(load(TEXT, segment, confirmed=True, progress=lose)) == {
        "imported": 45,
        "rejected": 1,
    }


@pytest.mark.django_db(transaction=True)
def test_each_transaction_may_have_a_session_of_its_own(segment: Segment) -> None:
    """As behind a transaction pooler."""
    report = load(TEXT, segment, confirmed=True, progress=lambda step: connection.close())
    assert counts(report) == {"imported": 45, "rejected": 1}


def test_without_the_file_rows_that_were_lost_wait_for_the_command(segment: Segment) -> None:
    job = halted(segment, "writing", 20)
    assert jobs.next_queued() is None, "it was stopped, not killed"
    ImportJob.objects.update(lease_until=timezone.now() - timedelta(seconds=1))
    assert jobs.next_queued() == job.pk
    ImportRow.objects.all().delete()
    assert not jobs.run(job.pk)
    assert jobs.next_queued() is None
    assert counts(load(TEXT, segment, confirmed=True)) == {"imported": 45, "rejected": 1}


def test_a_file_that_changes_while_it_is_read_is_refused(segment: Segment, tmp_path: Path) -> None:
    path = tmp_path / "people.csv"
    path.write_text(TEXT)

    def change(step: Step) -> None:
        with path.open("a") as file:
            file.write("late@example.org\n")

    with pytest.raises(ImportRefused, match="changed while it was read"):
        load(path, segment, confirmed=True, progress=change)
    assert not Subscriber.objects.exists()
    assert not ImportRow.objects.exists()


def test_what_is_in_is_said_when_it_fails_halfway(segment: Segment) -> None:
    def delete(step: Step) -> None:
        if step.phase == "writing" and step.done == 20:
            segment.memberships.all().delete()
            segment.delete()

    with pytest.raises(ImportRefused) as caught:
        load(TEXT, Segment.objects.get(), confirmed=True, progress=delete)
    assert str(caught.value) == (
        "The segment was deleted meanwhile. Before that, 20 of 45 rows are dealt with "
        "(imported 20, updated 0); that stays."
    )
    job = ImportJob.objects.get()
    assert (job.status, job.error) == ("failed", str(caught.value))
    assert not ImportRow.objects.exists()


def test_atomic_leaves_nothing_when_it_fails(
    segment: Segment, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("subscribers.importing.sql.COUNT", "SELECT 1/0")
    with pytest.raises(Exception, match="division"):
        load(TEXT, segment, confirmed=True, atomic=True)
    assert not Subscriber.objects.exists()
    monkeypatch.undo()
    steps: list[Step] = []
    report = load(TEXT, segment, confirmed=True, atomic=True, progress=steps.append)
    assert counts(report) == {"imported": 45, "rejected": 1}
    assert [step.done for step in steps if step.phase == "writing"] == [45]


def test_a_stream_is_imported_and_goes_on_too(segment: Segment) -> None:
    class Stream(io.BytesIO):
        def seekable(self) -> bool:
            return False

        def seek(self, *_: int) -> int:
            raise OSError("not seekable")

    def through(progress: object) -> object:
        return import_file(
            Stream(TEXT.encode()),
            account=segment.account,
            segment=segment,
            progress=progress,  # type: ignore[arg-type]
        )

    with pytest.raises(Halted):
        through(halt_at("writing", 20))
    report = through(None)
    assert counts(report) == {"imported": 45, "rejected": 1, "pending": 45}  # type: ignore[arg-type]
    assert ImportJob.objects.count() == 1


# --- what is left behind -------------------------------------------------------------------------


def test_prune_keeps_what_is_needed_and_deletes_the_rest(segment: Segment) -> None:
    now = timezone.now()
    old, older = now - timedelta(days=8), now - timedelta(days=31)
    ended = ImportJobFactory.create(segment=segment, status="done", finished=older, created=older)
    recent = ImportJobFactory.create(segment=segment, status="done", finished=old, created=older)
    waiting = ImportJobFactory.create(segment=segment, status="queued", created=older)
    lost = ImportJobFactory.create(segment=segment, status="queued", created=old)
    draft = ImportJobFactory.create(segment=segment, created=now - timedelta(days=6))
    forgotten = ImportJobFactory.create(segment=segment, created=old)
    forgotten.preview = {"header": ["email"], "rows": [["ann@example.org"]]}
    forgotten.save()
    for job in (ended, recent):
        ImportRejectFactory.create(job=job)
    for job in (waiting, draft, forgotten):
        ImportChunkFactory.create(job=job)
    for job in (ended, waiting, lost):
        ImportRowFactory.create_batch(2, job=job)
    ImportRow.objects.filter(job=recent).delete()
    for _ in range(2):
        prune()
        assert list(ImportReject.objects.values_list("job", flat=True)) == [recent.pk]
        assert set(ImportChunk.objects.values_list("job", flat=True)) == {waiting.pk, draft.pk}
        assert set(ImportRow.objects.values_list("job_id", flat=True)) == {waiting.pk}
        assert dict(ImportJob.objects.values_list("pk", "status")) == {
            ended.pk: "done",
            recent.pk: "done",
            waiting.pk: "queued",
            lost.pk: "canceled",
            draft.pk: "draft",
            forgotten.pk: "canceled",
        }
    forgotten.refresh_from_db()
    assert forgotten.error == "Nobody went on with it for 7 days."
    assert forgotten.preview == {"header": ["email"]}
    assert set(AuditEvent.objects.values_list("by_name", flat=True)) == {"Sendonce"}


def test_the_staging_table_has_no_write_ahead_log() -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT relpersistence FROM pg_class WHERE relname = %s", [ImportRow._meta.db_table]
        )
        assert cursor.fetchone() == ("u",)
