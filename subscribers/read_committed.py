"""Transactions whose statements each see what was committed before they began."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from django.db import connection, transaction


@contextmanager
def read_committed() -> Iterator[None]:
    """A transaction in which a lock that was waited for shows what its last holder wrote, whatever
    isolation level the host's database has by default. Inside a transaction of the caller's it is
    that one, at its level."""
    outermost = not connection.in_atomic_block
    with transaction.atomic():
        if outermost:
            with connection.cursor() as cursor:
                cursor.execute("SET TRANSACTION ISOLATION LEVEL READ COMMITTED")
        yield
