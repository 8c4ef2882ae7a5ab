"""A relay that accepts the connection and then says nothing does not stop another account."""

from __future__ import annotations

import json
import socket
from collections.abc import Callable

from sending.ledger import balance
from tests.crash.conftest import Senders, Sink, addresses, make_campaign, wait_until
from tests.crash.oracle import check


def test_a_silent_relay_leaves_lanes_to_the_other(
    sink: Callable[..., Sink], senders: Senders
) -> None:
    relay = sink()
    with socket.create_server(("127.0.0.1", 0), backlog=64) as silent:
        backend = "sending.smtp.EmailBackend"
        transports = {
            alias: {"BACKEND": backend, "OPTIONS": {"host": "127.0.0.1", "port": port}}
            for alias, port in (("silent", silent.getsockname()[1]), ("works", relay.port))
        }
        stuck = make_campaign(addresses(200), slug="stuck", transport="silent")
        process = senders.start("--lanes", "4", SENDONCE_TRANSPORTS=json.dumps(transports))
        wait_until(
            lambda: balance(stuck.pk).counts["claimed"] > 0, "lanes at the silent relay's door"
        )
        fine = make_campaign(addresses(200, prefix="q"), slug="fine", transport="works")
        wait_until(lambda: balance(fine.pk).counts["sent"] == 200, "the other account's mail")
        assert balance(stuck.pk).counts["queued"] + balance(stuck.pk).counts["claimed"] == 200
        process.kill()
        process.wait()
    check(fine, relay.accepted(), doubt_at_most=0, people=200)
