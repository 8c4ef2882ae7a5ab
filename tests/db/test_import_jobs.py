"""An uploaded import: stored, looked at, queued, run, canceled."""

from __future__ import annotations

import hashlib
import io
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.core.management import call_command
from django.db import OperationalError
from django.utils import timezone

from subscribers.importing import ImportRefused, Options, jobs, leases, sources, staging
from subscribers.importing.applying import Applying
from subscribers.importing.rejects import write_csv
from subscribers.models import (
    AuditEvent,
    ImportChunk,
    ImportJob,
    ImportReject,
    ImportRow,
    Segment,
    Subscriber,
)
from tests.factories import AccountFactory, ImportJobFactory, StaffFactory

from . import imports
from .imports import counts, members

pytestmark = pytest.mark.django_db

segment = imports.segment

TEXT = "email,name\nann@example.org,Ann\nbad,=Bad\nbob@example.org,Bob\n"
CONFIRMED = Options(confirmed=True)


def draft(segment: Segment, text: str = TEXT, **given: Any) -> ImportJob:
    job = jobs.create(segment.account, segment, file_name="people.csv", **given)
    jobs.store(job, [text.encode()])
    return job


def queued(segment: Segment, text: str = TEXT, options: Options = CONFIRMED) -> ImportJob:
    job = draft(segment, text)
    jobs.queue(job, options)
    return job


def fresh(job: ImportJob) -> ImportJob:
    return ImportJob.objects.get(pk=job.pk)


def many(count: int) -> str:
    return "email\n" + "".join(f"p{n:03}@example.org\n" for n in range(count))


@pytest.fixture
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(staging, "ROWS", 10)
    monkeypatch.setattr("subscribers.importing.applying.ROWS", 10)


def test_an_upload_from_its_draft_to_its_report(segment: Segment) -> None:
    staff = StaffFactory.create()
    job = draft(segment, by=staff)
    assert (job.file_size, job.file_digest) == (
        len(TEXT),
        hashlib.sha256(TEXT.encode()).hexdigest(),
    )
    jobs.examine(job)
    job = fresh(job)
    assert job.preview["header"] == ["email", "name"]
    assert job.preview["rows"][0] == ["ann@example.org", "Ann"]
    assert Options.from_json(job.options).format == "csv"
    assert jobs.next_queued() is None
    jobs.queue(job, CONFIRMED)
    assert jobs.next_queued() == job.pk
    assert jobs.run(job.pk)
    job = fresh(job)
    assert (job.status, job.runner, job.lease_until) == ("done", None, None)
    assert job.finished is not None
    assert counts(jobs.report(job)) == {"imported": 2, "rejected": 1}
    assert members(segment) == {"ann@example.org", "bob@example.org"}
    assert Subscriber.objects.get(email="bob@example.org").consent_source == "import of people.csv"
    assert jobs.next_queued() is None
    assert jobs.run(job.pk), "it has ended"


def test_what_holds_people_s_data_goes_with_the_end(segment: Segment) -> None:
    job = queued(segment)
    jobs.run(job.pk)
    assert not ImportChunk.objects.exists()
    assert not ImportRow.objects.exists()
    assert fresh(job).preview == {"header": ["email", "name"]}
    assert ImportReject.objects.get().cells == ["bad", "=Bad"]
    out = io.StringIO()
    write_csv(fresh(job), out)
    header, row = out.getvalue().splitlines()
    assert header == "reject_line,reject_reason,email,name"
    assert row.startswith("3,")
    assert row.endswith(",bad,'=Bad")


def test_the_end_is_recorded(segment: Segment) -> None:
    staff = StaffFactory.create()
    job = draft(segment, by=staff)
    jobs.queue(job, CONFIRMED)
    jobs.run(job.pk)
    event = AuditEvent.objects.get()
    assert (event.verb, event.by, event.subject) == ("import.done", staff, "people.csv")
    assert event.account == segment.account
    assert event.detail["imported"] == 2
    assert event.detail["rejected"] == 1
    assert event.detail["segment"] == segment.slug


def test_new_columns_are_declared_as_texts_with_the_first_people(segment: Segment) -> None:
    segment.account.attribute_definitions.create(key="age", kind="number")
    job = queued(segment, "email,Age,Plan,attribute:1st\nann@example.org,36,gold,x\n")
    jobs.run(job.pk)
    kinds = dict(segment.account.attribute_definitions.values_list("key", "kind"))
    assert kinds == {"age": "number", "plan": "text"}
    assert Subscriber.objects.get().attributes == {"age": 36, "plan": "gold", "1st": "x"}


def test_a_file_in_which_nobody_is_declares_nothing(segment: Segment) -> None:
    job = queued(segment, "email,plan\nbad,gold\n")
    assert jobs.run(job.pk)
    assert counts(jobs.report(fresh(job))) == {"rejected": 1}
    assert not segment.account.attribute_definitions.exists()


