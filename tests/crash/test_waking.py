"""Approvals wake senders: by NOTIFY on a direct connection, by polling behind a pooler."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg
import pytest

from campaigns import lifecycle
from campaigns.models import Campaign
from config.embedded import identity
from sending.models import Worker
from tests.crash.conftest import Senders, Sink, addresses, make_campaign, wait_until
from tests.crash.oracle import check


def _draft(people: int) -> Campaign:
    campaign = make_campaign(addresses(people))
    lifecycle.withdraw(campaign)
    # Approved for the moment of then, which preflight refuses a minute later.
    Campaign.objects.filter(pk=campaign.pk).update(scheduled_for=None)
    campaign.refresh_from_db()
    return campaign


def test_an_approval_wakes_an_idle_sender_that_would_poll_in_an_hour(
    sink: Callable[..., Sink], senders: Senders
) -> None:
    relay = sink()
    campaign = _draft(30)
    process = senders.start(
        "--lanes", "2", EMAIL_URL=f"smtp://127.0.0.1:{relay.port}", SENDONCE_POLL="3600"
    )
    wait_until(lambda: Worker.objects.filter(locked=True).exists(), "the sender listening")
    time.sleep(1.0)  # past the look that it takes when it starts
    lifecycle.approve(campaign, by=None)
    relay.wait_for(30)
    process.send_signal(signal.SIGTERM)
    assert process.wait(60) == 0, senders.log.read_text()
    assert check(campaign, relay.accepted(), doubt_at_most=0, people=30)["sent"] == 30


@pytest.fixture
def pooler(own_database: str, tmp_path: Path) -> Iterator[str]:
    """A ``DATABASE_URL`` through pgbouncer in transaction mode."""
    tool = shutil.which("pgbouncer", path="/usr/sbin:/usr/bin:/usr/local/bin")
    if tool is None:
        pytest.skip("pgbouncer is not installed")
    target = psycopg.conninfo.conninfo_to_dict(own_database)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    pid_file = tmp_path / "pgbouncer.pid"
    config = tmp_path / "pgbouncer.ini"
    config.write_text(
        "[databases]\n"
        f"pooled = host={target['host']} port={target.get('port', 5432)} "
        f"dbname={target['dbname']} user={target['user']}\n"
        "[pgbouncer]\n"
        f"listen_addr = 127.0.0.1\nlisten_port = {port}\nunix_socket_dir =\n"
        f"pidfile = {pid_file}\nlogfile = {tmp_path / 'pgbouncer.log'}\n"
        "auth_type = any\npool_mode = transaction\ndefault_pool_size = 3\n"
        "ignore_startup_parameters = extra_float_digits\n"
    )
    # As the embedded server: pgbouncer refuses root, and the socket is closed to others.
    started = identity.choose(tmp_path, tool).run(tmp_path, [tool, "-d", str(config)], timeout=20)
    assert started.status == 0, started
    wait_until(lambda: _listens(port), "pgbouncer listening", 10)
    yield f"postgresql://sendonce@127.0.0.1:{port}/pooled"
    os.kill(int(pid_file.read_text()), signal.SIGTERM)


def test_it_works_behind_a_transaction_pooler(
    pooler: str, sink: Callable[..., Sink], senders: Senders
) -> None:
    relay = sink()
    campaign = _draft(200)
    behind = {
        "DATABASE_URL": pooler,
        "SENDONCE_DIRECT_CONNECTION": "false",
        "EMAIL_URL": f"smtp://127.0.0.1:{relay.port}",
        "SENDONCE_LEASE": "4",
        "SENDONCE_LEASE_MARGIN": "1",
    }
    victim = senders.start("--lanes", "3", "--lot", "5", **behind)
    wait_until(lambda: Worker.objects.exists(), "the sender registered")
    lifecycle.approve(campaign, by=None)
    relay.wait_for(40)
    victim.kill()
    victim.wait()
    senders.drain("--lanes", "3", "--lot", "5", **behind)
    counts = check(campaign, relay.accepted(), doubt_at_most=3 * 5, people=200)
    assert counts["sent"] + counts["in_doubt"] == 200


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0
