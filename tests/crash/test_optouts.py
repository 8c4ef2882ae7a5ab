"""Opt-outs that arrive while a campaign is half sent; the sink is the oracle."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import datetime

import pytest
from django.utils import timezone

from campaigns import lifecycle
from sending.models import Send
from subscribers.consent import unsubscribe
from subscribers.database_clock import database_time
from subscribers.models import Membership, Subscriber
from subscribers.suppression import suppress
from tests.crash.conftest import Senders, Sink, addresses, make_campaign
from tests.crash.oracle import check

PEOPLE = 400
#: Seconds in which a sender of four lanes hands over dozens, if nothing holds it.
LEAK = 0.3


@pytest.mark.parametrize("sessions", ["1", "3"])
def test_opt_outs_take_effect_before_the_next_hand_over(
    sessions: str, sink: Callable[..., Sink], senders: Senders
) -> None:
    # So slow that most of them are still to come, however long the opt-outs take.
    relay = sink("--delay", "0.1" if sessions == "1" else "0.3")
    options = ("--lanes", "4", "--sessions", sessions)
    campaign = make_campaign(addresses(PEOPLE))
    process = senders.start(*options, EMAIL_URL=f"smtp://127.0.0.1:{relay.port}")
    relay.wait_for(60)
    committed: dict[str, datetime] = {}
    people = list(Subscriber.objects.order_by("-id")[:150])  # the ones that come last
    for number, person in enumerate(people):
        if number % 3 == 0:
            unsubscribe(person, evidence="a test")
        elif number % 3 == 1:
            suppress(campaign.account, person.email, "complaint", evidence="a test")
        else:
            Membership.objects.filter(subscriber=person).update(left_at=timezone.now())
        committed[person.email] = database_time()
    relay_log = senders.log
    senders.drain(*options, EMAIL_URL=f"smtp://127.0.0.1:{relay.port}")
    process.terminate()
    assert process.wait(60) == 0, relay_log.read_text()
    counts = check(campaign, relay.accepted(), doubt_at_most=0, people=PEOPLE)
    got = {entry["recipient"] for entry in relay.accepted()}
    late = [
        send.email
        for send in Send.objects.filter(campaign=campaign, email__in=committed)
        if send.email in got
        and send.handed_at is not None
        and send.handed_at > committed[str(send.email)]
    ]
    assert late == [], "handed over after the opt-out was committed"
    assert counts["suppressed"] >= 100, "most of them had not been handed over"
    assert counts["sent"] + counts["suppressed"] == PEOPLE
    reasons = set(
        Send.objects.filter(campaign=campaign, status="suppressed").values_list("reason", flat=True)
    )
    assert reasons == {"unsubscribed", "suppressed", "left"}


def test_after_pause_has_returned_nothing_more_is_handed_over(
    sink: Callable[..., Sink], senders: Senders
) -> None:
    relay = sink("--delay", "0.005")
    campaign = make_campaign(addresses(PEOPLE))
    mail = {"EMAIL_URL": f"smtp://127.0.0.1:{relay.port}"}
    process = senders.start("--lanes", "4", **mail)
    for level in (40, 80, 120):
        relay.wait_for(level)
        lifecycle.pause(campaign)
        paused_at = database_time()
        time.sleep(LEAK)
        still_paused_at = database_time()
        lifecycle.resume(campaign)
        # Looked for now: what was handed over while it was paused has committed by this time.
        leaked = Send.objects.filter(
            campaign=campaign, handed_at__gt=paused_at, handed_at__lt=still_paused_at
        )
        assert leaked.count() == 0
    relay.wait_for(160)
    lifecycle.cancel(campaign)
    canceled_at = database_time()
    time.sleep(LEAK)
    process.terminate()
    assert process.wait(60) == 0, senders.log.read_text()
    assert not Send.objects.filter(campaign=campaign, handed_at__gt=canceled_at).exists()
    counts = check(campaign, relay.accepted(), doubt_at_most=0, people=PEOPLE)
    assert counts["canceled"] > 0
    assert counts["canceled"] + counts["sent"] == PEOPLE
