"""What people decide about doubt: in batches, each with its record in one transaction, and told.

``sending.doubt`` decides; here is what stands around a person's decision, at the desk, in the list
of sends and at the command line: that nothing is decided about a hand-over which they had not seen,
who is answerable for it, and why rows were left.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import groupby
from typing import Any

from django.db import OperationalError, connection
from django.db.models import QuerySet
from django.http import HttpRequest

from campaigns.errors import GateBusy
from campaigns.gate import enter_exclusive, is_lock_timeout
from campaigns.models import Campaign
from subscribers.audit import record
from subscribers.database_clock import database_time
from subscribers.models import Account
from subscribers.read_committed import read_committed

from . import doubt
from .models import Send

#: Rows of one transaction, so that a decision about a hundred thousand holds no gate for long.
BATCH = 1000
#: Seconds after which one request begins no other batch.
BUDGET = 8.0

_CANCELED = "the campaign is canceled, nothing of it is sent again"
_ERASED = "the person was erased, nothing is sent to them"
_HELD = "the sender that held it may still live, try again in a minute"
_BUSY = "somebody decides about it, or a sender holds it, at this moment; try again"
_NEWER = "sent again meanwhile and in doubt anew, look at it first"
_SAME = "somebody else decided the same meanwhile"
_ARRIVED = "it became known meanwhile that it arrived"
_TREATED = "somebody treated it as sent meanwhile"
_UNDER_WAY = "it is being sent again already"
_BOUNCED = "it became known meanwhile that the address is dead"
_FAILED = "it became known meanwhile that it was refused"
_WITHHELD = "it is not to be sent any more"
_GONE = "there is no such row any more"


@dataclass(frozen=True, slots=True)
class Seen:
    """A row as a decision finds or leaves it. ``held``: its sender's lease is not over; ``newer``:
    it was handed over after whoever decides had looked."""

    status: str
    reason: str = ""
    canceled: bool = False
    erased: bool = False
    held: bool = False
    newer: bool = False


@dataclass(frozen=True, slots=True)
class Decider:
    """Who decides: the user of a ``request``, or a user (``by``) or somebody without one
    (``by_name``) at the command line, whose system's user ``via`` tells for the record."""

    request: HttpRequest | None = None
    by: Any = None
    by_name: str = ""
    via: str = ""

    @property
    def user(self) -> Any:
        return self.by if self.by is not None else getattr(self.request, "user", None)


@dataclass(slots=True)
class Decided:
    """What came of a decision. ``left``: rows by why they were left as they are, sentences
    without their stop."""

    decided: int = 0
    left: Counter[str] = field(default_factory=Counter)

    @property
    def chosen(self) -> int:
        return self.decided + self.left.total()

    def add(self, other: Decided) -> None:
        self.decided += other.decided
        self.left += other.left


def why_left(row: Seen, decision: str) -> str:
    """Why a row was left, that a decision did not take effect on. Pure."""
    again = decision == doubt.SEND_AGAIN
    match row.status:
        case Send.Status.IN_DOUBT | Send.Status.FAILED if again and row.canceled:
            return _CANCELED
        case Send.Status.IN_DOUBT | Send.Status.FAILED if again and row.erased:
            return _ERASED
        case Send.Status.IN_DOUBT if row.newer:
            return _NEWER
        case Send.Status.IN_DOUBT | Send.Status.FAILED if again and row.held:
            return _HELD
        case Send.Status.IN_DOUBT:
            return _BUSY
        case Send.Status.FAILED:
            return _BUSY if again else _FAILED
        case Send.Status.SENT if row.reason == "treated_as_sent":
            return _TREATED if again else _SAME
        case Send.Status.SENT:
            return _ARRIVED
        case Send.Status.QUEUED if again:
            return _SAME
        case Send.Status.BOUNCED:
            return _BOUNCED
        case Send.Status.SUPPRESSED | Send.Status.CANCELED:
            return _WITHHELD
    return _UNDER_WAY


def leftovers(rows: Iterable[Seen], decision: str, *, decided: int, gone: int = 0) -> Counter[str]:
    """Why the others were left, when ``decided`` of ``rows`` have become what was decided and
    ``gone`` are not to be found. Pure."""
    left = Counter(why_left(row, decision) for row in rows)
    left[_SAME] -= decided
    left[_GONE] += gone
    return +left


