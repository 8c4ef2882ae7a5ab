"""An account's subscribers as CSV, in the columns that import reads.

What is exported and imported again is as it was: attributes that are defined keep their kinds,
others that are no text become text. Cells that a spreadsheet would compute carry an apostrophe,
which import takes off. Suppressed addresses are marked, so that another system does not mail them.
"""

from __future__ import annotations

import csv
import io
import json
import tempfile
from collections.abc import Generator, Iterator
from contextlib import closing
from time import monotonic
from typing import Any, Protocol

from django.db import connection, transaction

from .attributes.values import write
from .models import Account, AttributeDefinition, Membership, Segment, Subscriber, Suppression
from .suppression import RANK
from .tabular.columns import SYSTEM_COLUMNS, column_for
from .tabular.guarding import guard

_SUBSCRIBER = Subscriber._meta.db_table
_MEMBERSHIP = Membership._meta.db_table
_SUPPRESSION = Suppression._meta.db_table
_BATCH = 500
_BLOCK = 256 * 1024
#: Seconds for which a download may keep its snapshot waiting for the client; a snapshot that is
#: held hinders the clearing away of old rows everywhere.
PATIENCE = 30.0

_IS_SUPPRESSED = f"""EXISTS (
        SELECT 1 FROM {_SUPPRESSION} x
        WHERE x.email_lower = s.email_lower
            AND (x.account_id = s.account_id OR x.account_id IS NULL)
            AND (x.expires IS NULL OR x.expires > clock_timestamp()))"""
_CHOSEN = f"""{_SUBSCRIBER} s WHERE s.account_id = %(account)s
    AND (%(segment)s::bigint IS NULL OR EXISTS (
        SELECT 1 FROM {_MEMBERSHIP} m
        WHERE m.segment_id = %(segment)s AND m.subscriber_id = s.id AND m.left_at IS NULL))
    AND (%(status)s = '' OR s.status = %(status)s)
    AND (%(suppressed)s::boolean IS NULL OR {_IS_SUPPRESSED} = %(suppressed)s)"""

_COUNT = f"SELECT count(*) FROM {_CHOSEN}"

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


def count_people(
    *,
    account: Account,
    segment: Segment | None = None,
    status: str = "",
    suppressed: bool | None = None,
) -> int:
    """How many people such an export has now. Raises as ``export_csv`` does."""
    parameters = _parameters(account, segment, status, suppressed)
    with connection.cursor() as cursor:
        cursor.execute(_COUNT, parameters)
        return int(cursor.fetchone()[0])


def export_csv(
    target: Writable,
    *,
    account: Account,
    segment: Segment | None = None,
    status: str = "",
    suppressed: bool | None = None,
) -> int:
    """Write the account's subscribers (or the segment's present members), oldest first, as
    CSV with a header; returns how many. ``target`` must not translate line ends.

    ``status``: only those who have it; ``suppressed``: only those whose address is, or is not.

    One snapshot, streamed in constant memory. Raises ``ValueError`` for another account's
    segment or a status that there is not, and whatever writing to ``target`` raises.
    """
    count = 0
    with closing(_pages(account, _parameters(account, segment, status, suppressed))) as pages:
        for people, text in pages:
            target.write(text)
            count += people
    return count


def export_chunks(
    account: Account,
    segment: Segment | None = None,
    *,
    status: str = "",
    suppressed: bool | None = None,
) -> Iterator[bytes]:
    """The same, in chunks of UTF-8 for a streamed answer. Raises ``ValueError`` at once.

    Closing the iterator, as a server does when the client has gone away, ends the snapshot and
    leaves the connection usable. A client that is slow for longer than ``PATIENCE`` gets the rest
    from a temporary file, so that its snapshot ends.
    """
    return in_chunks(_pages(account, _parameters(account, segment, status, suppressed)))


def in_chunks(lines: Generator[tuple[int, str], None, None]) -> Iterator[bytes]:
    """Pages of ``(rows, their lines)`` that hold a snapshot, as chunks for a streamed answer; see
    ``export_chunks``."""
    waited = 0.0
    with closing(lines) as pages:
        for _, text in pages:
            since = monotonic()
            yield text.encode()
            waited += monotonic() - since
            if waited > PATIENCE:
                break
        else:
            return
        rest = tempfile.TemporaryFile()  # noqa: SIM115  (closed below)
        for _, text in pages:
            rest.write(text.encode())
    with rest:
        rest.seek(0)
        while block := rest.read(_BLOCK):
            yield block


def _parameters(
    account: Account, segment: Segment | None, status: str, suppressed: bool | None
) -> dict[str, Any]:
    if segment is not None and segment.account_id != account.pk:
        raise ValueError(f"The segment {segment.slug} is not one of the account {account.slug}.")
    if status and status not in Subscriber.Status.values:
        raise ValueError(f"There is no status {status!r:.40}.")
    return {
        "account": account.pk,
        "segment": segment.pk if segment else None,
        "status": status,
        "suppressed": suppressed,
    }


def _pages(account: Account, parameters: dict[str, Any]) -> Generator[tuple[int, str], None, None]:
    """``(people, their lines)``; first nobody and the header."""
    page = io.StringIO(newline="")
    writer = csv.writer(page)
    outermost = not connection.in_atomic_block
    with transaction.atomic(), connection.cursor() as cursor:
        if outermost:
            # All statements in one snapshot: no attribute without its column.
            cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
        definitions = list(AttributeDefinition.objects.filter(account=account).order_by("key"))
        attributes = [definition.key for definition in definitions]
        cursor.execute(_ATTRIBUTES, parameters)
        attributes += [key for (key,) in cursor.fetchall() if key not in set(attributes)]
        columns = (column_for(key, definitions) for key in attributes)
        writer.writerow([guard(name) for name in (*SYSTEM_COLUMNS, *columns)])
        yield 0, page.getvalue()
        cursor.execute(_WALK, parameters)
        while True:
            cursor.execute(_NEXT)
            people = cursor.fetchall()
            if not people:
                break
            page.seek(0)
            page.truncate()
            writer.writerows(_cells(person, attributes) for person in people)
            yield len(people), page.getvalue()
        cursor.execute(_END)


def _cells(person: tuple[str, ...], attributes: list[str]) -> list[str]:
    *system, found = person
    known = json.loads(found)
    known = known if isinstance(known, dict) else {}
    return [*map(guard, system), *(_cell(known.get(key)) for key in attributes)]


def _cell(value: object) -> str:
    if isinstance(value, str):
        return guard(value)
    if value is None:
        return ""
    text = write(value)
    # A number is no formula, and would be none with an apostrophe before its minus.
    return text if text is not None else guard(json.dumps(value, ensure_ascii=False))
