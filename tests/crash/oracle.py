"""The promise, checked against the sink's own record."""

from __future__ import annotations

from collections import Counter
from typing import Any

from campaigns.models import Campaign
from sending import counters
from sending.ledger import balance
from sending.models import Send
from sending.recount import event_drift


def check(
    campaign: Campaign,
    accepted: list[dict[str, Any]],
    *,
    doubt_at_most: int,
    people: int,
) -> dict[str, int]:
    """No one twice, no one lost, and the ledger and its counters say so; returns the counts."""
    times = Counter(entry["recipient"] for entry in accepted)
    twice = {address: n for address, n in times.items() if n > 1}
    assert not twice, f"accepted more than once: {twice}"
    ids = Counter(entry["message_id"] for entry in accepted)
    assert not [i for i, n in ids.items() if n > 1], "one Message-ID accepted twice"

    found = balance(campaign.pk)
    assert found.holds, f"the identity fails: {found}"
    assert found.audience == people
    check_counters(campaign.pk)

    rows = dict(Send.objects.filter(campaign=campaign).values_list("email", "status"))
    wrong = {a: rows[a] for a in times if rows[a] not in ("sent", "in_doubt")}
    assert not wrong, f"accepted, but the ledger says {wrong}"
    unsent = [a for a, status in rows.items() if status == "sent" and times[a] != 1]
    assert not unsent, f"sent, but never accepted: {unsent}"
    assert found.counts["in_doubt"] <= doubt_at_most, found.counts
    return found.counts


def check_counters(campaign_id: int) -> None:
    """The counters that the database keeps equal the rows and events, now; others may work."""
    assert balance(campaign_id).drift == []
    assert event_drift(campaign_id) == []
    for number in counters.with_audience(campaign_id).values():
        assert number >= 0
