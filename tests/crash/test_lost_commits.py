"""One backend crashes: PostgreSQL restarts all of them and forgets what it had not written yet."""

from __future__ import annotations

import os
import signal
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import psycopg
from django.db import connection

from config.embedded.cluster import Cluster
from sending.models import Send
from tests.crash.conftest import Senders, Sink, addresses, make_campaign, wait_until
from tests.crash.oracle import check
from tests.forks import Forks

PEOPLE = 24
#: The server writes an asynchronous commit after this long, unless a durable one comes first.
LONG_DELAY = "10s"
#: A row that is taken for in doubt is sent again, where the policy says so, within the test.
SHORT = {
    "SENDONCE_LEASE": "5",
    "SENDONCE_LEASE_MARGIN": "1",
    "SENDONCE_ANSWER_TIMEOUT": "2",
}


def test_outcomes_that_a_crash_of_a_backend_loses_are_written_again(
    sink: Callable[..., Sink],
    own_cluster: Cluster,
    environ: dict[str, str],
    tmp_path: Path,
    forks: Forks,
) -> None:
    relay = sink()
    with own_cluster.connect() as admin:
        admin.execute(f"ALTER SYSTEM SET wal_writer_delay = '{LONG_DELAY}'")
        admin.execute("SELECT pg_reload_conf()")
    senders = Senders(environ, tmp_path / "senders.log", forks)
    process = senders.start("--lanes", "4", EMAIL_URL=f"smtp://127.0.0.1:{relay.port}", **SHORT)
    try:
        waiting = make_campaign(addresses(PEOPLE, "w"), slug="waiting")
        resending = make_campaign(
            addresses(PEOPLE, "r"), slug="resending", in_doubt_policy="resend"
        )
        with psycopg.connect(own_cluster.url(), autocommit=True) as victim:
            wait_until(lambda: _statuses(victim)["sent"] == 2 * PEOPLE, "all sent")
            # Stopped, the sender can't make them durable, nor mend them before we have looked.
            process.send_signal(signal.SIGSTOP)
            with psycopg.connect(own_cluster.url(), autocommit=True) as witness:
                os.kill(victim.info.backend_pid, signal.SIGKILL)
                # Until the server has noticed, it would take another connection, and cut it.
                wait_until(lambda: not _lives(witness), "the server noticed")
        connection.close()
        wait_until(lambda: _answers(own_cluster), "the server's recovery")
        with psycopg.connect(own_cluster.url(), autocommit=True) as observer:
            assert _statuses(observer)["sending"] > 0, "the crash has lost no outcome"
            process.send_signal(signal.SIGCONT)
            wait_until(lambda: _statuses(observer)["sent"] == 2 * PEOPLE, "all sent again", 30)
        process.terminate()
        assert process.wait(60) == 0, senders.log.read_text()
    finally:
        senders.stop_all()
    for campaign in (waiting, resending):
        rows = set(campaign.sends.values_list("email", flat=True))
        accepted = [e for e in relay.accepted() if e["recipient"] in rows]
        assert check(campaign, accepted, doubt_at_most=0, people=PEOPLE)["sent"] == PEOPLE


def _statuses(session: psycopg.Connection) -> Counter[str]:
    table = Send._meta.db_table
    return Counter(status for (status,) in session.execute(f"SELECT status FROM {table}"))


def _lives(session: psycopg.Connection) -> bool:
    try:
        session.execute("SELECT 1")
    except psycopg.OperationalError:
        return False
    return True


def _answers(cluster: Cluster) -> bool:
    try:
        cluster.connect().close()
    except psycopg.OperationalError:
        return False
    return True
