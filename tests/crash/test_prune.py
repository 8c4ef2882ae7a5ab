"""``prune`` killed at any moment, and twice at once: every recipient stays accounted for."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db import connection, transaction
from django.utils import timezone

from campaigns.models import Campaign
from sending import ledger
from sending.models import ArchivedCount, DeliveryEvent, Send
from tests.conftest import ROOT
from tests.db.commands import campaign_with
from tests.forks import Forked

from .conftest import Senders, wait_until

ROWS = 1200
BATCH = 10


@pytest.fixture
def campaign(own_database: str) -> Campaign:
    """One that ended a year ago: rows that go, each with an event, and two in doubt that stay."""
    then = timezone.now() - timedelta(days=365)
    made = campaign_with({"sent": 1, "in_doubt": 2}, sending=False, sent=True, finished_at=then)
    one = Send.objects.get(status="sent")
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO sendonce_sending_send (account_id, campaign_id, email, job_id, status, "
            "reason, attempts, doubt_tokens, sent_at, provider_message_id, answer_stage, "
            "answer_enhanced, answer_text) "
            "SELECT account_id, campaign_id, 'p' || n || '@example.org', job_id || '-' || n, "
            "CASE n %% 3 WHEN 0 THEN 'bounced' ELSE 'sent' END, '', 1, '{}', %s, '', '', '', '' "
            "FROM sendonce_sending_send, generate_series(1, %s) AS n WHERE id = %s",
            [then, ROWS - 1, one.pk],
        )
        cursor.execute(
            "INSERT INTO sendonce_sending_deliveryevent "
            "(send_id, account_id, kind, stage, enhanced, text, reason, by_name, at) "
            "SELECT id, account_id, status, '', '', '', '', '', %s FROM sendonce_sending_send",
            [then],
        )
        cursor.execute(
            "UPDATE sendonce_sending_send SET handed_at = %s, sent_at = CASE status "
            "WHEN 'sent' THEN %s END",
            [then, then],
        )
    Campaign.objects.filter(pk=made.pk).update(audience=ROWS + 2)
    return made


def start(senders: Senders) -> Forked:
    """A pruner; it is ended with the senders."""
    command = [str(ROOT / "manage.py"), "prune", "--batch", str(BATCH)]
    process = senders.forks.start(command, env=senders.environ, out=senders.log)
    senders.running.append(process)
    return process


def rows_left() -> int:
    return Send.objects.count()


def assert_accounted_for(campaign: Campaign) -> None:
    found = ledger.balance(campaign.pk)
    assert found.holds, found
    with connection.cursor() as cursor:
        # In one snapshot: each row has its event here, and none is without a row.
        cursor.execute(
            "SELECT (SELECT count(*) FROM sendonce_sending_deliveryevent) "
            "- (SELECT count(*) FROM sendonce_sending_send)"
        )
        assert cursor.fetchone() == (0,)


def test_killed_again_and_again_and_two_at_once(campaign: Campaign, senders: Senders) -> None:
    before = ledger.counts(campaign)
    for _ in range(3):
        left = rows_left()
        pair = [start(senders), start(senders)]
        wait_until(lambda left=left: rows_left() < left - 5 * BATCH, "some were pruned")  # type: ignore[misc]
        assert_accounted_for(campaign)
        for process in pair:
            process.kill()
            process.wait()
        assert_accounted_for(campaign)
    for process in [start(senders), start(senders)]:
        assert process.wait(60) == 0, senders.log.read_text()
    assert set(Send.objects.values_list("status", flat=True)) == {"in_doubt"}
    assert (rows_left(), DeliveryEvent.objects.count()) == (2, 2)
    assert ledger.counts(campaign) == before
    assert_accounted_for(campaign)


def test_killed_between_the_rows_and_their_count(campaign: Campaign, senders: Senders) -> None:
    held = ArchivedCount.objects.create(
        campaign=campaign, status="bounced", number=1, at=timezone.now()
    )
    Campaign.objects.filter(pk=campaign.pk).update(audience=ROWS + 3)
    with transaction.atomic():
        ArchivedCount.objects.select_for_update().get(pk=held.pk)
        process = start(senders)

        def waits_for_us() -> bool:
            with connection.cursor() as cursor:
                cursor.execute(
                    "SELECT EXISTS (SELECT 1 FROM pg_locks WHERE NOT granted "
                    "AND pg_backend_pid() = ANY(pg_blocking_pids(pid)))"
                )
                return bool(cursor.fetchone()[0])

        wait_until(waits_for_us, "it came to the count")
        process.kill()
        process.wait()
        assert_accounted_for(campaign)
    assert_accounted_for(campaign)
    assert start(senders).wait(60) == 0, senders.log.read_text()
    assert rows_left() == 2
    assert_accounted_for(campaign)
