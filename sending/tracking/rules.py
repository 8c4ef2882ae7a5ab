"""What an event of a provider does to a row of the ledger: pure decisions, no database.

The order in which events arrive means nothing, so every rule is one of a fixed precedence:

1. a **hard bounce** ends it: ``bounced``;
2. what shows that it **arrived** (delivered, opened, clicked, complained, an automatic reply)
   makes it ``sent``, whatever else was said before;
3. a **rejection** by the provider, after it took it, makes it ``failed``;
4. what shows that the provider **took** it makes it ``sent``.

A weaker word never undoes a stronger one, whichever comes first. A row that was never handed over
does not change. One that is open although it was handed over before (the answer then was a definite
refusal, or staff send it again) is barred from a second delivery, as by an acceptance that comes
late: the provider's own word for this very message is better than an HTTP status. Only after a
rejection is known, the weak words of 4 are not enough: they may speak of the attempt that staff
had repeated.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum

from ..models import Send

Status = Send.Status

HARD_BOUNCE = "hard_bounce"
COMPLAINED = "complained"
UNSUBSCRIBED = "unsubscribed"
ARRIVED = frozenset({"delivered", "opened", "clicked", COMPLAINED, "autoresponded"})
NOT_DELIVERED = frozenset({"rejected", "failed"})
TAKEN = frozenset({"queued", "sent", "deferred", "soft_bounce", UNSUBSCRIBED})
#: Told each time somebody looks; the first of each is kept.
ONCE = frozenset({"opened", "clicked"})

#: What staff or a policy send again is not stopped by the rejection of an earlier attempt.
_OPEN = frozenset({Status.QUEUED, Status.RETRY, Status.CLAIMED})


class Result(StrEnum):
    """What came of an event; ``ProviderEvent.result``."""

    APPLIED = "applied"
    UNKNOWN_JOB = "unknown_job"
    OTHER_INSTALLATION = "other_installation"
    WRONG_RECIPIENT = "wrong_recipient"
    WRONG_PROVIDER = "wrong_provider"
    NEVER_HANDED_OVER = "never_handed_over"
    #: It says nothing that we act on, or nothing new.
    IGNORED = "ignored"
    #: To apply it was more than we could do; the log says why.
    ERROR = "error"


@dataclass(frozen=True, slots=True)
class Row:
    """A send as the rules see it. ``known``: the kinds of event applied to it before."""

    status: str
    handed_at: datetime | None = None
    known: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Decision:
    """``row``: as it is afterwards. ``bounced``, ``complained``: to be counted, once per send."""

    result: Result
    row: Row
    bounced: bool = False
    complained: bool = False


def decide(row: Row, kind: str) -> Decision:
    """What an event of this kind does to ``row``."""
    if kind not in TAKEN | ARRIVED | NOT_DELIVERED | {HARD_BOUNCE}:
        return Decision(Result.IGNORED, row)
    if kind in ONCE and kind in row.known:
        return Decision(Result.IGNORED, row)
    after = replace(row, status=_becomes(row, kind), known=row.known | {kind})
    if row.handed_at is None and kind not in (COMPLAINED, UNSUBSCRIBED):
        return Decision(Result.NEVER_HANDED_OVER, row)
    return Decision(
        Result.APPLIED,
        after,
        bounced=after.status == Status.BOUNCED and row.status != Status.BOUNCED,
        complained=kind == COMPLAINED and COMPLAINED not in row.known,
    )


def _becomes(row: Row, kind: str) -> str:
    if row.handed_at is None or row.status == Status.BOUNCED:
        return row.status
    if kind == HARD_BOUNCE:
        return Status.BOUNCED
    if kind in ARRIVED:
        return Status.SENT
    if kind in NOT_DELIVERED:
        stays = row.status in _OPEN or row.known & ARRIVED
        return row.status if stays else Status.FAILED
    return row.status if row.known & NOT_DELIVERED else Status.SENT
