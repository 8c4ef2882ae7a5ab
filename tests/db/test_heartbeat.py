"""A beat forgets outcomes only when its own commit has proved them durable."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from django.db import connection

from sending.heartbeat import Heartbeat
from sending.models import Worker
from sending.shared import Shared
from tests.db.rows import campaign_to, held, row, status_of, told


@pytest.fixture
def heart(transactional_db: None) -> Iterator[Heartbeat]:
    shared = Shared(
        lanes=1, lot_limit=1, lease=60, margin=10, freshness=5, doubt_wait=600, poll=0.9
    )
    made = Heartbeat(shared, direct=False)
    made.register()
    yield made
    shared.pool.close()


@pytest.mark.parametrize("campaign", [None, 7])
def test_a_sender_says_what_it_was_started_for(heart: Heartbeat, campaign: int | None) -> None:
    heart.shared.campaign_id = campaign
    heart.register()
    assert Worker.objects.get(pk=heart.shared.worker_id).only_campaign == campaign


def test_an_outcome_that_the_ledger_does_not_show_is_written_again(heart: Heartbeat) -> None:
    send = row(campaign_to(0), "sending")
    heart.shared.journal.keep([told(held(send), "sent")])
    heart.beat()
    send.refresh_from_db()
    assert send.status == "sent"
    assert heart.shared.journal.kept() == []


@pytest.fixture
def direct(heart: Heartbeat) -> Iterator[Heartbeat]:
    """One that has a session of its own, and knows since when."""
    heart.direct = True
    heart._prepare()
    yield heart
    connection.close()  # the session's lock with it


def test_within_one_session_a_durable_commit_is_proof_enough(direct: Heartbeat) -> None:
    send = row(campaign_to(0), "sending")  # as if lost, which can't be without the session
    journal = direct.shared.journal
    journal.keep([told(held(send), "sent")], journal.session)
    direct.beat()
    assert journal.kept() == []
    assert status_of(send) == "sending", "nobody has looked"


def test_what_was_begun_before_this_session_is_looked_at(direct: Heartbeat) -> None:
    """The server went down and came back between the outcome's commit and ``keep``."""
    send = row(campaign_to(0), "sending")
    journal = direct.shared.journal
    begun = journal.session
    connection.close()
    direct._prepare()
    journal.keep([told(held(send), "sent")], begun)
    direct.beat()
    assert status_of(send) == "sent"
    assert journal.kept() == []


def test_the_last_beat_is_made_in_another_session_and_looks_at_all(direct: Heartbeat) -> None:
    send = row(campaign_to(0), "sending")
    journal = direct.shared.journal
    journal.keep([told(held(send), "sent")], journal.session)
    direct.beat(ending=True)
    assert status_of(send) == "sent"
    assert journal.kept() == []


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
