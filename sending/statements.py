"""The cursor of the statements that every message meets: claim, hand-over, outcome, give-back.

The server binds the parameters, and where the connection is the process's own
(``SENDONCE["DIRECT_CONNECTION"]``) it keeps the statement prepared: to plan the hand-over anew for
each lot costs more than to carry it out. Behind a transaction pooler the next transaction may be
another server session's, which knows nothing of what was prepared, so nothing is.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Any
from uuid import UUID
from weakref import WeakKeyDictionary

import psycopg
from django.db import connection

from subscribers.conf import conf

from . import clock

#: Seconds for which a plan is kept. The server keeps a plan that fits any parameters until the
#: table's statistics change, so one made for a table of a few pages would read all of a million
#: rows a minute later, when a campaign was built and autovacuum has not looked yet.
PLAN_LASTS = 2.0

#: By connection, when its plans are to be made again (``sending.clock``).
_replan_at: WeakKeyDictionary[Any, float] = WeakKeyDictionary()


class _Cursor(psycopg.Cursor[Any]):
    def execute(self, query: Any, params: Any = None, **given: Any) -> _Cursor:
        # Without parameters it may be several statements, which can't be prepared.
        prepare = conf.DIRECT_CONNECTION and params is not None
        if prepare and _replan_at.get(self.connection, 0.0) <= clock.now():
            _replan_at[self.connection] = clock.now() + PLAN_LASTS
            super().execute("DISCARD PLANS", prepare=False)
        return super().execute(query, params, prepare=prepare)


def array(values: Iterable[Any]) -> str:
    """Numbers, UUIDs, texts without NUL or None as the text of a PostgreSQL array, for a parameter
    with a cast such as ``%(ids)s::bigint[]``.

    psycopg makes the same of a list, element by element in Python; for the thousands of elements
    of a few hundred rows that was half of what a hand-over cost its process.
    """
    return f"{{{','.join([_element(value) for value in values])}}}"


def _element(value: Any) -> str:
    if value is None:
        return "NULL"
    if not isinstance(value, str):
        return str(value) if type(value) is int else _other(value)
    if '"' in value or "\\" in value:
        value = value.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{value}"'


def _other(value: Any) -> str:
    return value.hex if isinstance(value, UUID) else str(value)


def cursor() -> Any:
    """A cursor on this thread's connection, to be used as a context manager; Django's wrapper, so
    that its errors are Django's. Inside a transaction: it begins none and ends none."""
    connection.ensure_connection()
    raw: Any = connection.connection
    if conf.DIRECT_CONNECTION and raw.prepare_threshold is None:
        # None forbids it. What does not ask for it is never prepared all the same: not even by
        # Django's own cursors where a host has set ``server_side_binding``.
        raw.prepare_threshold = sys.maxsize
    own: Any = _Cursor(raw)
    return connection.make_cursor(own)
