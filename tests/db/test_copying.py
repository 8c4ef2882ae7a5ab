"""A new draft from a campaign of any status."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from campaigns.content import TEXTS
from campaigns.copying import copied_name, copy
from campaigns.editing import EDITABLE_FIELDS
from campaigns.errors import WrongState
from campaigns.models import Campaign
from subscribers.models import AuditEvent
from tests.factories import CampaignFactory, LayoutFactory, SegmentFactory, StaffFactory

from .campaign_pages import boss as boss  # a fixture
from .campaign_pages import client_with, said, url
from .lifecycles import STATUSES, in_status

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize("status", STATUSES)
def test_a_copy_is_a_draft_with_the_same_content(status: str) -> None:
    layout = LayoutFactory.create()
    campaign = in_status(
        status, account=layout.account, layout=layout, text_body="T", reply_to="a@example.org"
    )
    campaign.exclude_segments.add(SegmentFactory.create(account=layout.account))
    by = StaffFactory.create()
    made = copy(campaign, by=by)
    assert made.pk != campaign.pk
    assert (made.status, made.version, made.created_by) == ("draft", 1, by)
    assert made.name == f"Copy of {campaign.name}"
    assert made.layout == layout
    for name in TEXTS:
        assert getattr(made, name) == getattr(campaign, name)
    assert set(made.segments.all()) == set(campaign.segments.all())
    assert set(made.exclude_segments.all()) == set(campaign.exclude_segments.all())
    assert (made.scheduled_for, made.content, made.approved_digest) == (None, None, "")
    assert (made.started_at, made.audience, made.audience_cursor) == (None, 0, 0)


def test_every_field_of_the_content_is_copied() -> None:
    assert {*TEXTS, "name", "layout", "scheduled_for", "finish_by"} == EDITABLE_FIELDS


@pytest.mark.parametrize(("hours", "kept"), [(1, True), (-1, False)])
def test_an_end_that_has_passed_is_left_out(hours: int, kept: bool) -> None:
    when = timezone.now() + timedelta(hours=hours)
    made = copy(CampaignFactory.create(finish_by=when))
    assert made.finish_by == (when if kept else None)


def test_names_stay_within_their_length() -> None:
    assert len(copied_name("x" * 200)) == 200
    assert copied_name("A") == "Copy of A"


def test_what_is_gone_can_not_be_copied() -> None:
    campaign = CampaignFactory.create()
    Campaign.objects.filter(pk=campaign.pk).delete()
    with pytest.raises(WrongState, match="deleted"):
        copy(campaign)


def test_the_button_makes_a_draft_and_leads_to_it(boss: Client) -> None:
    campaign = CampaignFactory.create(sent=True)
    assert url("copy", campaign.pk) in boss.get(url("change", campaign.pk)).content.decode()
    assert boss.get(url("copy", campaign.pk)).status_code == 405
    assert Campaign.objects.count() == 1
    answer: Any = boss.post(url("copy", campaign.pk))
    made = Campaign.objects.exclude(pk=campaign.pk).get()
    assert answer.url == url("change", made.pk)
    event = AuditEvent.objects.get()
    assert (event.verb, event.detail) == (
        "campaign.copy",
        {"campaign": made.pk, "from": campaign.pk},
    )
    assert boss.get(answer.url).status_code == 200


@pytest.mark.parametrize("number", [1, 3])
def test_the_action_copies_each(boss: Client, number: int) -> None:
    rows = CampaignFactory.create_batch(number)
    data: dict[str, Any] = {"action": "copy_selected", "_selected_action": [row.pk for row in rows]}
    answer: Any = boss.post(url("changelist"), data)
    assert Campaign.objects.count() == 2 * number
    first = Campaign.objects.order_by("pk").last()
    assert first is not None
    assert (answer.url == url("change", first.pk)) is (number == 1)


def test_too_many_at_once_are_refused(boss: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("campaigns.admin.copying.MOST", 2)
    rows = CampaignFactory.create_batch(3)
    data = {"action": "copy_selected", "_selected_action": [row.pk for row in rows]}
    assert "Nothing was copied" in said(boss.post(url("changelist"), data))
    assert Campaign.objects.count() == 3


def test_it_takes_the_permission_to_add_and_to_see() -> None:
    campaign = CampaignFactory.create(sent=True)
    for codenames, status in (
        (("view_campaign",), 403),
        (("add_campaign",), 403),
        (("view_campaign", "add_campaign"), 302),
    ):
        client = client_with(campaign.account, *codenames)
        assert client.post(url("copy", campaign.pk)).status_code == status, codenames
    assert Campaign.objects.count() == 2
    stranger = client_with(CampaignFactory.create().account, "view_campaign", "add_campaign")
    stranger.post(url("copy", campaign.pk))
    assert Campaign.objects.count() == 3
    reader = client_with(campaign.account, "view_campaign")
    assert url("copy", campaign.pk) not in reader.get(url("change", campaign.pk)).content.decode()
