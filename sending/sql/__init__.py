"""Every raw statement of the sending protocol, by name; ``DESIGN`` section 4 in SQL.

Raw, because each of these is one statement with one snapshot by intention: a claim that skips
locked rows fairly over campaigns, a check and a compare-and-set that must not see two moments.
Parameters are named; ids, tokens and the like travel as arrays, one element per row.

Rules that hold for all of them:

* gates first, then row locks in ascending id, then the change in a later statement;
* a row is only ever changed by its claim token and its expected status;
* time is ``clock_timestamp()``: ``now()`` stands still while a transaction waits for a lock. Only
  ``handed_at`` is ``statement_timestamp()``, which is never after the snapshot of an UPDATE.
"""

from __future__ import annotations

from .build import (
    CHUNK_CURSOR,
    CHUNK_END,
    CHUNK_INSERT,
    CHUNK_INSERT_BESIDE,
    SEGMENTS,
    SWEEP,
)
from .claim import (
    CLAIM_QUEUED,
    CLAIM_RETRY,
    CLAIM_TRANSACTIONAL,
    RENEW,
)
from .closing import (
    CANCEL_ROWS,
    CANCELED_WITH_OPEN_ROWS,
    FOLLOW_ALL_MOVED,
    FOLLOW_MOVED,
    HOLD_BUILD,
    LEAVERS_CAMPAIGNS,
    LOCK_LEAVERS,
    WITHDRAW_LEAVERS,
)
from .doubt import (
    DOUBT_DUE,
    HOLD,
    REPLAY,
    SEND_AGAIN,
    TREAT_AS_SENT,
)
from .hand_over import (
    HAND_OVER,
    LOCK_ROWS,
)
from .ledger import (
    COUNTS,
    HAS_WORK,
    OPEN_ROWS,
)
from .outcomes import (
    ACCEPT,
    EVENT_INSERT,
    FULL_AGAIN,
    GIVE_BACK,
    NOT_WRITTEN,
    REFUSE,
)
from .pauses import (
    LIFT,
    PAUSE_ACCOUNT,
    PAUSE_ALIAS,
    PAUSED,
    TAKE_PROBES,
)
from .rescue import (
    DEAD_CAMPAIGNS,
    EXPIRED_CAMPAIGNS,
    RESCUE_DEAD,
    RESCUE_EXPIRED,
)
from .session import (
    DURABLE,
    HURRIED,
    READ_COMMITTED,
    RELAXED,
)
from .tables import CAMPAIGN, EVENT, SEND

__all__ = [
    "ACCEPT",
    "CAMPAIGN",
    "CANCELED_WITH_OPEN_ROWS",
    "CANCEL_ROWS",
    "CHUNK_CURSOR",
    "CHUNK_END",
    "CHUNK_INSERT",
    "CHUNK_INSERT_BESIDE",
    "CLAIM_QUEUED",
    "CLAIM_RETRY",
    "CLAIM_TRANSACTIONAL",
    "COUNTS",
    "DEAD_CAMPAIGNS",
    "DOUBT_DUE",
    "DURABLE",
    "EVENT",
    "EVENT_INSERT",
    "EXPIRED_CAMPAIGNS",
    "FOLLOW_ALL_MOVED",
    "FOLLOW_MOVED",
    "FULL_AGAIN",
    "GIVE_BACK",
    "HAND_OVER",
    "HAS_WORK",
    "HOLD",
    "HOLD_BUILD",
    "HURRIED",
    "LEAVERS_CAMPAIGNS",
    "LIFT",
    "LOCK_LEAVERS",
    "LOCK_ROWS",
    "NOT_WRITTEN",
    "OPEN_ROWS",
    "PAUSED",
    "PAUSE_ACCOUNT",
    "PAUSE_ALIAS",
    "READ_COMMITTED",
    "REFUSE",
    "RELAXED",
    "RENEW",
    "REPLAY",
    "RESCUE_DEAD",
    "RESCUE_EXPIRED",
    "SEGMENTS",
    "SEND",
    "SEND_AGAIN",
    "SWEEP",
    "TAKE_PROBES",
    "TREAT_AS_SENT",
    "WITHDRAW_LEAVERS",
]
