"""Brakes of several workers: a blocked sender, a transport that fails one message after another."""

from __future__ import annotations

import threading
from collections.abc import Callable

from campaigns.models import Campaign
from sending.ledger import balance
from sending.models import CampaignHealth, TransportPause
from sending.sql.pauses import ERRORS
from tests.crash.conftest import Senders, Sink, addresses, make_campaign, wait_until
from tests.crash.relay import OK, Relay

LANES = 4


def test_a_blocked_sender_is_paused_by_two_workers_together_and_suppresses_nobody(
    sink: Callable[..., Sink], senders: Senders
) -> None:
    relay = sink("--delay", "0.002")
    campaign = make_campaign(addresses(500, prefix="policy"))
    url = f"smtp://127.0.0.1:{relay.port}"
    workers = [senders.start("--lanes", str(LANES), EMAIL_URL=url) for _ in range(2)]

    def paused() -> bool:
        campaign.refresh_from_db()
        return campaign.status == Campaign.Status.PAUSED

    wait_until(paused, "the brake")
    for worker in workers:
        worker.terminate()
    for worker in workers:
        assert worker.wait(60) == 0, senders.log.read_text()
    counts = balance(campaign.pk).counts
    # The limit, and for every lane what was on the wire when it was reached and what it began
    # before the pause took effect.
    assert 20 <= counts["failed"] <= 20 + 2 * 2 * LANES, counts
    assert counts["failed"] + counts["queued"] == 500
    assert "refusals in a row (policy): 550 5.7.1" in campaign.status_reason
    assert not campaign.account.suppressions.exists()
    health = CampaignHealth.objects.get(campaign=campaign)
    assert (health.accepted, health.bounced) == (0, 0)
    assert health.base["trips"] == 1
    told = senders.log.read_text().count("campaign_paused")
    assert told == 1, "one worker pauses it, the other finds it paused"


def test_a_relay_that_never_answers_pauses_the_transport_until_a_message_goes_through(
    senders: Senders,
) -> None:
    campaign = make_campaign([*addresses(10, prefix="lost"), *addresses(100)])
    looked = threading.Event()

    def at_dot(recipient: str) -> str:
        if recipient.startswith("lost"):
            return "what was that?"
        # The probe is answered, and lifts the pause, when the test has seen it.
        looked.wait(60)
        return OK

    with Relay(at_dot=at_dot) as relay:
        # One lane, so that the answers come in the order of the rows: of several, one that the
        # machine favours is accepted between the errors of the others, and nothing is in a row.
        worker = senders.start("--lanes", "1", EMAIL_URL=f"smtp://127.0.0.1:{relay.port}")
        wait_until(TransportPause.objects.exists, "the pause")
        found = TransportPause.objects.get()
        assert (found.alias, found.account, found.stage) == ("default", None, ERRORS)
        assert found.reason.startswith("10 errors in a row, after the whole message: ")
        # Sessions open all the time. Only the probe that was answered lifts it, and all others go.
        wait_until(lambda: len(relay.named) == 11, "the probe")
        assert balance(campaign.pk).counts["sent"] == 0
        looked.set()
        wait_until(lambda: balance(campaign.pk).counts["sent"] == 100, "the rest")
        assert not TransportPause.objects.exists()
        worker.terminate()
        assert worker.wait(60) == 0, senders.log.read_text()
    counts = balance(campaign.pk).counts
    assert counts["in_doubt"] == 10, counts
    text = senders.log.read_text()
    assert text.count("transport_paused") == 1, text
    assert text.count("transport_lifted") == 1, text


def test_a_provider_that_fails_at_everything_puts_no_campaign_in_doubt(
    sink: Callable[..., Sink], senders: Senders
) -> None:
    relay = sink()
    campaign = make_campaign(addresses(300, prefix="drop"))
    url = f"smtp://127.0.0.1:{relay.port}"
    workers = [senders.start("--lanes", str(LANES), EMAIL_URL=url) for _ in range(2)]
    wait_until(TransportPause.objects.exists, "the pause")
    wait_until(lambda: TransportPause.objects.get().failures >= 3, "two probes")
    for worker in workers:
        worker.terminate()
    for worker in workers:
        assert worker.wait(60) == 0, senders.log.read_text()
    counts = balance(campaign.pk).counts
    probes = TransportPause.objects.get().failures - 1
    # Ten for each worker at most, and what was on the wire of its other lanes.
    assert 10 <= counts["in_doubt"] <= 2 * (10 + LANES - 1) + probes, counts
    assert counts["in_doubt"] + counts["queued"] == 300, counts
