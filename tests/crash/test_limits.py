"""Real senders keep the limits together: rates, complaints, and sessions at once."""

from __future__ import annotations

import json
import threading
from bisect import bisect_right
from collections.abc import Callable
from typing import Any, BinaryIO, cast

from sending.ledger import balance
from sending.models import RateLimit, Send, Worker
from tests.crash.conftest import Senders, Sink, addresses, make_campaign, wait_until
from tests.crash.oracle import check
from tests.crash.relay import OK, Relay


def _transports(port: int, **limits: float) -> str:
    options = {"host": "127.0.0.1", "port": port}
    backend = "sending.smtp.EmailBackend"
    return json.dumps({"default": {"BACKEND": backend, "OPTIONS": options, **limits}})


def _most(times: list[float], window: float) -> int:
    return max(bisect_right(times, start + window) - n for n, start in enumerate(times))


def test_two_senders_keep_the_rates_of_transport_and_domain(
    sink: Callable[..., Sink], senders: Senders
) -> None:
    """The limited domain is used and holds nobody else up."""
    relay = sink()
    slow = [f"p-{n}@slow.example.org" for n in range(60)]
    people = [address for pair in zip(slow, addresses(60), strict=True) for address in pair]
    campaign = make_campaign(people)
    given = {
        "SENDONCE_TRANSPORTS": _transports(relay.port, RATE=40.0),
        "SENDONCE_DOMAIN_RATES": json.dumps({"slow.example.org": 10.0}),
    }
    for process in [senders.start("--drain", "--lanes", "4", **given) for _ in range(2)]:
        assert process.wait(60) == 0, senders.log.read_text()
    counts = check(campaign, relay.accepted(), doubt_at_most=0, people=120)
    assert counts["sent"] == 120
    assert not Send.objects.exclude(attempts=1).exists(), "to wait spends no attempt"
    all_times = sorted(float(entry["time"]) for entry in relay.accepted())
    its = {a: float(e["time"]) for e in relay.accepted() for a in [e["recipient"]]}
    slow_times = sorted(its[address] for address in slow)
    other_times = sorted(at for address, at in its.items() if address not in set(slow))
    for window in (1.0, 2.0, 4.0):
        # A permit is taken before the hand-over's commit, which takes now longer, now shorter.
        late = 0.25
        assert _most(all_times, window) <= 40 * (window + late) * 1.05 + 1
        assert _most(slow_times, window) <= 10 * (window + late) * 1.05 + 1
    assert slow_times[-1] - slow_times[0] <= 59 / (10 * 0.8), "most of its rate was used"
    assert other_times[-1] < slow_times[-1], "nobody waited for the slow domain's backlog"


def test_a_complaint_slows_that_provider_down_and_nobody_else(senders: Senders) -> None:
    def at_rcpt(recipient: str) -> str:
        if recipient.endswith("@gmail.com") and relay.named.count(recipient) == 1:
            return "451 4.7.28 unusual rate of mail from your address"
        return OK

    gmail = [f"p-{n}@gmail.com" for n in range(40)]
    with Relay(at_rcpt=at_rcpt) as relay:
        campaign = make_campaign([*gmail, *addresses(80)])
        senders.start(*("--lanes", "4"), SENDONCE_TRANSPORTS=_transports(relay.port, CONNECTIONS=4))
        wait_until(lambda: balance(campaign.pk).counts["sent"] >= 80, "everybody else's mail", 30)
        wait_until(RateLimit.objects.exists, "the slow-down")
        senders.stop_all()
    slowed = RateLimit.objects.get()
    assert (slowed.key, slowed.usual) == ("domain:google", None)
    assert slowed.slowed_at is not None
    assert slowed.reason == "451 4.7.28 unusual rate of mail from your address"
    assert len(set(relay.accepted) - set(gmail)) == 80
    assert balance(campaign.pk).counts["failed"] == 0


class Counting(Relay):
    """Knows how many connections it had at once."""

    def __init__(self, **answers: Any) -> None:
        super().__init__(**answers)
        self.open: set[int] = set()
        self.most = 0
        self._counting = threading.Lock()

    def _converse(self, client: Any, lines: BinaryIO) -> None:
        with self._counting:
            self.open.add(id(client))
            self.most = max(self.most, len(self.open))

        class Lines:
            def readline(_) -> bytes:
                line = lines.readline()
                if not line or line[:4].upper() == b"QUIT":
                    with self._counting:
                        self.open.discard(id(client))
                return line

        super()._converse(client, cast(BinaryIO, Lines()))


def _told() -> list[int]:
    """How many sessions the workers say they have."""
    told = Worker.objects.filter(ended__isnull=True).values_list("sessions", flat=True)
    return sorted(sessions.get("default", 0) for sessions in told)


def test_two_senders_share_the_sessions_that_a_relay_allows(senders: Senders) -> None:
    """The second one comes while the first has all of them."""
    with Counting() as relay:
        campaign = make_campaign(addresses(2000))
        given = {"SENDONCE_TRANSPORTS": _transports(relay.port, CONNECTIONS=3, RATE=30.0)}
        senders.start("--lanes", "6", **given)
        wait_until(lambda: len(relay.open) == 3, "all sessions of the first")
        second = senders.start("--lanes", "6", **given)
        wait_until(lambda: _told() == [1, 2], "a share for each")
        wait_until(lambda: len(relay.open) == 3, "all of them in use again")
        second.terminate()
        assert second.wait(30) == 0, senders.log.read_text()
        wait_until(lambda: _told() == [3], "all for the first again")
        assert relay.most == 3
        senders.stop_all()
    counts = balance(campaign.pk).counts
    assert len(set(relay.accepted)) == len(relay.accepted) >= counts["sent"] > 0
