"""A campaign followed while a real sender sends it, and its report, as staff see them."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlencode

import pytest
from django.contrib.sessions.models import Session
from django.db import connection
from django.urls import reverse
from django.utils import timezone

from campaigns.models import Campaign
from sending.models import CampaignHealth, DeliveryEvent, RateLimit, Send, TransportPause
from tests.conftest import ROOT
from tests.crash.conftest import Sink, addresses, make_campaign
from tests.db.commands import ONE_OF_EACH, campaign_with
from tests.factories import StaffFactory, WorkerFactory

from .accessibility import flaws
from .conftest import too_narrow

if TYPE_CHECKING:
    from playwright.sync_api import Page, expect
else:
    expect = pytest.importorskip("playwright.sync_api").expect

pytestmark = pytest.mark.django_db(transaction=True)
PATIENT = 60_000
LONG = "421 4.7.28 " + "rate-limited-" * 30


def page_of(campaign: Campaign, page: str = "progress") -> str:
    return reverse(f"admin:sendonce_sending_send_{page}", args=[campaign.pk])


@pytest.fixture
def sender(tmp_path: Path, bare_environ: dict[str, str]) -> Iterator[Callable[[], Any]]:
    """``sender()`` starts a ``run_sender --drain`` on the test's database, into a sink."""
    relay = Sink(tmp_path / "sink.jsonl", ["--delay", "0.01"])
    started: list[subprocess.Popen[bytes]] = []
    given = connection.settings_dict
    query = urlencode({"host": given["HOST"], "port": given["PORT"]}, quote_via=quote)
    url = f"postgresql://{given['USER']}@/{quote(given['NAME'], safe='')}?{query}"

    def start() -> subprocess.Popen[bytes]:
        relay.start()
        environ = {
            **bare_environ,
            "DATABASE_URL": url,
            "SECRET_KEY": "only-for-tests-0123456789-0123456789-0123456789",
            "EMAIL_URL": f"smtp://127.0.0.1:{relay.port}",
        }
        command = [sys.executable, str(ROOT / "manage.py"), "run_sender", "--lanes", "2", "--drain"]
        with (tmp_path / "sender.log").open("ab") as log:
            process = subprocess.Popen(command, cwd=ROOT, env=environ, stdout=log, stderr=log)
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.wait()
    relay.stop()


def busy() -> Campaign:
    """A running campaign with something of everything to show."""
    campaign = campaign_with(
        {**ONE_OF_EACH, "sent": 60, "queued": 40, "bounced": 3, "failed": 2, "suppressed": 6},
        name="Spring catalogue to everybody who asked for it",
        started_at=timezone.now() - timedelta(hours=3),
    )
    now = timezone.now()
    send = Send.objects.filter(campaign=campaign, status="failed").earliest("pk")
    Send.objects.filter(campaign=campaign, status="in_doubt").update(reason="connection_lost")
    Send.objects.filter(campaign=campaign, status="failed").update(reason="policy")
    for number, (kind, text) in enumerate([("retry", "greylisted, try again"), ("failed", LONG)]):
        for _ in range(number + 2):
            DeliveryEvent.objects.create(
                send=send, account=campaign.account, kind=kind, stage="rcpt", code=451, text=text,
                reason="greylisted",
            )  # fmt: skip
    for kind in ("complained", "unsubscribed", "unsubscribed"):
        DeliveryEvent.objects.create(send=send, account=campaign.account, kind=kind)
    RateLimit.objects.create(key="domain:google", usual=20, rate=2, slowed_at=now, reason=LONG)
    TransportPause.objects.create(
        alias=campaign.account.transport, stage="connect", reason=LONG, probe_at=now
    )
    CampaignHealth.objects.create(campaign=campaign, accepted=60, bounced=3, refused=2)
    WorkerFactory.create()
    return campaign


def test_the_page_follows_a_campaign_to_its_end(
    open_page: Callable[..., Page], sender: Callable[[], Any]
) -> None:
    campaign = make_campaign(addresses(400))
    page = open_page(StaffFactory.create(superuser=True))
    page.goto(page_of(campaign))
    expect(page.get_by_role("heading", name="No sender is alive")).to_be_visible()
    page.evaluate("window.stayed = true")
    announced: list[str] = []
    page.expose_function("heard", lambda words: announced.append(words))
    page.evaluate(
        "new MutationObserver(() => heard(document.getElementById('progress-said').textContent))"
        ".observe(document.getElementById('progress-said'), { childList: true })"
    )

    process = sender()
    expect(page.get_by_role("heading", name="1 sender alive")).to_be_visible(timeout=PATIENT)
    expect(page.get_by_text("at this rate").first).to_be_visible(timeout=PATIENT)
    expect(page.locator(".sendonce-stack .status-queued")).to_be_visible()
    expect(page.get_by_role("heading", name="Sent, 100", exact=False)).to_be_visible(
        timeout=PATIENT
    )
    expect(page.get_by_text("Every recipient is accounted for: 400 of 400.")).to_be_visible()
    assert process.wait(60) == 0
    assert page.evaluate("window.stayed")
    assert page.locator(".sendonce-stack rect[class^='status-']").count() == 1
    assert "data-poll" not in page.evaluate("document.getElementById('progress-state').outerHTML")
    expect(page.get_by_role("status")).to_have_text("Sent. 100 percent done.")
    # A few words, not a stream of numbers.
    assert announced[-1] == "Sent. 100 percent done."
    assert len(announced) <= 14


