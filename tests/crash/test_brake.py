"""A relay that blocks us: the campaign is paused after a few dozen, and nobody is suppressed."""

from __future__ import annotations

from collections.abc import Callable

from campaigns.models import Campaign
from sending.ledger import balance
from tests.crash.conftest import Senders, Sink, addresses, make_campaign, wait_until


def test_a_blocked_sender_is_paused_and_suppresses_nobody(
    sink: Callable[..., Sink], senders: Senders
) -> None:
    relay = sink("--delay", "0.002")
    campaign = make_campaign(addresses(500, prefix="policy"))
    process = senders.start("--lanes", "3", EMAIL_URL=f"smtp://127.0.0.1:{relay.port}")

    def paused() -> bool:
        campaign.refresh_from_db()
        return campaign.status == Campaign.Status.PAUSED

    wait_until(paused, "the brake")
    process.terminate()
    assert process.wait(60) == 0, senders.log.read_text()
    counts = balance(campaign.pk).counts
    assert 20 <= counts["failed"] <= 20 + 3 * 20, counts
    assert counts["failed"] + counts["queued"] == 500
    assert "refusals in a row (policy)" in campaign.status_reason
    assert not campaign.account.suppressions.exists()
