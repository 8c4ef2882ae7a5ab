"""The counters beside what they count, by other statements than ours."""

from __future__ import annotations

from collections import Counter

from django.db.models import Count

from sending import counters, ledger, recount
from sending.models import ArchivedCount, DeliveryEvent, Send


def rows(campaign_id: int) -> dict[tuple[str, str], int]:
    """``{(status, reason): rows}``, pruned ones too, counted one by one."""
    found: Counter[tuple[str, str]] = Counter(
        Send.objects.filter(campaign=campaign_id).values_list("status", "reason")
    )
    for old in ArchivedCount.objects.filter(campaign=campaign_id):
        found[old.status, old.reason] += old.number
    return dict(found)


def events(campaign_id: int) -> dict[tuple[str, str], int]:
    """``{(kind, reason): events}`` of rows that are there."""
    found = DeliveryEvent.objects.filter(send__campaign=campaign_id).order_by()
    return {
        (kind, reason): number
        for kind, reason, number in found.values_list("kind", "reason").annotate(Count("pk"))
    }


def told(campaign_id: int) -> dict[tuple[str, str], int]:
    """What the counters say of the events."""
    found: Counter[tuple[str, str]] = Counter()
    for _, kind, reason, number in counters.events_by_hour(campaign_id):
        found[kind, reason] += number
    return dict(found)


def check(campaign_id: int, *, pruned: bool = False) -> None:
    """Every way to read the counters agrees with the rows; events too, but for those that went
    with pruned rows."""
    truth = rows(campaign_id)
    assert counters.totals(campaign_id) == truth
    by_hour: Counter[tuple[str, str]] = Counter()
    for _, status, reason, number in counters.by_hour(campaign_id):
        by_hour[status, reason] += number
    assert {key: number for key, number in by_hour.items() if number} == truth
    assert counters.with_audience(campaign_id) == ledger.counts_by_id(campaign_id)
    assert ledger.balance(campaign_id).drift == []
    assert recount.event_drift(campaign_id) == []
    if not pruned:
        assert told(campaign_id) == events(campaign_id)
