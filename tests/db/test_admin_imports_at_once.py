"""Two people answer for the same file: the later is told, and the first one's answers stay."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from subscribers.importing.drafts import misfits
from subscribers.models import AttributeDefinition, AuditEvent, ImportJob, Subscriber
from tests.db.admin_pages import url
from tests.db.import_pages import answers, upload
from tests.db.racing import Race
from tests.factories import SegmentFactory, StaffFactory

pytestmark = pytest.mark.django_db(transaction=True)

BUTTONS = pytest.mark.parametrize("button", ["try", "read", "import"])


def another() -> Client:
    client = Client()
    client.force_login(StaffFactory.create(superuser=True))
    return client


@pytest.fixture
def job(superuser_client: Client) -> ImportJob:
    return upload(superuser_client, SegmentFactory.create())


def send(client: Client, job: ImportJob, data: dict[str, Any], button: str) -> Any:
    return client.post(url(ImportJob, "mapping", job.pk), {**data, button: "yes"}, follow=True)


def stored(job: ImportJob) -> Any:
    return ImportJob.objects.values("status", "options", "preview").get(pk=job.pk)


@BUTTONS
def test_the_later_is_told_what_changed_and_overwrites_nothing(
    superuser_client: Client, job: ImportJob, button: str
) -> None:
    data = answers(superuser_client, job)
    others = {**data, "target-1": "", "target-2": "new:number", "decimal": ","}
    assert send(another(), job, others, "try").context["report"] is not None
    kept = stored(job)
    mine = {**data, "target-3": "new:text"}
    page = send(superuser_client, job, mine, button)
    told = page.content.decode()
    assert "Not saved: changed meanwhile: Decimal sign, First Name and Visits." in told
    assert page.context["report"] is None
    shown = [column.choice for column in page.context["form"].columns]
    assert shown == ["email", data["target-1"], data["target-2"], "new:text"]
    assert stored(job) == kept
    # Sent again as the page came back, it is refused again; a page that was loaded since is not.
    again = send(superuser_client, job, {**mine, "seen": page.context["seen"]}, button)
    assert "Not saved" in again.content.decode()
    assert stored(job) == kept
    assert not Subscriber.objects.exists()
    fresh = answers(superuser_client, job)
    assert (fresh["target-1"], fresh["target-2"], fresh["decimal"]) == ("", "new:number", ",")
    assert "Not saved" not in send(superuser_client, job, fresh, button).content.decode()


@BUTTONS
def test_who_looks_at_columns_that_the_file_has_no_more_is_shown_those_it_has(
    superuser_client: Client, job: ImportJob, button: str
) -> None:
    data = answers(superuser_client, job)
    send(another(), job, {**data, "delimiter": "|"}, "read")
    kept = stored(job)
    page = send(superuser_client, job, {**data, "target-1": ""}, button)
    assert "have the file read in another way" in page.content.decode()
    assert len(page.context["form"].columns) == 1
    assert page.context["form"].reading["delimiter"].value() == "|"
    assert stored(job) == kept
    assert not Subscriber.objects.exists()


def test_the_same_answers_are_no_conflict(superuser_client: Client, job: ImportJob) -> None:
    """Pressed twice, or gone back to and sent as it was answered in the end."""
    data = {**answers(superuser_client, job), "target-1": ""}
    for _ in range(2):
        assert send(superuser_client, job, data, "try").context["report"] is not None


def test_a_page_that_does_not_say_what_it_showed_changes_nothing(
    superuser_client: Client, job: ImportJob
) -> None:
    data, kept = answers(superuser_client, job), stored(job)
    del data["seen"]
    page = send(superuser_client, job, {**data, "target-1": ""}, "try")
    assert "this page was not complete" in page.content.decode()
    assert stored(job) == kept


def test_who_comes_after_the_start_is_told_that_other_answers_count(
    superuser_client: Client, job: ImportJob
) -> None:
    data = answers(superuser_client, job)
    send(another(), job, {**data, "target-1": "", "target-2": "new:number"}, "import")
    page = send(superuser_client, job, data, "import")
    assert "started meanwhile: what you answered on its page is not used" in page.content.decode()
    kinds = dict(AttributeDefinition.objects.values_list("key", "kind"))
    assert kinds == {"visits": "number", "born": "date"}
    assert AuditEvent.objects.filter(verb="import.start").count() == 1


def test_a_second_press_of_import_is_no_other_answer(
    superuser_client: Client, job: ImportJob
) -> None:
    data = {**answers(superuser_client, job), "target-2": "new:number", "key-2": "times"}
    for _ in range(2):
        page = send(superuser_client, job, data, "import")
        assert page.redirect_chain
        assert "meanwhile" not in page.content.decode()


def test_who_answers_for_a_canceled_import_is_told(
    superuser_client: Client, job: ImportJob
) -> None:
    data = answers(superuser_client, job)
    another().post(url(ImportJob, "cancel", job.pk))
    page = send(superuser_client, job, data, "import")
    assert "This import was canceled meanwhile" in page.content.decode()
    assert not Subscriber.objects.exists()


@BUTTONS
def test_of_two_that_answer_in_the_same_instant_one_is_told(
    superuser_client: Client, job: ImportJob, monkeypatch: pytest.MonkeyPatch, button: str
) -> None:
    data, other = answers(superuser_client, job), another()
    first = {**data, "target-1": ""}
    second = {**data, "target-2": ""}
    with Race() as race:
        halt = race.halt()
        # It has compared, and not yet written.
        monkeypatch.setattr("subscribers.admin.mapping.misfits", halt.behind(misfits))
        winner = race.start_to(halt, lambda: send(superuser_client, job, first, "try"))
        loser = race.start(lambda: send(other, job, second, button))
        loser.wait_until_blocked()
        halt.released.set()
        assert "Tried: nothing was changed" in winner.result().content.decode()
        told = loser.result().content.decode()
    assert "Not saved: changed meanwhile: First Name." in told
    assert stored(job)["options"]["mapping"][1:3] == ["", "attribute:visits"]
    assert not Subscriber.objects.exists()
