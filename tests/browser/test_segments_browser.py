"""People put into a segment and taken out of it, as staff do it in a browser."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest
from django.urls import reverse

from subscribers.models import Membership, Segment
from tests.factories import (
    MembershipChangeFactory,
    MembershipFactory,
    SegmentFactory,
    StaffFactory,
    SubscriberFactory,
)

from .accessibility import flaws
from .conftest import too_narrow

if TYPE_CHECKING:
    from playwright.sync_api import Page, expect
else:
    expect = pytest.importorskip("playwright.sync_api").expect

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def segment() -> Any:
    found = SegmentFactory.create(name="Readers", account__timezone="Europe/Paris")
    SubscriberFactory.create(account=found.account, email="in@example.org", segments=[found])
    SubscriberFactory.create(account=found.account, email="new@example.org")
    gone = MembershipFactory.create(segment=found, left=True)
    MembershipChangeFactory.create(
        segment=found, subscriber=gone.subscriber, source="their own page, " + "x" * 150
    )
    SegmentFactory.create(account=found.account, name="Everybody")
    return found


def address_of(segment: Segment, page: str) -> str:
    return reverse(f"admin:sendonce_subscribers_segment_{page}", args=[segment.pk])


def present(segment: Segment) -> set[str]:
    rows = Membership.objects.filter(segment=segment, left_at__isnull=True)
    return set(rows.values_list("subscriber__email", flat=True))


@pytest.mark.parametrize("javascript", [True, False], ids=["script", "no-script"])
def test_people_come_and_go(
    open_page: Callable[..., Page], segment: Segment, javascript: bool
) -> None:
    page = open_page(StaffFactory.create(superuser=True), javascript=javascript)
    page.goto(address_of(segment, "change"))
    expect(page.get_by_role("heading", name="1 person")).to_be_visible()
    page.get_by_role("link", name="Add people").click()
    page.get_by_label("Addresses").fill("new@example.org\nin@example.org\nwho@example.org")
    page.get_by_role("button", name="Add").click()
    expect(page.get_by_role("heading", name="1 added")).to_be_visible()
    expect(page.get_by_text("who@example.org")).to_be_visible()
    assert present(segment) == {"new@example.org", "in@example.org"}

    page.get_by_role("link", name="To the segment").click()
    expect(page.get_by_role("heading", name="2 people")).to_be_visible()
    page.get_by_role("link", name="Remove people").click()
    page.get_by_label("Addresses").fill("in@example.org")
    page.get_by_role("button", name="Remove\u2026").click()
    expect(page.get_by_role("heading", name="Remove 1 person from Readers?")).to_be_visible()
    assert len(present(segment)) == 2
    page.get_by_role("button", name="Remove them").click()
    expect(page.get_by_role("heading", name="1 removed")).to_be_visible()
    assert present(segment) == {"new@example.org"}


def test_a_selection_is_put_into_a_segment(
    open_page: Callable[..., Page], segment: Segment
) -> None:
    page = open_page(StaffFactory.create(superuser=True))
    page.goto(reverse("admin:sendonce_subscribers_subscriber_changelist") + "?q=new")
    page.locator("#result_list tbody input").first.check()
    page.locator("select[name=action]").select_option(label="Add to a segment")
    page.locator("button[name=index]").click()
    page.get_by_label("Segment").select_option(label="Readers")
    page.get_by_role("button", name="Add").click()
    expect(page.get_by_text("Readers: 1 added.")).to_be_visible()
    assert present(segment) == {"new@example.org", "in@example.org"}


def test_the_pages_are_wide_enough_and_accessible(
    open_page: Callable[..., Page], segment: Segment
) -> None:
    page = open_page(StaffFactory.create(superuser=True))
    for name in ("change", "add_people", "remove_people"):
        page.goto(address_of(segment, name))
        assert too_narrow(page) == [], name
        assert flaws(page) == [], name
    expect(page.locator("svg.sendonce-bars")).to_have_count(0)
    page.goto(address_of(segment, "change"))
    chart = page.get_by_role("img", name="Bars of who joined and who left")
    expect(chart).to_be_visible()
    assert chart.locator("rect").count() == 2
