"""A campaign's numbers and its sends as CSV. Cells that a spreadsheet would compute are guarded."""

from __future__ import annotations

import csv
import io
from collections.abc import Generator, Iterator
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

from campaigns.models import Campaign
from subscribers.exporting import in_chunks
from subscribers.segments.big_counts import one_snapshot
from subscribers.tabular.guarding import guard
from subscribers.timezones import zone_named

from . import counters
from .answers import said
from .sql import watching as statements
from .wording import words

HOURS_HEADER = ("hour", "what", "which", "why", "number")
SENDS_HEADER = ("address", "status", "why", "last answer", "attempts", "handed over", "sent")


def hours_csv(campaign: Campaign) -> Iterator[str]:
    """The report's numbers by hour: by how much each status grew (less what left it), and what was
    told of by event, as one piece. Hours are the account's, with their offset."""
    zone = zone_named(campaign.account.timezone)
    with one_snapshot():
        counted = (
            ("status", counters.by_hour(campaign.pk)),
            ("event", counters.events_by_hour(campaign.pk)),
        )
    page = io.StringIO(newline="")
    writer = csv.writer(page)
    writer.writerow(HOURS_HEADER)
    for what, hours in counted:
        for hour, which, why, number in hours:
            writer.writerow([_moment(hour, zone), what, guard(which), guard(words(why)), number])
    yield page.getvalue()


def sends_csv(campaign: Campaign) -> Iterator[bytes]:
    """Every row that is there, in the order in which they were built; one snapshot, streamed in
    constant memory, as ``subscribers.exporting.export_chunks``. Of a person who was erased the
    address is blank."""
    return in_chunks(_pages(campaign))


def _pages(campaign: Campaign) -> Generator[tuple[int, str], None, None]:
    zone = zone_named(campaign.account.timezone)
    page = io.StringIO(newline="")
    writer = csv.writer(page)
    writer.writerow(SENDS_HEADER)
    with one_snapshot() as cursor:
        yield 0, page.getvalue()
        cursor.execute(statements.WALK_SENDS, {"campaign": campaign.pk})
        while True:
            cursor.execute(statements.NEXT_SENDS)
            rows = cursor.fetchall()
            if not rows:
                break
            page.seek(0)
            page.truncate()
            writer.writerows(_cells(row, zone) for row in rows)
            yield len(rows), page.getvalue()
        cursor.execute(statements.END_SENDS)


def _cells(row: tuple[Any, ...], zone: ZoneInfo) -> list[Any]:
    email, status, reason, stage, code, enhanced, text, attempts, handed_at, sent_at = row
    answer = ": ".join(filter(None, (stage, said(code, enhanced, text))))
    return [
        guard(email or ""),
        words(status),
        guard(words(reason)),
        guard(answer),
        attempts,
        _moment(handed_at, zone),
        _moment(sent_at, zone),
    ]


def _moment(moment: datetime | None, zone: ZoneInfo) -> str:
    return moment.astimezone(zone).isoformat(sep=" ", timespec="seconds") if moment else ""
