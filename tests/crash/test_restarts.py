"""The database and the relay go away and come back: wait, reconnect, go on."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from django.db import connection

from config.embedded.cluster import Cluster
from sending.ledger import balance
from sending.models import TransportPause, Worker
from tests.crash.conftest import Senders, Sink, addresses, make_campaign, wait_until
from tests.crash.oracle import check
from tests.forks import Forks


def test_the_relay_restarts(sink: Callable[..., Sink], senders: Senders) -> None:
    relay = sink("--delay", "0.003")
    campaign = make_campaign(addresses(300), retry_waits=[2])
    mail = {"EMAIL_URL": f"smtp://127.0.0.1:{relay.port}"}
    process = senders.start("--lanes", "3", **mail)
    for level in (60, 140):
        relay.wait_for(level)
        relay.stop()
        wait_until(lambda: TransportPause.objects.exists(), "the pause with its reason")
        assert "connect" in TransportPause.objects.get().reason.lower()
        relay.start()
    wait_until(lambda: _done(campaign.pk) >= 300 - 2 * 3 * 20, "the campaign going on")
    senders.drain("--lanes", "3", "--patience", "60", **mail)
    process.terminate()
    assert process.wait(60) == 0, senders.log.read_text()
    # A message whose dot was on the wire when the relay died is in doubt, one per lane at most.
    counts = check(campaign, relay.accepted(), doubt_at_most=2 * 3, people=300)
    assert counts["sent"] + counts["in_doubt"] == 300
    assert not TransportPause.objects.exists(), "lifted when it worked again"


def test_a_relay_that_refuses_the_login_spends_no_attempt(
    sink: Callable[..., Sink], senders: Senders
) -> None:
    relay = sink("--auth", "user:right")
    campaign = make_campaign(addresses(40))
    process = senders.start("--lanes", "2", EMAIL_URL=f"smtp://user:wrong@127.0.0.1:{relay.port}")
    wait_until(lambda: TransportPause.objects.filter(stage="auth").exists(), "the pause")
    process.terminate()
    assert process.wait(60) == 0, senders.log.read_text()
    assert balance(campaign.pk).counts["queued"] == 40
    assert not campaign.sends.exclude(attempts=0).exists()
    senders.drain("--lanes", "2", EMAIL_URL=f"smtp://user:right@127.0.0.1:{relay.port}")
    assert check(campaign, relay.accepted(), doubt_at_most=0, people=40)["sent"] == 40


@pytest.mark.parametrize("how", ["stop", "kill"])
def test_the_database_restarts(
    how: str,
    own_cluster: Cluster,
    environ: dict[str, str],
    sink: Callable[..., Sink],
    tmp_path: Path,
    forks: Forks,
) -> None:
    relay = sink("--delay", "0.003")
    campaign = make_campaign(addresses(400))
    senders = Senders(environ, tmp_path / "senders.log", forks)
    mail = {"EMAIL_URL": f"smtp://127.0.0.1:{relay.port}"}
    try:
        running = [senders.start("--lanes", "3", **mail) for _ in range(2)]
        # One that starts while there is no database ends with an error, as it should.
        wait_until(lambda: Worker.objects.count() == 2, "both senders at work")
        for level in (60, 160):
            relay.wait_for(level)
            connection.close()
            if how == "stop":
                own_cluster.stop()
            else:
                server = own_cluster.server()
                assert server is not None
                os.kill(server, signal.SIGKILL)
            time.sleep(0.3)
            own_cluster.ensure()
        wait_until(lambda: _done(campaign.pk) == 400, "everybody accounted for")
        for process in running:
            process.terminate()
        for process in running:
            assert process.wait(60) == 0, senders.log.read_text()
    finally:
        senders.stop_all()
    # Neither worker nor relay died: every answer is known and was written, some twice.
    counts = check(campaign, relay.accepted(), doubt_at_most=0, people=400)
    assert counts["sent"] == 400


def _done(campaign_id: int) -> int:
    counts = balance(campaign_id).counts
    return counts["sent"] + counts["in_doubt"]
