"""Provider events applied to the ledger: what they change, in every order, and only once."""

from __future__ import annotations

from datetime import timedelta
from itertools import permutations

import pytest
from django.utils import timezone

from sending import doubt
from sending.handover import hand_over
from sending.models import CampaignHealth, DeliveryEvent, ProviderEvent, Send
from sending.settle import settle
from sending.tracking import inbox as tracking
from subscribers.models import Subscriber, Suppression
from tests.factories import SendFactory

from .rows import campaign_to, held, kinds_of, row, status_of, take, told
from .tracked import (
    DEAD,
    counts,
    doubted,
    event_of,
    result_of,
    suppressions,
    tell,
)

pytestmark = pytest.mark.django_db


# --- one event -------------------------------------------------------------------------------


EVIDENCE = ["queued", "sent", "deferred", "delivered", "opened", "clicked", "soft_bounce"]
EVIDENCE += ["autoresponded", "complained", "unsubscribed"]
OTHERS = ["sending", "failed", "queued", "retry", "claimed"]


@pytest.mark.parametrize(
    ("status", "kind"),
    [("in_doubt", kind) for kind in EVIDENCE]
    + [(status, kind) for status in OTHERS for kind in ("queued", "delivered")],
)
def test_what_shows_that_the_provider_has_it_makes_it_sent(status: str, kind: str) -> None:
    is_open = status in ("queued", "retry", "claimed")
    send = doubted(status) if is_open else row(campaign_to(0), status)
    if status == "in_doubt":
        Send.objects.filter(pk=send.pk).update(
            settle_at=timezone.now(), replay_until=timezone.now(), replays=1, frozen={"a": 1}
        )
    assert tell(send, kind, message_id="esp-7") == ["applied"]
    assert (send.status, send.reason, send.provider_message_id) == ("sent", "", "esp-7")
    assert send.handed_at is not None
    assert send.sent_at is not None
    assert send.handed_at <= send.sent_at <= timezone.now()
    assert (send.settle_at, send.lease_until, send.replay_until) == (None, None, None)
    assert (send.replays, send.frozen, send.answer_stage) == (0, None, "webhook")
    assert kinds_of(send) == [kind]


@pytest.mark.parametrize("status", ["sending", "in_doubt", "sent", "failed", "queued", "claimed"])
def test_a_hard_bounce_ends_it_and_suppresses(status: str) -> None:
    send = doubted(status) if status in ("queued", "claimed") else row(campaign_to(0), status)
    before = timezone.now()
    assert tell(send, "hard_bounce", text=DEAD) == ["applied"]
    assert (send.status, send.reason) == ("bounced", "address_dead")
    assert (send.claim_token, send.doubt_tokens, send.lease_until) == (None, [], None)
    assert (send.answer_code, send.answer_enhanced, send.answer_text) == (550, "5.1.1", DEAD)
    (found,) = Suppression.objects.all()
    assert (found.account_id, found.email, found.reason) == (
        send.account_id,
        send.email,
        "hard_bounce",
    )
    assert DEAD in found.evidence
    assert found.expires is not None
    assert found.expires > before + timedelta(days=300)
    event = DeliveryEvent.objects.get()
    assert (event.kind, event.stage, event.code, event.enhanced, event.reason) == (
        "hard_bounce",
        "webhook",
        550,
        "5.1.1",
        "address_dead",
    )


@pytest.mark.parametrize("kind", ["rejected", "failed"])
def test_a_rejection_after_the_hand_over_fails_and_suppresses_nobody(kind: str) -> None:
    for status in ("sending", "in_doubt", "sent"):
        send = row(campaign_to(0), status)
        assert tell(send, kind, text="on our list") == ["applied"]
        assert (send.status, send.reason) == ("failed", f"provider_{kind}")
        assert (send.claim_token, send.answer_text) == (None, "on our list")
        assert tell(send, "delivered") == ["applied"]
        assert (send.status, send.reason) == ("sent", "")
        assert tell(send, kind) == ["applied"]
        assert send.status == "sent"
    assert suppressions() == []


@pytest.mark.parametrize(
    "text", ["550 5.7.1 blocked using Spamhaus", "552 5.2.2 mailbox full", "450 4.2.0 greylisted"]
)
def test_a_soft_bounce_suppresses_nobody(text: str) -> None:
    send = row(campaign_to(0), "sent")
    assert tell(send, "soft_bounce", text=text) == ["applied"]
    assert (send.status, suppressions()) == ("sent", [])
    reasons = {"5.7.1": "policy", "5.2.2": "mailbox_full", "4.2.0": "greylisted"}
    event = DeliveryEvent.objects.get()
    assert (event.reason, event.text) == (reasons[text.split()[1]], text)


def test_a_complaint_suppresses_in_the_whole_account_whatever_the_state() -> None:
    for status in Send.Status.values:
        Suppression.objects.all().delete()
        send = row(campaign_to(0), str(status))
        assert tell(send, "complained", text="abuse") == ["applied"]
        assert suppressions() == [(send.email, "complaint")]
        assert Suppression.objects.get().account_id == send.account_id
        assert Suppression.objects.get().expires is None


