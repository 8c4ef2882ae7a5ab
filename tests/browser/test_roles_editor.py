"""An editor's whole path: from the front page to a campaign that was seen, tested and copied.

What axe finds in the pages without ``axe`` the tests of these pages say.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from django.urls import reverse

from campaigns.models import Campaign, Image
from sending.models import Send
from subscribers.models import Segment
from subscribers.roles import Role
from tests.db.pictures import png
from tests.factories import (
    AttributeDefinitionFactory,
    LayoutFactory,
    SegmentFactory,
    SubscriberFactory,
)

from .role_paths import OpenPage, Relay, look, member, neighbours, posted

if TYPE_CHECKING:
    from playwright.sync_api import Page, expect
else:
    expect = pytest.importorskip("playwright.sync_api").expect

pytestmark = pytest.mark.django_db(transaction=True)

FRAME = """<html><head><title>{% block title %}News{% endblock %}</title></head><body>
{% block content %}{% endblock %}
<p>{{ account.postal_address }} <a href="{{ unsubscribe_url }}">Leave</a></p></body></html>"""
TAG = '{{ first_name|default:"friend" }}'


@pytest.fixture
def segment(live_server: Any, settings: Any, tmp_path: Path) -> Any:
    settings.MEDIA_ROOT = tmp_path / "media"
    settings.SENDONCE = {**settings.SENDONCE, "BASE_URL": live_server.url}
    neighbours()
    found = SegmentFactory.create(
        name="Readers", account__name="City Theatre", account__timezone="Europe/Berlin"
    )
    AttributeDefinitionFactory.create(account=found.account, key="first_name", label="First name")
    LayoutFactory.create(account=found.account, name="House style", body=FRAME)
    for name in ("ann", "bob", "zoe"):
        SubscriberFactory.create(
            account=found.account,
            segments=[found],
            email=f"{name}@example.org",
            attributes={"first_name": name.title()},
        )
    return found


def begin(page: Page) -> None:
    """From the front page into an empty form."""
    page.goto("/admin/")
    look(page, "editor-front")
    page.locator("#content-main").get_by_role("row", name="Campaigns").get_by_role(
        "link", name="Add"
    ).click()
    expect(page.get_by_role("heading", name="Add campaign", level=1)).to_be_visible()
    look(page, "editor-add")


def write(page: Page, javascript: bool) -> None:
    """A layout, an error that is found and mended, and a merge field."""
    page.get_by_label("Name:", exact=True).fill("Spring premiere")
    page.get_by_label("Subject:").fill("The season opens")
    page.get_by_label("Layout:").select_option(label="House style, HTML (for HTML and Markdown)")
    page.get_by_role("checkbox", name="Readers").first.check()
    page.get_by_label("Body:", exact=True).fill("<p>Dear \n{{ first_name|shout }}</p>")
    page.get_by_role("button", name="Save and continue editing").click()
    told = page.locator(".field-body .errorlist")
    expect(told).to_contain_text("Line 2, column 1")
    look(page, "editor-error", axe=javascript)
    body = page.get_by_label("Body:", exact=True)
    body.fill("<p>Dear ")
    if javascript:
        page.get_by_role("button", name=TAG).click()
        body.press("End")
        page.keyboard.type("</p>")
    else:
        assert page.get_by_role("button", name=TAG).count() == 0
        body.fill(f"<p>Dear {page.get_by_text(TAG, exact=True).first.inner_text()}</p>")
    assert body.input_value() == f"<p>Dear {TAG}</p>"


def picture(page: Page, javascript: bool) -> None:
    """Upload one in another tab, as the link beside the body says, and use it."""
    page.get_by_role("heading", name="Images").click()
    with page.expect_popup() as opened:
        page.get_by_role("link", name="Upload an image").click()
    tab = opened.value
    tab.get_by_label("File:").set_input_files(
        {"name": "stage.png", "mimeType": "image/png", "buffer": png(40, 30)}
    )
    tab.get_by_label("Alternative text:").fill("The stage")
    look(tab, "editor-image-add", axe=javascript)
    tab.get_by_role("button", name="Save and continue editing").click()
    expect(tab.get_by_role("img", name="The stage")).to_be_visible()
    look(tab, "editor-image")
    tab.close()
    page.reload()
    body = page.get_by_label("Body:", exact=True)
    page.get_by_role("heading", name="Images").click()
    images = page.get_by_role("group", name="Images")
    if javascript:
        body.press("Control+End")
        images.get_by_role("button", name="<img").click()
    else:
        body.fill(body.input_value() + images.get_by_text("<img").inner_text())
    look(page, "editor-compose")


def seen_live(page: Page) -> None:
    shown = page.locator("#sendonce-live iframe:not(.sendonce-coming)").content_frame
    expect(shown.get_by_text("Dear Ann")).to_be_visible()
    expect(shown.get_by_role("img", name="The stage")).to_be_visible()
    page.get_by_label("As (the beginning").fill("zoe")
    expect(shown.get_by_text("Dear Zoe")).to_be_visible()


def preview(page: Page) -> None:
    page.get_by_role("link", name="Preview", exact=True).click()
    page.get_by_label("beginning of an address").fill("bob@example.org")
    page.get_by_role("button", name="Show", exact=True).click()
    expect(page.get_by_role("heading", name="As bob@example.org")).to_be_visible()
    for width in ("desktop", "phone"):
        frame = page.frame_locator(f"iframe[name='preview-{width}']")
        expect(frame.get_by_text("Dear Bob")).to_be_visible()
        loaded = "img => img.complete && img.naturalWidth"
        assert frame.get_by_role("img", name="The stage").evaluate(loaded) == 40
    look(page, "editor-preview")
    page.get_by_role("link", name="Back to the campaign").click()


def trial(page: Page, relay: Relay, javascript: bool) -> None:
    """A real sender delivers it, and the page says so."""
    page.get_by_role("link", name="Send a test", exact=True).click()
    page.get_by_label("To:").fill("desk@example.org")
    look(page, "editor-test")
    page.get_by_role("button", name="Send the test").click()
    expect(page.get_by_role("heading", name="1 of 1 waits.")).to_be_visible()
    look(page, "editor-test-waits")
    sink = relay.listen()
    sender = relay.send("--lanes", "1")
    sink.wait_for(1)
    if not javascript:
        page.wait_for_timeout(500)
        page.get_by_role("link", name="Look again").click()
    expect(page.get_by_text("The relay accepted it")).to_be_visible(timeout=20_000)
    expect(page.get_by_role("heading", name="The test is over.")).to_be_visible()
    look(page, "editor-test-over")
    sender.terminate()
    assert sender.wait(30) == 0
    assert [entry["recipient"] for entry in sink.accepted()] == ["desk@example.org"]
    page.get_by_role("link", name="Back to the campaign").click()


@pytest.mark.parametrize("javascript", [True, False], ids=["script", "no-script"])
def test_from_the_front_page_to_a_tested_campaign_and_its_copy(
    open_page: OpenPage, segment: Segment, relay: Relay, javascript: bool
) -> None:
    editor = member(Role.EDITOR, segment.account)
    page = open_page(editor, javascript=javascript)
    begin(page)
    write(page, javascript)
    page.get_by_role("button", name="Save and continue editing").click()
    expect(page.get_by_text("was added successfully")).to_be_visible()
    picture(page, javascript)
    if javascript:
        seen_live(page)
    page.get_by_role("button", name="Save and continue editing").click()
    expect(page.get_by_text("was changed successfully")).to_be_visible()
    campaign = Campaign.objects.get(account=segment.account)
    assert str(Image.objects.get(account=segment.account).key) in campaign.body
    look(page, "editor-campaign")

    preview(page)
    trial(page, relay, javascript)
    assert Send.objects.filter(campaign=campaign).count() == 0

    # The checks are for an editor too; to approve is not.
    expect(page.get_by_role("link", name="Approve…")).to_have_count(0)
    page.get_by_role("link", name="Checks", exact=True).click()
    expect(page.get_by_role("heading", name="Checks", level=1)).to_be_visible()
    expect(page.get_by_text("You may look at this page, but not approve")).to_be_visible()
    expect(page.get_by_role("button", name="Approve", exact=True)).to_have_count(0)
    look(page, "editor-checks")
    approve = reverse("admin:sendonce_campaigns_campaign_approve", args=[campaign.pk])
    assert posted(page, approve, start="now", approve="Approve") == 403
    campaign.refresh_from_db()
    assert campaign.status == "draft"

    page.get_by_role("link", name="Back, change nothing").click()
    page.get_by_role("button", name="Copy", exact=True).click()
    expect(page.get_by_text("Spring premiere: copied into this draft.")).to_be_visible()
    look(page, "editor-copy")
    made = Campaign.objects.get(account=segment.account, name="Copy of Spring premiere")
    assert (made.body, made.layout, made.created_by) == (campaign.body, campaign.layout, editor)
    page.goto("/admin/")
    look(page, "editor-front-after")
