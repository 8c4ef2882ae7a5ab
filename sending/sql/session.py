"""How a transaction of the protocol begins."""

from __future__ import annotations

# A snapshot per statement, whatever the host's default is, or it would decide by what was before
# the gate opened. Whoever is stopped in the middle (SIGSTOP, a suspended machine, a dead link)
# must not hold gates and rows for ever: PostgreSQL ends its session. SET LOCAL only: a session
# setting would leak to the next client of a pooler.
READ_COMMITTED = (
    "SET TRANSACTION ISOLATION LEVEL READ COMMITTED; "
    "SET LOCAL lock_timeout = '10s'; "
    "SET LOCAL idle_in_transaction_session_timeout = '15s'"
)

# A hand-over must be on disk (and on the synchronous standby) before the wire sees a byte.
DURABLE = f"{READ_COMMITTED}; SET LOCAL synchronous_commit = on"

# An outcome that is lost in a crash is written again from the worker's journal.
RELAXED = f"{READ_COMMITTED}; SET LOCAL synchronous_commit = off"

# Others wait for this transaction's end: a row that somebody else has locked is for later.
HURRIED = "SET LOCAL lock_timeout = '500ms'"
