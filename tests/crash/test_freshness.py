"""What a hand-over found out is not trusted for long, however slowly the relay greets."""

from __future__ import annotations

import json

from sending.models import Send
from subscribers.consent import unsubscribe
from tests.crash.conftest import Senders, addresses, make_campaign, wait_until
from tests.crash.relay import Relay

PER_CONNECTION = 10
FRESHNESS, GREETING_DELAY = 2.0, 4.0


def test_who_unsubscribes_while_a_lane_reconnects_gets_nothing(senders: Senders) -> None:
    with Relay(greeting_delay=lambda number: GREETING_DELAY if number == 2 else 0.0) as relay:
        options = {
            "host": "127.0.0.1",
            "port": relay.port,
            "messages_per_connection": PER_CONNECTION,
        }
        transports = {"default": {"BACKEND": "sending.smtp.EmailBackend", "OPTIONS": options}}
        campaign = make_campaign(addresses(40))
        process = senders.start(
            *("--drain", "--lanes", "1"),
            SENDONCE_TRANSPORTS=json.dumps(transports),
            SENDONCE_HANDOVER_FRESHNESS=str(FRESHNESS),
        )
        wait_until(lambda: relay.connections == 2, "the second connection")
        handed = campaign.sends.filter(status=Send.Status.SENDING)
        leaver = handed.exclude(email__in=relay.accepted).order_by("pk")[0]
        assert leaver.subscriber is not None
        unsubscribe(leaver.subscriber, evidence="test")
        assert process.wait(60) == 0, senders.log.read_text()
        leaver.refresh_from_db()
        assert leaver.email not in relay.named
        assert (leaver.status, leaver.attempts) == (Send.Status.SUPPRESSED, 0)
        assert len(relay.accepted) == len(set(relay.accepted)) == 39
        assert campaign.sends.filter(status=Send.Status.SENT).count() == 39
