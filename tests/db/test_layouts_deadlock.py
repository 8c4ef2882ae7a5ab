"""An edit of a layout against withdrawing and approving a campaign that has it."""

from __future__ import annotations

from typing import Any

import pytest

from campaigns import layout_edits, lifecycle
from campaigns.models import Layout
from tests.factories import CampaignFactory, LayoutFactory, StaffFactory
from tests.factories.library import FRAME

from .lifecycles import stored
from .racing import Race


@pytest.mark.django_db(transaction=True)
def test_an_edit_of_a_layout_and_a_second_approval_never_wait_for_each_other(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    by: Any = StaffFactory.create()
    layout = LayoutFactory.create()
    campaign = CampaignFactory.create(
        readers=1,
        account=layout.account,
        layout=layout,
        body="<p>Some words for all to read.</p>",
        text_body="",
    )
    lifecycle.approve(stored(campaign), by=by)
    with Race() as race:
        halt = race.halt()
        # It holds the layout, and has seen that the campaign is approved.
        monkeypatch.setattr(layout_edits, "approved_with", halt.behind(layout_edits.approved_with))
        found = Layout.objects.get(pk=layout.pk)
        values = {"body": FRAME.replace("<p>", "<p>New. ")}
        editor = race.start_to(
            halt, lambda: layout_edits.edit_layout(found, version=1, values=values, by=by)
        )
        lifecycle.withdraw(stored(campaign), by=by)
        draft = stored(campaign)
        approver = race.start(lambda: lifecycle.approve(draft, by=by))
        approver.wait_until_blocked()
        halt.released.set()
        assert editor.result().withdrawn == []
        content = approver.result().content
    assert content is not None
    assert "New." in content.html