def test_an_unsubscription_at_the_provider_is_one_here() -> None:
    send = row(campaign_to(0), "sent")
    assert tell(send, "unsubscribed") == ["applied"]
    assert send.subscriber is not None
    assert send.subscriber.status == Subscriber.Status.UNSUBSCRIBED
    assert suppressions() == [(send.email, "unsubscribed")]


def test_who_has_another_address_by_now_and_who_is_gone() -> None:
    moved, gone = row(campaign_to(0), "sent"), row(campaign_to(0), "sent")
    assert moved.subscriber is not None
    assert gone.subscriber is not None
    Subscriber.objects.filter(pk=moved.subscriber.pk).update(email="new@example.org")
    gone.subscriber.delete()
    assert tell(moved, "unsubscribed") == ["applied"]
    assert tell(gone, "unsubscribed") == ["applied"]
    assert sorted(suppressions()) == sorted(
        [
            ("new@example.org", "unsubscribed"),
            (moved.email, "unsubscribed"),
            (gone.email, "unsubscribed"),
        ]
    )


def test_a_transactional_message_is_tracked_too() -> None:
    send = SendFactory.create(transactional=True, in_doubt=True)
    assert tell(send, "delivered", "hard_bounce", text=DEAD) == ["applied", "applied"]
    assert (send.status, suppressions()) == ("bounced", [(send.email, "hard_bounce")])
    assert not CampaignHealth.objects.exists()


@pytest.mark.parametrize("kind", ["subscribed", "unknown", "unreadable", "inbound"])
def test_what_means_nothing_changes_nothing(kind: str) -> None:
    send = row(campaign_to(0), "in_doubt")
    assert tell(send, kind) == ["ignored"]
    assert (send.status, kinds_of(send), counts()) == ("in_doubt", [], {})


def test_a_treated_as_sent_row_is_confirmed() -> None:
    send = row(campaign_to(0), "in_doubt")
    assert doubt.resolve([send], doubt.TREAT_AS_SENT) == 1
    sent_at = Send.objects.get(pk=send.pk).sent_at
    assert tell(send, "delivered") == ["applied"]
    assert (send.status, send.reason, send.sent_at) == ("sent", "", sent_at)


def test_the_time_of_an_event_is_told_but_never_before_the_hand_over() -> None:
    send = row(campaign_to(0), "in_doubt")
    early = timezone.now() - timedelta(days=3)
    tell(send, "delivered", at=early)
    assert send.sent_at == send.handed_at
    assert DeliveryEvent.objects.get().at == early
    send = row(campaign_to(0), "in_doubt")
    tell(send, "delivered", at=timezone.now() + timedelta(hours=20))
    assert send.sent_at is not None
    assert send.sent_at <= timezone.now()


# --- every order -----------------------------------------------------------------------------

ENDS: list[tuple[tuple[str, ...], str, list[str]]] = [
    (("accepted", "delivered", "hard_bounce", "soft_bounce"), "bounced", ["hard_bounce"]),
    (("accepted", "rejected", "hard_bounce", "complained"), "bounced", ["complaint"]),
    (("accepted", "delivered", "rejected", "complained"), "sent", ["complaint"]),
    (("accepted", "delivered", "rejected", "soft_bounce"), "sent", []),
    (("accepted", "soft_bounce", "rejected"), "failed", []),
    (("accepted", "queued", "failed"), "failed", []),
    (("in doubt", "delivered", "soft_bounce"), "sent", []),
    (("in doubt", "hard_bounce", "complained"), "bounced", ["complaint"]),
    (("in doubt", "rejected", "queued"), "failed", []),
]


@pytest.mark.parametrize("at_once", [False, True], ids=["one by one", "together"])
@pytest.mark.parametrize(("steps", "status", "reasons"), ENDS)
def test_every_order_has_the_same_end(
    steps: tuple[str, ...], status: str, reasons: list[str], at_once: bool
) -> None:
    campaign = campaign_to(0)
    orders = [(row(campaign, "sending"), order) for order in permutations(steps)]
    by_worker = {"accepted": "sent", "in doubt": "in_doubt"}
    # All rows take their first steps, then all take their second ones: to a row, one by one.
    for number in range(len(steps)):
        for send, order in orders:
            step = order[number]
            if step in by_worker:
                settle([told(held(send), by_worker[step])], doubt_wait=600)
            else:
                tracking.store([event_of(send, step, text=DEAD if step == "hard_bounce" else "")])
        if not at_once:
            tracking.apply_waiting()
    while tracking.apply_waiting():
        pass
    assert {order: status_of(send) for send, order in orders} == dict.fromkeys(
        permutations(steps), status
    )
    expected = sorted((send.email, reason) for send, _ in orders for reason in reasons)
    assert sorted(suppressions()) == expected


