"""One campaign from the first letter to the last doubt, by the keyboard alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from django.contrib.auth.models import Group

from campaigns.models import Campaign
from sending.models import Send
from subscribers.roles import Role
from tests.crash.conftest import addresses, wait_until
from tests.factories import SegmentFactory, SubscriberFactory

from .role_paths import Keys, OpenPage, Relay, member, neighbours

if TYPE_CHECKING:
    from playwright.sync_api import expect
else:
    expect = pytest.importorskip("playwright.sync_api").expect

pytestmark = pytest.mark.django_db(transaction=True)

PATIENT = 60_000
BODY = (
    '<p>Dear {{ first_name|default:"friend" }}, the season opens with a play that you know well, '
    'and ends with one that nobody has seen. <a href="https://www.example.org/">All plays</a></p>'
    '<p>{{ account.postal_address }} <a href="{{ unsubscribe_url }}">Leave</a></p>'
)


def test_from_the_first_letter_to_the_last_doubt(open_page: OpenPage, relay: Relay) -> None:
    neighbours()
    segment = SegmentFactory.create(name="Readers", account__name="City Theatre")
    for email in [*addresses(2, "drop"), *addresses(28)]:
        SubscriberFactory.create(account=segment.account, segments=[segment], email=email)
    user = member(Role.EDITOR, segment.account, "ann")
    user.groups.add(*Group.objects.filter(sendonce_role__role__in=(Role.APPROVER, Role.OPERATOR)))
    page = open_page(user)
    keys = Keys(page)
    page.goto("/admin/")

    keys.follow("A campaign")
    keys.fill("Name:", "Spring premiere")
    keys.fill("Subject:", "The season opens")
    keys.fill("Body:", BODY)
    keys.tick("Readers")
    keys.follow("Save and continue editing")
    expect(page.get_by_text("was added successfully")).to_be_visible()
    keys.follow("Approve…")
    keys.tick("I have seen the warnings")
    keys.follow("Approve")
    expect(page.get_by_text("Spring premiere: approved. It starts as soon as")).to_be_visible()

    sink = relay.listen("--delay", "0.03")
    relay.send("--lanes", "1", "--lot", "1")
    sink.wait_for(3)
    relay.hold()
    keys.follow("Home")
    keys.follow("Spring premiere")
    keys.follow("Pause")
    expect(page.get_by_role("heading", name="Paused")).to_be_visible()
    relay.go_on()
    keys.follow("Resume", press="Space")
    campaigns = Campaign.objects.filter(account=segment.account)
    expect(page.locator("#progress-title")).to_contain_text("Sent", timeout=PATIENT)
    wait_until(lambda: campaigns.get().status == "sent", "sent")

    keys.follow("Decide about doubt")
    keys.tick("drop-1@example.org")
    keys.follow("Treat as sent…", key="Shift+Tab", press="Space")
    keys.follow("Treat as sent")
    expect(page.get_by_text("1 of 1 message treated as sent.")).to_be_visible()
    keys.tick("drop-0@example.org")
    keys.follow("Send again…", key="Shift+Tab", press="Space")
    keys.follow("Send again")
    expect(page.get_by_text("1 of 1 message to be sent again.")).to_be_visible()
    rows = Send.objects.filter(campaign=campaigns.get())
    wait_until(lambda: set(rows.values_list("status", flat=True)) == {"sent"}, "all is sent")
    assert not keys.unseen, "\n".join(keys.unseen)
