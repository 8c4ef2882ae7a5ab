"""Rows of running campaigns as a worker sees them, and the words in which it tells outcomes."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from campaigns.models import Campaign
from sending import clock, ledger
from sending.answers import Answer, Outcome, Reason, Stage
from sending.models import DeliveryEvent, Send
from sending.queue import Claimed, Rotation, claim
from sending.settle import Settlement
from subscribers.models import Subscriber
from tests.factories import CampaignFactory, SegmentFactory, SendFactory, SubscriberFactory

LEASE = 60.0
#: Answers as relays give them, by the outcome they mean.
ANSWERS = {
    "sent": Answer(Stage.DOT, 250, "2.0.0", "queued as 4711", message_id="4711"),
    "retry": Answer(Stage.RCPT, 451, "4.7.1", "greylisted, try again"),
    "bounced": Answer(Stage.RCPT, 550, "5.1.1", "no such user"),
    "failed": Answer(Stage.DOT, 554, "5.7.1", "looks like spam"),
    "in_doubt": Answer(Stage.DOT, None, "", "connection lost"),
}
REASONS = {
    "sent": "",
    "retry": Reason.GREYLISTED,
    "bounced": Reason.ADDRESS_DEAD,
    "failed": Reason.POLICY,
    "in_doubt": Reason.CONNECTION_LOST,
}


def campaign_to(people: int, *, status: str = "sending", **fields: Any) -> Campaign:
    """A started campaign with one segment of so many confirmed people; no row is built."""
    segment = SegmentFactory.create()
    for _ in range(people):
        SubscriberFactory.create(account=segment.account, segments=[segment])
    campaign: Campaign = CampaignFactory.create(
        account=segment.account, segments=[segment], **{status: True}, **fields
    )
    return campaign


def member(campaign: Campaign, **fields: Any) -> Subscriber:
    person: Subscriber = SubscriberFactory.create(
        account=campaign.account, segments=list(campaign.segments.all()), **fields
    )
    return person


def row(campaign: Campaign, state: str = "queued", **fields: Any) -> Send:
    """A row of a person whom the campaign addresses, in the state of that name."""
    if state == "in_doubt":
        # The token of the hand-over in doubt is the row's own; earlier ones are beside it.
        fields.setdefault("doubt_tokens", [])
    trait = {"queued": {}, "sending": {"handed_over": True}}.get(state, {state: True})
    person = fields.pop("subscriber", None) or member(campaign)
    send: Send = SendFactory.create(campaign=campaign, subscriber=person, **trait, **fields)
    return send


def held(send: Send, *, token: UUID | None = None, attempts: int | None = None) -> Claimed:
    """What the worker that claimed ``send`` has in memory."""
    content = send.content_id or (send.campaign.content_id if send.campaign else None)
    assert content is not None
    found = token or send.claim_token
    assert found is not None
    return Claimed(
        id=send.pk,
        token=found,
        account_id=send.account_id,
        campaign_id=send.campaign_id,
        subscriber_id=send.subscriber_id,
        email=send.email or "",
        email_lower=(send.email or "").lower(),
        job_id=send.job_id,
        content_id=content,
        context=send.context,
        attributes={},
        alias=send.account.transport,
        trusted_until=clock.now() + LEASE,
        attempts=send.attempts if attempts is None else attempts,
    )


def take(campaigns: list[int], total: int, *, worker: int = 1) -> list[Claimed]:
    """A claim by a worker that comes fresh to these campaigns."""
    rotation = Rotation()
    rotation.refresh(campaigns)
    return claim(rotation, worker_id=worker, total=total, lease=LEASE, margin=10, blocked=[])


def told(held_row: Claimed, outcome: str, *, delay: float = 30.0) -> Settlement:
    """The relay's word about a hand-over."""
    return Settlement(
        send_id=held_row.id,
        token=held_row.token,
        campaign_id=held_row.campaign_id,
        outcome=str(Outcome(outcome)),
        answer=ANSWERS[outcome],
        reason=str(REASONS[outcome]),
        suppress=outcome == "bounced",
        delay=delay if outcome == "retry" else 0.0,
    )


def status_of(send: Send) -> str:
    return Send.objects.values_list("status", flat=True).get(pk=send.pk)


def kinds_of(send: Send) -> list[str]:
    """The kinds of the row's events, oldest first."""
    return list(
        DeliveryEvent.objects.filter(send=send).order_by("id").values_list("kind", flat=True)
    )


def assert_identity(campaign: Campaign) -> None:
    found = ledger.balance(campaign.pk)
    assert found.holds, f"{found.audience} people, rows {found.counts}"
