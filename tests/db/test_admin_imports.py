"""From an upload in the admin to people in a segment, once and only once."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.utils import timezone

from subscribers.importing import jobs
from subscribers.models import (
    AttributeDefinition,
    AuditEvent,
    ImportChunk,
    ImportJob,
    Membership,
    Segment,
    Subscriber,
)
from subscribers.tabular import Options
from tests.db.admin_pages import url
from tests.db.import_pages import answers, press, upload, upload_form
from tests.factories import AccountFactory, SegmentFactory, SignupFormFactory, SubscriberFactory

pytestmark = pytest.mark.django_db(transaction=True)

Status = ImportJob.Status


@pytest.fixture
def segment() -> Any:
    return SegmentFactory.create(name="Readers")


# --- the way through -----------------------------------------------------------------------------


def test_a_small_file_is_imported_at_once(superuser_client: Client, segment: Any) -> None:
    job = upload(superuser_client, segment)
    answer = press(superuser_client, job, "import")
    assert answer.status_code == 302
    assert answer["Location"] == url(ImportJob, "change", job.pk)
    job.refresh_from_db()
    assert (job.status, job.error) == (Status.DONE, "")
    people = {p.email: p for p in Subscriber.objects.filter(memberships__segment=segment)}
    assert set(people) == {"ann@example.org", "bob@example.org"}
    ann = people["ann@example.org"]
    assert (ann.status, ann.consent_source) == ("confirmed", "the fair in May")
    assert ann.attributes == {"first_name": "Ann again", "visits": "4", "born": "2000-01-31"}
    assert {d.key: d.kind for d in AttributeDefinition.objects.all()} == {
        "first_name": "text", "visits": "text", "born": "date",
    }  # fmt: skip
    assert {d.key: d.label for d in AttributeDefinition.objects.all()} == {
        "first_name": "First Name", "visits": "Visits", "born": "Born",
    }  # fmt: skip
    shown = superuser_client.get(answer["Location"]).content.decode()
    assert "Every row is accounted for: 4 of 4." in shown
    assert "nonsense" in shown
    assert not ImportChunk.objects.exists()


def test_a_kind_that_is_chosen_refuses_other_values(superuser_client: Client, segment: Any) -> None:
    job = upload(superuser_client, segment)
    page = press(superuser_client, job, "read", **{"target-2": "new:number"})
    rows = page.context["first"].rows
    assert [row.number for row in rows] == [2, 3, 4, 5]
    assert rows[0].cells == ["ann@example.org", "Ann", "3", "2000-01-31"]
    assert "not a number" in rows[1].error
    assert rows[2].error
    press(superuser_client, job, "import", **{"target-2": "new:number"})
    assert Subscriber.objects.get().attributes["visits"] == 4
    assert AttributeDefinition.objects.get(key="visits").kind == "number"
    assert set(job.rejects.values_list("line", flat=True)) == {3, 4}


def test_trying_it_changes_nothing_and_tells_what_would_happen(
    superuser_client: Client, segment: Any
) -> None:
    SubscriberFactory.create(account=segment.account, email="bob@example.org")
    job = upload(superuser_client, segment)
    page = press(superuser_client, job, "try")
    assert page.status_code == 200
    report = page.context["report"]
    assert (report.rows, report.imported, report.updated) == (4, 1, 1)
    assert (report.duplicates, report.rejected, report.dry_run) == (1, 1, True)
    assert page.context["rejects"][0][0] == 4
    assert Subscriber.objects.count() == 1
    assert not Membership.objects.exists()
    assert not AttributeDefinition.objects.exists()
    assert not AuditEvent.objects.filter(verb="attribute.define").exists()
    job.refresh_from_db()
    assert (job.status, ImportJob.objects.count()) == (Status.DRAFT, 1)


def test_a_try_that_takes_too_long_is_taken_back(
    superuser_client: Client, segment: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("subscribers.admin.mapping.TRY", -1.0)
    job = upload(superuser_client, segment)
    page = press(superuser_client, job, "try")
    assert "too large to be tried here" in page.content.decode()
    assert page.context["report"] is None
    assert not Subscriber.objects.exists()
    assert not AttributeDefinition.objects.exists()
    assert ImportJob.objects.get().status == Status.DRAFT


def test_without_consent_new_people_are_pending(superuser_client: Client, segment: Any) -> None:
    job = upload(superuser_client, segment, consent="unknown", consent_source="")
    press(superuser_client, job, "import")
    assert set(Subscriber.objects.values_list("status", flat=True)) == {"pending"}


def test_a_segment_can_be_made_on_the_way(superuser_client: Client) -> None:
    account = AccountFactory.create()
    other = SegmentFactory.create(account=account, slug="spring-2026")
    form = upload_form(other, new_segment="Spring 2026!", segment="")
    assert superuser_client.post(url(Subscriber, "import"), form).status_code == 302
    made = Segment.objects.exclude(pk=other.pk).get()
    assert (made.account, made.name, made.slug) == (account, "Spring 2026!", "spring-2026-2")
    assert ImportJob.objects.get().segment == made


def upload_into_a_new_one(client: Client, beside: Any) -> ImportJob:
    form = upload_form(beside, new_segment="Spring", segment="")
    assert client.post(url(Subscriber, "import"), form).status_code == 302
    return ImportJob.objects.latest("id")


def test_a_segment_made_for_a_canceled_draft_goes_with_it(superuser_client: Client) -> None:
    other = SegmentFactory.create()
    job = upload_into_a_new_one(superuser_client, other)
    press(superuser_client, job, "read", header="no")
    page = url(ImportJob, "cancel", job.pk)
    assert "goes, too" in superuser_client.get(page).content.decode()
    answer = superuser_client.post(page, follow=True)
    assert "Nothing of it was imported." in answer.content.decode()
    assert Segment.objects.get() == other
    event = AuditEvent.objects.get(verb="segment.delete")
    assert (event.subject, event.by) == ("Spring", AuditEvent.objects.get(verb="segment.create").by)


@pytest.mark.parametrize("use", ["member", "form", "import", "words", "queued", "chosen"])
def test_a_segment_that_is_used_meanwhile_stays(superuser_client: Client, use: str) -> None:
    other = SegmentFactory.create()
    if use == "chosen":
        job = upload(superuser_client, other)
    else:
        job = upload_into_a_new_one(superuser_client, other)
    segment: Any = job.segment
    match use:
        case "member":
            SubscriberFactory.create(account=segment.account, segments=[segment])
        case "form":
            SignupFormFactory.create(account=segment.account).segments.add(segment)
        case "import":
            upload(superuser_client, segment)
        case "words":
            Segment.objects.filter(pk=segment.pk).update(description="Our spring letter.")
        case "queued":
            ImportJob.objects.filter(pk=job.pk).update(status=Status.QUEUED)
    superuser_client.post(url(ImportJob, "cancel", job.pk))
    job.refresh_from_db()
    assert (job.status, job.segment) == (Status.CANCELED, segment)
    assert not AuditEvent.objects.filter(verb="segment.delete").exists()


def test_what_a_refused_file_would_have_made_is_not_there(superuser_client: Client) -> None:
    segment = SegmentFactory.create()
    form = upload_form(segment, b"GIF89a\x01\x00", new_segment="Spring", segment="")
    answer = superuser_client.post(url(Subscriber, "import"), form)
    assert "picture" in str(answer.context["form"].errors["file"])
    assert Segment.objects.get() == segment
    assert not ImportJob.objects.exists()
    assert not ImportChunk.objects.exists()
    assert not AuditEvent.objects.exists()


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({"segment": ""}, "segment"),
        ({"segment": 10**9}, "segment"),
        ({"new_segment": "Another"}, "new_segment"),
        ({"segment": "", "new_segment": "READERS"}, "new_segment"),
        ({"segment": "", "new_segment": "x" * 201}, "new_segment"),
        ({"consent": ""}, "consent"),
        ({"consent_source": "  "}, "consent_source"),
        ({"consent_source": "x" * 201}, "consent_source"),
        ({"existing": "replace"}, "existing"),
    ],
    ids=str,
)
def test_a_wrong_upload_is_an_error_of_its_field(
    superuser_client: Client, segment: Any, given: dict[str, Any], field: str
) -> None:
    answer = superuser_client.post(url(Subscriber, "import"), upload_form(segment, **given))
    assert answer.status_code == 200
    assert list(answer.context["form"].errors) == [field]
    assert not ImportJob.objects.exists()


# --- once, and only once -------------------------------------------------------------------------


def test_a_second_press_of_import_starts_nothing(superuser_client: Client, segment: Any) -> None:
    job = upload(superuser_client, segment)
    data = {**answers(superuser_client, job), "import": "yes"}
    for _ in range(2):
        answer = superuser_client.post(url(ImportJob, "mapping", job.pk), data)
        assert answer["Location"] == url(ImportJob, "change", job.pk)
    assert AuditEvent.objects.filter(verb="import.start").count() == 1
    assert AuditEvent.objects.filter(verb="import.done").count() == 1
    assert ImportJob.objects.get().status == Status.DONE


def test_two_presses_at_the_same_moment_start_it_once(
    superuser_client: Client, segment: Any
) -> None:
    job = upload(superuser_client, segment)
    data = {**answers(superuser_client, job), "import": "yes"}
    barrier = threading.Barrier(4)

    def press_it() -> int:
        client = Client()
        client.cookies = superuser_client.cookies
        barrier.wait()
        try:
            return client.post(url(ImportJob, "mapping", job.pk), data).status_code
        finally:
            connection.close()

    with ThreadPoolExecutor(4) as pool:
        codes = [future.result() for future in [pool.submit(press_it) for _ in range(4)]]
    assert codes == [302] * 4
    for verb in ("import.start", "import.done"):
        assert AuditEvent.objects.filter(verb=verb).count() == 1, verb
    assert AuditEvent.objects.filter(verb="attribute.define").count() == 3
    job.refresh_from_db()
    assert (job.status, job.counts["rows"]) == (Status.DONE, 4)
    assert Subscriber.objects.count() == 2


def test_a_press_that_lost_the_race_starts_nothing(
    superuser_client: Client, segment: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = upload(superuser_client, segment)
    data = {**answers(superuser_client, job), "import": "yes"}
    queue = jobs.queue

    def queue_behind_another(job: ImportJob, options: Options) -> None:
        ImportJob.objects.filter(pk=job.pk).update(status=Status.CANCELED)
        queue(job, options)

    monkeypatch.setattr(jobs, "queue", queue_behind_another)
    answer = superuser_client.post(url(ImportJob, "mapping", job.pk), data)
    # The update above was this transaction's own, so it went with it.
    assert answer.status_code == 200
    assert not Subscriber.objects.exists()
    assert not AttributeDefinition.objects.exists()
    assert not AuditEvent.objects.filter(verb="import.start").exists()


def test_what_is_not_done_at_once_waits_and_goes_on(
    superuser_client: Client, segment: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("subscribers.admin.mapping.AT_ONCE", -1.0)
    many = "email\n" + "".join(f"p{n}@example.org\n" for n in range(12_000))
    job = upload(superuser_client, segment, many)
    press(superuser_client, job, "import")
    job.refresh_from_db()
    assert job.status == Status.QUEUED
    page = superuser_client.get(url(ImportJob, "change", job.pk))
    assert page.context["standing"].state == "waiting"
    assert url(ImportJob, "go_on", job.pk) in page.content.decode()
    assert 'data-poll="' in page.content.decode()
    superuser_client.post(url(ImportJob, "go_on", job.pk))
    job.refresh_from_db()
    assert job.status == Status.DONE
    assert Subscriber.objects.count() == 12_000
    page = superuser_client.get(url(ImportJob, "change", job.pk))
    assert 'data-poll="' not in page.content.decode()


def test_somebody_elses_run_is_shown_and_left_alone(superuser_client: Client, segment: Any) -> None:
    job = upload(superuser_client, segment)
    ImportJob.objects.filter(pk=job.pk).update(
        status=Status.QUEUED,
        runner="12345678-1234-4234-8234-123456789012",
        lease_until=timezone.now() + timedelta(seconds=60),
    )
    page = superuser_client.get(url(ImportJob, "change", job.pk))
    assert page.context["standing"].state == "running"
    assert url(ImportJob, "go_on", job.pk) not in page.content.decode()
    superuser_client.post(url(ImportJob, "go_on", job.pk))
    assert not Subscriber.objects.exists()
    assert ImportJob.objects.get().status == Status.QUEUED


def test_an_import_is_canceled_after_a_question(superuser_client: Client, segment: Any) -> None:
    job = upload(superuser_client, segment)
    page = url(ImportJob, "cancel", job.pk)
    assert "The file is deleted" in superuser_client.get(page).content.decode()
    assert ImportJob.objects.get().status == Status.DRAFT
    answer = superuser_client.post(page, follow=True)
    assert "The import is canceled." in answer.content.decode()
    assert ImportJob.objects.get().status == Status.CANCELED
    assert not ImportChunk.objects.exists()
    answer = superuser_client.post(page, follow=True)
    assert "It had ended already" in answer.content.decode()


def test_a_job_that_is_done_is_not_started_again(superuser_client: Client, segment: Any) -> None:
    job = upload(superuser_client, segment)
    data = {**answers(superuser_client, job), "import": "yes"}
    ImportJob.objects.filter(pk=job.pk).update(status=Status.DONE)
    superuser_client.post(url(ImportJob, "mapping", job.pk), data)
    superuser_client.post(url(ImportJob, "go_on", job.pk))
    assert ImportJob.objects.get().status == Status.DONE
    assert not Subscriber.objects.exists()


# --- rejects -------------------------------------------------------------------------------------


def test_rejects_are_downloaded_as_csv_that_computes_nothing(
    superuser_client: Client, segment: Any
) -> None:
    job = upload(superuser_client, segment, "email,=cmd()\nnonsense,=1+1\nann@example.org,x\n")
    press(superuser_client, job, "import", **{"target-1": "new:number", "key-1": "n"})
    answer: Any = superuser_client.get(url(ImportJob, "rejects", job.pk))
    assert answer["Content-Disposition"] == 'attachment; filename="people-rejects.csv"'
    assert answer["Content-Type"].startswith("text/csv")
    assert "no-store" in answer["Cache-Control"]
    text = b"".join(answer.streaming_content).decode()
    lines = text.splitlines()
    assert lines[0] == "reject_line,reject_reason,email,'=cmd()"
    assert len(lines) == 3
    assert "'=1+1" in lines[1]
    assert ",=" not in text


def test_the_page_names_the_first_rejects_only(superuser_client: Client, segment: Any) -> None:
    job = upload(superuser_client, segment, "email\n" + "nonsense\n" * 60)
    press(superuser_client, job, "import")
    page = superuser_client.get(url(ImportJob, "change", job.pk))
    assert len(page.context["rejects"]) == 50
    assert "The first 50 of 60" in page.content.decode()
