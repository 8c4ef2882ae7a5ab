"""The second page of an import: how a file is read, what its columns mean."""

from __future__ import annotations

import io
from typing import Any

import pytest
from django.test import Client

from subscribers.models import (
    AttributeDefinition,
    ImportJob,
    Subscriber,
)
from subscribers.tabular import Options
from tests.db.admin_pages import url
from tests.db.import_pages import answers, press, upload
from tests.factories import AccountFactory, SegmentFactory, SubscriberFactory

pytestmark = pytest.mark.django_db(transaction=True)

Status = ImportJob.Status


@pytest.fixture
def segment() -> Any:
    return SegmentFactory.create(name="Readers")


# --- the mapping page ----------------------------------------------------------------------------


def test_reading_again_shows_the_file_in_another_way(
    superuser_client: Client, segment: Any
) -> None:
    text = "email;name\nann@example.org;Zo\u00eb\nbob@example.org;Ji\u0159\u00ed\n"
    job = upload(superuser_client, segment, text.encode("cp1250"))
    page = press(superuser_client, job, "read", encoding="cp1250")
    assert page.context["first"].rows[1].cells == ["bob@example.org", "Ji\u0159\u00ed"]
    job.refresh_from_db()
    assert Options.from_json(job.options).encoding == "cp1250"
    page = press(superuser_client, job, "read", header="no")
    assert len(page.context["first"].rows) == 3
    page = press(superuser_client, job, "read", delimiter="|")
    assert len(page.context["form"].columns) == 1


def test_what_is_chosen_is_still_chosen_after_reading_again(
    superuser_client: Client, segment: Any
) -> None:
    job = upload(superuser_client, segment)
    chosen = {"target-1": "", "target-2": "new:number", "key-2": "times", "decimal": ","}
    page = press(superuser_client, job, "read", **chosen)
    form = page.context["form"]
    assert [column.choice for column in form.columns] == ["email", "", "new:number", "new:date"]
    assert form.columns[2].key == "times"
    press(superuser_client, job, "try", **chosen)
    form = superuser_client.get(url(ImportJob, "mapping", job.pk)).context["form"]
    assert [column.choice for column in form.columns] == ["email", "", "new:number", "new:date"]
    assert (form.columns[2].key, form.reading["decimal"].value()) == ("times", ",")


@pytest.mark.parametrize(
    ("given", "place"),
    [
        ({"target-1": "new:text", "key-1": "email"}, 1),
        ({"target-1": "new:text", "key-1": "two words"}, 1),
        ({"target-1": "new:text", "key-1": ""}, 1),
        ({"target-1": "new:text", "key-1": "x" * 101}, 1),
        ({"target-1": "new:choice"}, 1),
        ({"target-1": "attribute:unheard_of"}, 1),
        ({"target-1": "<script>"}, 1),
        ({"target-1": "new:text", "key-1": "city"}, 1),
        ({"target-2": "new:text", "key-2": "first_name"}, 2),
    ],
    ids=str,
)
@pytest.mark.parametrize("button", ["import", "try"])
def test_a_wrong_meaning_is_an_error_of_its_column(
    superuser_client: Client, segment: Any, given: dict[str, str], place: int, button: str
) -> None:
    AttributeDefinition.objects.create(account=segment.account, key="city")
    job = upload(superuser_client, segment)
    page = press(superuser_client, job, button, **given)
    assert page.status_code == 200
    wrong = [column.place for column in page.context["form"].columns if column.error]
    assert wrong == [place]
    job.refresh_from_db()
    assert job.status == Status.DRAFT
    assert not Subscriber.objects.exists()


@pytest.mark.parametrize(
    "given", [{"target-0": ""}, {"target-1": "email"}, {"target-1": "status", "target-2": "status"}]
)
def test_columns_that_do_not_go_together_are_told(
    superuser_client: Client, segment: Any, given: dict[str, str]
) -> None:
    job = upload(superuser_client, segment)
    page = press(superuser_client, job, "import", **given)
    assert page.context["first"].error
    assert page.context["first"].error in page.content.decode().replace("&#x27;", "'")
    assert ImportJob.objects.get().status == Status.DRAFT


