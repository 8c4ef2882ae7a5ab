"""After a failover or a restore (a new timeline) nothing is handed over until staff confirm it."""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Callable
from pathlib import Path

from django.db import connection

from config.embedded.cluster import Cluster
from sending.ledger import balance
from tests.crash.conftest import Senders, Sink, addresses, make_campaign, wait_until
from tests.crash.oracle import check
from tests.forks import Forks

EXIT_CLUSTER_CHANGED = 4


def test_a_running_sender_waits_on_a_new_timeline_until_it_is_confirmed(
    own_cluster: Cluster,
    environ: dict[str, str],
    sink: Callable[..., Sink],
    tmp_path: Path,
    forks: Forks,
) -> None:
    relay = sink("--delay", "0.003")
    campaign = make_campaign(addresses(300))
    senders = Senders(environ, tmp_path / "senders.log", forks)
    mail = {"EMAIL_URL": f"smtp://127.0.0.1:{relay.port}"}
    try:
        running = senders.start("--lanes", "3", **mail)
        relay.wait_for(60)
        connection.close()
        server = own_cluster.server()
        assert server is not None
        os.kill(server, signal.SIGKILL)
        # A recovery that ends begins a new timeline, as a promoted standby or a restore does.
        signal_file = own_cluster.data / "recovery.signal"
        signal_file.touch()
        shutil.chown(signal_file, own_cluster.data.stat().st_uid, own_cluster.data.stat().st_gid)
        Cluster(own_cluster.data, {"restore_command": "/bin/false"}).ensure()
        wait_until(lambda: not signal_file.exists(), "the recovery to end")
        wait_until(
            lambda: "another database cluster" in senders.log.read_text(), "the sender to notice"
        )
        before = balance(campaign.pk).counts["queued"]
        assert before > 0
        refused = senders.start("--drain", **mail)
        assert refused.wait(60) == EXIT_CLUSTER_CHANGED, senders.log.read_text()
        assert balance(campaign.pk).counts["queued"] >= before, "nothing was handed over"
        confirmed = senders.start("--drain", "--confirm-cluster", "--lanes", "2", **mail)
        assert confirmed.wait(120) == 0, senders.log.read_text()
        wait_until(lambda: balance(campaign.pk).counts["sent"] == 300, "both to finish it")
        running.terminate()
        assert running.wait(60) == 0, senders.log.read_text()
    finally:
        senders.stop_all()
    assert check(campaign, relay.accepted(), doubt_at_most=0, people=300)["sent"] == 300
