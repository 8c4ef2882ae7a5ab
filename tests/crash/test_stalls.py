"""Who falls silent in the middle, a sender, staff or the network, does not stop the others."""

from __future__ import annotations

import signal
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import psycopg
from django.db import DEFAULT_DB_ALIAS, connection, connections

from campaigns import lifecycle
from campaigns.gate import key
from campaigns.models import Campaign
from sending.build import build
from sending.connections import as_default
from sending.ledger import balance
from tests.crash.conftest import Senders, Sink, addresses, make_campaign, wait_until
from tests.crash.oracle import check
from tests.crash.proxy import Proxy

#: What a sender says when it takes a gate.
GATE = b"advisory_xact_lock_shared"


def test_a_sender_stopped_at_the_gate_does_not_keep_staff_from_pausing(
    sink: Callable[..., Sink], senders: Senders, own_database: str
) -> None:
    slow, other = sink("--delay", "0.01"), sink()
    campaign = make_campaign(addresses(500, "held"), slug="held")
    mail = {"EMAIL_URL": f"smtp://127.0.0.1:{slow.port}"}
    # On a direct connection the statement would be prepared, and its words pass the link only once.
    mail["SENDONCE_DIRECT_CONNECTION"] = "false"
    # The link goes first: whatever fails, nothing holds the gate against staff any more.
    with ThreadPoolExecutor(1) as staff, Proxy(own_database) as link:
        stopped = senders.start(
            "--lanes", "2", "--campaign", str(campaign.pk), DATABASE_URL=link.url, **mail
        )
        slow.wait_for(40)
        # The link is silent between the sender and its open transaction, and nothing but that
        # keeps the gate: from where PostgreSQL is, a suspended machine looks the same.
        link.stall_after(GATE)
        wait_until(lambda: link.is_silent, "the sender at the gate")
        stopped.send_signal(signal.SIGSTOP)
        wait_until(lambda: _idle_at_the_gate() > 0, "a transaction that is idle at the gate")
        pausing = staff.submit(_pause, campaign, connection.settings_dict)
        wait_until(lambda: _waiting_at_the_gate() > 0, "staff at the gate")
        fine = make_campaign(addresses(200, "fine"), slug="fine")
        senders.start("--lanes", "2", EMAIL_URL=f"smtp://127.0.0.1:{other.port}")
        wait_until(lambda: balance(fine.pk).counts["sent"] > 0, "the other campaign", 30)
        assert not pausing.done(), "the other campaign's mail went on meanwhile"
        wait_until(lambda: balance(fine.pk).counts["sent"] == 200, "all of the other campaign", 60)
        assert pausing.result(60).status == Campaign.Status.PAUSED
        link.recover()
        stopped.send_signal(signal.SIGCONT)
        lifecycle.resume(campaign)
        wait_until(lambda: balance(campaign.pk).counts["sent"] == 500, "the campaign going on")
    accepted = slow.accepted() + other.accepted()
    check(campaign, _to(accepted, "held"), doubt_at_most=0, people=500)
    check(fine, _to(accepted, "fine"), doubt_at_most=0, people=200)


def test_a_gate_that_is_held_stops_its_own_campaign_only(
    sink: Callable[..., Sink], senders: Senders, own_database: str
) -> None:
    relay = sink()
    held = make_campaign(addresses(250, "held"), slug="held")
    assert lifecycle.due(held)
    build(held.pk, size=1000)
    fine = make_campaign(addresses(200, "fine"), slug="fine")
    with psycopg.connect(own_database) as staff:
        staff.execute("SELECT pg_advisory_xact_lock(%s)", [key(held.pk)])
        senders.start("--lanes", "4", EMAIL_URL=f"smtp://127.0.0.1:{relay.port}")
        wait_until(lambda: balance(fine.pk).counts["sent"] == 200, "the other campaign", 20)
        assert _to(relay.accepted(), "held") == [], "its gate is closed"
    wait_until(lambda: balance(held.pk).counts["sent"] == 250, "the campaign going on")
    check(held, _to(relay.accepted(), "held"), doubt_at_most=0, people=250)
    check(fine, _to(relay.accepted(), "fine"), doubt_at_most=0, people=200)


def test_sigterm_ends_a_sender_whose_database_says_nothing(
    sink: Callable[..., Sink], senders: Senders, own_database: str
) -> None:
    lanes, lot = 4, 5
    relay = sink("--delay", "0.005")
    campaign = make_campaign(addresses(400))
    mail = {"EMAIL_URL": f"smtp://127.0.0.1:{relay.port}"}
    with Proxy(own_database) as link:
        process = senders.start(
            *("--lanes", str(lanes), "--lot", str(lot)),
            DATABASE_URL=link.url,
            SENDONCE_GRACE="2",
            **mail,
        )
        relay.wait_for(60)
        link.stall()
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 5, senders.log.read_text()
    senders.drain("--lanes", "4", **mail)
    counts = check(campaign, relay.accepted(), doubt_at_most=lanes * lot, people=400)
    assert counts["sent"] + counts["in_doubt"] == 400


def _pause(campaign: Campaign, settings: dict[str, Any]) -> Campaign:
    """As staff do, in a thread that is not the test's."""
    own = connections.create_connection(DEFAULT_DB_ALIAS)
    own.settings_dict = settings
    with as_default(own):
        try:
            return lifecycle.pause(Campaign.objects.get(pk=campaign.pk))
        finally:
            own.close()


def _to(accepted: list[dict[str, Any]], prefix: str) -> list[dict[str, Any]]:
    return [entry for entry in accepted if entry["recipient"].startswith(f"{prefix}-")]


def _idle_at_the_gate() -> int:
    return _sessions("a.state = 'idle in transaction' AND l.mode = 'ShareLock' AND l.granted")


def _waiting_at_the_gate() -> int:
    return _sessions("l.mode = 'ExclusiveLock' AND NOT l.granted")


def _sessions(condition: str) -> int:
    """Sessions of this test's database that have to do with a gate in this way."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(DISTINCT a.pid) FROM pg_stat_activity a JOIN pg_locks l USING (pid)"
            " WHERE a.datname = current_database() AND a.pid <> pg_backend_pid()"
            f" AND l.locktype = 'advisory' AND {condition}"
        )
        return int(cursor.fetchone()[0])
