"""The front page as somebody sees it: on a desk and on a phone, in the dark, without scripts."""

from __future__ import annotations

import os
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from django.contrib.auth.models import Group
from django.utils import timezone

from campaigns.models import Campaign
from sending.models import TransportPause
from subscribers import role_groups
from subscribers.roles import Role
from tests.browser.accessibility import flaws
from tests.browser.conftest import too_narrow
from tests.browser.role_paths import Keys
from tests.factories import (
    AccountFactory,
    CampaignFactory,
    ImportJobFactory,
    SendFactory,
    StaffFactory,
)

if TYPE_CHECKING:
    from playwright.sync_api import Page

pytestmark = pytest.mark.django_db(transaction=True)

BRAKE = "6.2 % of the addresses tried so far are dead (31 of 500), and the account allows 5 %"


@pytest.fixture
def operator() -> Any:
    """An operator of two accounts in which much goes on."""
    role_groups.update()
    user = StaffFactory.create(username="omar")
    user.groups.add(Group.objects.get(sendonce_role__role=Role.OPERATOR))
    one = AccountFactory.create(name="Greenhouse & Söhne", timezone="Europe/Berlin", members=[user])
    two = AccountFactory.create(name="Library", timezone="America/New_York", members=[user])
    author = StaffFactory.create(username="anna")
    CampaignFactory.create(account=one, name="Spring sale", paused=True, status_reason=BRAKE)
    CampaignFactory.create(
        account=one, name="Nursery opens", approved=True, approved_by=author,
        scheduled_for=timezone.now() - timedelta(minutes=3),
    )  # fmt: skip
    CampaignFactory.create(
        account=two, name="Opening hours in the holidays, and what is new in the reading room",
        approved=True, approved_by=author, scheduled_for=timezone.now() + timedelta(days=2),
    )  # fmt: skip
    running = CampaignFactory.create(account=two, name="Monthly letter", sending=True, audience=12)
    for state in [{"sent": True}] * 6 + [{"bounced": True}] + [{}] * 5:
        SendFactory.create(campaign=running, **state)
    sent = CampaignFactory.create(account=one, name="Seedlings", sent=True, audience=4)
    for state in [{"sent": True}] * 2 + [{"in_doubt": True}] * 2:
        SendFactory.create(campaign=sent, **state)
    Campaign.objects.filter(pk=running.pk).update(built_at=timezone.now())
    TransportPause.objects.create(
        alias="default", stage="auth", code=535, reason="5.7.8 Authentication failed",
        probe_at=timezone.now(),
    )  # fmt: skip
    ImportJobFactory.create(
        account=two, status="failed", file_name="readers-2026.xlsx",
        error="sheet 2 has no column with addresses",
    )  # fmt: skip
    return user


def shoot(page: Page, name: str) -> None:
    """For whoever wants to look: ``SCREENSHOTS`` names a folder."""
    folder = os.environ.get("SCREENSHOTS")
    if folder:
        page.screenshot(path=f"{folder}/{name}.png", full_page=True)


def test_what_needs_somebody_comes_first(open_page: Any, operator: Any) -> None:
    page = open_page(operator, javascript=False)
    page.goto("/admin/")
    headings = page.locator(".sendonce-dashboard h2").all_inner_texts()
    assert headings == ["Needs attention", "Running", "Scheduled", "Drafts", "Sent lately"]
    lines = page.locator(".sendonce-attention .what").all_inner_texts()
    assert lines[0].startswith("No sender is alive")
    assert any("Seedlings: 2 messages in doubt" in line for line in lines)
    shoot(page, "dashboard-1280")
    page.emulate_media(color_scheme="dark")
    shoot(page, "dashboard-1280-dark")
    page.set_viewport_size({"width": 390, "height": 844})
    shoot(page, "dashboard-390-dark")
    page.emulate_media(color_scheme="light")
    shoot(page, "dashboard-390")


def test_it_can_be_read_by_everybody_at_any_width(open_page: Any, operator: Any) -> None:
    page = open_page(operator)
    page.goto("/admin/")
    assert flaws(page) == []
    assert too_narrow(page) == []


def test_by_keyboard_to_what_needs_somebody(open_page: Any, operator: Any) -> None:
    page = open_page(operator)
    page.goto("/admin/")
    keys = Keys(page)
    keys.follow("Spring sale is paused")
    page.wait_for_url("**/campaign/*/change/")
    assert BRAKE in page.locator("#content").inner_text()
    assert not keys.unseen


def test_a_newcomer_begins_with_the_first_step(open_page: Any) -> None:
    page = open_page(StaffFactory.create(superuser=True))
    page.goto("/admin/")
    assert page.locator(".sendonce-dashboard h2").first.inner_text() == "Your first campaign"
    shoot(page, "dashboard-new-1280")
    assert flaws(page) == []
    assert too_narrow(page) == []
    shoot(page, "dashboard-new-390")
    page.set_viewport_size({"width": 1280, "height": 900})
    page.get_by_role("link", name="An account").click()
    page.wait_for_url("**/account/add/")
