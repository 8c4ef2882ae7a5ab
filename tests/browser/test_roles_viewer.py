"""A viewer sees what happens, finds nothing to press, and is refused whatever they post.

What axe finds in these pages the tests of each say: there is less on them here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from django.urls import reverse
from django.utils import timezone

from campaigns.models import Campaign
from sending.models import Send, TransportPause
from subscribers.models import AuditEvent
from subscribers.roles import Role
from tests.factories import CampaignFactory, LayoutFactory, SegmentFactory, SendFactory

from .role_paths import OpenPage, look, member, neighbours, posted

if TYPE_CHECKING:
    from playwright.sync_api import Page, expect
else:
    expect = pytest.importorskip("playwright.sync_api").expect

pytestmark = pytest.mark.django_db(transaction=True)

ACTS = """() => [...document.querySelectorAll("#content button, #content input[type=submit]")]
    .filter((one) => one.offsetParent).map((one) => one.innerText || one.value)"""


@pytest.fixture
def running() -> Campaign:
    """A campaign on its way, with something of everything; one sent, one approved, a draft."""
    neighbours()
    segment = SegmentFactory.create(
        name="Readers", account__name="City Theatre", account__timezone="Europe/Berlin"
    )
    LayoutFactory.create(account=segment.account, name="House style")
    made = {"account": segment.account, "segments": [segment]}
    campaign: Campaign = CampaignFactory.create(
        name="Spring premiere", sending=True, audience=11, built_at=timezone.now(), **made
    )
    for state in ("sent", "sent", "in_doubt", "bounced", "failed", "retry", "queued"):
        SendFactory.create(campaign=campaign, **({state: True} if state != "queued" else {}))
    Campaign.objects.filter(pk=campaign.pk).update(
        audience=Send.objects.filter(campaign=campaign).count()
    )
    sent = CampaignFactory.create(name="Winter letter", sent=True, audience=1, **made)
    SendFactory.create(campaign=sent, sent=True)
    CampaignFactory.create(name="Autumn letter", approved=True, **made)
    CampaignFactory.create(name="A draft", **made)
    TransportPause.objects.create(
        alias="default", stage="connect", reason="refused", probe_at=timezone.now()
    )
    return campaign


def sees(page: Page, name: str) -> None:
    """The page is there, it is sound, and nothing on it acts."""
    look(page, name)
    assert [word for word in page.evaluate(ACTS) if word not in ("Search", "Look", "Go")] == []


@pytest.mark.parametrize("javascript", [True, False], ids=["script", "no-script"])
def test_everything_is_seen_and_nothing_can_be_pressed(
    open_page: OpenPage, running: Campaign, javascript: bool
) -> None:
    page = open_page(member(Role.VIEWER, running.account), javascript=javascript)
    page.goto("/admin/")
    sees(page, "viewer-front")
    page.get_by_role("region", name="Running").get_by_role("link", name="Spring premiere").click()
    expect(page.get_by_role("region", name="Recipients", exact=True)).to_be_visible()
    look(page, "viewer-progress")
    expect(page.locator("#progress-now").get_by_role("button")).to_have_count(0)
    page.get_by_role("link", name="Report").click()
    expect(page.get_by_role("heading", name="2 sent, 2 still to come")).to_be_visible()
    look(page, "viewer-report")
    expect(page.get_by_role("button", name="Every recipient (CSV)")).to_have_count(0)
    page.locator(".breadcrumbs").get_by_role("link", name="Spring premiere").click()
    sees(page, "viewer-campaign")
    page.get_by_role("link", name="Progress", exact=True).click()
    expect(page.get_by_role("link", name="Decide about doubt")).to_have_count(0)
    page.get_by_role("link", name="What is in doubt").click()
    expect(page.get_by_text("Likely right").first).to_be_visible()
    sees(page, "viewer-doubt")
    for model, page_name in (
        ("sendonce_sending_transportpause", "overview"),
        ("sendonce_campaigns_layout", "changelist"),
        ("sendonce_campaigns_campaign", "changelist"),
    ):
        page.goto(reverse(f"admin:{model}_{page_name}"))
        sees(page, f"viewer-{model}")


def test_every_verb_is_refused(open_page: OpenPage, running: Campaign) -> None:
    page = open_page(member(Role.VIEWER, running.account))
    page.goto("/admin/")
    before = list(Campaign.objects.order_by("pk").values_list("pk", "status", "version"))
    every = {row.name: row for row in Campaign.objects.filter(account=running.account)}
    cases = [
        ("approve", "A draft"),
        ("test", "A draft"),
        ("copy", "A draft"),
        ("change", "A draft"),
        ("delete", "A draft"),
        ("withdraw", "Autumn letter"),
        ("pause", "Spring premiere"),
        ("resume", "Spring premiere"),
        ("cancel", "Spring premiere"),
    ]
    for verb, name in cases:
        url = reverse(f"admin:sendonce_campaigns_campaign_{verb}", args=[every[name].pk])
        assert posted(page, url, post="yes", start="now", addresses="a@example.org") == 403, verb
    pause = TransportPause.objects.get()
    doubtful = Send.objects.get(campaign=running, status="in_doubt")
    desk = reverse("admin:sendonce_sending_send_doubt_desk")
    decided = {"decision": "send_again", "which": "ticked", "send": str(doubtful.pk)}
    for url, fields in (
        (f"{desk}?campaign={running.pk}", {**decided, "confirmed": "yes"}),
        (reverse("admin:sendonce_sending_transportpause_delete", args=[pause.pk]), {"post": "yes"}),
        (reverse("admin:sendonce_campaigns_campaign_add"), {"name": "Mine"}),
        (reverse("admin:sendonce_campaigns_layout_add"), {"name": "Mine"}),
        (reverse("admin:sendonce_campaigns_image_add"), {"name": "Mine"}),
    ):
        assert posted(page, url, **fields) == 403, url
    assert list(Campaign.objects.order_by("pk").values_list("pk", "status", "version")) == before
    doubtful.refresh_from_db()
    assert doubtful.status == "in_doubt"
    assert TransportPause.objects.exists()
    assert not AuditEvent.objects.exists()
