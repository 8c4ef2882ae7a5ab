"""The mark up to which every change is rolled up: readers begin behind it, and miss nothing."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from functools import partial

import psycopg
import pytest
from django.db import connection, transaction

from campaigns.models import Campaign
from sending import counters, recount
from sending.models import LedgerChange, LedgerMark, Send
from sending.sql import counters as statements
from sending.sql.tables import LEDGER_CHANGE

from .commands import ONE_OF_EACH, campaign_with, refused
from .counted import check
from .racing import Race

pytestmark = pytest.mark.django_db(transaction=True)

WRITE = f"""
INSERT INTO {LEDGER_CHANGE} (campaign_id, what, status, reason, hour, number)
SELECT %s, 0, 'sent', '', timestamptz '2026-03-04 05:00Z', CASE WHEN n %% 2 = 0 THEN 1 ELSE -1 END
FROM generate_series(1, %s) n"""


@pytest.fixture(autouse=True)
def step(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(counters, "STEP", 1)


@pytest.fixture
def old_snapshot(transactional_db: None) -> Iterator[Callable[[], None]]:
    """Opens one, which is held to the end: nothing that is dead from then on can be cleared."""
    connection.ensure_connection()
    with psycopg.connect(connection.connection.info.dsn) as other:
        other.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ

        def hold() -> None:
            other.execute("SELECT 1 FROM sendonce_sending_send LIMIT 1")

        yield hold


def rolled_up() -> int:
    found = LedgerMark.objects.values_list("rolled_up", flat=True).first()
    return found or 0


def compact_all() -> None:
    """Twice more than there is anything: to note, and to move."""
    for _ in range(3):
        counters.compact()


def pages_read(campaign: Campaign) -> int:
    with connection.cursor() as cursor:
        cursor.execute(
            f"EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) {statements.TOTALS}",
            {"campaign": campaign.pk},
        )
        (plan,) = cursor.fetchone()
    (plan,) = plan if isinstance(plan, list) else json.loads(plan)
    return int(plan["Plan"]["Shared Hit Blocks"] + plan["Plan"]["Shared Read Blocks"])


def change(campaign: Campaign, *, to: str = "failed") -> None:
    campaign.sends.filter(status="queued").update(status=to)


def test_what_was_rolled_up_under_an_old_snapshot_is_not_read(
    old_snapshot: Callable[[], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(counters, "STEP", 1_000)
    campaign = campaign_with(ONE_OF_EACH)
    old_snapshot()
    for _ in range(10):
        with connection.cursor() as cursor:
            cursor.execute(WRITE, [campaign.pk, 2_000])
        counters.compact()
    assert not LedgerChange.objects.exists()
    check(campaign.pk)
    few = pages_read(campaign)
    LedgerMark.objects.all().delete()
    assert few * 3 < pages_read(campaign)


@pytest.mark.parametrize("heeded", [True, False], ids=["heeded", "not heeded"])
def test_an_id_that_comes_to_light_later_is_not_passed(
    heeded: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not heeded: as it would be without a look at who writes. Then a change is lost."""
    if not heeded:
        monkeypatch.setattr(
            statements,
            "MARK",
            "SELECT sendonce_ledger_mark(), rolled_up, noted, true "
            "FROM sendonce_sending_ledgermark",
        )
    campaign = campaign_with({"queued": 3})
    compact_all()
    low, *others = campaign.sends.order_by("pk")
    with Race() as race, transaction.atomic():
        Send.objects.filter(pk=low.pk).update(status="failed")
        mine = LedgerChange.objects.order_by("pk")[0].pk
        for other in others:
            race.start(partial(Send.objects.filter(pk=other.pk).update, status="canceled")).result()
            race.start(compact_all).result()
        assert (rolled_up() < mine) is heeded
    seen = counters.totals(campaign.pk) == {("failed", ""): 1, ("canceled", ""): 2}
    assert seen is heeded
    if heeded:
        change(campaign)
        compact_all()
        assert rolled_up() > mine
        check(campaign.pk)
        assert not LedgerChange.objects.exists()


def test_an_older_snapshot_goes_by_an_older_mark() -> None:
    campaign = campaign_with({"queued": 3})
    compact_all()
    change(campaign)
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        before, mark = counters.totals(campaign.pk), rolled_up()
        with Race() as race:
            race.start(compact_all).result()
            race.start(lambda: campaign.sends.update(status="canceled")).result()
            race.start(compact_all).result()
        assert (counters.totals(campaign.pk), rolled_up()) == (before, mark)
    assert rolled_up() > mark
    check(campaign.pk)


@pytest.mark.parametrize("statement", range(6))
def test_whoever_dies_behind_a_statement_leaves_all_as_it_was(statement: int) -> None:
    """``RELAXED``, ``TRY_LOCK``, ``BY_KEY``, ``COMPACT``, ``MARK`` and ``MOVE_MARK``."""
    campaign = campaign_with({"queued": 2, "sent": 1})
    counters.compact()
    change(campaign)

    def state() -> tuple[object, ...]:
        changes = set(LedgerChange.objects.values_list("pk", flat=True))
        return (*LedgerMark.objects.values_list("rolled_up", "noted").get(), changes)

    before = state()
    assert before[1] > before[0]  # type: ignore[operator]
    with Race() as race:
        halt = race.halt(passing=statement)

        def dying() -> None:
            with connection.execute_wrapper(halt.behind(lambda run, *given: run(*given))):
                counters.compact()

        racer = race.start_to(halt, dying)
        racer.kill_backend()
        halt.released.set()
        racer.join(15)
        assert racer.error is not None
    assert state() == before
    check(campaign.pk)
    compact_all()
    check(campaign.pk)
    assert rolled_up() > before[0]  # type: ignore[operator]


def test_whoever_comes_late_does_not_move_what_was_moved() -> None:
    """Both without the lock: what one of them found is of before the other moved the mark."""
    campaign = campaign_with({"queued": 3})
    counters.compact()
    with Race() as race, pytest.MonkeyPatch.context() as patch:
        patch.setattr(statements, "TRY_LOCK", "SELECT true")
        halt = race.halt(passing=4)

        def late() -> None:
            with connection.execute_wrapper(halt.behind(lambda run, *given: run(*given))):
                counters.compact()

        racer = race.start_to(halt, late)
        change(campaign)
        compact_all()
        moved = rolled_up()
        halt.released.set()
        racer.result()
    assert rolled_up() == moved > 0
    check(campaign.pk)


def test_a_sequence_that_was_set_back_hides_nothing() -> None:
    """As ``sqlsequencereset`` does, while no change waits."""
    _set_sequence("500")
    campaign = campaign_with({"queued": 3})
    compact_all()
    assert rolled_up() > 0
    _set_sequence("1, false")
    change(campaign)
    check(campaign.pk)
    assert counters.compact() > 0
    assert rolled_up() == 0
    check(campaign.pk)


def test_changes_behind_the_mark_are_found_and_mended() -> None:
    """The sequence was set back and came by the mark before anybody rolled up."""
    _set_sequence("500")
    campaign = campaign_with({"queued": 3})
    compact_all()
    _set_sequence("1, false")
    change(campaign)
    _set_sequence("1000")
    assert counters.totals(campaign.pk) == {("queued", ""): 3}
    assert refused("ledger", code=1).startswith("the counters are wrong of campaign")
    assert recount.rebuild(campaign.pk) == []
    check(campaign.pk)
    compact_all()
    check(campaign.pk)
    assert not LedgerChange.objects.exists()


def _set_sequence(to: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT setval(pg_get_serial_sequence('{LEDGER_CHANGE}', 'id'), {to})")
