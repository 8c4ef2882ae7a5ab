"""Senders, compactors and PostgreSQL itself killed: the counters equal the rows at every look."""

from __future__ import annotations

import os
import random
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from django.db import connection

from config.embedded.cluster import Cluster
from sending import counters
from sending.connections import LOST
from sending.ledger import balance
from sending.models import LedgerChange, LedgerMark
from tests.crash.conftest import Senders, Sink, addresses, make_campaign, wait_until
from tests.crash.oracle import check, check_counters
from tests.forks import Forks

PEOPLE = 400


@pytest.fixture(autouse=True)
def mark_moves(monkeypatch: pytest.MonkeyPatch) -> None:
    """With every few changes that this process rolls up."""
    monkeypatch.setattr(counters, "STEP", 3)


def test_right_at_every_look_while_senders_are_killed(
    sink: Callable[..., Sink], senders: Senders
) -> None:
    """Beside compactors in small steps, so that writers, compactors and readers always meet."""
    relay = sink("--delay", "0.003")
    campaign = make_campaign(addresses(PEOPLE))
    mail = {"EMAIL_URL": f"smtp://127.0.0.1:{relay.port}"}
    options = ("--lanes", "3", "--lot", "5")
    dice = random.Random(7)
    running = [senders.start(*options, **mail) for _ in range(2)]
    looks = 0
    for _ in range(6):
        level = min(len(relay.accepted()) + 20, PEOPLE - 1)
        while len(relay.accepted()) < level:
            check_counters(campaign.pk)
            counters.compact(batch=1 + dice.randrange(5))
            looks += 1
        victim = dice.randrange(2)
        running[victim].kill()
        running[victim].wait()
        check_counters(campaign.pk)
        running[victim] = senders.start(*options, **mail)
    senders.drain(*options, **mail)
    check(campaign, relay.accepted(), doubt_at_most=6 * 3 * 5, people=PEOPLE)
    while counters.compact():
        pass
    check_counters(campaign.pk)
    assert LedgerMark.objects.get().rolled_up > 0
    assert looks > 6
    assert not LedgerChange.objects.exists()


@pytest.mark.parametrize("what", ["server", "backend"])
def test_right_after_a_crash_of_postgresql(
    what: str,
    own_cluster: Cluster,
    environ: dict[str, str],
    sink: Callable[..., Sink],
    tmp_path: Path,
    forks: Forks,
) -> None:
    """Outcomes and what was rolled up are committed asynchronously: a crash loses the last of
    both, each with what it counts. SIGKILL of one backend is a crash of the server too."""
    relay = sink("--delay", "0.003")
    campaign = make_campaign(addresses(PEOPLE))
    senders = Senders(environ, tmp_path / "senders.log", forks)
    mail = {"EMAIL_URL": f"smtp://127.0.0.1:{relay.port}"}
    try:
        running = [senders.start("--lanes", "3", **mail) for _ in range(2)]
        for level in (60, 160, 260):
            while len(relay.accepted()) < level:
                check_counters(campaign.pk)
                counters.compact(batch=7)
            with connection.cursor() as cursor:
                cursor.execute(
                    "SELECT pid FROM pg_stat_activity WHERE backend_type = 'client backend' "
                    "AND pid <> pg_backend_pid() ORDER BY random() LIMIT 1"
                )
                (backend,) = cursor.fetchone()
            connection.close()
            server = own_cluster.server()
            assert server is not None
            os.kill(server if what == "server" else backend, signal.SIGKILL)
            time.sleep(0.3)
            own_cluster.ensure()
            wait_until(_answers, "the server")
            check_counters(campaign.pk)
        wait_until(lambda: _done(campaign.pk) == PEOPLE, "everybody accounted for")
        for process in running:
            process.terminate()
        for process in running:
            assert process.wait(60) == 0, senders.log.read_text()
    finally:
        senders.stop_all()
    check(campaign, relay.accepted(), doubt_at_most=0, people=PEOPLE)
    while counters.compact():
        pass
    check_counters(campaign.pk)


def _answers() -> bool:
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
    except LOST:
        connection.close()
        return False
    return True


def _done(campaign_id: int) -> int:
    counts = balance(campaign_id).counts
    return counts["sent"] + counts["in_doubt"]
