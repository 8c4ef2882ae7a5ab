"""The verbs of a campaign: from which status, what they store, and who wins a race."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.db import connection, transaction
from django.utils import timezone

from campaigns import lifecycle
from campaigns.digest import digest
from campaigns.editing import edit
from campaigns.errors import ApprovalRefused, CampaignError, Conflict, WrongState
from campaigns.gate import enter_exclusive
from campaigns.models import Approval, Campaign
from sending import withdraw
from tests.factories import CampaignFactory, SegmentFactory, StaffFactory

from .racing import Race
from .rows import campaign_to, row, status_of

STATUSES = list(Campaign.Status.values)
#: verb -> {status it may be called from: status it leads to}
ALLOWED: dict[str, dict[str, str]] = {
    "approve": {"draft": "approved"},
    "withdraw": {"approved": "draft"},
    "pause": {"sending": "paused"},
    "resume": {"paused": "sending"},
    "cancel": {"approved": "canceled", "sending": "canceled", "paused": "canceled"},
    "edit": {"draft": "draft", "approved": "draft"},
}
VERBS: dict[str, Callable[[Campaign, Any], object]] = {
    "approve": lambda campaign, by: lifecycle.approve(campaign, by=by),
    "withdraw": lambda campaign, by: lifecycle.withdraw(campaign, by=by),
    "pause": lambda campaign, by: lifecycle.pause(campaign, by=by),
    "resume": lambda campaign, by: lifecycle.resume(campaign, by=by),
    "cancel": lambda campaign, by: lifecycle.cancel(campaign, by=by),
    "edit": lambda campaign, by: edit(
        campaign, version=campaign.version, values={"name": "Renamed"}, by=by
    ),
}


def in_status(status: str, **fields: Any) -> Campaign:
    trait = {} if status == "draft" else {status: True}
    campaign: Campaign = CampaignFactory.create(**trait, **fields)
    return campaign


def approved(**fields: Any) -> Campaign:
    """A campaign that was really approved, so that its digest is right; due at once."""
    campaign: Campaign = CampaignFactory.create(**fields)
    return lifecycle.approve(campaign, by=StaffFactory.create())


def stored(campaign: Campaign) -> Campaign:
    return Campaign.objects.get(pk=campaign.pk)


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


# --- approve ---------------------------------------------------------------------------------


@pytest.mark.django_db
def test_approve_stores_who_when_and_what() -> None:
    by = StaffFactory.create()
    campaign: Campaign = CampaignFactory.create(subject="Hello {{ first_name }}")
    before = timezone.now()
    lifecycle.approve(campaign, by=by)
    after = stored(campaign)
    assert after.approved_by == by
    assert after.approved_at is not None
    assert after.scheduled_for is not None
    assert before - timedelta(seconds=5) <= after.approved_at <= timezone.now()
    assert before - timedelta(seconds=5) <= after.scheduled_for <= timezone.now()
    assert after.approved_digest == digest(after)
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
    campaign: Campaign = CampaignFactory.create(scheduled_for=own)
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
    campaign: Campaign = CampaignFactory.create(account__second_approver=True, created_by=author)
    with pytest.raises(ApprovalRefused, match="second person"):
        lifecycle.approve(campaign, by=author)
    with pytest.raises(ApprovalRefused, match="second person"):
        lifecycle.approve(campaign, by=None)
    assert stored(campaign).status == "draft"
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


# --- edits -----------------------------------------------------------------------------------


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
    lifecycle.approve(after, by=StaffFactory.create())
    assert lifecycle.due(after) is True


@pytest.mark.django_db
def test_withdraw_keeps_the_approval_as_void() -> None:
    campaign, by = approved(), StaffFactory.create()
    lifecycle.withdraw(campaign, by=by)
    after = stored(campaign)
    assert (after.status, after.approved_digest, after.content) == ("draft", "", None)
    assert by.get_username() in after.status_reason
    assert Approval.objects.get(campaign=campaign).voided_at is not None


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


# --- two at once -----------------------------------------------------------------------------


def _outcome(verb: Callable[[Campaign], object], campaign_id: int) -> object:
    """What a caller on another connection gets: its value, or the refusal."""
    try:
        return verb(Campaign.objects.get(pk=campaign_id))
    except CampaignError as refusal:
        return refusal


RACES: dict[str, tuple[str, str]] = {
    "approve": ("draft", "approved"),
    "withdraw": ("approved", "draft"),
    "pause": ("sending", "paused"),
    "resume": ("paused", "sending"),
    "cancel": ("sending", "canceled"),
    "due": ("approved", "sending"),
    "finish": ("sending", "sent"),
}


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("verb", list(RACES))
def test_of_two_callers_at_once_one_wins(verb: str) -> None:
    start, end = RACES[verb]
    campaign = approved() if start == "approved" else in_status(start)
    if verb == "finish":
        Campaign.objects.filter(pk=campaign.pk).update(built_at=timezone.now())
    by = StaffFactory.create()

    def call(found: Campaign) -> object:
        if verb == "due":
            return lifecycle.due(found)
        if verb == "finish":
            return lifecycle.finish(found)
        return VERBS[verb](found, by)

    with Race() as race:
        # Both have read the campaign and stand before its gate before either decides.
        with transaction.atomic(), connection.cursor() as cursor:
            enter_exclusive(cursor, campaign.pk)
            both = [race.start(lambda: _outcome(call, campaign.pk)) for _ in range(2)]
            for racer in both:
                racer.wait_until_blocked()
        results = [racer.result() for racer in both]
    losers = [r for r in results if r is False or isinstance(r, WrongState)]
    assert len(losers) == 1, results
    if isinstance(losers[0], WrongState):
        assert losers[0].found == end
    assert stored(campaign).status == end
    if verb == "approve":
        assert Approval.objects.count() == 1


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("verb", ["approve", "pause", "due"])
def test_a_transition_is_notified_once_it_is_committed(verb: str) -> None:
    start = RACES[verb][0]
    campaign = approved() if start == "approved" else in_status(start, built_at=timezone.now())
    by = StaffFactory.create()
    with connection.cursor() as cursor:
        cursor.execute(f"LISTEN {lifecycle.CHANNEL}")
    raw = connection.connection
    with transaction.atomic():
        if verb in VERBS:
            VERBS[verb](campaign, by)
        else:
            getattr(lifecycle, verb)(campaign)
        assert list(raw.notifies(timeout=0)) == []
    heard = list(raw.notifies(timeout=5, stop_after=1))
    with connection.cursor() as cursor:
        cursor.execute("UNLISTEN *")
    assert [n.payload for n in heard] == [f"campaign:{campaign.pk}"]


@pytest.mark.django_db
def test_cancel_takes_rows_with_it_whatever_their_number(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(withdraw, "SLICE", 3)
    campaign = campaign_to(0)
    rows = [row(campaign) for _ in range(7)]
    lifecycle.cancel(campaign)
    assert {status_of(send) for send in rows} == {"canceled"}
