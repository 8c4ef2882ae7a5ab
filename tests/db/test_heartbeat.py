"""A beat forgets outcomes only when its own commit has proved them durable."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from django.db import connection

from sending.heartbeat import Heartbeat
from sending.models import Worker
from sending.shared import Shared
from tests.db.rows import campaign_to, held, row, told


@pytest.fixture
def heart(transactional_db: None) -> Iterator[Heartbeat]:
    shared = Shared(
        lanes=1, lot_limit=1, lease=60, margin=10, freshness=5, doubt_wait=600, poll=0.9
    )
    made = Heartbeat(shared, direct=False)
    made.register()
    yield made
    shared.pool.close()


def test_an_outcome_that_the_ledger_does_not_show_is_written_again(heart: Heartbeat) -> None:
    send = row(campaign_to(0), "sending")
    heart.shared.journal.keep([told(held(send), "sent")])
    heart.beat()
    send.refresh_from_db()
    assert send.status == "sent"
    assert heart.shared.journal.kept() == []


def test_a_beat_that_wrote_nothing_proves_nothing(heart: Heartbeat) -> None:
    kept = [told(held(row(campaign_to(0), "sending")), "sent")]
    heart.shared.journal.keep(kept)
    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM sendonce_sending_worker")
    heart.beat()
    assert heart.shared.journal.kept() == kept
    assert Worker.objects.get().pk == heart.shared.worker_id, "registered anew"
    heart.beat()
    assert heart.shared.journal.kept() == []
