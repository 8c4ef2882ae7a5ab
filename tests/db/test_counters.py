"""The counters of the ledger equal its rows, whatever changes them and however."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest
from django.db import connection, transaction
from django.utils import timezone

from campaigns import hooks
from campaigns.models import Campaign
from sending import counters, events
from sending.models import (
    ArchivedCount,
    Counted,
    DeliveryEvent,
    LedgerChange,
    LedgerCount,
    Send,
)
from sending.sql.tables import EVENT, SEND
from tests.factories import CampaignFactory, SendFactory

from .commands import ONE_OF_EACH, campaign_with
from .counted import check, told

pytestmark = pytest.mark.django_db

NO_ROW = f"""
INSERT INTO {SEND} (account_id, campaign_id, email, job_id, status, reason, attempts, doubt_tokens,
    provider_message_id, answer_stage, answer_enhanced, answer_text)
SELECT account_id, campaign_id, email, job_id, 'queued', '', 0, '{{}}', '', '', '', ''
FROM {SEND} WHERE campaign_id = %s ON CONFLICT DO NOTHING"""


def _execute(statement: str, *given: int) -> None:
    with connection.cursor() as cursor:
        cursor.execute(statement, given)


def _in_bulk(campaign: Campaign) -> None:
    Send.objects.bulk_create(
        Send(
            account=campaign.account,
            campaign=campaign,
            email=f"bulk-{number}@example.org",
            job_id=f"bulk:{number}",
        )
        for number in range(3)
    )


PATHS: dict[str, Callable[[Campaign], object]] = {
    "one is made": lambda c: SendFactory.create(campaign=c),
    "many are made": _in_bulk,
    "none is made, there is one already": lambda c: _execute(NO_ROW, c.pk),
    "one is saved": lambda c: c.sends.filter(status="failed")[0].save(),
    "a status": lambda c: c.sends.filter(status="failed").update(status="queued"),
    "a reason": lambda c: c.sends.filter(status="failed").update(reason="policy"),
    "nothing": lambda c: c.sends.update(answer_text="said"),
    "no row at all": lambda c: c.sends.filter(pk=0).update(status="failed"),
    "many statuses": lambda c: c.sends.exclude(status="sent").update(
        status="canceled", reason="canceled", settle_at=None
    ),
    "some are deleted": lambda c: c.sends.filter(status__in=["sent", "queued"]).delete(),
    "all are deleted": lambda c: c.sends.all().delete(),
    "another campaign": lambda c: c.sends.filter(status="sent").update(
        campaign=CampaignFactory.create(account=c.account, sending=True)
    ),
    "the table is emptied": lambda c: _truncate(SEND, EVENT),
    "an archived count": lambda c: ArchivedCount.objects.create(
        campaign=c, status="sent", reason="", number=7, at=timezone.now()
    ),
}


def _truncate(*tables: str) -> None:
    _execute("SET CONSTRAINTS ALL IMMEDIATE")
    _execute(f"TRUNCATE {', '.join(tables)}")


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("rolled_up", [False, True], ids=["fresh", "rolled up"])
def test_whatever_changes_rows_changes_their_counters(path: str, rolled_up: bool) -> None:
    campaign = campaign_with(ONE_OF_EACH)
    check(campaign.pk)
    if rolled_up:
        counters.compact()
    PATHS[path](campaign)
    for one in Campaign.objects.all():
        check(one.pk)
    counters.compact()
    for one in Campaign.objects.all():
        check(one.pk)
    assert not LedgerChange.objects.exists()


def test_archived_counts_that_change_and_go() -> None:
    campaign = campaign_with({"sent": 2})
    old = ArchivedCount.objects.create(
        campaign=campaign, status="sent", reason="", number=7, at=timezone.now()
    )
    ArchivedCount.objects.update(number=5)
    check(campaign.pk)
    assert counters.totals(campaign.pk) == {("sent", ""): 7}
    old.delete()
    check(campaign.pk)
    ArchivedCount.objects.create(
        campaign=campaign, status="bounced", reason="", number=1, at=timezone.now()
    )
    _truncate("sendonce_sending_archivedcount")
    check(campaign.pk)


def test_what_was_rolled_back_is_not_counted() -> None:
    campaign = campaign_with({"queued": 2})
    with transaction.atomic():
        campaign.sends.update(status="failed")
        check(campaign.pk)
        transaction.set_rollback(True)
    check(campaign.pk)
    assert counters.totals(campaign.pk) == {("queued", ""): 2}


def test_messages_without_a_campaign_are_not_counted() -> None:
    send = SendFactory.create(transactional=True)
    DeliveryEvent.objects.create(send=send, account=send.account, kind="delivered")
    Send.objects.update(status="failed")
    assert not LedgerChange.objects.exists()


def test_numbers_by_status_are_those_of_the_campaigns_page() -> None:
    campaign = campaign_with({"sent": 3, "bounced": 1}, audience=5)
    expected = {"sent": 3, "bounced": 1}
    assert {s: n for s, n in counters.by_status(campaign.pk).items() if n} == expected
    assert hooks.counts(campaign.pk) == {**counters.by_status(campaign.pk), "audience": 5}
    with pytest.raises(Campaign.DoesNotExist):
        counters.with_audience(campaign.pk + 1)
    empty = CampaignFactory.create()
    assert (counters.totals(empty.pk), counters.by_hour(empty.pk)) == ({}, [])
    assert set(counters.with_audience(empty.pk).values()) == {0}


def test_hours_are_of_utc_in_every_zone() -> None:
    campaign = CampaignFactory.create(sending=True)
    _execute("SET LOCAL TIME ZONE 'Asia/Kolkata'")
    before = datetime.now(UTC)
    send = SendFactory.create(campaign=campaign)
    Send.objects.update(status="failed")
    at = datetime(2026, 3, 4, 5, 59, 59, tzinfo=UTC)
    DeliveryEvent.objects.create(send=send, account=send.account, kind="delivered", at=at)
    _execute("SET LOCAL TIME ZONE 'UTC'")
    hours = {hour for hour, *_ in counters.by_hour(campaign.pk)}
    assert hours <= {
        moment.replace(minute=0, second=0, microsecond=0) for moment in (before, datetime.now(UTC))
    }
    hour = datetime(2026, 3, 4, 5, tzinfo=UTC)
    assert counters.events_by_hour(campaign.pk) == [(hour, "delivered", "", 1)]


def test_hours_say_what_came_and_what_left() -> None:
    campaign = campaign_with({"queued": 5})
    LedgerChange.objects.update(hour=datetime(2026, 3, 4, 5, tzinfo=UTC))
    campaign.sends.filter(pk__in=campaign.sends.all()[:2]).update(status="failed", reason="policy")
    (first, *left, right) = counters.by_hour(campaign.pk)
    assert first[1:] == ("queued", "", 5)
    assert [right[1:], *[one[1:] for one in left]] == [("queued", "", -2), ("failed", "policy", 2)]
    check(campaign.pk)


# --- events -----------------------------------------------------------------------------------


def _event(send: Send, kind: str, **fields: object) -> DeliveryEvent:
    return DeliveryEvent.objects.create(send=send, account=send.account, kind=kind, **fields)


def test_events_are_counted_by_kind_and_reason() -> None:
    campaign = campaign_with({"sent": 3})
    with connection.cursor() as cursor:
        events.record(
            cursor,
            [
                events.Note(send.pk, send.account_id, kind, event_id=f"{kind}:{send.pk}", reason=r)
                for send in campaign.sends.all()
                for kind, r in (("delivered", ""), ("soft_bounce", "mailbox_full"))
            ]
            * 2,
        )
        events.record(cursor, [events.Note(None, campaign.account_id, "complained")])
    assert told(campaign.pk) == {("delivered", ""): 3, ("soft_bounce", "mailbox_full"): 3}
    check(campaign.pk)
    DeliveryEvent.objects.filter(kind="delivered").update(kind="opened")
    check(campaign.pk)


@pytest.mark.parametrize("how", ["the event goes", "its row goes", "it is taken from its row"])
def test_an_event_that_is_gone_has_happened(how: str) -> None:
    campaign = campaign_with({"sent": 1})
    send = campaign.sends.get()
    event = _event(send, "delivered", at=timezone.now() - timedelta(days=3))
    _event(send, "opened")
    before = counters.events_by_hour(campaign.pk)
    if how == "the event goes":
        event.delete()
    elif how == "its row goes":
        send.delete()
    else:
        DeliveryEvent.objects.filter(pk=event.pk).update(send=None)
    assert counters.events_by_hour(campaign.pk) == before
    check(campaign.pk, pruned=True)
    assert LedgerChange.objects.filter(what=Counted.GONE, status="delivered").exists()


def test_an_event_finds_its_row_by_the_key_however_small_the_ledger() -> None:
    """The session keeps the plan, and the ledger grows."""
    campaign = campaign_with({"sent": 2})
    sends = list(campaign.sends.all())  # which may well read the whole of it
    before = _read_whole()
    for send in sends:
        _event(send, "delivered")
    DeliveryEvent.objects.update(kind="opened")
    DeliveryEvent.objects.all().delete()
    assert _read_whole() == before


def _read_whole() -> int:
    """How often this transaction has read the whole ledger."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT seq_scan FROM pg_stat_xact_user_tables WHERE relname = %s", [SEND])
        (number,) = cursor.fetchone()
        return int(number)


