"""The lease of an import and its budget, when reading is slow and there is little to write."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from subscribers.importing import Options, jobs, staging
from subscribers.models import ImportJob, ImportReject, Segment, Subscriber
from subscribers.tabular.csv_reader import CsvReader

from . import imports

pytestmark = pytest.mark.django_db

segment = imports.segment


def read_slowly(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if each five rows took longer than a batch may."""
    monkeypatch.setattr(staging, "_LOOK", 5)
    monkeypatch.setattr(staging, "SECONDS", 0.0)


def queued(segment: Segment, text: str) -> ImportJob:
    job = jobs.create(segment.account, segment, file_name="people.csv")
    jobs.store(job, [text.encode()])
    jobs.examine(job)
    job.refresh_from_db()
    jobs.queue(job, Options.from_json(job.options))
    return job


def before_record(monkeypatch: pytest.MonkeyPatch, steps: dict[int, Callable[[], object]]) -> None:
    """``steps[n]()`` is called before the ``n``-th record of a file is read."""
    records = CsvReader._records

    def watched(self: CsvReader) -> Iterator[Any]:
        for number, record in enumerate(records(self), 1):
            steps.get(number, lambda: None)()
            yield record

    monkeypatch.setattr(CsvReader, "_records", watched)


def test_a_resume_that_passes_over_staged_rows_keeps_its_lease(
    segment: Segment, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = queued(segment, "email\n" + "".join(f"p{n}@example.org\n" for n in range(60)))
    monkeypatch.setattr(staging, "ROWS", 40)
    assert not jobs.run(job.pk, budget=0)
    read_slowly(monkeypatch)
    assert jobs.next_queued() == job.pk
    free: list[int | None] = []

    def lapse() -> None:
        past = timezone.now() - timedelta(seconds=1)
        assert ImportJob.objects.filter(pk=job.pk).update(lease_until=past)
        free.append(jobs.next_queued())

    before_record(monkeypatch, {11: lapse, 30: lambda: free.append(jobs.next_queued())})
    assert jobs.run(job.pk)
    # It would have been anybody's while it passed over the rest of what was staged.
    assert free == [job.pk, None]
    assert Subscriber.objects.count() == 60


def test_bad_rows_are_written_in_time_for_the_budget(
    segment: Segment, monkeypatch: pytest.MonkeyPatch
) -> None:
    read_slowly(monkeypatch)
    job = queued(segment, "email\n" + "".join(f"no address {n}\n" for n in range(60)))
    assert not jobs.run(job.pk, budget=0)
    job.refresh_from_db()
    assert job.staged_at is None
    assert 1 < job.staged_line < 20
    assert ImportReject.objects.filter(job=job).count() == job.counts["bad"] == job.staged_line - 1
    assert jobs.run(job.pk)
    job.refresh_from_db()
    assert (job.status, job.counts["rows"], job.counts["bad"]) == ("done", 60, 60)
    assert ImportReject.objects.filter(job=job).count() == 60


def test_an_import_that_never_has_time_ends_all_the_same(
    segment: Segment, monkeypatch: pytest.MonkeyPatch
) -> None:
    read_slowly(monkeypatch)
    job = queued(segment, "email\n" + "".join(f"p{n}@example.org\n" for n in range(23)))
    for _ in range(40):
        if jobs.run(job.pk, budget=0):
            break
    job.refresh_from_db()
    assert job.status == ImportJob.Status.DONE
    assert Subscriber.objects.count() == 23
