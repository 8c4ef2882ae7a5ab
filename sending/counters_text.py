"""What the ``ledger`` command says of counters that are wrong."""

from __future__ import annotations

from collections.abc import Sequence

from .models import Counted
from .plain_table import table
from .recount import Drift


def drift_block(campaign_id: int, drift: Sequence[Drift]) -> list[str]:
    """Where the counters of a campaign differ from what they count, and what to do."""
    header = ["", "of", "reason", "counted", "in truth", "difference"]
    lines = [
        [
            d.status.replace("_", " "),
            str(Counted(d.what).label),
            d.reason or "-",
            d.counted,
            d.there,
            d.missing,
        ]
        for d in drift
    ]
    return [
        f"The counters of campaign {campaign_id} are wrong. Pages show wrong numbers by it; what "
        "is sent does not depend on them.",
        *table(header, lines, indent="  "),
        f"`ledger --rebuild --campaign {campaign_id}` mends them, also while senders work. Report "
        "it: triggers were disabled or went missing, or rows were restored beside them.",
    ]


def mended(campaign_id: int, added: Sequence[tuple[int, str, str, int]]) -> str:
    """What ``rebuild`` did, in a line; "" when nothing was wrong."""
    if not added:
        return ""
    parts = ", ".join(
        f"{number:+,} {status.replace('_', ' ')}"
        + (f" ({reason})" if reason else "")
        + ("" if what == Counted.ROWS else " events")
        for what, status, reason, number in added
    )
    return f"counters of campaign {campaign_id} mended: {parts}"
