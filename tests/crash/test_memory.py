"""A sender does not grow with what it has sent."""

from __future__ import annotations

from collections.abc import Callable

import psutil
import pytest

from campaigns.models import Campaign
from tests.crash.conftest import Senders, Sink, addresses, make_campaign, wait_until

FIRST, MORE = 2_000, 10_000
#: What the sender may have grown by between 2,000 and 12,000 messages: 5 % of some 70 MB. One
#: that only kept its outcomes grows by 9 %, one that kept its messages doubles.
MOST_GROWTH = 1.05


@pytest.mark.soak
def test_a_sender_does_not_grow_with_what_it_has_sent(
    sink: Callable[..., Sink], senders: Senders
) -> None:
    relay = sink()
    process = senders.start("--lanes", "4", EMAIL_URL=f"smtp://127.0.0.1:{relay.port}")
    sender = psutil.Process(process.pid)
    sizes = []
    for slug, people in (("first", FIRST), ("more", MORE)):
        campaign = make_campaign(addresses(people, prefix=slug), slug=slug)
        wait_until(lambda pk=campaign.pk: _is_sent(pk), f"{people} sent", 200)  # type: ignore[misc]
        sizes.append(sender.memory_info().rss)
    process.terminate()
    assert process.wait(60) == 0, senders.log.read_text()
    assert len(relay.accepted()) == FIRST + MORE
    before, after = sizes
    assert after < before * MOST_GROWTH, f"{before:,} bytes became {after:,}"
    print(f"{before:,} -> {after:,} bytes")


def _is_sent(campaign_id: int) -> bool:
    return Campaign.objects.filter(pk=campaign_id, status=Campaign.Status.SENT).exists()
