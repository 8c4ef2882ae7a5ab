"""Writing a campaign as an editor does it: a layout, a picture, merge fields, a copy."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from django.urls import reverse

from campaigns.models import Campaign, Image, Layout
from subscribers.models import AttributeDefinition
from tests.db.pictures import png
from tests.factories import (
    AttributeDefinitionFactory,
    CampaignFactory,
    ImageFactory,
    LayoutFactory,
    SegmentFactory,
    StaffFactory,
)

from .accessibility import flaws
from .conftest import too_narrow

if TYPE_CHECKING:
    from playwright.sync_api import Page, expect
else:
    expect = pytest.importorskip("playwright.sync_api").expect

pytestmark = pytest.mark.django_db(transaction=True)

Kind = AttributeDefinition.Kind
LAYOUT = """<html><head><title>{% block title %}News{% endblock %}</title></head><body>
{% block content %}{% endblock %}
<p>{{ account.postal_address }} <a href="{{ unsubscribe_url }}">Leave</a></p></body></html>"""


@pytest.fixture(autouse=True)
def storage(settings: Any, tmp_path: Path) -> None:
    settings.MEDIA_ROOT = tmp_path / "media"


@pytest.fixture
def segment(live_server: Any, settings: Any) -> Any:
    settings.SENDONCE = {**settings.SENDONCE, "BASE_URL": live_server.url}
    found = SegmentFactory.create(name="Readers", account__timezone="Europe/Paris")
    AttributeDefinitionFactory.create(account=found.account, key="first_name", label="First name")
    AttributeDefinitionFactory.create(
        account=found.account, key="plan", kind=Kind.CHOICE, choices=["basic", "full"]
    )
    return found


def page_of(model: type[Any], page: str, *args: Any) -> str:
    return reverse(f"admin:sendonce_campaigns_{model._meta.model_name}_{page}", args=args)


def test_from_a_layout_and_a_picture_to_a_copy(
    open_page: Callable[..., Page], segment: Any
) -> None:
    page = open_page(StaffFactory.create(superuser=True))

    page.goto(page_of(Layout, "add"))
    page.get_by_label("Name:").fill("House style")
    page.get_by_label("Body:", exact=True).fill("<p>\n{% block content %}")
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.get_by_text("Line 2, column 1: {% block content %} has no")).to_be_visible()
    page.get_by_label("Body:", exact=True).fill(LAYOUT)
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.get_by_text("was added successfully")).to_be_visible()

    page.goto(page_of(Image, "add"))
    page.get_by_label("File:").set_input_files(
        {"name": "evil.html", "mimeType": "text/html", "buffer": b"<script>"}
    )
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.get_by_text("no picture that can be read")).to_be_visible()
    page.get_by_label("File:").set_input_files(
        {"name": "spring.png", "mimeType": "image/png", "buffer": png(40, 30)}
    )
    page.get_by_label("Alternative text:").fill("Flowers")
    page.get_by_role("button", name="Save and continue editing").click()
    shown = page.get_by_role("img", name="Flowers")
    expect(shown).to_be_visible()
    assert shown.evaluate("img => img.complete && img.naturalWidth") == 40
    image = Image.objects.get()
    snippet = page.get_by_text("<img src=").inner_text()
    assert str(image.key) in snippet

    page.goto(page_of(Campaign, "add"))
    page.get_by_label("Name:", exact=True).fill("Spring")
    page.get_by_label("Subject:").fill("Hello")
    page.get_by_label("Layout:").select_option(label="House style, HTML (for HTML and Markdown)")
    body = page.get_by_label("Body:", exact=True)
    body.fill("<p>\n{% block nope %}{% endblock %}</p>")
    page.get_by_label("Readers").first.check()
    page.get_by_role("button", name="Save and continue editing").click()
    expect(
        page.get_by_text(re.compile("^Line 2, column 1: The layout has no block nope"))
    ).to_be_visible()
    body = page.get_by_label("Body:", exact=True)
    body.fill("{% block title %}Spring{% endblock %}<p>Dear , ")
    fields = page.get_by_role("group", name="Merge fields")
    tag = '{{ first_name|default:"friend" }}'
    body.press("End")
    body.press("ArrowLeft")
    body.press("ArrowLeft")
    fields.get_by_role("button", name=tag).click()
    assert "Dear " + tag + ", " in body.input_value()
    body.press("End")
    page.get_by_role("heading", name="Images").click()
    page.get_by_role("group", name="Images").get_by_role("button", name="<img").click()
    # What was inserted can be taken back as what was typed can.
    body.press("Control+z")
    assert snippet not in body.input_value()
    page.get_by_role("group", name="Images").get_by_role("button", name="<img").click()
    page.get_by_role("button", name="Save and continue editing").click()
    expect(page.get_by_text("was added successfully")).to_be_visible()
    campaign = Campaign.objects.get()
    assert campaign.layout == Layout.objects.get()
    assert f"Dear {tag}" in campaign.body
    assert snippet in campaign.body

    page.get_by_role("button", name="Copy", exact=True).click()
    expect(page.get_by_text("Spring: copied into this draft.")).to_be_visible()
    expect(page.get_by_label("Name:", exact=True)).to_have_value("Copy of Spring")
    assert Campaign.objects.count() == 2


#: What is selected, by the end of a finding's link; ``None``: neither body nor subject has the
#: focus.
PLACES = {
    "?line=2&column=4#id_body": "href='http://localhost/x'>y</a>",
    "?line=1&column=3#id_subject": "there",
    "?line=999&column=1#id_body": "",
    "?line=x&column=1#id_body": "",
    "#id_body": "",
    "?line=1&column=1#id_layout": None,
}


def test_a_finding_s_link_selects_its_place(open_page: Callable[..., Page], segment: Any) -> None:
    many = "\n".join(f"<p>{number}</p>" for number in range(200))
    campaign = CampaignFactory.create(
        account=segment.account,
        segments=[segment],
        subject="\N{PARTY POPPER} there",
        body=f"<p>One</p>\n<a href='http://localhost/x'>y</a>\n{many}",
    )
    page = open_page(StaffFactory.create(superuser=True))
    for place, selected in PLACES.items():
        page.goto("about:blank")  # else only what is behind the # would be another
        page.goto(f"{page_of(Campaign, 'change', campaign.pk)}{place}")
        page.wait_for_load_state("networkidle")
        held = page.evaluate(
            """() => { const at = document.activeElement;
            return ["body", "subject"].includes(at.name)
              ? at.value.slice(at.selectionStart, at.selectionEnd) : null; }"""
        )
        assert held == selected, place
        if selected:
            assert "?" not in page.url, place


def test_tab_leaves_the_body_and_the_keyboard_reaches_the_fields(
    open_page: Callable[..., Page], segment: Any
) -> None:
    page = open_page(StaffFactory.create(superuser=True))
    page.goto(page_of(Campaign, "add"))
    body = page.get_by_label("Body:", exact=True)
    body.fill("Hi ")
    body.press("Tab")
    expect(body).not_to_be_focused()
    button = page.get_by_role("button", name='{{ plan|default:"basic" }}')
    button.press("Enter")
    expect(body).to_be_focused()
    assert body.input_value() == 'Hi {{ plan|default:"basic" }}'
    # The Tab key went through the text body on its way; that is not where somebody wrote.
    expect(page.get_by_label("Text body:")).to_have_value("")
    page.get_by_label("Subject:").fill("To ")
    page.get_by_role("button", name="{{ email }}").click()
    expect(page.get_by_label("Subject:")).to_have_value("To {{ email }}")


def test_the_pages_are_sound(open_page: Callable[..., Page], segment: Any) -> None:
    account = segment.account
    image = ImageFactory.create(account=account, name="A long name " * 12, alt="[Alt] " * 40)
    layout = LayoutFactory.create(account=account, name="L" * 150)
    campaign = Campaign.objects.create(
        account=account, name="Draft " * 20, subject="s" * 200, body="b", layout=layout
    )
    for number in range(40):
        AttributeDefinitionFactory.create(
            account=account, key=f"a_rather_long_key_{number}", label="A label " * 10
        )
    user = StaffFactory.create(superuser=True)
    page = open_page(user)
    bare = open_page(user, javascript=False)
    for url in (
        page_of(Campaign, "add") + f"?account={account.pk}",
        page_of(Campaign, "change", campaign.pk),
        page_of(Layout, "add") + f"?account={account.pk}",
        page_of(Layout, "change", layout.pk),
        page_of(Image, "add") + f"?account={account.pk}",
        page_of(Image, "change", image.pk),
        page_of(Image, "delete", image.pk),
        page_of(Layout, "changelist"),
        page_of(Image, "changelist"),
        page_of(Campaign, "changelist"),
    ):
        for opened in (page, bare) if "campaign" in url else (page,):
            # The picture is of a row alone.
            opened.route("**/images/*.png", lambda route: route.fulfill(body=png(4, 3)))
            opened.goto(url)
            closed = opened.locator(".sendonce-palette details:not([open]) summary")
            while closed.count():
                closed.first.click()
            assert too_narrow(opened) == [], url
        if "change/" in url:  # the search of a list is Django's own
            assert flaws(page) == [], url
