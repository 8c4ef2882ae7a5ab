"""The token's fence: what overwrites what."""

from __future__ import annotations

import uuid

import pytest
from django.utils import timezone

from campaigns.models import Campaign
from sending.answers import Answer, Reason, Stage
from sending.handover import hand_over
from sending.models import DeliveryEvent, Send
from sending.settle import refused_here, settle
from subscribers.models import Suppression

from .handed import OLD
from .rows import LEASE, campaign_to, held, kinds_of, row, status_of, take
from .settled import OTHERS, settle_one

STATUSES = list(Send.Status.values)


@pytest.mark.django_db
@pytest.mark.parametrize("outcome", ["sent", *OTHERS])
@pytest.mark.parametrize("status", STATUSES)
def test_a_strange_token_changes_nothing(status: str, outcome: str) -> None:
    send = row(campaign_to(0), status)
    assert not settle_one(send, outcome, token=uuid.uuid4())
    assert send.status == status
    assert not Suppression.objects.exists()
    assert not DeliveryEvent.objects.exists()


@pytest.mark.django_db
@pytest.mark.parametrize("status", [s for s in STATUSES if s != "sent"])
def test_an_acceptance_of_an_earlier_hand_over_ends_the_row(status: str) -> None:
    campaign = campaign_to(0)
    send = row(campaign, status, doubt_tokens=[uuid.uuid4(), OLD])
    if status == "canceled":
        Campaign.objects.filter(pk=campaign.pk).update(status="canceled")
    assert settle_one(send, "sent", token=OLD)
    assert (send.status, send.lease_until) == ("sent", None)
    assert send.sent_at is not None
    assert take([campaign.pk], 5) == [], "no further hand-over"


@pytest.mark.django_db
def test_an_acceptance_that_comes_during_a_repeat_bars_its_hand_over() -> None:
    send = row(campaign_to(0), "claimed", doubt_tokens=[OLD])
    repeat = held(send)
    assert settle_one(send, "sent", token=OLD)
    handed = hand_over([repeat], lease=LEASE)
    assert (handed.go, handed.withheld) == ([], {})
    assert status_of(send) == "sent"


@pytest.mark.django_db
def test_a_second_acceptance_does_not_move_the_first() -> None:
    send = row(campaign_to(0), "sending", doubt_tokens=[OLD])
    assert settle_one(send, "sent", token=OLD)
    first = send.sent_at
    assert not settle_one(send, "sent")
    assert send.sent_at == first


@pytest.mark.django_db
@pytest.mark.parametrize("outcome", OTHERS)
@pytest.mark.parametrize("status", STATUSES)
def test_any_other_late_word_about_an_earlier_hand_over_is_not_heard(
    status: str, outcome: str
) -> None:
    send = row(campaign_to(0), status, doubt_tokens=[OLD])
    assert not settle_one(send, outcome, token=OLD)
    assert (send.status, send.doubt_tokens) == (status, [OLD])


@pytest.mark.django_db
@pytest.mark.parametrize("outcome", OTHERS)
@pytest.mark.parametrize("known", ["sent", "bounced", "failed", "canceled", "suppressed"])
def test_a_late_word_does_not_overwrite_knowledge(known: str, outcome: str) -> None:
    token = uuid.uuid4()
    send = row(campaign_to(0), known, claim_token=token)
    assert not settle_one(send, outcome, token=token)
    assert send.status == known


@pytest.mark.django_db
@pytest.mark.parametrize("outcome", ["retry", "bounced", "failed", "in_doubt"])
def test_an_answer_without_a_hand_over_is_not_heard(outcome: str) -> None:
    send = row(campaign_to(0), "claimed")
    assert not settle_one(send, outcome)
    assert send.status == "claimed"


@pytest.mark.django_db
def test_a_message_that_can_not_be_made_fails_from_its_claim() -> None:
    send = row(campaign_to(0), "claimed")
    said = Answer(Stage.LOCAL, None, "", "the message could not be made: no such filter")
    settle([refused_here(held(send), said)], doubt_wait=0)
    send.refresh_from_db()
    assert (send.status, send.attempts, send.reason) == ("failed", 0, Reason.REFUSED_LOCALLY)
    assert (kinds_of(send), send.answer_text) == (["failed"], said.text)


@pytest.mark.django_db
@pytest.mark.parametrize("policy", ["hold", "resend"])
def test_a_repeat_that_can_not_be_made_leaves_the_earlier_doubt(policy: str) -> None:
    campaign = campaign_to(0)
    type(campaign.account).objects.filter(pk=campaign.account_id).update(in_doubt_policy=policy)
    send = row(campaign, "claimed", doubt_tokens=[OLD], handed_at=timezone.now())
    said = Answer(Stage.LOCAL, None, "", "the message could not be made")
    settle([refused_here(held(send), said)], doubt_wait=0)
    send.refresh_from_db()
    assert (send.status, send.claim_token, send.doubt_tokens) == ("in_doubt", OLD, [])
    assert send.settle_at is None, "held: the policy would only fail the same way again"
