"""An account's own waits and number of attempts, from its row to the send's next attempt."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db.models.functions import Now

from campaigns.models import Campaign
from sending.answers import Answer, Outcome, Reason, Stage, Verdict
from sending.handover import hand_over
from sending.models import Send
from sending.settle import decide, settle
from subscribers.models import Account

from .rows import campaign_to, row, take

BUSY = Answer(Stage.RCPT, 451, "4.3.2", "try later")
RETRY = Verdict(Outcome.RETRY, Reason.TRANSIENT)

pytestmark = pytest.mark.django_db


def _refused_once_more(campaign: Campaign, answer: Answer = BUSY) -> Send:
    Send.objects.filter(status="retry").update(next_attempt_at=Now() - timedelta(seconds=1))
    (claimed,) = take([campaign.pk], 1)
    assert hand_over([claimed], lease=60).go
    settle([decide(claimed, answer, RETRY, jitter=0.5)], doubt_wait=600)
    return Send.objects.get(campaign=campaign)


def _wait(send: Send) -> float:
    assert send.next_attempt_at is not None
    assert send.handed_at is not None
    return (send.next_attempt_at - send.handed_at).total_seconds()


def test_an_accounts_own_waits_and_attempts() -> None:
    campaign = campaign_to(0)
    row(campaign)
    Account.objects.filter(pk=campaign.account_id).update(retry_waits=[7, 70], max_attempts=4)
    waits = [_wait(_refused_once_more(campaign)) for _ in range(3)]
    assert [round(wait) for wait in waits] == [7, 70, 70]
    assert _refused_once_more(campaign).status == "failed"


def test_the_usual_waits_and_five_attempts() -> None:
    campaign = campaign_to(0)
    row(campaign)
    waits = [_wait(_refused_once_more(campaign)) for _ in range(4)]
    assert [round(wait) for wait in waits] == [30, 120, 480, 1800]
    assert _refused_once_more(campaign).status == "failed"


def test_what_the_other_side_asks_for_wins() -> None:
    campaign = campaign_to(0)
    row(campaign)
    asked = Answer(Stage.HTTP, 429, "", "slow down", retry_after=90)
    assert round(_wait(_refused_once_more(campaign, asked))) == 90


@pytest.mark.parametrize(("words", "wait"), [("in 00:05:00", 300), ("in 1 second", 30)])
def test_a_greylisting_servers_words_make_the_wait_longer(words: str, wait: int) -> None:
    campaign = campaign_to(0)
    row(campaign)
    greylisted = Answer(Stage.RCPT, 451, "4.7.1", f"Greylisted, please come back {words}")
    assert round(_wait(_refused_once_more(campaign, greylisted))) == wait
