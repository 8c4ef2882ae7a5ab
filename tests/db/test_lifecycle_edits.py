"""Edits of a campaign, and the approvals that they void."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from campaigns import lifecycle
from campaigns.editing import edit
from campaigns.errors import Conflict
from campaigns.models import Approval, Campaign, Layout
from subscribers.models import Segment
from tests.factories import CampaignFactory, LayoutFactory, SegmentFactory, StaffFactory

from .lifecycles import approved, stored


@pytest.mark.django_db
def test_an_edit_voids_the_approval_with_the_reason() -> None:
    campaign, by = approved(), StaffFactory.create()
    assert edit(campaign, version=campaign.version, values={"subject": "New"}, by=by) is True
    after = stored(campaign)
    assert (after.status, after.subject, after.version) == ("draft", "New", 2)
    assert (after.approved_by, after.approved_at, after.approved_digest) == (None, None, "")
    assert after.content is None
    assert by.get_username() in after.status_reason
    approval = Approval.objects.get(campaign=campaign)
    assert approval.voided_at is not None
    assert approval.void_reason == after.status_reason


@pytest.mark.django_db
def test_an_edit_of_the_segments_voids_the_approval_too() -> None:
    campaign = approved()
    other = SegmentFactory.create(account=campaign.account)
    assert edit(campaign, version=1, values={}, segments=[other], exclude_segments=[]) is True
    assert list(campaign.segments.all()) == [other]
    assert stored(campaign).status == "draft"


@pytest.mark.django_db
def test_the_second_of_two_editors_is_told() -> None:
    campaign: Campaign = CampaignFactory.create()
    edit(campaign, version=1, values={"subject": "First"})
    with pytest.raises(Conflict, match="edited meanwhile"):
        edit(campaign, version=1, values={"subject": "Second"}, segments=[])
    after = stored(campaign)
    assert (after.subject, after.version) == ("First", 2)
    assert after.segments.exists()


@pytest.mark.django_db
def test_an_edit_of_a_field_that_is_not_content_is_refused() -> None:
    campaign: Campaign = CampaignFactory.create()
    with pytest.raises(ValueError, match="status"):
        edit(campaign, version=1, values={"status": "sending"})


@pytest.mark.django_db
@pytest.mark.parametrize(
    "change",
    [
        lambda c: Campaign.objects.filter(pk=c.pk).update(subject="Something else"),
        lambda c: Campaign.objects.filter(pk=c.pk).update(body="<p>Something else</p>"),
        lambda c: Campaign.objects.filter(pk=c.pk).update(
            scheduled_for=timezone.now() - timedelta(hours=1)
        ),
        lambda c: c.segments.add(SegmentFactory.create(account=c.account)),
        lambda c: c.exclude_segments.add(SegmentFactory.create(account=c.account)),
        lambda c: (
            type(c.account).objects.filter(pk=c.account_id).update(from_email="other@example.org")
        ),
    ],
    ids=["subject", "body", "schedule", "segments", "excluded segments", "sender"],
)
def test_an_edit_round_the_admin_goes_back_to_draft_when_it_falls_due(
    change: Callable[[Campaign], object],
) -> None:
    campaign = approved()
    change(campaign)
    assert lifecycle.due(campaign) is False
    after = stored(campaign)
    assert (after.status, after.status_reason) == ("draft", lifecycle.EDITED_ROUND)
    assert after.content is None
    approval = Approval.objects.get(campaign=campaign)
    assert approval.void_reason == lifecycle.EDITED_ROUND
    # Seen and approved again, it starts.
    lifecycle.approve(after, by=StaffFactory.create(), scheduled_for=timezone.now())
    assert lifecycle.due(after) is True


@pytest.mark.django_db
def test_withdraw_keeps_the_approval_as_void() -> None:
    campaign, by = approved(), StaffFactory.create()
    lifecycle.withdraw(campaign, by=by)
    after = stored(campaign)
    assert (after.status, after.approved_digest, after.content) == ("draft", "", None)
    assert by.get_username() in after.status_reason
    assert Approval.objects.get(campaign=campaign).voided_at is not None


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("what", ["layout", "segment"])
def test_what_was_deleted_meanwhile_is_a_conflict(what: str) -> None:
    """Between the check of the form and its write; nothing of the edit stays."""
    campaign: Campaign = CampaignFactory.create(readers=1)
    layout = LayoutFactory.create(account=campaign.account)
    segment = SegmentFactory.create(account=campaign.account)
    values: dict[str, Any] = {"subject": "Another"}
    if what == "layout":
        values["layout"] = Layout.objects.get(pk=layout.pk)
        layout.delete()
    else:
        segments = [Segment.objects.get(pk=segment.pk)]
        segment.delete()
    with pytest.raises(Conflict):
        edit(
            campaign,
            version=campaign.version,
            values=values,
            segments=segments if what == "segment" else None,
        )
    assert stored(campaign).subject != "Another"
