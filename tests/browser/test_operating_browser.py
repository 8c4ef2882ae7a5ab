"""The doubt desk, transports, senders and one person's story, as staff use them in a browser."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest
from django.contrib.auth.models import Permission
from django.urls import reverse
from django.utils import timezone

from campaigns.models import Campaign
from sending.models import CampaignHealth, DeliveryEvent, RateLimit, Send, TransportPause
from subscribers.models import Subscriber
from tests.factories import (
    AccountFactory,
    CampaignFactory,
    SendFactory,
    StaffFactory,
    SubscriberFactory,
    SuppressionFactory,
    WorkerFactory,
)

from .accessibility import flaws
from .conftest import too_narrow

if TYPE_CHECKING:
    from playwright.sync_api import Page, expect
else:
    expect = pytest.importorskip("playwright.sync_api").expect

pytestmark = pytest.mark.django_db(transaction=True)

DESK = reverse("admin:sendonce_sending_send_doubt_desk")
STORY = reverse("admin:sendonce_sending_send_story")
OVERVIEW = reverse("admin:sendonce_sending_transportpause_overview")
LONG = "421 4.7.28 " + "rate-limited-" * 30


@pytest.fixture
def spring() -> Campaign:
    account = AccountFactory.create(name="City Theatre", timezone="Europe/Berlin")
    campaign: Campaign = CampaignFactory.create(account=account, sent=True, name="Spring")
    for number in range(4):
        SendFactory.create(
            campaign=campaign,
            in_doubt=True,
            reason="connection_lost" if number else "worker_lost",
            subscriber__email=f"marie-louise.von-der-heide{number}@students.example.org",
            answer_text=LONG if number == 1 else "",
            via="default:1",
        )
    return campaign


def operator(campaign: Campaign) -> object:
    """A member of the account with what the work needs, and no more."""
    user = StaffFactory.create()
    campaign.account.members.add(user)
    names = ("view_send", "resolve_doubt", "view_campaign", "view_subscriber")
    user.user_permissions.set(Permission.objects.filter(codename__in=names))
    return user


@pytest.mark.parametrize("javascript", [True, False], ids=["script", "no-script"])
def test_from_the_desk_to_a_decision(
    open_page: Callable[..., Page], spring: Campaign, javascript: bool
) -> None:
    page = open_page(operator(spring), javascript=javascript)
    page.goto(DESK)
    page.get_by_role("link", name="Look at them (connection lost, Spring)").click()
    expect(page.get_by_role("heading", name="In doubt: Spring")).to_be_visible()
    page.get_by_label("marie-louise.von-der-heide2@students.example.org").check()
    page.get_by_role("button", name="Send again…").click()
    expect(page.get_by_role("heading", name="1 message", exact=True)).to_be_visible()
    expect(page.get_by_text("Whoever got the message already gets it twice.")).to_be_visible()
    page.get_by_role("link", name="Back, change nothing").click()
    expect(page.get_by_role("heading", name="In doubt: Spring")).to_be_visible()
    assert Send.objects.filter(status="in_doubt").count() == 4

    page.get_by_label("marie-louise.von-der-heide2@students.example.org").check()
    page.get_by_role("button", name="Send again…").click()
    page.get_by_role("button", name="Send again").click()
    expect(page.get_by_text("1 of 1 message to be sent again.")).to_be_visible()

    page.get_by_label("All of this reason, on all pages").check()
    page.get_by_role("button", name="Treat as sent…").click()
    expect(page.get_by_role("heading", name="2 messages")).to_be_visible()
    page.get_by_role("button", name="Treat as sent").click()
    expect(page.get_by_text("2 of 2 messages treated as sent.")).to_be_visible()
    assert sorted(Send.objects.values_list("status", flat=True)) == [
        "in_doubt", "queued", "sent", "sent",
    ]  # fmt: skip


def test_the_script_ticks_all_of_the_page(open_page: Callable[..., Page], spring: Campaign) -> None:
    page = open_page(operator(spring))
    page.goto(f"{DESK}?campaign={spring.pk}")
    page.get_by_label("All messages of this page").check()
    expect(page.get_by_label("Those ticked below (4)")).to_be_visible()
    page.get_by_label("marie-louise.von-der-heide1@students.example.org").uncheck()
    expect(page.get_by_label("Those ticked below (3)")).to_be_visible()
    page.get_by_role("button", name="Treat as sent…").click()
    expect(page.get_by_role("heading", name="3 messages")).to_be_visible()


def test_a_decision_by_the_keyboard_alone(open_page: Callable[..., Page], spring: Campaign) -> None:
    page = open_page(operator(spring))
    page.goto(f"{DESK}?campaign={spring.pk}&reason=worker_lost")

    def tab_to(what: str) -> None:
        for _ in range(80):
            page.keyboard.press("Tab")
            focused = page.evaluate(
                "(document.activeElement.innerText || document.activeElement.value || '')"
                " + ' ' + (document.activeElement.getAttribute('aria-label') || '')"
            )
            if what in focused:
                return
        raise AssertionError(f"{what} is not reached by the keyboard")

    tab_to("ticked")
    page.keyboard.press("ArrowDown")
    tab_to("Treat as sent…")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="1 message", exact=True)).to_be_visible()
    tab_to("Treat as sent")
    page.keyboard.press("Enter")
    expect(page.get_by_text("1 of 1 message treated as sent.")).to_be_visible()


@pytest.mark.parametrize("javascript", [True, False], ids=["script", "no-script"])
def test_why_somebody_did_not_get_it(
    open_page: Callable[..., Page], spring: Campaign, javascript: bool
) -> None:
    person = SubscriberFactory.create(account=spring.account, email="ann@example.org")
    before = timezone.now() - timedelta(days=9)
    Subscriber.objects.filter(pk=person.pk).update(created=before, confirmed_at=before)
    page = open_page(operator(spring), javascript=javascript)
    page.goto(reverse("admin:sendonce_subscribers_subscriber_change", args=[person.pk]))
    page.get_by_role("link", name="What was sent to them").click()
    expect(page.get_by_text("Added as a subscriber")).to_be_visible()
    page.get_by_role("button", name="Say why").click()
    expect(page.get_by_text("they are in none of the campaign's segments")).to_be_visible()
    page.get_by_label("Address, or its beginning").fill("marie")
    page.get_by_role("button", name="Look").click()
    expect(page.get_by_role("heading", name="Whom do you mean?")).to_be_visible()


def test_a_paused_transport_is_found_and_tried(open_page: Callable[..., Page]) -> None:
    later = timezone.now() + timedelta(minutes=9)
    TransportPause.objects.create(
        alias="default", stage="auth", code=535, reason="refused", probe_at=later
    )
    page = open_page(StaffFactory.create(superuser=True))
    page.goto(reverse("admin:sendonce_sending_transportpause_changelist"))
    page.get_by_role("link", name="Transports and brakes").click()
    expect(page.get_by_role("heading", name="default: paused")).to_be_visible()
    page.get_by_role("link", name="Try now… default").click()
    page.get_by_role("button", name="Try now").click()
    expect(page.get_by_text("The next try is made now")).to_be_visible()
    assert TransportPause.objects.filter(probe_at__lt=later).exists()


def test_senders_fit_a_desk_and_a_phone(open_page: Callable[..., Page], spring: Campaign) -> None:
    now = timezone.now()
    WorkerFactory.create(host="vm", pid=7, lanes=2, sessions_a_lane=4, sessions={"default": 3})
    WorkerFactory.create(host="h" * 80, note=LONG, seen=now - timedelta(minutes=4))
    WorkerFactory.create(only_campaign=spring.pk, ended=now, seen=now - timedelta(days=2))
    page = open_page(StaffFactory.create(superuser=True))
    page.goto(reverse("admin:sendonce_sending_worker_changelist"))
    box, rows = page.locator("#changelist-form .results"), page.locator("#result_list tbody tr")
    inside = "box => box.scrollWidth <= box.clientWidth"
    assert box.evaluate(inside)
    # A date and a time: two lines and the padding.
    assert rows.filter(has_text="vm:7").evaluate("row => row.offsetHeight") < 56
    weights = [
        page.locator(f".sendonce-{state}").evaluate("one => getComputedStyle(one).fontWeight")
        for state in ("lost", "alive", "ended")
    ]
    assert weights == ["700", "400", "400"]
    headings = [
        name.strip().lower() for name in page.locator("#result_list thead th").all_inner_texts()
    ]
    assert too_narrow(page) == []
    # The phone's width is the last of them.
    assert box.evaluate(inside)
    for row in rows.all():
        labels = row.locator("td").evaluate_all(
            "cells => cells.map(cell => getComputedStyle(cell, '::before').content)"
        )
        abreast = "lanes x sessions" if "vm:7" in row.inner_text() else "lanes"
        known = [abreast if name == "lanes" else name for name in headings[2:]]
        assert [label.strip('"') for label in labels[1:]] == known
        for cell in row.locator("td").all():
            place = cell.bounding_box()
            assert place is not None
            assert place["x"] + place["width"] <= 390
    assert flaws(page) == []


def test_every_page_is_accessible_and_no_page_scrolls_sideways(
    open_page: Callable[..., Page], spring: Campaign
) -> None:
    now = timezone.now()
    send = Send.objects.filter(campaign=spring).first()
    assert send is not None
    DeliveryEvent.objects.create(
        send=send, account=send.account, kind="deferred", stage="webhook", text=LONG
    )
    TransportPause.objects.create(alias="default", stage="errors", reason=LONG, probe_at=now)
    RateLimit.objects.create(key="domain:google", rate=1, slowed_at=now, reason=LONG)
    tripped = CampaignFactory.create(
        account=spring.account, paused=True, status_reason=LONG, name="x" * 80
    )
    CampaignHealth.objects.create(campaign=tripped, bounced=9, base={"trip": LONG})
    WorkerFactory.create(host="h" * 80, note=LONG, seen=now - timedelta(seconds=1))
    SuppressionFactory.create(account=spring.account, email=send.email, evidence=LONG)
    page = open_page(StaffFactory.create(superuser=True))
    of = f"{DESK}?campaign={spring.pk}"
    about = f"{STORY}?q={send.email}&account={spring.account_id}&campaign={spring.pk}"
    for name, where in (
        ("desk", DESK),
        ("rows", of),
        ("none", f"{of}&reason=timeout"),
        ("story", about),
        ("search", f"{STORY}?q=ma"),
        ("transports", OVERVIEW),
        ("senders", reverse("admin:sendonce_sending_worker_changelist")),
    ):
        page.goto(where)
        assert too_narrow(page) == [], name
        assert flaws(page) == [], name
    page.goto(of)
    page.get_by_label("All that is in doubt here, on all pages").check()
    page.get_by_role("button", name="Send again…").click()
    expect(page.get_by_text("Whoever got the message already gets it twice.")).to_be_visible()
    assert too_narrow(page) == []
    assert flaws(page) == []
