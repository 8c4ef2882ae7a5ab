"""The counters, with several sessions at once: read, rolled up and mended while rows change."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from django.db import connection, transaction

from campaigns.models import Campaign
from sending import counters, recount
from sending.models import LedgerChange, LedgerCount, Send
from sending.sql import counters as statements

from .commands import ONE_OF_EACH, campaign_with, refused, run
from .counted import check
from .racing import Race, Racer

pytestmark = pytest.mark.django_db(transaction=True)


def change(campaign: Campaign, *, to: str = "failed") -> None:
    campaign.sends.filter(status="queued").update(status=to)


def test_two_who_change_rows_wait_for_nobody() -> None:
    campaign = campaign_with({"queued": 2})
    first, second = campaign.sends.order_by("pk")
    with Race() as race, transaction.atomic():
        Send.objects.filter(pk=first.pk).update(status="failed")
        race.start(lambda: Send.objects.filter(pk=second.pk).update(status="failed")).result()
        assert race.start(counters.compact).result() > 0
        assert race.start(lambda: counters.totals(campaign.pk)).result() == {
            ("queued", ""): 1,
            ("failed", ""): 1,
        }
    check(campaign.pk)


def test_whoever_reads_while_changes_are_rolled_up_sees_the_number() -> None:
    campaign = campaign_with(ONE_OF_EACH)
    before = counters.totals(campaign.pk)
    with Race() as race, transaction.atomic():
        assert counters.compact() > 0
        assert race.start(lambda: counters.totals(campaign.pk)).result() == before
        # Somebody else who would roll up leaves it.
        assert race.start(counters.compact).result() == 0
    check(campaign.pk)


def test_two_who_roll_up_without_the_lock_take_nothing_twice(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(statements, "TRY_LOCK", "SELECT true")
    monkeypatch.setattr(
        statements, "COMPACT", statements.COMPACT.replace("FOR UPDATE SKIP LOCKED", "")
    )
    campaign = campaign_with(ONE_OF_EACH)
    with Race() as race:
        with transaction.atomic():
            assert counters.compact() > 0
            other: Racer[int] = race.start(counters.compact)
            other.wait_until_blocked()
        assert other.result() == 0
    check(campaign.pk)


def test_rolling_up_that_dies_loses_nothing() -> None:
    campaign = campaign_with(ONE_OF_EACH)
    with Race() as race:
        halt = race.halt()
        dying = race.start_to(halt, lambda: _compact_and_stop(halt.here))
        dying.kill_backend()
        halt.released.set()
        dying.join(15)
    check(campaign.pk)
    assert LedgerChange.objects.exists()
    assert counters.compact() > 0
    check(campaign.pk)


def _compact_and_stop(here: Callable[[], None]) -> None:
    with transaction.atomic():
        counters.compact()
        here()


# --- the check, and what mends it -------------------------------------------------------------


def _spoil(campaign: Campaign) -> None:
    """Rows that changed while triggers were off, and a counter that somebody edited."""
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SET LOCAL session_replication_role = replica")
        campaign.sends.filter(status="queued").update(status="failed", reason="policy")
        campaign.sends.filter(status="retry").delete()
    counters.compact()
    LedgerCount.objects.filter(campaign=campaign, status="sent").update(number=40)
    for send in campaign.sends.filter(status="sent"):
        send.events.create(account=campaign.account, kind="delivered")
    LedgerChange.objects.filter(status="delivered").delete()


def test_counters_that_are_wrong_are_found_and_mended() -> None:
    right, wrong = campaign_with({"sent": 1}), campaign_with(ONE_OF_EACH)
    _spoil(wrong)
    Campaign.objects.filter(pk=wrong.pk).update(audience=9)
    said = refused("ledger", code=1)
    assert said == f"the counters are wrong of campaign {wrong.pk}: ledger --rebuild"
    with pytest.raises(Exception, match="counters are wrong"):
        run("ledger", "--campaign", str(wrong.pk), "--json")
    assert {(d.status, d.reason, d.missing) for d in _drift(wrong)} == {
        ("queued", "", -1),
        ("failed", "policy", 1),
        ("retry", "", -1),
        ("sent", "", -39),
        ("delivered", "", 1),
    }
    assert "Every recipient is accounted for." in run("ledger", "--rebuild")
    for campaign in (right, wrong):
        check(campaign.pk)
    assert recount.rebuild(wrong.pk) == []
    (data,) = json.loads(run("ledger", "--campaign", str(wrong.pk), "--json"))
    assert data["counters"] == []


def _drift(campaign: Campaign) -> list[recount.Drift]:
    from sending.ledger import balance

    return [*balance(campaign.pk).drift, *recount.event_drift(campaign.pk)]


def test_what_is_mended_beside_others_is_right() -> None:
    """What is not committed yet is in neither rows nor counters, and comes to both."""
    campaign = campaign_with({"queued": 4, "sent": 1})
    LedgerChange.objects.all().delete()
    first = campaign.sends.filter(status="queued").order_by("pk")[0]
    with Race() as race, transaction.atomic():
        Send.objects.filter(pk=first.pk).update(status="failed")
        added: Any = race.start(lambda: recount.rebuild(campaign.pk)).result()
        assert Counter({(s, r): n for _, s, r, n in added}) == {("queued", ""): 4, ("sent", ""): 1}
    check(campaign.pk)


def test_two_who_mend_at_once_mend_it_once() -> None:
    campaign = campaign_with({"queued": 3})
    LedgerChange.objects.all().delete()
    with Race() as race:
        with transaction.atomic():
            assert recount.rebuild(campaign.pk)
            other: Racer[Any] = race.start(lambda: recount.rebuild(campaign.pk))
            other.wait_until_blocked()
        assert other.result() == []
    check(campaign.pk)


def test_a_snapshot_of_before_is_not_mended_twice() -> None:
    """Rolled up between: what one statement reads is of one moment all the same."""
    campaign = campaign_with({"queued": 3})
    counters.compact()
    change(campaign)
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        before = counters.totals(campaign.pk)
        with Race() as race:
            race.start(counters.compact).result()
            race.start(lambda: campaign.sends.update(status="canceled")).result()
        assert counters.totals(campaign.pk) == before == {("failed", ""): 3}
        assert recount.event_drift(campaign.pk) == []
    check(campaign.pk)