def test_numbers_change_under_a_reader_who_notices_nothing_else(
    open_page: Callable[..., Page],
) -> None:
    campaign = busy()
    page = open_page(StaffFactory.create(superuser=True))
    page.goto(page_of(campaign))
    page.locator("#progress-errors-list summary").click()
    page.locator("#progress-workers-list summary").click()
    page.locator("#progress-pause").focus()
    page.evaluate("document.getElementById('progress-pause').stayed = true")
    Send.objects.filter(campaign=campaign, status="queued").update(status="suppressed")

    expect(page.get_by_role("link", name="46 suppressed: the sends")).to_be_visible(timeout=10_000)
    assert page.evaluate("document.activeElement.id") == "progress-pause"
    assert page.evaluate("document.activeElement.stayed")
    assert page.evaluate("document.getElementById('progress-errors-list').open") is False
    assert page.evaluate("document.getElementById('progress-workers-list').open") is True


def test_a_link_in_a_row_keeps_the_focus(open_page: Callable[..., Page]) -> None:
    campaign = campaign_with({"sent": 3, "queued": 2})
    page = open_page(StaffFactory.create(superuser=True))
    page.goto(page_of(campaign))
    page.get_by_role("link", name="2 queued: the sends").focus()
    Send.objects.filter(campaign=campaign, status="sent").update(status="failed")
    # Another row in the table: it is made anew.
    expect(page.get_by_role("link", name="3 failed: the sends")).to_be_visible(timeout=10_000)
    focused = page.evaluate("document.activeElement.getAttribute('aria-label')")
    assert focused == "2 queued: the sends"


def test_whoever_is_logged_out_is_told_and_asks_no_more(open_page: Callable[..., Page]) -> None:
    page = open_page(StaffFactory.create(superuser=True))
    page.goto(page_of(busy()))
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    Session.objects.all().delete()
    told = page.locator("#progress-stopped")
    expect(told).to_contain_text("You are logged out", timeout=15_000)
    expect(page.get_by_role("status")).to_contain_text("You are logged out")
    asked.clear()
    page.wait_for_timeout(3000)
    assert asked == []


def test_a_page_that_nobody_looks_at_does_not_ask(open_page: Callable[..., Page]) -> None:
    campaign = campaign_with({"queued": 2}, sending=False, paused=True)
    page = open_page(StaffFactory.create(superuser=True))
    page.goto(page_of(campaign))
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.evaluate(
        "Object.defineProperty(document, 'hidden', { get: () => window.away, configurable: true });"
        "window.away = true; document.dispatchEvent(new Event('visibilitychange'))"
    )
    page.wait_for_timeout(3000)
    assert asked == []
    with page.expect_response(lambda answer: "/state/" in answer.url):
        page.evaluate("window.away = false; document.dispatchEvent(new Event('visibilitychange'))")
    # Nothing changes: it asks more and more seldom.
    asked.clear()
    page.wait_for_timeout(8000)
    assert 1 <= len(asked) <= 2


def test_without_a_script_a_link_shows_it_anew(open_page: Callable[..., Page]) -> None:
    campaign = campaign_with({"sent": 5, "queued": 3})
    page = open_page(StaffFactory.create(superuser=True), javascript=False)
    page.goto(page_of(campaign))
    expect(page.get_by_role("link", name="3 queued: the sends")).to_be_visible()
    Send.objects.filter(campaign=campaign, status="queued").update(status="suppressed")
    page.get_by_role("link", name="Refresh").click()
    expect(page.get_by_role("link", name="3 suppressed: the sends")).to_be_visible()
    page.get_by_role("link", name="Report").click()
    expect(page.get_by_role("heading", name="5 sent")).to_be_visible()
    assert too_narrow(page) == []


def test_the_progress_page_is_accessible_and_fits(open_page: Callable[..., Page]) -> None:
    campaign = busy()
    page = open_page(StaffFactory.create(superuser=True))
    page.goto(page_of(campaign))
    page.locator("#progress-workers-list summary").click()
    assert too_narrow(page) == []
    assert flaws(page) == []
    bar = page.locator(".sendonce-stack").bounding_box()
    assert bar is not None
    assert bar["width"] > 250
    # Whatever there is of can be seen, be it one of a hundred.
    widths = page.evaluate(
        "[...document.querySelectorAll('.sendonce-stack > rect')].map(r => r.getBBox().width)"
    )
    assert len(widths) == 10
    assert min(widths) >= 1.5


def test_the_report_is_accessible_and_fits(open_page: Callable[..., Page], tmp_path: Path) -> None:
    campaign = busy()
    page = open_page(StaffFactory.create(superuser=True))
    page.goto(page_of(campaign, "report"))
    assert too_narrow(page) == []
    assert flaws(page) == []
    expect(page.get_by_role("img", name="Sent, by hour")).to_be_visible()
    # On a phone nothing of a table is beside the window: nobody would look for it there.
    page.set_viewport_size({"width": 390, "height": 900})
    for table in page.locator(".sendonce-scroll").all():
        beside = table.evaluate("box => box.scrollWidth - box.clientWidth")
        assert beside == 0, table.get_attribute("aria-label")
    named = page.locator(".sendonce-figures td").evaluate_all(
        "cells => cells.map(cell => getComputedStyle(cell, '::before').content)"
    )
    assert {'"Complaints"', '"Drawn"', '"Sent"'} <= set(named)
    page.set_viewport_size({"width": 1280, "height": 900})
    with page.expect_download() as started:
        page.get_by_role("button", name="Every recipient (CSV)").click()
    text = Path(started.value.path()).read_text(encoding="utf-8")
    assert text.startswith("address,status,why,last answer")
    assert len(text.splitlines()) == 1 + Send.objects.filter(campaign=campaign).count()