def test_a_new_attribute_must_fit_what_people_have_already(
    superuser_client: Client, segment: Any
) -> None:
    SubscriberFactory.create(account=segment.account, attributes={"visits": "often"})
    job = upload(superuser_client, segment)
    page = press(superuser_client, job, "import", **{"target-2": "new:number"})
    assert "1 person has a value of visits already" in page.context["form"].columns[2].error
    assert ImportJob.objects.get().status == Status.DRAFT


def test_defined_attributes_are_offered_and_used(superuser_client: Client, segment: Any) -> None:
    AttributeDefinition.objects.create(
        account=segment.account, key="size", kind="choice", choices=["S", "M"]
    )
    AttributeDefinition.objects.create(account=AccountFactory.create(), key="secret")
    job = upload(superuser_client, segment, "email,size\nann@example.org,m\nbob@example.org,XL\n")
    page = superuser_client.get(url(ImportJob, "mapping", job.pk))
    assert page.context["form"].columns[1].choice == "attribute:size"
    assert "secret" not in page.content.decode()
    assert "none of S, M" in page.context["first"].rows[1].error
    press(superuser_client, job, "import")
    assert Subscriber.objects.get().attributes == {"size": "M"}


def test_a_file_of_many_columns_can_be_sent_back(superuser_client: Client, segment: Any) -> None:
    names = ",".join(["email", *(f"c{n}" for n in range(499))])
    row = ",".join(["ann@example.org", *(str(n) for n in range(499))])
    job = upload(superuser_client, segment, f"{names}\n{row}\n")
    data = answers(superuser_client, job)
    form = superuser_client.get(url(ImportJob, "mapping", job.pk)).context["form"]
    sent = {
        name: value
        for name, value in data.items()
        if not name.startswith("key-") or form.columns[int(name[4:])].offers_key
    }
    answer = superuser_client.post(url(ImportJob, "mapping", job.pk), {**sent, "import": "yes"})
    assert answer.status_code == 302
    assert len(Subscriber.objects.get().attributes) == 499


def test_a_workbook_offers_its_sheets(superuser_client: Client, segment: Any) -> None:
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    book.active.title = "Empty"
    book.active.append(["email", "x"])
    sheet = book.create_sheet("People")
    for row in (["email", "visits"], ["ann@example.org", 3]):
        sheet.append(row)
    data = io.BytesIO()
    book.save(data)
    job = upload(superuser_client, segment, data.getvalue(), name="people.xlsx")
    page = press(superuser_client, job, "read", sheet="People")
    assert set(page.context["form"].reading.fields) == {"sheet", "header", "decimal", "date_order"}
    assert page.context["first"].rows[0].cells == ["ann@example.org", "3"]
    press(superuser_client, job, "import")
    assert Subscriber.objects.get().email == "ann@example.org"


@pytest.mark.parametrize("button", ["import", "try"])
@pytest.mark.parametrize("given", [{"delimiter": ","}, {"header": "no"}, {"encoding": "cp1252"}])
def test_columns_that_nobody_has_seen_are_shown_before_anything_is_done(
    superuser_client: Client, segment: Any, button: str, given: dict[str, str]
) -> None:
    job = upload(superuser_client, segment, "email;name\nann@example.org;Ann\n")
    page = press(superuser_client, job, button, **given)
    assert page.status_code == 200
    assert "Look at its columns again" in page.content.decode()
    assert page.context["report"] is None
    assert ImportJob.objects.get().status == Status.DRAFT
    name, value = next(iter(given.items()))
    assert page.context["form"].reading[name].value() == value
    if button == "import" and name == "encoding":
        assert press(superuser_client, job, "import").status_code == 302
        assert Subscriber.objects.get().attributes == {"name": "Ann"}
