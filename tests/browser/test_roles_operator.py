"""An operator's whole path: what is sent is watched, stopped, let go on, decided and reported.

What axe finds in the pages without ``axe`` the tests of these pages say.
"""

from __future__ import annotations

from collections import Counter
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

import pytest
from django.contrib.auth import get_user_model
from django.utils import timezone

from campaigns import lifecycle
from campaigns.models import Campaign
from sending.models import Send
from subscribers.database_clock import database_time
from subscribers.models import Account, AuditEvent, Membership, Segment, Subscriber
from subscribers.roles import Role
from tests.crash.conftest import addresses, wait_until
from tests.factories import AccountFactory, CampaignFactory, SegmentFactory, StaffFactory

from .role_paths import OpenPage, Relay, look, member, neighbours

if TYPE_CHECKING:
    from playwright.sync_api import Page, expect
else:
    expect = pytest.importorskip("playwright.sync_api").expect

pytestmark = pytest.mark.django_db(transaction=True)

PATIENT = 60_000
DOUBTFUL = addresses(3, "drop")
DEAD = addresses(2, "refuse")
FINE = addresses(95)


def approved(segment: Segment, name: str, when: datetime | None = None) -> Campaign:
    made = CampaignFactory.create(
        account=segment.account, segments=[segment], name=name, subject=name
    )
    return lifecycle.approve(
        made, by=get_user_model().objects.get(username="ann"), scheduled_for=when
    )


@pytest.fixture
def account() -> Account:
    neighbours()
    found: Account = AccountFactory.create(name="City Theatre", timezone="Europe/Berlin")
    return found


@pytest.fixture
def premiere(account: Account) -> Campaign:
    """Due now, to a hundred people, of whom the relay refuses two and keeps silent about three;
    and another one for later."""
    segment = SegmentFactory.create(account=account, name="Readers")
    StaffFactory.create(username="ann")
    people = Subscriber.objects.bulk_create(
        Subscriber(account=account, email=email, status="confirmed", confirmed_at=timezone.now())
        for email in [*DEAD, *DOUBTFUL, *FINE]
    )
    Membership.objects.bulk_create(Membership(segment=segment, subscriber=p) for p in people)
    approved(segment, "Winter letter", datetime(2999, 1, 1, tzinfo=ZoneInfo("UTC")))
    return approved(segment, "Spring premiere")


def front(page: Page, section: str) -> Any:
    page.goto("/admin/")
    return page.get_by_role("region", name=section)


def cancel_the_other(page: Page, javascript: bool) -> None:
    front(page, "Scheduled").get_by_role("link", name="Winter letter").click()
    page.get_by_role("link", name="Cancel campaign…").click()
    look(page, "operator-cancel")
    page.get_by_role("button", name="Cancel this campaign").click()
    expect(page.get_by_role("heading", name="Canceled").first).to_be_visible()
    look(page, "operator-canceled", axe=javascript)


def watch(page: Page, relay: Relay, javascript: bool) -> None:
    """It moves by itself; without a script by a link."""
    front(page, "Running").get_by_role("link", name="Spring premiere").click()
    title = page.locator("#progress-title")
    expect(title).to_contain_text("% done", timeout=PATIENT)
    before = title.inner_text()
    if javascript:
        page.evaluate("window.stayed = true")
        expect(title).not_to_have_text(before, timeout=PATIENT)
        assert page.evaluate("window.stayed")
    else:
        assert relay.sink is not None
        relay.sink.wait_for(len(relay.sink.accepted()) + 5)
        page.get_by_role("link", name="Refresh").click()
        expect(title).not_to_have_text(before)


def pause_and_resume(page: Page, relay: Relay, premiere: Campaign, javascript: bool) -> None:
    assert relay.sink is not None
    page.get_by_role("button", name="Pause").click()
    expect(page.get_by_role("heading", name="Paused")).to_be_visible()
    since = database_time()
    relay.go_on()
    rows = Send.objects.filter(campaign=premiere)
    wait_until(
        lambda: not rows.filter(status__in=("claimed", "sending")).exists(), "nothing on its way"
    )
    gone = len(relay.sink.accepted())
    assert rows.filter(status="queued").exists()
    look(page, "operator-paused", axe=False)
    attention = front(page, "Needs attention")
    attention.get_by_role("link", name="Spring premiere is paused").click()
    look(page, "operator-campaign-paused", axe=False)
    assert not rows.filter(handed_at__gt=since).exists()
    assert len(relay.sink.accepted()) == gone
    page.get_by_role("link", name="Progress", exact=True).click()
    page.get_by_role("button", name="Resume").click()
    title = page.locator("#progress-title")
    expect(title).to_contain_text("Sending")
    if not javascript:
        wait_until(lambda: is_sent(premiere), "sent")
        page.get_by_role("link", name="Refresh").click()
    expect(title).to_contain_text("Sent", timeout=PATIENT)
    expect(page.get_by_text("accounted for: 100 of 100")).to_be_visible()
    look(page, "operator-sent", axe=False)


def is_sent(campaign: Campaign) -> bool:
    return Campaign.objects.filter(pk=campaign.pk, status="sent").exists()


