"""How a transaction of the protocol begins."""

from __future__ import annotations

# A hand-over must be on disk (and on the synchronous standby) before the wire sees a byte.
# SET LOCAL only: a session setting would leak to the next client of a pooler.
DURABLE = (
    "SET TRANSACTION ISOLATION LEVEL READ COMMITTED; "
    "SET LOCAL synchronous_commit = on; SET LOCAL lock_timeout = '10s'"
)
# An outcome that is lost in a crash is written again from the worker's journal.
RELAXED = (
    "SET TRANSACTION ISOLATION LEVEL READ COMMITTED; "
    "SET LOCAL synchronous_commit = off; SET LOCAL lock_timeout = '10s'"
)

# Every other transaction that holds a gate: a snapshot per statement, whatever the host's
# default is, or it would decide by what was before the gate opened.
READ_COMMITTED = "SET TRANSACTION ISOLATION LEVEL READ COMMITTED; SET LOCAL lock_timeout = '10s'"