def decide(
    sends: QuerySet[Send],
    ids: Sequence[int],
    decision: str,
    *,
    request: HttpRequest | None = None,
    who: Decider | None = None,
    asked: datetime | None = None,
    failed: bool = False,
) -> Decided:
    """Decide about those of ``sends`` (which are visible to whoever asks) that ``ids`` name.
    ``who`` decides, by default the user of the ``request``.

    ``asked`` is when they looked, by the database's clock: what was handed over later is another
    hand-over, and is left. With ``failed``, ``send_again`` takes failed rows as well. Each batch
    of one campaign and its record are one transaction; when one fails, those before it stay.
    """
    who, done = who or Decider(request), Decided()
    found = sends.filter(pk__in=ids).order_by("account_id", "campaign_id", "pk")
    rows = list(found.values_list("account_id", "campaign_id", "pk"))
    done.left[_GONE] = len(set(ids)) - len(rows)
    accounts = Account.objects.in_bulk({account for account, _, _ in rows})
    for (account, campaign), group in groupby(rows, key=lambda row: row[:2]):
        for batch in _batches([pk for _, _, pk in group]):
            done.add(
                _decide_batch(
                    accounts[account], campaign, batch, decision, who, asked, failed=failed
                )
            )
    done.left = +done.left
    return done


def decide_all(
    sends: QuerySet[Send],
    decision: str,
    *,
    request: HttpRequest,
    asked: datetime,
    after: int = 0,
    budget: float = BUDGET,
) -> tuple[Decided, int | None]:
    """Decide about all of ``sends`` that are in doubt since before ``asked``, from behind the id
    ``after``. Returns what came of it, and the id to go on behind when the time of one request
    (``budget`` seconds) was over first; None: that was all."""
    done = Decided()
    until = time.monotonic() + budget
    doubtful = sends.filter(queue=Send.Queue.IN_DOUBT, handed_at__lte=asked).order_by("pk")
    while True:
        ids = list(doubtful.filter(pk__gt=after).values_list("pk", flat=True)[:BATCH])
        if not ids:
            return done, None
        done.add(decide(sends, ids, decision, request=request, asked=asked))
        after = ids[-1]
        if time.monotonic() >= until:
            return done, after


def _batches(ids: list[int]) -> Iterator[list[int]]:
    for start in range(0, len(ids), BATCH):
        yield ids[start : start + BATCH]


def _decide_batch(
    account: Account,
    campaign: int | None,
    ids: list[int],
    decision: str,
    who: Decider,
    asked: datetime | None,
    *,
    failed: bool,
) -> Decided:
    try:
        with read_committed():
            if decision == doubt.SEND_AGAIN and campaign is not None:
                # Taken before the look, and not only by ``resolve``: nothing is handed over from
                # here to the end, so what is looked at is what is decided about.
                with connection.cursor() as cursor:
                    enter_exclusive(cursor, campaign)
            open_to = (Send.Status.IN_DOUBT, *((Send.Status.FAILED,) if failed else ()))
            chosen = Send.objects.filter(pk__in=ids, status__in=open_to)
            if asked is not None:
                chosen = chosen.filter(handed_at__lte=asked)
            rows = list(chosen.only("pk", "campaign_id"))
            decided = doubt.resolve(rows, decision, by=who.user, by_name=who.by_name, failed=failed)
            after = _look(ids, asked)
            if decided:
                told: dict[str, Any] = {
                    "chosen": len(ids),
                    "decided": decided,
                    "campaigns": [campaign] if campaign is not None else [],
                }
                if who.via:
                    told["via"] = who.via
                # Which rows it were is told by their own events, of the same moment.
                record(
                    account, f"send.{decision}", by=who.user, by_name=who.by_name, detail=told,
                    subject=_subject(campaign), request=who.request,
                )  # fmt: skip
    except (GateBusy, OperationalError) as error:
        # A row that somebody else holds for long, a sender that is stopped: left for now, too.
        if not isinstance(error, GateBusy) and not is_lock_timeout(error):
            raise
        after = _look(ids, asked)
        return Decided(0, leftovers(after, decision, decided=0, gone=len(ids) - len(after)))
    return Decided(decided, leftovers(after, decision, decided=decided, gone=len(ids) - len(after)))


def _subject(campaign: int | None) -> str:
    """What was decided about, for the record: a batch is of one campaign, or of none."""
    if campaign is None:
        return "single messages"
    return str(Campaign.objects.values_list("name", flat=True).get(pk=campaign))


def _look(ids: list[int], asked: datetime | None) -> list[Seen]:
    now = database_time()
    rows = Send.objects.filter(pk__in=ids).values_list(
        "status", "reason", "campaign__status", "email_lower", "lease_until", "handed_at"
    )
    return [
        Seen(
            status=status,
            reason=reason,
            canceled=campaign == Campaign.Status.CANCELED,
            erased=email is None,
            held=lease is not None and lease > now,
            newer=asked is not None and handed is not None and handed > asked,
        )
        for status, reason, campaign, email, lease, handed in rows
    ]


def told(done: Decided, decision: str) -> list[str]:
    """What came of it, as one line and one for each reason why rows were left. Pure."""
    what = "to be sent again" if decision == doubt.SEND_AGAIN else "treated as sent"
    rows = "message" if done.chosen == 1 else "messages"
    lines = [f"{done.decided:,} of {done.chosen:,} {rows} {what}."]
    lines += [f"{number:,} left as before: {why}." for why, number in done.left.items()]
    return lines
