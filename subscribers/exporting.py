"""An account's subscribers as CSV, in the columns that import reads.

What is exported and imported again is as it was, save that attributes which are no text
become text. Cells that a spreadsheet would compute carry an apostrophe, which import takes
off. Suppressed addresses are marked, so that another system does not mail them.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator
from typing import Any, Protocol

from django.db import connection, transaction

from .csv_columns import SYSTEM_COLUMNS, column_for, guard
from .models import Account, Membership, Segment, Subscriber, Suppression
from .suppression import RANK

_SUBSCRIBER = Subscriber._meta.db_table
_MEMBERSHIP = Membership._meta.db_table
_SUPPRESSION = Suppression._meta.db_table
_BATCH = 2000

_CHOSEN = f"""{_SUBSCRIBER} s WHERE s.account_id = %(account)s
    AND (%(segment)s::bigint IS NULL OR EXISTS (
        SELECT 1 FROM {_MEMBERSHIP} m
        WHERE m.segment_id = %(segment)s AND m.subscriber_id = s.id AND m.left_at IS NULL))"""

_ATTRIBUTES = f"""
SELECT DISTINCT key FROM (
    SELECT jsonb_object_keys(s.attributes) AS key FROM {_CHOSEN}
        AND jsonb_typeof(s.attributes) = 'object') AS keys
ORDER BY key"""

_REASONS = f"ARRAY[{', '.join(repr(reason.value) for reason in RANK)}]"

# A cursor in a transaction, not one WITH HOLD: that would copy all rows on the server first.
_WALK = f"""
DECLARE sendonce_export NO SCROLL CURSOR FOR
SELECT s.email, s.status, s.locale, s.timezone, s.consent_source,
    COALESCE(({_REASONS})[(
        SELECT max(array_position({_REASONS}, x.reason::text)) FROM {_SUPPRESSION} x
        WHERE x.email_lower = s.email_lower
            AND (x.account_id = s.account_id OR x.account_id IS NULL)
            AND (x.expires IS NULL OR x.expires > clock_timestamp()))], ''),
    s.attributes::text
FROM {_CHOSEN}
ORDER BY s.id"""
_NEXT = f"FETCH FORWARD {_BATCH} FROM sendonce_export"
_END = "CLOSE sendonce_export"


class Writable(Protocol):
    def write(self, text: str, /) -> object: ...


def export_csv(target: Writable, *, account: Account, segment: Segment | None = None) -> int:
    """Write the account's subscribers (or the segment's present members), oldest first, as
    CSV with a header; returns how many. ``target`` must not translate line ends.

    One snapshot, streamed in constant memory. Raises ``ValueError`` for another account's
    segment, and whatever writing to ``target`` raises.
    """
    if segment is not None and segment.account_id != account.pk:
        raise ValueError(f"The segment {segment.slug} is not one of the account {account.slug}.")
    writer = csv.writer(target)
    count = 0
    parameters = {"account": account.pk, "segment": segment.pk if segment else None}
    outermost = not connection.in_atomic_block
    with transaction.atomic(), connection.cursor() as cursor:
        if outermost:
            # Both statements in one snapshot: no attribute without its column.
            cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
        cursor.execute(_ATTRIBUTES, parameters)
        attributes = [row[0] for row in cursor.fetchall()]
        names = [*SYSTEM_COLUMNS, *(column_for(name) for name in attributes)]
        writer.writerow([guard(name) for name in names])
        cursor.execute(_WALK, parameters)
        for *system, found in _rows(cursor):
            known = json.loads(found)
            known = known if isinstance(known, dict) else {}
            cells = [*system, *(_text(known.get(name)) for name in attributes)]
            writer.writerow([guard(cell) for cell in cells])
            count += 1
        cursor.execute(_END)
    return count


def _rows(cursor: Any) -> Iterator[tuple[str, ...]]:
    while True:
        cursor.execute(_NEXT)
        batch = cursor.fetchall()
        if not batch:
            return
        yield from batch


def _text(value: object) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
