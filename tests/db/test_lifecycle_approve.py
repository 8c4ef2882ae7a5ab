"""Approving a campaign: what is stored, and what is refused."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from django.utils import timezone

from campaigns import lifecycle
from campaigns.digest import digest
from campaigns.editing import edit
from campaigns.errors import ApprovalRefused, Conflict
from campaigns.models import Approval, Campaign
from tests.factories import CampaignFactory, StaffFactory

from .lifecycles import stored


@pytest.mark.django_db
def test_approve_stores_who_when_and_what() -> None:
    by = StaffFactory.create()
    campaign: Campaign = CampaignFactory.create(subject="Hello {{ first_name }}", readers=1)
    before = timezone.now()
    lifecycle.approve(campaign, by=by)
    after = stored(campaign)
    assert after.approved_by == by
    assert after.approved_at is not None
    assert after.scheduled_for is not None
    assert before - timedelta(seconds=5) <= after.approved_at <= timezone.now()
    assert before - timedelta(seconds=5) <= after.scheduled_for <= timezone.now()
    assert after.approved_digest == digest(after, after.content)
    assert after.content is not None
    assert after.content.subject == "Hello {{ first_name }}"
    approval = Approval.objects.get(campaign=campaign)
    assert (approval.by, approval.by_name) == (by, by.get_username())
    assert approval.digest == after.approved_digest
    assert approval.scheduled_for == after.scheduled_for
    assert approval.content == after.content
    assert approval.voided_at is None


@pytest.mark.django_db
@pytest.mark.parametrize("own", [None, datetime(2031, 5, 1, 9, tzinfo=UTC)])
@pytest.mark.parametrize("given", [None, datetime(2032, 6, 1, 9, tzinfo=UTC)])
def test_approve_takes_the_time_given_then_the_campaigns_own_then_now(
    own: datetime | None, given: datetime | None
) -> None:
    campaign: Campaign = CampaignFactory.create(scheduled_for=own, readers=1)
    lifecycle.approve(campaign, by=StaffFactory.create(), scheduled_for=given)
    found = stored(campaign).scheduled_for
    assert found is not None
    if given or own:
        assert found == (given or own)
        assert lifecycle.due(campaign) is False
    else:
        assert found <= timezone.now()
        assert lifecycle.due(campaign) is True


@pytest.mark.django_db
def test_approve_refuses_content_that_does_not_compile_and_changes_nothing() -> None:
    campaign: Campaign = CampaignFactory.create(subject="Hello {% include 'secrets' %}")
    with pytest.raises(ApprovalRefused, match="the content does not compile"):
        lifecycle.approve(campaign, by=StaffFactory.create())
    after = stored(campaign)
    assert (after.status, after.content, after.approved_digest) == ("draft", None, "")
    assert after.scheduled_for is None
    assert not Approval.objects.exists()


@pytest.mark.django_db
def test_approve_refuses_a_campaign_to_nobody() -> None:
    campaign: Campaign = CampaignFactory.create(segments=[])
    with pytest.raises(ApprovalRefused, match="nobody"):
        lifecycle.approve(campaign, by=StaffFactory.create())


@pytest.mark.django_db
def test_an_account_may_ask_for_a_second_person() -> None:
    author, other = StaffFactory.create_batch(2)
    campaign: Campaign = CampaignFactory.create(
        account__second_approver=True, created_by=author, readers=1
    )
    with pytest.raises(ApprovalRefused, match="second person"):
        lifecycle.approve(campaign, by=author)
    with pytest.raises(ApprovalRefused, match="second person"):
        lifecycle.approve(campaign, by=None)
    assert stored(campaign).status == "draft"
    lifecycle.approve(campaign, by=other)
    assert stored(campaign).status == "approved"


@pytest.mark.django_db
def test_who_edited_it_last_is_not_the_second_person() -> None:
    author, editor, other = StaffFactory.create_batch(3)
    campaign: Campaign = CampaignFactory.create(
        account__second_approver=True, created_by=author, readers=1
    )
    edit(campaign, version=campaign.version, values={"subject": "Mine"}, by=editor)
    with pytest.raises(ApprovalRefused, match="second person"):
        lifecycle.approve(campaign, by=editor)
    # What code changes in between makes nobody a second person.
    edit(campaign, version=campaign.version, values={"preheader": "By code"})
    with pytest.raises(ApprovalRefused, match="second person"):
        lifecycle.approve(campaign, by=editor)
    lifecycle.approve(campaign, by=other)
    assert stored(campaign).status == "approved"


@pytest.mark.django_db
def test_without_an_author_a_second_person_can_not_be_told_from_the_first() -> None:
    campaign: Campaign = CampaignFactory.create(account__second_approver=True, created_by=None)
    with pytest.raises(ApprovalRefused, match="second person"):
        lifecycle.approve(campaign, by=StaffFactory.create())


@pytest.mark.django_db
def test_approve_refuses_what_the_approver_has_not_seen() -> None:
    campaign: Campaign = CampaignFactory.create()
    seen = stored(campaign)
    edit(campaign, version=campaign.version, values={"subject": "Another"})
    with pytest.raises(Conflict, match="edited meanwhile"):
        lifecycle.approve(seen, by=StaffFactory.create())
    assert stored(campaign).status == "draft"
