"""Chunks of a build are not durable by themselves: a crash loses rows and cursor together."""

from __future__ import annotations

import os
import signal

import psycopg
from django.db import connection

from campaigns import lifecycle
from config.embedded.cluster import Cluster
from sending import ledger
from sending.build import build, build_chunk
from sending.models import Send
from tests.crash.conftest import addresses, make_campaign, wait_until

PEOPLE = 60


def test_a_crash_that_loses_chunks_loses_their_place_too(own_cluster: Cluster) -> None:
    with own_cluster.connect() as admin:
        # Nothing is written for an asynchronous commit before the crash.
        admin.execute("ALTER SYSTEM SET wal_writer_delay = '10s'")
        admin.execute("SELECT pg_reload_conf()")
    campaign = make_campaign(addresses(PEOPLE))
    assert lifecycle.due(campaign)  # durable, and all before it
    with psycopg.connect(own_cluster.url(), autocommit=True) as victim:
        for _ in range(3):
            build_chunk(campaign.pk, size=10)
        os.kill(victim.info.backend_pid, signal.SIGKILL)
        connection.close()
        wait_until(lambda: _has_recovered(own_cluster, victim), "the server's recovery")
    campaign.refresh_from_db()
    rows = list(Send.objects.order_by("subscriber_id").values_list("subscriber_id", flat=True))
    assert len(rows) < 30, "the crash has lost no chunk"
    assert campaign.audience_cursor == (rows[-1] if rows else 0)
    assert campaign.audience == len(rows)
    build(campaign.pk, size=10)
    found = ledger.balance(campaign.pk)
    assert (found.built, found.holds, found.counts["queued"]) == (True, True, PEOPLE)


def _has_recovered(cluster: Cluster, victim: psycopg.Connection) -> bool:
    try:
        victim.execute("SELECT 1")
    except psycopg.OperationalError:
        try:
            cluster.connect().close()
        except psycopg.OperationalError:
            return False
        return True
    return False
