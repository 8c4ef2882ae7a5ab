"""The verbs of a campaign: from which status, and what they store."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone

from campaigns import lifecycle
from campaigns.errors import WrongState
from campaigns.models import Campaign
from sending import withdraw
from tests.factories import CampaignFactory, StaffFactory

from .lifecycles import STATUSES, VERBS, approved, in_status, stored
from .rows import campaign_to, row, status_of

#: verb -> {status it may be called from: status it leads to}
ALLOWED: dict[str, dict[str, str]] = {
    "approve": {"draft": "approved"},
    "withdraw": {"approved": "draft"},
    "pause": {"sending": "paused"},
    "resume": {"paused": "sending"},
    "cancel": {"approved": "canceled", "sending": "canceled", "paused": "canceled"},
    "edit": {"draft": "draft", "approved": "draft"},
}


# --- from which status -----------------------------------------------------------------------


@pytest.mark.django_db
@pytest.mark.parametrize("status", STATUSES)
@pytest.mark.parametrize("verb", list(VERBS))
def test_every_verb_from_every_status(verb: str, status: str) -> None:
    campaign, by = in_status(status), StaffFactory.create()
    before = stored(campaign)
    if status in ALLOWED[verb]:
        VERBS[verb](campaign, by)
        assert stored(campaign).status == ALLOWED[verb][status]
        assert campaign.status == ALLOWED[verb][status], "the caller's object is left stale"
    else:
        with pytest.raises(WrongState, match=f"the campaign is {status}") as refused:
            VERBS[verb](campaign, by)
        assert refused.value.found == status
        assert set(refused.value.allowed) == set(ALLOWED[verb])
        after = stored(campaign)
        assert (after.status, after.name, after.version) == (status, before.name, before.version)


@pytest.mark.django_db
@pytest.mark.parametrize("verb", list(VERBS))
def test_a_deleted_campaign_is_named_so(verb: str) -> None:
    campaign: Campaign = CampaignFactory.create()
    gone = Campaign.objects.get(pk=campaign.pk)
    campaign.delete()
    with pytest.raises(WrongState, match="the campaign is deleted"):
        VERBS[verb](gone, StaffFactory.create())


@pytest.mark.django_db
@pytest.mark.parametrize("status", STATUSES)
def test_due_starts_only_what_is_approved(status: str) -> None:
    campaign = approved()
    if status != "approved":
        campaign = in_status(status)
    assert lifecycle.due(campaign) is (status == "approved")
    assert stored(campaign).status == ("sending" if status == "approved" else status)


@pytest.mark.django_db
@pytest.mark.parametrize("status", STATUSES)
def test_finish_ends_only_what_is_sending_and_built(status: str) -> None:
    campaign = in_status(status, built_at=timezone.now())
    assert lifecycle.finish(campaign) is (status == "sending")
    after = stored(campaign)
    assert after.status == ("sent" if status == "sending" else status)
    if status == "sending":
        assert after.finished_at is not None


@pytest.mark.django_db
def test_finish_waits_for_the_build() -> None:
    campaign = in_status("sending")
    assert lifecycle.finish(campaign) is False
    assert stored(campaign).status == "sending"


@pytest.mark.django_db
@pytest.mark.parametrize("state", ["queued", "claimed", "sending", "retry"])
def test_finish_waits_for_every_open_row(state: str) -> None:
    campaign = in_status("sending", built_at=timezone.now())
    row(campaign, state)
    assert lifecycle.finish(campaign) is False
    assert stored(campaign).status == "sending"


@pytest.mark.django_db
@pytest.mark.parametrize(
    "state", ["sent", "bounced", "failed", "suppressed", "in_doubt", "canceled"]
)
def test_finish_does_not_wait_for_what_is_closed_or_held(state: str) -> None:
    campaign = in_status("sending", built_at=timezone.now())
    row(campaign, state)
    assert lifecycle.finish(campaign) is True


@pytest.mark.django_db
def test_finish_waits_for_doubt_that_a_policy_will_settle() -> None:
    campaign = in_status("sending", built_at=timezone.now())
    campaign.account.in_doubt_policy = "resend"
    campaign.account.save()
    row(campaign, "in_doubt", settle_at=timezone.now() + timedelta(hours=1))
    assert lifecycle.finish(campaign) is False
    # The account changes its mind: nothing will settle it any more, so it is held.
    campaign.account.in_doubt_policy = "hold"
    campaign.account.save()
    assert lifecycle.finish(campaign) is True


# --- pause, resume, cancel -------------------------------------------------------------------


@pytest.mark.django_db
def test_pause_says_why_and_resume_forgets_it() -> None:
    campaign = in_status("sending")
    lifecycle.pause(campaign, reason="too many refusals")
    assert stored(campaign).status_reason == "too many refusals"
    lifecycle.resume(campaign)
    assert stored(campaign).status_reason == "resumed by the system"


@pytest.mark.django_db
def test_a_reason_longer_than_its_column_is_cut() -> None:
    campaign = in_status("sending")
    lifecycle.pause(campaign, reason="x" * 2000)
    assert len(stored(campaign).status_reason) == 500


@pytest.mark.django_db
@pytest.mark.parametrize("status", ["sending", "paused"])
def test_cancel_closes_what_is_open_and_leaves_what_is_on_the_wire(status: str) -> None:
    campaign = in_status(status)
    rows = {
        state: row(campaign, state)
        for state in ("queued", "claimed", "retry", "sending", "sent", "in_doubt", "suppressed")
    }
    lifecycle.cancel(campaign)
    assert {state: status_of(send) for state, send in rows.items()} == {
        "queued": "canceled",
        "claimed": "canceled",
        "retry": "canceled",
        "sending": "sending",
        "sent": "sent",
        "in_doubt": "in_doubt",
        "suppressed": "suppressed",
    }


@pytest.mark.django_db
def test_cancel_takes_rows_with_it_whatever_their_number(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(withdraw, "SLICE", 3)
    campaign = campaign_to(0)
    rows = [row(campaign) for _ in range(7)]
    lifecycle.cancel(campaign)
    assert {status_of(send) for send in rows} == {"canceled"}