def test_together_they_are_counted_as_one_by_one() -> None:
    campaign = campaign_to(0)
    first, second, quiet = (row(campaign, "sent") for _ in range(3))
    tell(first, "hard_bounce", "hard_bounce", "complained", "complained", text=DEAD)
    tell(second, "hard_bounce", text=DEAD)
    tell(second, "complained")
    tell(second, "complained")
    tell(quiet, "delivered", "opened")
    health = CampaignHealth.objects.get()
    assert (health.campaign_id, health.bounced, health.complained) == (campaign.pk, 2, 2)
    assert health.base == {}


# --- twice -----------------------------------------------------------------------------------


def test_what_is_told_twice_counts_once() -> None:
    send = row(campaign_to(0), "sent")
    event = event_of(send, "complained")
    assert tracking.store([event, event]) == 1
    tracking.apply_waiting()
    assert tracking.store([event]) == 0
    assert tracking.apply_waiting() == 0
    assert (kinds_of(send), counts()) == (["complained"], {"Test replayed": 2})
    assert CampaignHealth.objects.get().complained == 1


def test_what_is_told_again_after_it_was_pruned_counts_once() -> None:
    send = row(campaign_to(0), "sent")
    event = event_of(send, "complained")
    tracking.store([event])
    tracking.apply_waiting()
    ProviderEvent.objects.all().delete()
    assert tracking.store([event_of(send, "complained", event_id=event.event_id)]) == 1
    assert tracking.apply_waiting() == 1
    assert result_of(event) == "ignored"
    assert kinds_of(send) == ["complained"]
    assert CampaignHealth.objects.get().complained == 1


def test_opened_is_kept_once() -> None:
    send = row(campaign_to(0), "sent")
    assert tell(send, "opened", "opened", "clicked") == ["applied", "ignored", "applied"]
    assert tell(send, "opened") == ["ignored"]
    assert kinds_of(send) == ["opened", "clicked"]


def test_an_event_that_nobody_can_apply_does_not_hold_up_the_others() -> None:
    """The host's own code may have stored an address that the suppression list refuses."""
    campaign = campaign_to(0)
    before, bad, after = (row(campaign, "in_doubt") for _ in range(3))
    bad.email = "\u200b"
    bad.save()
    events = [event_of(s, "hard_bounce", text=DEAD) for s in (before, bad, after)]
    for event in events:
        tracking.store([event])
    assert tracking.apply_waiting() == 3
    assert [result_of(e) for e in events] == ["applied", "error", "applied"]
    assert [status_of(s) for s in (before, bad, after)] == ["bounced", "in_doubt", "bounced"]
    assert tracking.apply_waiting() == 0


def test_nothing_waits() -> None:
    assert tracking.store([]) == 0
    assert tracking.apply_waiting() == 0


# --- pruning ---------------------------------------------------------------------------------


def test_old_events_go_in_bounded_steps_and_waiting_ones_never() -> None:
    send = row(campaign_to(0), "sent")
    for number in range(5):
        tell(send, "delivered", job_id="nobody's" if number % 2 else send.job_id)
    waiting = event_of(send, "delivered")
    tracking.store([waiting])
    old = timezone.now() - timedelta(days=91)
    ProviderEvent.objects.update(received=old)
    ProviderEvent.objects.filter(applied_at__isnull=False).update(applied_at=old)
    young = event_of(send, "opened")
    tracking.store([young])
    assert [tracking.prune(step=3) for _ in range(3)] == [3, 2, 0]
    assert {e.event_id for e in ProviderEvent.objects.all()} == {waiting.event_id, young.event_id}
    assert len(kinds_of(send)) == 3


# --- what a secret alone must not do ---------------------------------------------------------


@pytest.mark.parametrize("kind", ["hard_bounce", "complained", "unsubscribed"])
def test_an_event_that_names_nobody_suppresses_nobody(kind: str) -> None:
    send = row(campaign_to(0), "sent")
    assert tell(send, kind, text=DEAD, recipient="") == ["wrong_recipient"]
    assert status_of(send) == "sent"
    assert suppressions() == []


def test_a_late_rejection_of_an_earlier_hand_over_does_not_bar_the_repeat() -> None:
    campaign = campaign_to(0)
    send = row(campaign, "failed", handed_at=timezone.now() - timedelta(hours=2), attempts=1)
    assert doubt.resolve([send], doubt.SEND_AGAIN, failed=True) == 1
    (claimed,) = take([campaign.pk], 1)
    assert hand_over([claimed], lease=60).go
    late = timezone.now() - timedelta(hours=1)
    assert tell(send, "rejected", at=late) == ["ignored"]
    settle([told(claimed, "sent")], doubt_wait=600)
    assert status_of(send) == "sent"


def test_a_block_that_the_provider_tells_of_later_is_counted_by_the_brakes() -> None:
    campaign = campaign_to(0)
    send = row(campaign, "sent")
    blocked = "smtp; 550 5.7.1 blocked using a block list"
    assert tell(send, "soft_bounce", text=blocked) == ["applied"]
    assert tell(send, "soft_bounce", text=f"{blocked}, again") == ["applied"]
    health = CampaignHealth.objects.get(campaign=campaign)
    assert (health.refused, health.accepted, health.bounced) == (1, -1, 0)
    assert "blocked" in health.base["refusal"]
    assert suppressions() == []
