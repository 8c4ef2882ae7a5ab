"""An editor at work while preflight looks: what is approved is what was looked at."""

from __future__ import annotations

import pytest

from campaigns import lifecycle
from campaigns.editing import edit
from campaigns.models import Approval, Campaign
from campaigns.preflight import checklist, running
from tests.factories import CampaignFactory, StaffFactory

from .lifecycles import stored
from .racing import Race

GOOD = "<p>The first text, and good to read.</p>"
BAD = '<a href="/nowhere">Another text</a>'


def _edit(pk: int, body: str) -> bool:
    found = Campaign.objects.get(pk=pk)
    return edit(found, version=found.version, values={"body": body})


@pytest.mark.django_db(transaction=True)
def test_an_edit_waits_for_the_look_and_then_voids_the_approval(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    campaign: Campaign = CampaignFactory.create(body=GOOD, readers=1)
    by = StaffFactory.create()
    with Race() as race:
        halt = race.halt()
        # Everything was looked at, and nothing is approved yet.
        monkeypatch.setattr(running, "look", halt.behind(checklist.look))
        found = stored(campaign)
        approver = race.start_to(halt, lambda: lifecycle.approve(found, by=by))
        editor = race.start(lambda: _edit(campaign.pk, BAD))
        editor.wait_until_blocked()
        assert stored(campaign).body == GOOD
        halt.released.set()
        assert approver.result().status == "approved"
        assert editor.result() is True
    after = stored(campaign)
    assert (after.status, after.body, after.content) == ("draft", BAD, None)
    approval = Approval.objects.select_related("content").get()
    assert approval.voided_at is not None
    assert "The first text" in approval.content.html


@pytest.mark.django_db(transaction=True)
def test_an_approver_who_dies_while_it_is_looked_at_leaves_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    campaign: Campaign = CampaignFactory.create(body=GOOD, readers=1)
    with Race() as race:
        halt = race.halt()
        monkeypatch.setattr(running, "look", halt.behind(checklist.look))
        found = stored(campaign)
        approver = race.start_to(halt, lambda: lifecycle.approve(found, by=None))
        approver.kill_backend()
        # The gate is free at once, and so is the campaign.
        assert _edit(campaign.pk, GOOD + " Edited.") is False
    assert approver.error is not None
    after = stored(campaign)
    assert (after.status, after.content, after.scheduled_for) == ("draft", None, None)
    assert not Approval.objects.exists()
