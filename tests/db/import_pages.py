"""The pages of an import as tests ask for them: a file uploaded, the mapping page sent back."""

from __future__ import annotations

from typing import Any

from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client

from subscribers.models import ImportJob, Segment, Subscriber
from tests.db.admin_pages import url

PEOPLE = """\
E-Mail;First Name;Visits;Born
ann@example.org;Ann;3;2000-01-31
bob@example.org;Bob;many;2001-02-28
nonsense;Nobody;1;
ann@EXAMPLE.org;Ann again;4;2000-01-31
"""


def upload_form(into: Segment, data: str | bytes = PEOPLE, **given: Any) -> dict[str, Any]:
    content = data.encode() if isinstance(data, str) else data
    return {
        "account": into.account_id,
        "segment": into.pk,
        "file": SimpleUploadedFile(given.pop("name", "people.csv"), content),
        "consent": "given",
        "consent_source": "the fair in May",
        "existing": "update",
        **given,
    }


def upload(client: Client, segment: Segment, data: str | bytes = PEOPLE, **given: Any) -> ImportJob:
    answer = client.post(url(Subscriber, "import"), upload_form(segment, data, **given))
    assert answer.status_code == 302, answer.context["form"].errors
    job = ImportJob.objects.latest("id")
    assert answer["Location"] == url(ImportJob, "mapping", job.pk)
    return job


def answers(client: Client, job: ImportJob, **given: Any) -> dict[str, Any]:
    """The mapping page's form as a browser would send it back, with what is ``given``."""
    context = client.get(url(ImportJob, "mapping", job.pk)).context
    form = context["form"]
    reading = {name: form.reading[name].value() for name in form.reading.fields}
    targets = {f"target-{column.place}": column.choice for column in form.columns}
    keys = {f"key-{column.place}": column.key for column in form.columns}
    return {"seen": context["seen"], **reading, **targets, **keys, **given}


def press(client: Client, job: ImportJob, button: str, **given: Any) -> Any:
    data = {**answers(client, job, **given), button: "yes"}
    return client.post(url(ImportJob, "mapping", job.pk), data)
