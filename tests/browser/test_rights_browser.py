"""The suppression list, one person's data and the audit trail, as staff use them in a browser."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from django.urls import reverse

from subscribers.audit import record
from subscribers.models import AuditEvent, Subscriber, Suppression
from subscribers.rights.acts import erase_person
from subscribers.suppression import is_suppressed, suppress
from tests.factories import AccountFactory, SegmentFactory, StaffFactory, SubscriberFactory

from .accessibility import flaws
from .conftest import too_narrow

if TYPE_CHECKING:
    from playwright.sync_api import Page, expect
else:
    expect = pytest.importorskip("playwright.sync_api").expect

pytestmark = pytest.mark.django_db(transaction=True)

#: Where pictures of the pages go, for whoever wants to look at them.
PICTURES = os.environ.get("PAGE_PICTURES")


#: What axe says of the stock admin's own parts: its headings, its search field and filters.
STOCK = frozenset({"heading-order", "label-title-only", "link-in-text-block"})


def at(model: str, page: str, *args: Any) -> str:
    return reverse(f"admin:sendonce_subscribers_{model}_{page}", args=args)


def looked_at(page: Page, name: str) -> None:
    """No sideways scrolling on a desk's or a phone's window, and nothing that axe objects to."""
    assert too_narrow(page) == [], name
    for width in (390, 1280):
        page.set_viewport_size({"width": width, "height": 900})
        if PICTURES:
            page.screenshot(path=Path(PICTURES) / f"{name}-{width}.png", full_page=True)
    # Lists and forms that are Django's alone are not ours to mend.
    if name not in ("suppression-list", "suppression-add", "audit-list"):
        assert [flaw for flaw in flaws(page) if flaw.split(": ")[1] not in STOCK] == [], name


def test_an_address_is_added_released_and_found_in_the_trail(
    open_page: Callable[..., Page],
) -> None:
    page = open_page(StaffFactory.create(superuser=True, username="bea"))
    page.goto(at("suppression", "add"))
    page.get_by_label("Email:").fill("Ann@EXAMPLE.org")
    page.get_by_label("Reason:").select_option("manual")
    page.get_by_role("button", name="Save", exact=True).click()
    page.locator("#searchbar").fill("ann@")
    page.get_by_role("button", name="Search").click()
    page.get_by_role("link", name="Ann@example.org").click()
    page.get_by_role("link", name="Release…").click()
    page.get_by_role("button", name="Release").click()
    expect(page.get_by_text("This field is required.")).to_be_visible()
    page.get_by_label("Reason:").fill("It was a typing mistake.")
    page.get_by_role("button", name="Release").click()
    expect(page.get_by_text("Released: Ann@example.org.")).to_be_visible()
    assert not Suppression.objects.exists()

    page.goto(at("auditevent", "changelist") + "?q=ann@")
    rows = page.locator("#result_list tbody tr")
    expect(rows).to_have_count(2)
    expect(rows.first).to_contain_text("Released an address")
    expect(rows.last).to_contain_text("Suppressed an address")


@pytest.mark.parametrize("javascript", [True, False], ids=["script", "no-script"])
def test_a_person_is_exported_and_erased(open_page: Callable[..., Page], javascript: bool) -> None:
    person = SubscriberFactory.create(email="ann@example.org", attributes={"city": "Ulm"})
    page = open_page(StaffFactory.create(superuser=True), javascript=javascript)
    page.goto(at("subscriber", "change", person.pk))
    page.get_by_role("link", name="Export or erase").click()
    with page.expect_download() as waiting:
        page.get_by_role("button", name="Export as JSON").click()
    data = json.loads(Path(waiting.value.path()).read_text())
    assert data["subscriber"][0]["attributes"] == {"city": "Ulm"}

    page.get_by_label("Reason:").fill("asked by letter")
    page.get_by_label("Type the address:").fill("bob@example.org")
    page.get_by_role("button", name="Erase for good").click()
    expect(page.get_by_text("This is not ann@example.org.")).to_be_visible()
    page.get_by_label("Type the address:").fill("ann@example.org")
    page.get_by_role("button", name="Erase for good").click()
    expect(page.get_by_text("Erased from")).to_be_visible()
    assert not Subscriber.objects.exists()
    assert is_suppressed(person.account, "ann@example.org")


def test_a_file_is_checked_and_then_imported(
    open_page: Callable[..., Page], tmp_path: Path
) -> None:
    AccountFactory.create(name="Bakery")
    path = tmp_path / "list.csv"
    path.write_text("email,reason\nann@example.org,complaint\nnobody,\n")
    page = open_page(StaffFactory.create(superuser=True))
    page.goto(at("suppression", "import"))
    for button, words in (
        ("Check the file first", "What an import would do"),
        ("Import", "Imported"),
    ):
        page.get_by_label("File:").set_input_files(path)
        page.get_by_label("Suppress for:").select_option(label="Bakery")
        page.get_by_role("button", name=button, exact=True).click()
        expect(page.get_by_role("heading", name=words)).to_be_visible()
        expect(page.get_by_role("cell", name="nobody").first).to_be_visible()
    looked_at(page, "suppression-import")
    assert Suppression.objects.get().reason == "complaint"


def test_every_page_is_fit_to_be_looked_at(open_page: Callable[..., Page]) -> None:
    account = AccountFactory.create(name="Bakery")
    long = "a-rather-long-name.of-somebody@a-long-domain-of-theirs.example.org"
    segment = SegmentFactory.create(account=account)
    person = SubscriberFactory.create(account=account, email=long, segments=[segment])
    manual = suppress(account, long, "manual", evidence="asked on the phone\nAdded by bea.")
    suppress(None, long, "hard_bounce", evidence="550 5.1.1 no such user " + "x" * 80)
    complaint = suppress(account, "bob@example.org", "complaint", evidence="a provider told so")
    erase_person(account, "bob@example.org", by_name="bea", reason="asked by letter")
    erased = Suppression.objects.get(reason="erased")
    assert erased.former_reason == complaint.reason
    event = record(
        account, "suppression.release", by_name="bea", subject=long, reason="a mistake " * 20,
        detail={"suppressed_for": "manual", "evidence": "y" * 120},
    )  # fmt: skip
    page = open_page(StaffFactory.create(superuser=True))
    for name, address in (
        ("suppression-list", at("suppression", "changelist")),
        ("suppression-add", at("suppression", "add")),
        ("suppression", at("suppression", "change", manual.pk)),
        ("suppression-erased", at("suppression", "change", erased.pk)),
        ("suppression-release", at("suppression", "release", manual.pk)),
        ("suppression-release-not", at("suppression", "release", erased.pk)),
        ("suppression-export", at("suppression", "export")),
        ("person", at("subscriber", "person")),
        ("person-known", at("subscriber", "person") + f"?subscriber={person.pk}"),
        ("audit-list", at("auditevent", "changelist")),
        ("audit", at("auditevent", "change", event.pk)),
    ):
        page.goto(address)
        looked_at(page, name)
    assert AuditEvent.objects.count() == 2