def test_a_file_that_is_refused_fails_the_job_and_says_why(segment: Segment) -> None:
    job = queued(segment, TEXT)
    ImportChunk.objects.update(data=b"email,name\n" + b"ann@example.org,Ann\n" * 9 + b"x,\xff\n")
    ImportJob.objects.update(options=Options(encoding="utf-8").to_json())
    assert jobs.run(job.pk)
    job = fresh(job)
    assert job.status == "failed"
    assert job.error.startswith("Line 11 is not UTF-8")
    assert AuditEvent.objects.get().verb == "import.failed"
    assert not Subscriber.objects.exists()
    assert not ImportRow.objects.exists()
    assert not ImportChunk.objects.exists()


def test_an_unexpected_error_ends_the_job_and_is_not_tried_for_ever(
    segment: Segment, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*_: object) -> None:
        raise ZeroDivisionError("a bug")

    job = queued(segment)
    monkeypatch.setattr(Applying, "_settle", fail)
    assert jobs.run(job.pk)
    assert fresh(job).error == "An unexpected error: a bug"
    assert "ZeroDivisionError" in caplog.text
    assert jobs.next_queued() is None


def test_a_database_that_goes_away_leaves_the_job_queued(
    segment: Segment, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise OperationalError("gone")

    job = queued(segment)
    with monkeypatch.context() as broken:
        broken.setattr(Applying, "_settle", fail)
        with pytest.raises(OperationalError):
            jobs.run(job.pk)
    assert fresh(job).status == "queued"
    assert jobs.next_queued() is None, "its lease runs"
    assert not jobs.run(job.pk)
    ImportJob.objects.update(lease_until=timezone.now() - timedelta(seconds=1))
    assert jobs.next_queued() == job.pk
    assert jobs.run(job.pk)
    assert counts(jobs.report(fresh(job))) == {"imported": 2, "rejected": 1}


@pytest.mark.usefixtures("small_batches")
def test_a_budget_is_kept_and_the_next_runner_goes_on(segment: Segment) -> None:
    job = queued(segment, many(45) + "bad\n")
    done = []
    for _ in range(30):
        done.append(jobs.run(job.pk, budget=0))
        now = fresh(job)
        assert now.runner is None
        assert now.lease_until is None
        if done[-1]:
            break
        step = jobs.step(now)
        assert (step.phase == "writing") == (now.staged_at is not None)
    assert done == [False] * (len(done) - 1) + [True]
    assert len(done) > 5
    assert counts(jobs.report(fresh(job))) == {"imported": 45, "rejected": 1}
    assert len(members(segment)) == 45


@pytest.mark.usefixtures("small_batches")
def test_with_a_budget_a_large_import_in_one_transaction_is_left_to_a_worker(
    segment: Segment, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("subscribers.importing.running.ROWS_AT_ONCE", 20)
    job = queued(segment, many(25), Options(confirmed=True, atomic=True))
    assert not jobs.run(job.pk, budget=60)
    assert not Subscriber.objects.exists()
    assert jobs.step(fresh(job)).phase == "writing"
    assert jobs.run(job.pk)
    assert len(members(segment)) == 25


@pytest.mark.usefixtures("small_batches")
def test_a_cancel_takes_effect_at_the_next_batch_and_what_is_in_stays(
    segment: Segment, monkeypatch: pytest.MonkeyPatch
) -> None:
    chunk: Callable[[Applying], bool] = Applying._chunk
    chunks = []

    def then_cancel(applying: Applying) -> bool:
        more = chunk(applying)
        chunks.append(more)
        if len(chunks) == 2:
            assert jobs.cancel(job.pk, by=staff)
        return more

    staff = StaffFactory.create()
    job = queued(segment, many(45))
    monkeypatch.setattr(Applying, "_chunk", then_cancel)
    assert jobs.run(job.pk), "it has ended"
    job = fresh(job)
    assert (job.status, job.finished is None, job.runner) == ("canceled", False, None)
    assert counts(jobs.report(job)) == {"imported": 20}
    assert len(members(segment)) == 20
    assert not ImportRow.objects.exists()
    assert not ImportChunk.objects.exists()
    event = AuditEvent.objects.get()
    assert (event.verb, event.by) == ("import.canceled", staff)
    assert not jobs.cancel(job.pk), "it had ended"


def test_a_draft_is_canceled_with_its_file(segment: Segment) -> None:
    job = draft(segment)
    assert jobs.cancel(job.pk)
    assert not ImportChunk.objects.exists()


def test_what_is_started_or_ended_is_no_draft(segment: Segment) -> None:
    job = queued(segment)
    with pytest.raises(ImportRefused, match="started"):
        jobs.store(job, [b"email\n"])
    with pytest.raises(ImportRefused, match="started"):
        jobs.examine(job)
    with pytest.raises(ImportRefused, match="started"):
        jobs.queue(job, CONFIRMED)
    assert ImportChunk.objects.get().data == TEXT.encode()


def test_a_mapping_that_does_not_fit_is_refused_before_it_is_queued(segment: Segment) -> None:
    job = draft(segment)
    for mapping, why in ((("email",), "columns"), (("", "attribute:a"), "no e-mail column")):
        with pytest.raises(ImportRefused, match=why):
            jobs.queue(job, Options(mapping=mapping))
    assert fresh(job).status == "draft"


def test_another_account_s_segment_is_refused(segment: Segment) -> None:
    with pytest.raises(ImportRefused, match="not one of the account"):
        jobs.create(AccountFactory.create(), segment, file_name="people.csv")


def test_an_upload_is_stored_in_pieces_and_read_as_one_file(
    segment: Segment, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sources, "PIECE", 7)
    job = draft(segment, "")
    jobs.store(job, [TEXT[:3].encode(), b"", TEXT[3:20].encode(), TEXT[20:].encode()])
    sizes = [len(chunk.data) for chunk in ImportChunk.objects.order_by("number")]
    assert sizes == [7] * (len(TEXT) // 7) + [len(TEXT) % 7]
    with sources.uploaded(job.pk) as file:
        assert file.read() == TEXT.encode()
        assert file.read(1) == b""
        assert file.seek(-9, io.SEEK_END) == len(TEXT) - 9
        assert file.read(4) == TEXT[-9:-5].encode()
        assert file.seek(2, io.SEEK_CUR) == len(TEXT) - 3
        assert file.read() == TEXT[-3:].encode()
        assert file.seek(0) == 0
        assert file.read(10) == TEXT[:10].encode()
    jobs.queue(job, CONFIRMED)
    jobs.run(job.pk)
    assert counts(jobs.report(fresh(job))) == {"imported": 2, "rejected": 1}


def test_an_uploaded_workbook_is_read_from_its_pieces(
    segment: Segment, monkeypatch: pytest.MonkeyPatch
) -> None:
    openpyxl = pytest.importorskip("openpyxl")
    book, data = openpyxl.Workbook(), io.BytesIO()
    book.active.append(["email", "city"])
    for n in range(300):
        book.active.append([f"p{n}@example.org" if n != 7 else "bad", f"city {n}"])
    book.save(data)
    monkeypatch.setattr(sources, "PIECE", 1000)
    job = jobs.create(segment.account, segment, file_name="people.xlsx")
    jobs.store(job, [data.getvalue()])
    assert ImportChunk.objects.count() > 3
    jobs.examine(job)
    job.refresh_from_db()
    jobs.queue(job, Options.from_json({**job.options, "confirmed": True}))
    assert jobs.run(job.pk)
    assert counts(jobs.report(fresh(job))) == {"imported": 299, "rejected": 1}
    assert ImportReject.objects.get().line == 9
    assert Subscriber.objects.get(email="p42@example.org").attributes == {"city": "city 42"}


def test_a_dry_run_of_a_draft_reports_the_same_and_changes_nothing(segment: Segment) -> None:
    text = many(30) + "bad\np001@example.org\n"
    job = draft(segment, text)
    jobs.examine(job)
    before = ImportJob.objects.values().get()
    tried = jobs.dry_run(job, CONFIRMED)
    assert tried.dry_run
    assert not Subscriber.objects.exists()
    assert not ImportRow.objects.exists()
    assert not ImportReject.objects.exists()
    assert not AuditEvent.objects.exists()
    assert ImportJob.objects.values().get() == before
    jobs.queue(job, CONFIRMED)
    jobs.run(job.pk)
    assert counts(tried) == counts(jobs.report(fresh(job)))
    assert tried.rows == 32


def test_run_imports_runs_what_waits_until_nothing_is_left(segment: Segment) -> None:
    good, bad = queued(segment), queued(segment)
    ImportChunk.objects.filter(job=bad).update(data=b"name\nAnn\n")
    held = queued(segment, many(3))
    assert leases.take(held.pk) is not None
    out = io.StringIO()
    call_command("run_imports", stdout=out)
    assert out.getvalue().splitlines() == [
        f"import {good.pk} (people.csv): imported 2, updated 0, unchanged 0, unsubscribed 0, "
        "duplicates 0, rejected 1; suppressed 0",
        f"import {bad.pk} (people.csv): failed. {fresh(bad).error}",
    ]
    assert "no e-mail column" in fresh(bad).error
    assert fresh(held).status == "queued"


def test_a_name_that_is_no_text_is_stored_all_the_same(segment: Segment) -> None:
    job = jobs.create(segment.account, segment, file_name="a\udcff\0" + "x" * 300)
    assert fresh(job).file_name == "a??" + "x" * 252


def test_a_job_whose_file_is_elsewhere_waits_for_the_command(segment: Segment) -> None:
    job = ImportJobFactory.create(
        account=segment.account, segment=segment, status="queued", options=Options().to_json()
    )
    assert jobs.next_queued() is None
    assert not jobs.run(job.pk)
    assert (fresh(job).status, fresh(job).runner) == ("queued", None)
