"""Setting an account's limits and lifting what holds mail back, as staff do it in a browser."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest
from django.urls import reverse
from django.utils import timezone

from sending.models import (
    CampaignHealth,
    DeliveryEvent,
    ProviderEvent,
    RateLimit,
    TransportPause,
)
from subscribers.models import Account
from tests.factories import AccountFactory, SendFactory, StaffFactory

from .conftest import too_narrow

if TYPE_CHECKING:
    from playwright.sync_api import Page, expect
else:
    expect = pytest.importorskip("playwright.sync_api").expect

pytestmark = pytest.mark.django_db(transaction=True)

LONG = "421 4.7.28 " + "rate-limited-" * 30


def test_an_accounts_waits_are_corrected_where_they_are_wrong(
    open_page: Callable[..., Page],
) -> None:
    account = AccountFactory.create()
    page = open_page(StaffFactory.create(superuser=True))
    page.goto(reverse("admin:sendonce_subscribers_account_change", args=[account.pk]))
    page.get_by_label("Waits (seconds):").fill("60, soon")
    page.get_by_role("button", name="Save and continue editing").click()
    row = page.locator(".field-retry_waits")
    expect(row.get_by_text("is no whole number of seconds")).to_be_visible()
    page.get_by_label("Waits (seconds):").fill("60, 300")
    page.get_by_label("Messages an hour:").fill("20000")
    page.get_by_role("button", name="Save and continue editing").click()
    expect(page.get_by_text("was changed successfully")).to_be_visible()
    expect(page.get_by_label("Waits (seconds):")).to_have_value("60, 300")
    assert Account.objects.get().max_per_hour == 20_000


@pytest.mark.parametrize("javascript", [True, False], ids=["script", "no-script"])
def test_a_slow_down_is_lifted(open_page: Callable[..., Page], javascript: bool) -> None:
    limit = RateLimit.objects.create(
        key="transport:default", usual=20, rate=5, slowed_at=timezone.now(), reason="429"
    )
    page = open_page(StaffFactory.create(superuser=True), javascript=javascript)
    page.goto(reverse("admin:sendonce_sending_ratelimit_changelist"))
    page.get_by_role("link", name="Transport default").click()
    page.get_by_role("link", name="Lift the slow-down…").click()
    page.get_by_role("button", name="Lift the slow-down").click()
    expect(page.get_by_text("Lifted: transport default.")).to_be_visible()
    expect(page.get_by_text("as usual")).to_be_visible()
    limit.refresh_from_db()
    assert (limit.rate, limit.slowed_at) == (20, None)


def test_no_page_scrolls_sideways(open_page: Callable[..., Page]) -> None:
    now = timezone.now()
    send = SendFactory.create(in_doubt=True, settle_at=now, replay_until=now)
    limit = RateLimit.objects.create(key="domain:google", rate=1, slowed_at=now, reason=LONG)
    pause = TransportPause.objects.create(
        alias="default", stage="errors", reason=LONG, probe_at=now
    )
    health = CampaignHealth.objects.create(campaign=send.campaign, bounced=9, base={"trip": LONG})
    event = DeliveryEvent.objects.create(
        send=send, account=send.account, kind="failed", known=False, text=LONG
    )
    page = open_page(StaffFactory.create(superuser=True))
    for name, row in (
        ("ratelimit", limit),
        ("transportpause", pause),
        ("campaignhealth", health),
        ("deliveryevent", event),
    ):
        for view, args in (("changelist", []), ("change", [row.pk])):
            page.goto(reverse(f"admin:sendonce_sending_{name}_{view}", args=args))
            assert too_narrow(page) == [], (name, view)
    for name in ("ratelimit", "transportpause"):
        row_pk = {"ratelimit": limit.pk, "transportpause": pause.pk}[name]
        page.goto(reverse(f"admin:sendonce_sending_{name}_delete", args=[row_pk]))
        assert too_narrow(page) == [], name
    page.goto(reverse("admin:sendonce_campaigns_campaign_change", args=[send.campaign_id]))
    assert too_narrow(page) == []


def test_the_lists_show_their_answers_on_a_phone(open_page: Callable[..., Page]) -> None:
    now = timezone.now()
    send = SendFactory.create(in_doubt=True, answer_code=500, answer_text=LONG)
    RateLimit.objects.create(key="domain:google", rate=1, slowed_at=now, reason=LONG)
    TransportPause.objects.create(alias="default", stage="errors", reason=LONG, probe_at=now)
    DeliveryEvent.objects.create(send=send, account=send.account, kind="failed", text=LONG)
    ProviderEvent.objects.create(
        event_id="a", esp="Postmark", kind="hard_bounce", at=now, text=LONG,
        recipient="marie-louise.von-der-heide@students.example.org", job_id=send.job_id,
    )  # fmt: skip
    page = open_page(StaffFactory.create(superuser=True))
    for width in (1280, 390):
        page.set_viewport_size({"width": width, "height": 900})
        for name, column in (
            ("ratelimit", "brief_why"),
            ("transportpause", "brief_why"),
            ("deliveryevent", "brief_answer"),
            ("providerevent", "told"),
            ("send", "brief_answer"),
        ):
            page.goto(reverse(f"admin:sendonce_sending_{name}_changelist"))
            cell = page.locator(f"td.field-{column}").first
            box = cell.bounding_box()
            assert box is not None
            assert box["x"] + box["width"] <= width, (name, width)
            assert cell.locator("span").get_attribute("title") == (
                f"after the whole message: \u201c500 {LONG}\u201d" if name == "send" else LONG
            )
