"""Counting a million people while somebody waits for the page."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.db import connection, transaction

from ..models import Membership, Subscriber, Suppression

_SUBSCRIBER = Subscriber._meta.db_table
_MEMBERSHIP = Membership._meta.db_table
_SUPPRESSION = Suppression._meta.db_table

#: By the person's own wish, and by the database's clock: no campaign until then. A condition for
#: ``FILTER``: null where there is no pause.
PAUSED = "p.paused_until > statement_timestamp()"

#: Is the person's address suppressed now? A look into the list for each of a million takes
#: seconds; as a set it is read once.
SUPPRESSED = f"""p.email_lower IN (
    SELECT x.email_lower FROM {_SUPPRESSION} x
    WHERE (x.account_id = %(account)s OR x.account_id IS NULL)
        AND (x.expires IS NULL OR x.expires > statement_timestamp()))"""


@contextmanager
def one_snapshot() -> Iterator[Any]:
    """A cursor whose statements see one moment, unless a transaction is open already: then each
    sees what is committed before it. Nothing is written."""
    outermost = not connection.in_atomic_block
    with transaction.atomic(), connection.cursor() as cursor:
        if outermost:
            cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
        yield cursor


@contextmanager
def merging(cursor: Any) -> Iterator[None]:
    """Statements in this block join by merging what indexes give in order.

    The planner takes a hash of every person for cheaper; it takes twice the time, and the memory
    (``benchmarks/bench_counts.py``). Compiling a statement takes longer than running it.
    """
    cursor.execute("SELECT current_setting('enable_hashjoin'), current_setting('jit')")
    before = cursor.fetchone()
    _set(cursor, "off", "off")
    yield
    _set(cursor, *before)


def _set(cursor: Any, hashjoin: str, jit: str) -> None:
    cursor.execute(
        "SELECT set_config('enable_hashjoin', %s, true), set_config('jit', %s, true)",
        [hashjoin, jit],
    )


def present(segment: str, person: str = "p.id") -> str:
    """SQL: is ``person`` in that segment now? Both are expressions, never input."""
    return (
        f"EXISTS (SELECT 1 FROM {_MEMBERSHIP} m WHERE m.segment_id = {segment}"
        f" AND m.subscriber_id = {person} AND m.left_at IS NULL)"
    )
