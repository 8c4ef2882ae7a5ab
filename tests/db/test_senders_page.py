"""The page of senders: who lives, what each holds, how fast; and what an account's staff see."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from sending.admin.texts import moment
from sending.models import Send, Worker
from sending.senders import holds, senders
from subscribers.database_clock import database_time
from tests.factories import AccountFactory, CampaignFactory, SendFactory, WorkerFactory

from .admin_pages import member_client, url

pytestmark = pytest.mark.django_db

PAGE = url(Worker, "changelist")


def test_what_each_holds_and_how_fast_it_is(superuser_client: Client) -> None:
    now = timezone.now()
    campaign = CampaignFactory.create(sending=True)
    busy = WorkerFactory.create(
        lanes=8, sessions_a_lane=4, sessions={"default": 4, "bulk": 0}, note="waits for bulk"
    )
    SendFactory.create(campaign=campaign, claimed=True, worker=busy)
    SendFactory.create(campaign=campaign, handed_over=True, worker=busy)
    for seconds in (1, 2, 300):
        SendFactory.create(
            campaign=campaign, sent=True, worker=busy, handed_at=now - timedelta(seconds=seconds)
        )
    Send.objects.filter(status="sent").update(worker=busy)
    found = senders(database_time())
    assert (found.alive, found.silent, found.lanes, found.holds[busy.pk]) == (1, 0, 8, 2)
    assert found.a_minute > 0
    assert found.of[busy.pk] == pytest.approx(found.a_minute)
    text = superuser_client.get(PAGE).content.decode()
    for words in (
        "1 sender alive, 8 lanes, about",
        '<td class="field-holds">2</td>',
        '<span class="sendonce-alive">alive</span>',
        "4 by default",
        'title="8 lanes with up to 4 sessions each">8 x 4</span>',
        "waits for bulk",
    ):
        assert words in text, words
    assert "by bulk" not in text


def test_when_it_was_seen_is_told_by_its_age_for_an_hour(superuser_client: Client) -> None:
    now = timezone.now()
    seen = now - timedelta(minutes=7)
    WorkerFactory.create(started=datetime(2026, 11, 30, 4, 31, 12, tzinfo=UTC), seen=seen)
    text = superuser_client.get(PAGE).content.decode()
    assert f'title="{moment(seen)}">7 min ago</span>' in text
    assert ">30 Nov 2026,</span> <span" in text
    assert ">04:31:12 UTC</span>" in text
    before = datetime(2025, 1, 2, 3, 4, 5, tzinfo=UTC)
    Worker.objects.update(seen=before)
    text = superuser_client.get(PAGE).content.decode()
    assert ">2 Jan 2025,</span> <span" in text
    assert " ago<" not in text


def test_limited_sessions_are_a_column_where_some_sender_has_any(superuser_client: Client) -> None:
    WorkerFactory.create(ended=timezone.now(), sessions={"default": 7})
    plain = WorkerFactory.create(sessions={})
    assert "limited sessions" not in superuser_client.get(PAGE).content.decode().lower()
    Worker.objects.filter(pk=plain.pk).update(sessions={"bulk": 2})
    text = superuser_client.get(PAGE).content.decode()
    assert "limited sessions" in text.lower()
    assert '<td class="field-open">2 by bulk</td>' in text
    # It has none any more, whatever it said last.
    assert "7 by default" not in text


def test_when_none_lives_the_command_is_said(superuser_client: Client) -> None:
    WorkerFactory.create(seen=timezone.now() - timedelta(minutes=5))
    text = superuser_client.get(PAGE).content.decode()
    assert "manage.py run_sender" in text
    assert "One fell silent within a day." in text


def test_staff_of_an_account_see_that_senders_run_and_not_where() -> None:
    worker = WorkerFactory.create(host="secret.example.org", note="transport of others is paused")
    client, _ = member_client(AccountFactory.create())
    text = client.get(PAGE).content.decode()
    assert "1 sender alive" in text
    for hidden in ("secret.example.org", "of others"):
        assert hidden not in text
    assert client.get(url(Worker, "change", worker.pk)).status_code == 302
    Worker.objects.all().delete()
    text = client.get(PAGE).content.decode()
    assert "Tell whoever runs the senders." in text
    assert "run_sender" not in text


def test_no_query_for_each_sender(superuser_client: Client) -> None:
    counts = []
    campaign = CampaignFactory.create(sending=True)
    for number in (3, 27):
        for _ in range(number):
            SendFactory.create(campaign=campaign, claimed=True, worker=WorkerFactory.create())
        superuser_client.get(PAGE)
        with CaptureQueriesContext(connection) as queries:
            superuser_client.get(PAGE)
        counts.append(len(queries))
    assert counts[0] == counts[1]


def test_what_is_in_flight_is_found_by_its_index() -> None:
    SendFactory.create(claimed=True)
    with CaptureQueriesContext(connection) as queries:
        holds()
    (asked,) = queries
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL enable_seqscan = off")
        cursor.execute(f"EXPLAIN {asked['sql']}")
        assert "sendonce_send_flight" in "\n".join(line for (line,) in cursor.fetchall())