def decide(page: Page, premiere: Campaign, javascript: bool) -> None:
    attention = front(page, "Needs attention")
    expect(attention).to_contain_text("Spring premiere: 3 messages in doubt")
    look(page, "operator-front-doubt", axe=javascript)
    attention.get_by_role("link", name="Spring premiere: 3 messages in doubt").click()
    expect(page.get_by_text("Likely right").first).to_be_visible()
    look(page, "operator-doubt", axe=False)
    page.get_by_label(DOUBTFUL[0]).check()
    page.get_by_role("button", name="Send again…").click()
    expect(page.get_by_text("Whoever got the message already gets it twice.")).to_be_visible()
    look(page, "operator-doubt-again", axe=False)
    page.get_by_role("button", name="Send again", exact=True).click()
    expect(page.get_by_text("1 of 1 message to be sent again.")).to_be_visible()
    for email in DOUBTFUL[1:]:
        page.get_by_label(email).check()
    page.get_by_role("button", name="Treat as sent…").click()
    expect(page.get_by_role("heading", name="2 messages")).to_be_visible()
    look(page, "operator-doubt-sent", axe=False)
    page.get_by_role("button", name="Treat as sent", exact=True).click()
    expect(page.get_by_text("2 of 2 messages treated as sent.")).to_be_visible()
    look(page, "operator-doubt-none", axe=False)
    wait_until(
        lambda: is_sent(premiere) and Send.objects.get(email=DOUBTFUL[0]).status == "sent",
        "the one sent again",
    )


def report(page: Page, javascript: bool) -> None:
    front(page, "Sent lately").get_by_role("link", name="Spring premiere").click()
    expect(page.get_by_role("heading", name="98 sent")).to_be_visible()
    expect(page.get_by_role("row", name="Bounced").first).to_contain_text("2")
    look(page, "operator-report", axe=False)
    with page.expect_download() as started:
        page.get_by_role("button", name="Numbers by hour (CSV)").click()
    _, *lines = Path(started.value.path()).read_text("utf-8").splitlines()
    assert sum(int(line.rpartition(",")[2]) for line in lines if ",status,sent," in line) == 98


def rounds(page: Page, javascript: bool) -> None:
    """The transports, the senders, and why somebody has no letter."""
    page.goto("/admin/")
    page.locator("#content-main").get_by_role("link", name="Transport pauses", exact=True).click()
    page.get_by_role("link", name="Transports and brakes").click()
    expect(page.get_by_role("heading", name="default: takes mail")).to_be_visible()
    look(page, "operator-transports", axe=False)
    page.goto("/admin/")
    page.locator("#content-main").get_by_role("link", name="Senders", exact=True).click()
    expect(page.get_by_role("region", name="At the moment")).to_contain_text("1 sender")
    look(page, "operator-workers", axe=False)  # a list's search is Django's own
    page.goto("/admin/")
    page.locator("#content-main").get_by_role("link", name="Sends", exact=True).click()
    page.get_by_role("link", name="One person's story").click()
    look(page, "operator-search", axe=False)
    page.get_by_label("Address, or its beginning").fill(DOUBTFUL[0])
    page.get_by_role("button", name="Look").click()
    happened = page.get_by_role("region", name="What happened, latest first")
    expect(happened.get_by_role("heading", name="Spring premiere: sent")).to_be_visible()
    expect(happened).to_contain_text("in doubt")
    look(page, "operator-story", axe=False)


@pytest.mark.parametrize("javascript", [True, False], ids=["script", "no-script"])
def test_from_what_runs_to_what_is_settled(
    open_page: OpenPage, account: Account, premiere: Campaign, relay: Relay, javascript: bool
) -> None:
    operator = member(Role.OPERATOR, account)
    page = open_page(operator, javascript=javascript)
    expect(front(page, "Needs attention")).to_contain_text("No sender is alive")
    look(page, "operator-front")
    cancel_the_other(page, javascript)

    sink = relay.listen("--delay", "0.03")
    sender = relay.send("--lanes", "2", "--lot", "2")
    sink.wait_for(5)
    watch(page, relay, javascript)
    relay.hold()
    look(page, "operator-progress", axe=False)
    pause_and_resume(page, relay, premiere, javascript)
    decide(page, premiere, javascript)
    report(page, javascript)
    rounds(page, javascript)
    sender.terminate()
    assert sender.wait(30) == 0

    expect(front(page, "Needs attention")).to_contain_text("Nothing just now.")
    look(page, "operator-front-after")
    # By the sink's own record: each got it once, but for the one that was sent again.
    got = Counter(entry["recipient"] for entry in sink.accepted())
    del got[operator.email]  # told of the doubt by mail
    assert got == Counter({**dict.fromkeys([*FINE, *DOUBTFUL], 1), DOUBTFUL[0]: 2})
    verbs = AuditEvent.objects.filter(account=account, by_name="operator")
    told = list(verbs.order_by("pk").values_list("verb", flat=True))
    assert told == [
        "campaign.cancel",
        "campaign.pause",
        "campaign.resume",
        "send.send_again",
        "send.treat_as_sent",
        "campaign.export_hours",
    ]
