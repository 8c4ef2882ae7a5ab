"""However many lanes a sender has, it holds four database connections."""

from __future__ import annotations

import time
from collections.abc import Callable

from django.db import connection

from sending.models import Worker
from tests.crash.conftest import Senders, Sink, addresses, make_campaign
from tests.crash.oracle import check

LANES, PEOPLE = 40, 400
MOST = 4


def test_forty_lanes_hold_four_database_connections(
    sink: Callable[..., Sink], senders: Senders
) -> None:
    relay = sink("--delay", "0.02")
    campaign = make_campaign(addresses(PEOPLE))
    process = senders.start(
        "--drain", "--lanes", str(LANES), EMAIL_URL=f"smtp://127.0.0.1:{relay.port}"
    )
    seen: list[int] = []
    while process.poll() is None:
        seen.append(_sessions())
        time.sleep(0.005)
    assert process.returncode == 0, senders.log.read_text()
    assert check(campaign, relay.accepted(), doubt_at_most=0, people=PEOPLE)["sent"] == PEOPLE
    assert Worker.objects.get().lanes == LANES
    busy = [sessions for sessions in seen if sessions]
    assert len(busy) >= 20, "looked while it worked"
    assert 2 <= max(busy) <= MOST


def _sessions() -> int:
    """Sessions of this test's own database besides the test's."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
            " AND backend_type = 'client backend' AND pid <> pg_backend_pid()"
        )
        return int(cursor.fetchone()[0])
