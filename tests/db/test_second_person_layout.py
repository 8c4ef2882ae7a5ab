"""Where the account asks for a second person: a layout is a part of the message, too."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from campaigns import lifecycle
from campaigns.editing import edit
from campaigns.errors import ApprovalRefused
from campaigns.layout_edits import edit_layout
from campaigns.models import Campaign
from sending import dashboard
from sending.dashboard import May, look
from tests.factories import AccountFactory, CampaignFactory, LayoutFactory, StaffFactory
from tests.factories.library import FRAME

from .lifecycles import stored

pytestmark = pytest.mark.django_db


def test_whoever_edited_the_layout_is_no_second_person() -> None:
    author: Any = StaffFactory.create()
    editor: Any = StaffFactory.create(superuser=True)
    campaign = CampaignFactory.create(
        readers=1, account__second_approver=True, created_by=author, text_body=""
    )
    layout = LayoutFactory.create(account=campaign.account)
    edit(
        campaign,
        version=campaign.version,
        values={"layout": layout, "body": "<p>The words of the author, for all to read.</p>"},
        by=author,
    )
    edit_layout(layout, version=1, values={"name": "Renamed"}, by=editor)
    assert lifecycle.second_person(stored(campaign), editor) == ""
    edit_layout(layout, version=2, values={"body": FRAME.replace("<p>", "<p>Mine. ")}, by=editor)
    with pytest.raises(ApprovalRefused, match="layout"):
        lifecycle.approve(stored(campaign), by=editor)
    # Once the author has been at it again, the layout is what they saw.
    seen = stored(campaign)
    edit(seen, version=seen.version, values={"preheader": "Seen"}, by=author)
    assert lifecycle.second_person(stored(campaign), editor) == ""
    somebody = StaffFactory.create()
    assert lifecycle.approve(stored(campaign), by=somebody).status == "approved"


def test_whoever_edited_it_or_its_layout_last_is_not_asked_to_be_the_second_person(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(dashboard, "SHOWN", 1)
    account = AccountFactory.create(second_approver=True)
    user, may = StaffFactory.create(), May(campaigns=True, approve=True)
    writer = StaffFactory.create(username="anna")
    layout = LayoutFactory.create(account=account, edited_by=user, changed=timezone.now())
    CampaignFactory.create(account=account, name="Theirs to approve", created_by=writer)
    framed = CampaignFactory.create(account=account, created_by=writer, layout=layout)
    Campaign.objects.filter(pk=framed.pk).update(created=timezone.now() - timedelta(hours=1))
    assert look([account.pk], may, by=user).drafts == [framed]
    for _ in range(3):
        CampaignFactory.create(account=account, created_by=writer, edited_by=user)
    facts = look([account.pk], may, by=user)
    assert [one.name for one in facts.second] == ["Theirs to approve"]
