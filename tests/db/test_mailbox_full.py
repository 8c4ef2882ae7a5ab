"""A mailbox that is full campaign after campaign counts as dead; full once says nothing."""

from __future__ import annotations

import pytest

from campaigns.models import Campaign
from sending.answers import Answer, Outcome, Reason, Stage, Verdict
from sending.models import Send
from sending.settle import decide, settle
from subscribers.models import Subscriber, Suppression
from tests.factories import CampaignFactory, SendFactory

from .rows import campaign_to, held, member, row, status_of

FULL = Answer(Stage.RCPT, 452, "4.2.2", "mailbox full")
RETRY = Verdict(Outcome.RETRY, Reason.MAILBOX_FULL)

pytestmark = pytest.mark.django_db


def _another(campaign: Campaign) -> Campaign:
    made: Campaign = CampaignFactory.create(
        account=campaign.account, segments=list(campaign.segments.all()), sending=True
    )
    return made


def _ends_full(campaign: Campaign, person: Subscriber) -> Send:
    send = row(campaign, "sending", subscriber=person, email=person.email)
    claimed = held(send, attempts=5)
    assert settle([decide(claimed, FULL, RETRY)], doubt_wait=600) == {send.pk: "failed"}
    return send


def _suppressed() -> list[tuple[str | None, str]]:
    return list(Suppression.objects.values_list("email", "reason"))


def test_full_in_three_campaigns_in_a_row_suppresses() -> None:
    campaign = campaign_to(0)
    person, other = member(campaign), member(campaign)
    for times in range(3):
        assert _suppressed() == [], f"after {times}"
        _ends_full(campaign, person)
        campaign = _another(campaign)
    assert _suppressed() == [(person.email, "hard_bounce")]
    assert "3 campaigns" in Suppression.objects.get().evidence
    _ends_full(campaign, other)
    assert len(_suppressed()) == 1


def test_a_delivery_between_starts_the_count_again() -> None:
    campaign = campaign_to(0)
    person = member(campaign)
    for end in ("full", "full", "sent", "full", "full"):
        if end == "full":
            _ends_full(campaign, person)
        else:
            SendFactory.create(campaign=campaign, subscriber=person, sent=True, email=person.email)
        campaign = _another(campaign)
    assert _suppressed() == []


def test_another_accounts_campaigns_do_not_count() -> None:
    mine, theirs = campaign_to(0), campaign_to(0)
    person = member(mine, email="same@example.org")
    same = member(theirs, email="same@example.org")
    _ends_full(mine, person)
    _ends_full(theirs, same)
    _ends_full(_another(theirs), same)
    assert _suppressed() == []


def test_full_at_an_attempt_that_is_not_the_last_is_a_retry() -> None:
    campaign = campaign_to(0)
    send = row(campaign, "sending")
    settle([decide(held(send, attempts=1), FULL, RETRY)], doubt_wait=600)
    assert status_of(send) == "retry"
