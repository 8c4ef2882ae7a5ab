"""A campaign seen before it leaves: the preview page, the live one, and a test, in a browser."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import pytest
from django.conf import settings
from django.test import Client
from django.urls import reverse

from campaigns.models import Campaign, Layout
from sending.models import Send
from tests.factories import CampaignFactory, SegmentFactory, StaffFactory, SubscriberFactory

from .accessibility import flaws
from .conftest import too_narrow

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page, expect
else:
    expect = pytest.importorskip("playwright.sync_api").expect

pytestmark = pytest.mark.django_db(transaction=True)

BODY = """<html><head><style>h1 { color: #b3261e } .two { width: 50% }
@media (max-width: 480px) { h1 { color: #0b6b3a !important } }</style></head><body>
<h1>Spring, {{ first_name|default:"dear reader" }}</h1><p>The {{ city }} of flowers.</p>
<p><a href="https://example.org/">Shop</a> <a href="{{ unsubscribe_url }}">Leave</a></p>
</body></html>"""

EVIL = """<html><head><base href="https://evil.example.org/"><meta http-equiv="refresh"
content="0;url=/admin/logout/"></head><body><h1>Evil</h1>
<script>top.document.title = "taken"; top.location = "about:blank"</script>
<img src="x" onerror="top.document.title = 'taken'">
<svg onload="top.document.title = 'taken'"></svg>
<a id="js" href="javascript:top.document.title = 'taken'">javascript</a>
<a id="top" href="https://example.org/" target="_top">top</a>
<a id="self" href="https://example.org/" target="_self">self</a>
<form action="/admin/logout/" method="post" target="_top"><button id="go">go</button></form>
<iframe src="/admin/"></iframe><object data="/admin/"></object>
<style>body { background: url("/admin/logout/") }</style>
</body></html>"""


def at(page: str, *args: Any) -> str:
    return reverse(f"admin:sendonce_campaigns_campaign_{page}", args=args)


def shot(page: Page, name: str) -> None:
    """A picture at a desk's and at a phone's width, where ``SHOTS`` names a folder for them."""
    if folder := os.environ.get("SHOTS"):
        for width in (1280, 390):
            page.set_viewport_size({"width": width, "height": 900})
            page.wait_for_timeout(300)
            page.screenshot(path=f"{folder}/{name}-{width}.png", full_page=True)
        page.set_viewport_size({"width": 1280, "height": 900})


def is_fine(page: Page, name: str, *, axe: bool = True) -> None:
    shot(page, name)
    assert too_narrow(page) == []
    page.set_viewport_size({"width": 1280, "height": 900})
    if axe:
        assert flaws(page) == []


@pytest.fixture
def campaign() -> Campaign:
    segment = SegmentFactory.create(name="Readers")
    for name in ("ann", "bob", "zoe", "zora"):
        SubscriberFactory.create(
            account=segment.account,
            segments=[segment],
            email=f"{name}@example.org",
            attributes={"first_name": name.title()},
        )
    found: Campaign = CampaignFactory.create(
        account=segment.account, segments=[segment], name="Spring", body=BODY
    )
    return found


@pytest.fixture
def hostile_page(chromium: Browser, live_server: Any) -> Iterator[Page]:
    """As ``open_page``, of a browser whose console may complain: that is the point."""
    client = Client()
    client.force_login(StaffFactory.create(superuser=True))
    context = chromium.new_context(base_url=live_server.url)
    cookie = client.cookies[settings.SESSION_COOKIE_NAME].value
    context.add_cookies(
        [{"name": settings.SESSION_COOKIE_NAME, "value": cookie, "url": live_server.url}]
    )
    yield context.new_page()
    context.close()


def frame_of(page: Page, name: str) -> Any:
    return page.frame_locator(f"iframe[name='{name}']")


def test_a_saved_campaign_is_seen_in_both_widths(
    open_page: Callable[..., Page], campaign: Campaign
) -> None:
    page = open_page(StaffFactory.create(superuser=True))
    page.goto(at("change", campaign.pk))
    page.goto(at("preview", campaign.pk))
    wide, narrow = (frame_of(page, f"preview-{width}") for width in ("desktop", "phone"))
    expect(wide.get_by_role("heading", name="Spring, Ann")).to_have_css("color", "rgb(179, 38, 30)")
    expect(narrow.get_by_role("heading", name="Spring, Ann")).to_have_css(
        "color", "rgb(11, 107, 58)"
    )
    expect(page.get_by_text("city: nothing is shown there")).to_be_visible()
    expect(page.get_by_text("List-Unsubscribe-Post", exact=True)).to_be_visible()
    page.get_by_text("The whole message").click()
    expect(page.get_by_text("Content-Transfer-Encoding").first).to_be_visible()
    is_fine(page, "preview")

    page.get_by_label("beginning of an address").fill("zo")
    page.get_by_role("button", name="Show", exact=True).click()
    expect(page.get_by_role("heading", name="As zoe@example.org")).to_be_visible()
    page.get_by_role("link", name="zora@example.org").click()
    expect(wide.get_by_role("heading", name="Spring, Zora")).to_be_visible()
    page.get_by_label("Nobody").check()
    page.get_by_role("button", name="Show", exact=True).click()
    expect(wide.get_by_role("heading", name="Spring, dear reader")).to_be_visible()


@pytest.mark.parametrize("javascript", [True, False], ids=["script", "no-script"])
def test_what_is_typed_is_seen_and_not_saved(
    open_page: Callable[..., Page], campaign: Campaign, javascript: bool
) -> None:
    page = open_page(StaffFactory.create(superuser=True), javascript=javascript)
    page.goto(at("change", campaign.pk))
    page.get_by_label("Subject:").fill("Typed {{ first_name }}")
    page.locator("#id_body").fill("<h1>Only typed, {{ first_name }}</h1>")
    with page.expect_popup() as opened:
        page.get_by_role("button", name="Preview what is typed").click()
    seen = opened.value
    expect(seen.get_by_text("It is not saved.")).to_be_visible()
    expect(seen.get_by_role("heading", name="Typed Ann")).to_be_visible()
    wide, narrow = (frame_of(seen, f"preview-{width}") for width in ("desktop", "phone"))
    if not javascript:
        seen.get_by_role("button", name="Show it on a desktop").click()
        seen.get_by_role("button", name="Show it on a phone").click()
    expect(wide.get_by_role("heading", name="Only typed, Ann")).to_be_visible()
    expect(narrow.get_by_role("heading", name="Only typed, Ann")).to_be_visible()
    is_fine(seen, f"typed-{javascript}", axe=False)
    seen.get_by_label("beginning of an address").fill("zo")
    seen.get_by_role("button", name="Show", exact=True).click()
    expect(seen.get_by_role("heading", name="Typed Zoe")).to_be_visible()
    seen.get_by_role("button", name="zora@example.org").click()
    expect(seen.get_by_role("heading", name="Typed Zora")).to_be_visible()
    assert Campaign.objects.get().body == BODY


def test_the_live_preview_follows_what_is_typed(
    open_page: Callable[..., Page], campaign: Campaign
) -> None:
    page = open_page(StaffFactory.create(superuser=True))
    page.goto(at("change", campaign.pk))
    stage = page.locator("#sendonce-live .sendonce-stage")
    shown = stage.locator("iframe:not(.sendonce-coming)").content_frame
    expect(shown.get_by_role("heading", name="Spring, Ann")).to_be_visible()
    steps = page.evaluate("history.length")
    page.locator("#id_body").fill("<h1>Live, {{ first_name }}</h1>")
    expect(shown.get_by_role("heading", name="Live, Ann")).to_be_visible()
    if folder := os.environ.get("SHOTS"):
        page.locator("#sendonce-live").screenshot(path=f"{folder}/live-seat.png")
    is_fine(page, "live", axe=False)
    page.locator("#id_body").fill("<h1>\n  {{ first_name|nonsense }}</h1>")
    told = page.get_by_role("status").filter(has_text="line 2, column 3")
    expect(told).to_be_visible()
    is_fine(page, "live-error")
    page.locator("#id_body").fill("<h1>Mended, {{ first_name }}</h1>")
    expect(shown.get_by_role("heading", name="Mended, Ann")).to_be_visible()
    expect(told).to_have_count(0)
    page.get_by_label("As (the beginning").fill("zo")
    expect(shown.get_by_role("heading", name="Mended, Zoe")).to_be_visible()
    expect(page.locator("#preview-people option")).to_have_count(2)
    page.get_by_label("Phone", exact=True).check()
    expect(stage).to_have_attribute("data-width", "phone")
    page.get_by_label("Plain text", exact=True).check()
    expect(shown.locator("pre")).to_contain_text("Mended, Zoe")
    # No step of it is one of the Back button's, and nothing was saved.
    assert page.evaluate("history.length") == steps
    assert stage.locator("iframe").count() == 1
    assert Campaign.objects.get().body == BODY


def test_enter_in_a_field_still_saves(open_page: Callable[..., Page], campaign: Campaign) -> None:
    page = open_page(StaffFactory.create(superuser=True))
    page.goto(at("change", campaign.pk))
    page.get_by_label("As (the beginning").fill("zoe@example.org")
    page.get_by_label("As (the beginning").press("Enter")
    shown = page.locator("#sendonce-live iframe:not(.sendonce-coming)").content_frame
    expect(shown.get_by_role("heading", name="Spring, Zoe")).to_be_visible()
    page.get_by_label("Name:", exact=True).fill("Renamed")
    page.get_by_label("Name:", exact=True).press("Enter")
    expect(page.get_by_text("was changed successfully")).to_be_visible()
    assert Campaign.objects.get().name == "Renamed"
    assert len(page.context.pages) == 1


def test_a_new_campaign_is_seen_before_it_is_saved(
    open_page: Callable[..., Page], campaign: Campaign
) -> None:
    page = open_page(StaffFactory.create(superuser=True))
    page.goto(f"{at('add')}?account={campaign.account_id}")
    page.get_by_label("Subject:").fill("New")
    page.locator("#id_body").fill("<h1>Brand new, {{ first_name }}</h1>")
    page.get_by_label("Readers").first.check()
    shown = page.locator("#sendonce-live iframe:not(.sendonce-coming)").content_frame
    expect(shown.get_by_role("heading", name="Brand new, Ann")).to_be_visible()
    with page.expect_popup() as opened:
        page.get_by_role("button", name="Preview what is typed").click()
    expect(opened.value.get_by_text("Brand new, Ann").first).to_be_visible()
    assert Campaign.objects.count() == 1


def test_nothing_is_missing_before_somebody_writes(
    open_page: Callable[..., Page], campaign: Campaign
) -> None:
    page = open_page(StaffFactory.create(superuser=True))
    page.goto(f"{at('add')}?account={campaign.account_id}")
    live = page.locator("#sendonce-live")
    told = live.get_by_role("status")
    expect(live.get_by_text("as soon as there is something in the body")).to_be_visible()
    page.get_by_label("Name:", exact=True).press_sequentially("Spring")
    page.wait_for_timeout(600)
    expect(told).to_be_empty()
    page.get_by_label("Subject:").fill("Hello")
    page.locator("#id_body").fill("<p>Hello</p>")
    expect(live.get_by_text("subject: Hello")).to_be_visible()
    page.locator("#id_body").fill("")
    expect(told).to_contain_text("Body: This must not be empty.")


def test_nothing_of_a_mail_runs_or_leaves_its_frame(hostile_page: Page, campaign: Campaign) -> None:
    page = hostile_page
    page.goto(at("preview", campaign.pk))
    shown = frame_of(page, "preview-desktop")
    for name in ("Shop", "Leave"):
        shown.get_by_role("link", name=name).click()
        page.wait_for_timeout(100)
    # Links are off: to click one changes nothing.
    expect(shown.get_by_role("heading", name="Spring, Ann")).to_be_visible()
    assert page.context.pages == [page]

    Campaign.objects.update(body=EVIL)
    for typed in (False, True):
        page.goto(at("change" if typed else "preview", campaign.pk))
        title, where = page.title(), page.url
        first = page.locator(".sendonce-stage iframe").first.content_frame
        expect(first.get_by_role("heading", name="Evil")).to_be_visible()
        for name in ("js", "top", "self", "go"):
            first.locator(f"#{name}").click()
            page.wait_for_timeout(100)
        expect(first.get_by_role("heading", name="Evil")).to_be_visible()
        assert (page.title(), page.url) == (title, where)
        assert len(page.context.pages) == 1
        origin = page.url.partition("/admin/")[0]
        for frame in page.frames[1:]:
            # Frames inside of the mail itself are refused by its policy.
            own = frame.parent_frame == page.main_frame
            assert frame.url.startswith(origin if own else ("about:", "chrome-error:"))
    # Its owner is still logged in: nothing was asked for in their name.
    page.goto(at("changelist"))
    assert "login" not in page.url


def test_a_test_is_sent_and_followed(open_page: Callable[..., Page], campaign: Campaign) -> None:
    user = StaffFactory.create(superuser=True)
    page = open_page(user)
    page.goto(at("change", campaign.pk))
    page.get_by_role("link", name="Send a test…").first.click()
    expect(page.get_by_label("To:")).to_have_value(user.email)
    is_fine(page, "test", axe=False)
    page.get_by_label("To:").fill("one@example.org, nonsense")
    page.get_by_role("button", name="Send the test").click()
    expect(page.get_by_text("nonsense: ")).to_be_visible()
    is_fine(page, "test-error")
    page.get_by_label("To:").fill("one@example.org, two@example.org")
    page.get_by_role("button", name="Send the test").click()
    expect(page.get_by_text("no sender is alive").first).to_be_visible()
    is_fine(page, "test-result")
    Send.objects.filter(email="one@example.org").update(
        status="sent", sent_at="2030-01-01T00:00:00Z", answer_code=250, answer_text="Ok"
    )
    expect(page.get_by_text("The relay accepted it: 250 Ok.")).to_be_visible(timeout=15_000)
    Send.objects.update(status="sent", sent_at="2030-01-01T00:00:00Z")
    expect(page.locator("#test-said")).to_have_text("The test is over.", timeout=15_000)
    expect(page.get_by_role("heading", name="The test is over.")).to_be_visible()
    assert Send.objects.count() == 2


def test_keys_alone_lead_to_a_test(open_page: Callable[..., Page], campaign: Campaign) -> None:
    page = open_page(StaffFactory.create(superuser=True))
    page.goto(at("preview", campaign.pk))
    page.get_by_role("link", name="Send a test…").focus()
    page.keyboard.press("Enter")
    page.get_by_label("To:").focus()
    for _ in range(3):
        page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="1 of 1 waits.")).to_be_visible()
    assert Send.objects.count() == 1


def test_a_layout_is_seen_with_an_example(
    open_page: Callable[..., Page], campaign: Campaign
) -> None:
    layout = Layout.objects.create(
        account=campaign.account,
        name="Frame",
        body="<html><body><h2>Our news</h2>{% block content %}{% endblock %}</body></html>",
    )
    page = open_page(StaffFactory.create(superuser=True))
    page.goto(reverse("admin:sendonce_campaigns_layout_change", args=[layout.pk]))
    shown = page.locator(".sendonce-stage iframe").first.content_frame
    page.locator(".sendonce-stage").first.scroll_into_view_if_needed()
    expect(shown.get_by_role("heading", name="Our news")).to_be_visible()
    expect(shown.get_by_role("heading", name="A headline")).to_be_visible()
    is_fine(page, "layout", axe=False)
