"""Attributes that get a kind while an import goes on, and one that is tried beside it."""

from __future__ import annotations

from typing import Any

import pytest

from subscribers.attributes.fit import count_misfits
from subscribers.importing import Options, Step, applying, jobs, staging
from subscribers.models import AttributeDefinition, ImportJob, ImportReject, Segment, Subscriber
from subscribers.suppression import hold_erasures
from tests.db.admin_pages import member_client, url
from tests.db.import_pages import answers, upload
from tests.db.racing import Race
from tests.factories import AttributeDefinitionFactory

from . import imports
from .imports import counts, load

segment = imports.segment

TEXT = "email,visits\nann@example.org,many\nbob@example.org,3\n"


class Halted(Exception):
    pass


def halt(step: Step) -> None:
    raise Halted


@pytest.mark.django_db
@pytest.mark.parametrize("batch", [1, 100], ids=["one row staged", "all staged"])
def test_rows_staged_before_an_attribute_got_its_kind_are_read_again(
    segment: Segment, monkeypatch: pytest.MonkeyPatch, batch: int
) -> None:
    monkeypatch.setattr(staging, "ROWS", batch)
    with pytest.raises(Halted):
        load(TEXT, segment, confirmed=True, progress=halt)
    halted = ImportJob.objects.get()
    assert (halted.staged_at is None) == (batch == 1)
    AttributeDefinitionFactory.create(account=segment.account, key="visits", kind="number")
    report = load(TEXT, segment, confirmed=True)
    assert report.job_id == halted.pk
    assert counts(report) == {"imported": 1, "rejected": 1}
    assert list(Subscriber.objects.values_list("email", "attributes")) == [
        ("bob@example.org", {"visits": 3})
    ]
    assert ImportReject.objects.get().line == 2
    assert count_misfits(segment.account, "visits", "number", []) == 0


@pytest.mark.django_db
def test_choices_that_changed_meanwhile_are_asked_again(segment: Segment) -> None:
    plan = AttributeDefinitionFactory.create(
        account=segment.account, key="visits", kind="choice", choices=["many", "3"]
    )
    with pytest.raises(Halted):
        load(TEXT, segment, confirmed=True, progress=halt)
    AttributeDefinition.objects.filter(pk=plan.pk).update(choices=["3"])
    assert counts(load(TEXT, segment, confirmed=True)) == {"imported": 1, "rejected": 1}


@pytest.mark.django_db(transaction=True)
def test_trying_a_file_with_new_attributes_does_not_deadlock_with_an_import(
    segment: Segment, monkeypatch: pytest.MonkeyPatch
) -> None:
    client, _ = member_client(segment.account)
    draft = upload(client, segment, "email,visits\nann@example.org,3\n")
    body = {**answers(client, draft), "try": "yes"}
    job = jobs.create(segment.account, segment, file_name="other.csv")
    jobs.store(job, [b"email,visits\nbob@example.org,3\n"])
    jobs.examine(job)
    job.refresh_from_db()
    jobs.queue(job, Options.from_json(job.options))
    with Race() as race:
        held = race.halt()
        monkeypatch.setattr(applying, "hold_erasures", held.behind(hold_erasures))
        importing = race.start_to(held, lambda: jobs.run(job.pk))

        def try_it() -> Any:
            return client.post(url(ImportJob, "mapping", draft.pk), body)

        trying = race.start(try_it)
        trying.wait_until_blocked()
        held.released.set()
        assert importing.result()
        assert trying.result().status_code == 200
    job.refresh_from_db()
    assert job.status == "done"
    definition = AttributeDefinition.objects.get(account=segment.account, key="visits")
    assert definition.kind == "text"
    assert list(Subscriber.objects.values_list("email", flat=True)) == ["bob@example.org"]
