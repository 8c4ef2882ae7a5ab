"""How many people of an audience have nothing in a merge field, in one statement for all."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

from django.db import OperationalError, connection, transaction

from subscribers.models import Subscriber
from subscribers.segments.big_counts import PAUSED, SUPPRESSED, merging

from ..audience import joined_sql
from .facts import FieldCounts

log = logging.getLogger("sendonce.preflight")

#: More fields than these are not counted: each costs a look into every person's data.
MAX_FIELDS = 60
#: Milliseconds after which counting is given up; somebody waits for the page, and behind the
#: gate other editors do.
PATIENCE = 8_000

_SUBSCRIBER = Subscriber._meta.db_table
_QUERY_CANCELED = "57014"


def count(
    account_id: int, include: Sequence[int], exclude: Sequence[int], names: Sequence[str]
) -> FieldCounts:
    """Of the people who would get it now (``include``, ``exclude``: segments), those for whom a
    field prints nothing: it is not there, null, an empty text or an empty list. (An object prints
    nothing either; no attribute is one.)

    ``names`` are fields as templates write them, ``city`` or ``order.city``. Counted to the end
    or not at all: after ``PATIENCE`` the result says so.
    """
    counted = sorted(names)[:MAX_FIELDS]
    left_out = len(names) - len(counted)
    if not include:
        return FieldCounts()
    paths = [name.split(".") for name in counted]
    parameters: dict[str, Any] = {
        "account": account_id,
        **{f"include_{n}": segment for n, segment in enumerate(include)},
        **{f"exclude_{n}": segment for n, segment in enumerate(exclude)},
        **{f"path_{n}": path[0] if len(path) == 1 else path for n, path in enumerate(paths)},
    }
    statement = count_sql(len(include), len(exclude), [len(path) for path in paths])
    try:
        # A savepoint inside somebody's transaction, which goes on whatever comes of it.
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute("SELECT current_setting('statement_timeout')")
            before = cursor.fetchone()
            _set_timeout(cursor, str(PATIENCE))
            with merging(cursor):
                cursor.execute(statement, parameters)
                people, *lacking = cursor.fetchone()
            _set_timeout(cursor, *before)
    except OperationalError as error:
        if getattr(error.__cause__, "sqlstate", None) != _QUERY_CANCELED:
            raise
        log.warning("account %s: who lacks which field was not counted: too slow", account_id)
        return FieldCounts(in_time=False, left_out=left_out)
    found = {name: number for name, number in zip(counted, lacking, strict=True) if number}
    return FieldCounts(people=people, lacking=found, left_out=left_out)


def _set_timeout(cursor: Any, timeout: str) -> None:
    cursor.execute("SELECT set_config('statement_timeout', %s, true)", [timeout])


def count_sql(include: int, exclude: int, paths: Sequence[int]) -> str:
    """The statement for so many segments, and for fields whose paths have so many parts. Keys and
    positions are found as templates find them."""
    _, joins, kept = joined_sql(include, exclude)
    columns = ["count(*)"]
    for n, parts in enumerate(paths):
        # The operator for one key costs a third of the one for paths.
        value = f"->> %(path_{n})s::text" if parts == 1 else f"#>> %(path_{n})s::text[]"
        columns.append(f"count(*) FILTER (WHERE coalesce(p.attributes {value}, '') IN ('', '[]'))")
    return f"""
        SELECT {", ".join(columns)}
        FROM {_SUBSCRIBER} p {joins}
        WHERE p.account_id = %(account)s AND p.status = 'confirmed' AND {kept}
            AND ({PAUSED}) IS NOT TRUE AND ({SUPPRESSED}) IS NOT TRUE"""
