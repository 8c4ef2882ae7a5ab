"""A file from its upload to its rejected rows, as staff import it in a browser."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from django.urls import reverse

from subscribers.importing import jobs
from subscribers.models import AttributeDefinition, ImportJob, Subscriber
from subscribers.tabular import Options
from tests.factories import ImportJobFactory, SegmentFactory, StaffFactory, SubscriberFactory

from .accessibility import flaws
from .conftest import too_narrow

if TYPE_CHECKING:
    from playwright.sync_api import Page, expect
else:
    expect = pytest.importorskip("playwright.sync_api").expect

pytestmark = pytest.mark.django_db(transaction=True)

PEOPLE = """\
E-Mail;First Name;Visits
ann@example.org;Ann;1,5
nonsense;Nobody;1
bob@example.org;Bob;many
"""
IMPORT = "admin:sendonce_subscribers_subscriber_import"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "people.csv"
    path.write_text(PEOPLE, encoding="utf-8")
    return path


def is_fine(page: Page, *, axe: bool = True) -> None:
    assert too_narrow(page) == []
    page.set_viewport_size({"width": 1280, "height": 900})
    if axe:
        assert flaws(page) == []


@pytest.mark.parametrize("javascript", [True, False], ids=["script", "no-script"])
def test_a_file_from_upload_to_rejects(
    open_page: Callable[..., Page], file: Path, javascript: bool
) -> None:
    segment = SegmentFactory.create(name="Readers")
    page = open_page(StaffFactory.create(superuser=True), javascript=javascript)
    page.goto(reverse("admin:sendonce_subscribers_subscriber_changelist"))
    page.get_by_role("link", name="Import", exact=True).click()
    page.get_by_label("Segment:", exact=True).select_option(label="Readers")
    page.get_by_label("They have agreed").check()
    page.get_by_role("button", name="Continue to the columns").click()
    expect(page.get_by_text("Say where the consent came from.")).to_be_visible()
    is_fine(page, axe=javascript)

    page.set_input_files("input[type=file]", file)
    page.get_by_label("Source of the consent:").fill("the fair in May")
    page.get_by_role("button", name="Continue to the columns").click()
    expect(page.get_by_role("heading", name="What its columns mean").first).to_be_visible()
    visits = page.get_by_label("What column 3, Visits, means")
    visits.select_option(label="New: number")
    page.get_by_label("Key of a new attribute from column 3").fill("visits per week")
    page.get_by_role("button", name="Read again").click()
    expect(page.get_by_text("can't be a key")).to_be_visible()
    is_fine(page, axe=javascript)
    page.get_by_label("Key of a new attribute from column 3").fill("visits_per_week")
    page.get_by_label("Decimal sign:").select_option(label="Comma (1,5)")
    page.get_by_role("button", name="Read again").click()
    first = page.get_by_role("region", name="The first rows, as they would be stored")
    expect(first.get_by_text("ann@example.org")).to_be_visible()
    expect(first.get_by_text("1.5", exact=True)).to_be_visible()
    expect(first.get_by_text("Not taken:")).to_have_count(2)

    page.get_by_role("button", name="Try it").click()
    expect(page.get_by_text("Tried: nothing was changed")).to_be_visible()
    is_fine(page, axe=javascript)
    assert not Subscriber.objects.exists()

    page.get_by_role("button", name="Import", exact=True).click()
    expect(page.get_by_role("heading", name="Done")).to_be_visible()
    expect(page.get_by_text("Every row is accounted for: 3 of 3.")).to_be_visible()
    expect(page.get_by_role("cell", name="nonsense | Nobody | 1")).to_be_visible()
    is_fine(page, axe=javascript)
    person = Subscriber.objects.get()
    assert (person.email, person.status) == ("ann@example.org", "confirmed")
    assert person.attributes == {"first_name": "Ann", "visits_per_week": 1.5}
    assert AttributeDefinition.objects.get(key="visits_per_week").kind == "number"

    with page.expect_download() as started:
        page.get_by_role("link", name="Download all of them as CSV").click()
    rejects = Path(started.value.path()).read_text(encoding="utf-8")
    assert rejects.startswith("reject_line,reject_reason,E-Mail,First Name,Visits")
    assert len(rejects.splitlines()) == 3
    page.get_by_role("link", name="The people of this segment").click()
    expect(page.get_by_role("link", name="ann@example.org")).to_be_visible()
    assert segment.memberships.count() == 1


def queued(people: int) -> ImportJob:
    job: ImportJob = ImportJobFactory.create(file_name="many.csv")
    rows = "".join(f"p{n}@example.org\n" for n in range(people))
    jobs.store(job, [f"email\n{rows}".encode()])
    jobs.examine(job)
    jobs.queue(job, Options.from_json(job.options))
    return job


def test_the_page_follows_an_import_to_its_end(open_page: Callable[..., Page]) -> None:
    job = queued(3)
    page = open_page(StaffFactory.create(superuser=True))
    page.goto(reverse("admin:sendonce_subscribers_importjob_change", args=[job.pk]))
    expect(page.get_by_role("heading", name="Waiting")).to_be_visible()
    is_fine(page)
    page.get_by_role("link", name="Look again").focus()
    # While there is nothing new, nothing is replaced under the reader's eyes.
    page.evaluate("document.getElementById('import-state').stayed = true")
    for _ in range(2):
        with page.expect_response(lambda answer: answer.url.endswith("/state/")):
            pass
    assert page.evaluate("document.getElementById('import-state').stayed")
    # Somebody else does it; the page was not told, and is not loaded anew.
    page.evaluate("window.stayed = true")
    assert jobs.run(job.pk)
    expect(page.get_by_role("heading", name="Done")).to_be_visible(timeout=15_000)
    expect(page.get_by_role("status")).to_have_text("The import is done.")
    assert page.evaluate("window.stayed")
    # The link that had the focus is gone; the focus is where it was, not at the page's top.
    assert page.evaluate("document.activeElement.id") == "import-state"


@pytest.mark.parametrize("javascript", [True, False], ids=["script", "no-script"])
def test_an_import_that_nobody_runs_goes_on_here(
    open_page: Callable[..., Page], javascript: bool
) -> None:
    job = queued(3)
    page = open_page(StaffFactory.create(superuser=True), javascript=javascript)
    page.goto(reverse("admin:sendonce_subscribers_importjob_change", args=[job.pk]))
    page.get_by_role("button", name="Go on here").click()
    expect(page.get_by_role("heading", name="Done")).to_be_visible()
    assert Subscriber.objects.count() == 3


def test_an_import_is_canceled_after_a_question(open_page: Callable[..., Page]) -> None:
    job = queued(3)
    page = open_page(StaffFactory.create(superuser=True))
    page.goto(reverse("admin:sendonce_subscribers_importjob_change", args=[job.pk]))
    page.get_by_role("link", name="Cancel…").click()
    is_fine(page)
    page.get_by_role("button", name="Cancel this import").click()
    expect(page.get_by_role("heading", name="Canceled")).to_be_visible()
    job.refresh_from_db()
    assert job.status == ImportJob.Status.CANCELED


def test_the_other_pages_are_fine(open_page: Callable[..., Page]) -> None:
    person: Any = SubscriberFactory.create(attributes={"born": "2000-01-31", "shoe": "44"})
    row = AttributeDefinition.objects.create(account=person.account, key="born", kind="date")
    queued(1)
    page = open_page(StaffFactory.create(superuser=True))
    for name, args in (
        ("subscriber_changelist", []),
        ("subscriber_import", []),
        ("subscriber_export", []),
        ("subscriber_change", [person.pk]),
        ("importjob_changelist", []),
        ("attributedefinition_changelist", []),
        ("attributedefinition_add", []),
        ("attributedefinition_change", [row.pk]),
        ("attributedefinition_delete", [row.pk]),
    ):
        page.goto(reverse(f"admin:sendonce_subscribers_{name}", args=args))
        assert too_narrow(page) == [], name
    page.goto(reverse("admin:sendonce_subscribers_subscriber_change", args=[person.pk]))
    page.get_by_label("Born:").fill("2001-02-28")
    page.get_by_role("button", name="Save", exact=True).click()
    person.refresh_from_db()
    assert person.attributes == {"born": "2001-02-28", "shoe": "44"}


def test_keys_alone_lead_through_an_export(open_page: Callable[..., Page]) -> None:
    person: Any = SubscriberFactory.create()
    page = open_page(StaffFactory.create(superuser=True))
    page.goto(reverse("admin:sendonce_subscribers_subscriber_export"))
    is_fine(page)
    page.get_by_label("Segment:").focus()
    for _ in range(3):
        page.keyboard.press("Tab")
    with page.expect_download() as started:
        page.keyboard.press("Enter")
    assert person.email in Path(started.value.path()).read_text(encoding="utf-8")