# --- rolling up ---------------------------------------------------------------------------------


def test_rolling_up_changes_no_number() -> None:
    campaigns = [campaign_with(ONE_OF_EACH), campaign_with({"sent": 2, "queued": 3})]
    for campaign in campaigns:
        _event(campaign.sends.filter(status="sent")[0], "delivered")
        campaign.sends.filter(status="queued").update(status="failed", reason="policy")

    def seen() -> list[object]:
        return [
            (counters.by_hour(c.pk), counters.events_by_hour(c.pk), counters.totals(c.pk))
            for c in campaigns
        ]

    before, changes = seen(), LedgerChange.objects.count()
    assert counters.compact(batch=4) == min(changes, 4 * counters.LARGEST_LOOK)
    assert seen() == before
    while counters.compact(batch=4):
        assert seen() == before
    assert not LedgerChange.objects.exists()
    number = LedgerCount.objects.count()
    campaigns[0].sends.filter(status="sent").update(status="bounced", sent_at=None)
    campaigns[0].sends.filter(status="bounced", sent_at=None).update(status="failed")
    counters.compact()
    assert LedgerCount.objects.count() <= number + 1
    assert counters.compact() == 0
    for campaign in campaigns:
        check(campaign.pk)


def test_a_campaign_without_rows_can_be_deleted_and_leaves_no_counter() -> None:
    campaign = campaign_with({"sent": 2}, sending=False, sent=True)
    _event(campaign.sends.all()[0], "delivered")
    counters.compact()
    assert LedgerCount.objects.exists()
    DeliveryEvent.objects.all().delete()
    Send.objects.all().delete()
    counters.compact()
    campaign.delete()
    assert not LedgerCount.objects.exists()
    assert not LedgerChange.objects.exists()


def test_reading_takes_one_statement_by_the_key() -> None:
    campaign = campaign_with({"sent": 1})
    counters.compact()
    for read in (
        counters.totals,
        counters.by_status,
        counters.with_audience,
        counters.by_hour,
        counters.events_by_hour,
    ):
        with connection.execute_wrapper(_one := _Once()):
            read(campaign.pk)
        assert len(_one.seen) == 1
        assert SEND not in _one.seen[0]


class _Once:
    def __init__(self) -> None:
        self.seen: list[str] = []

    def __call__(self, execute: Callable[..., object], sql: str, *rest: object) -> object:
        self.seen.append(sql)
        return execute(sql, *rest)
