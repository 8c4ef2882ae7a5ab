"""A sender that is stopped past its lease and goes on: it may finish what it knows, no more."""

from __future__ import annotations

import signal
from collections.abc import Callable

from sending.ledger import balance
from sending.models import Send
from subscribers.database_clock import database_time
from tests.crash.conftest import Senders, Sink, addresses, make_campaign, wait_until
from tests.crash.oracle import check

SHORT_LEASE = {"SENDONCE_LEASE": "3", "SENDONCE_LEASE_MARGIN": "1", "LOG_LEVEL": "DEBUG"}


def test_a_zombie_sends_nothing_new_and_its_late_answer_settles_the_doubt(
    sink: Callable[..., Sink], senders: Senders
) -> None:
    slow, fast = sink("--delay", "0.05"), sink()
    campaign = make_campaign(addresses(150))
    options = ("--lanes", "2", "--lot", "5")
    zombie = senders.start(*options, EMAIL_URL=f"smtp://127.0.0.1:{slow.port}", **SHORT_LEASE)
    slow.wait_for(12)
    zombie.send_signal(signal.SIGSTOP)
    try:
        # What is on its sockets still arrives at the sink; then it is quiet.
        wait_until(
            lambda: Send.objects.filter(campaign=campaign, status="sending").exists(),
            "rows in the stopped sender's hands",
        )
        senders.drain("--lanes", "2", EMAIL_URL=f"smtp://127.0.0.1:{fast.port}", **SHORT_LEASE)
        counts = balance(campaign.pk).counts
        doubtful = counts["in_doubt"]
        assert 0 < doubtful <= 2 * 5
        assert counts["sent"] + doubtful == 150
        accepted_before = {e["recipient"] for e in slow.accepted()}
        resumed_at = database_time()
    finally:
        zombie.send_signal(signal.SIGCONT)
    # Never started: given back, and sent by whoever is there. On the wire: its answer counts.
    wait_until(
        lambda: balance(campaign.pk).counts["in_doubt"] == 0, "the doubt settled by late answers"
    )
    zombie.send_signal(signal.SIGTERM)
    assert zombie.wait(60) == 0, senders.log.read_text()
    senders.drain("--lanes", "2", EMAIL_URL=f"smtp://127.0.0.1:{fast.port}", **SHORT_LEASE)
    late = {e["recipient"] for e in slow.accepted()} - accepted_before
    # What it gave back it may have claimed anew and handed over again before it was ended.
    late -= set(campaign.sends.filter(handed_at__gt=resumed_at).values_list("email", flat=True))
    assert len(late) <= 2, "at most the message that each lane had on the wire"
    counts = check(campaign, slow.accepted() + fast.accepted(), doubt_at_most=0, people=150)
    assert counts["sent"] == 150
