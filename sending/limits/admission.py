"""Limits that all workers share through the database: so many messages a second per transport,
account and provider of mailboxes, and so many sessions per transport.

A limit is a row of ``RateLimit``, a token bucket on the database's clock (see ``token_buckets``).
Before its hand-over a lane takes a permit for each row of its lot, a token in every bucket that
applies to it. What gets none is sorted in three:

* ``waiting``: stands in this process's line for the limit, still claimed, and comes back to a
  lane when there are tokens (``Ready.wait``, ``sending.limits.lines``); no lane waits with it;
* ``give_back``: the line is long enough and the limit is the transport's or the account's: back
  to the queue, and ``held_accounts`` keeps the dispatcher from claiming it again at once;
* ``later``: the line is long enough and the limit is a provider's of mailboxes, which the
  dispatcher can't tell apart: ``defer`` puts it off in the database, spread over the time that
  the backlog needs, so that everybody else's mail flows past it.

Where nothing is limited ``concerns`` says so without the database.
"""

from __future__ import annotations

import logging
import random
import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from django.db import connection, transaction

from .. import clock, events
from ..answers import Answer, Verdict
from ..queue import Claimed
from ..sql import limits as sql
from ..sql.hand_over import LOCK_ROWS
from ..sql.session import RELAXED
from ..withheld import WITHHELD
from . import slow_rates
from .complaints import Complaints
from .keys import account_key, configured_rates, is_of_domain, keys_of, transport_key
from .lines import Lines
from .session_shares import SessionShares
from .spreading import LONGEST, first_after, waits
from .token_buckets import Bucket, batch, grant

log = logging.getLogger("sendonce.sender")

#: A line holds what this process may send in so many seconds, within these bounds.
LINE_SECONDS = 10.0
SHORTEST_LINE, LONGEST_LINE = 4, 2000
#: Nobody has taken a token for so many seconds: there is no backlog any more.
IDLE = 5.0


@dataclass(slots=True)
class Admission:
    """What the limits say about a lot; each row is in one of the four, in the lot's order.

    ``waiting``: with the key of the limit. ``later``: with the seconds until it may try.
    ``at``: the database's time of the permits; None where none was needed.
    """

    go: list[Claimed] = field(default_factory=list)
    waiting: list[tuple[Claimed, str]] = field(default_factory=list)
    give_back: list[Claimed] = field(default_factory=list)
    later: list[tuple[Claimed, float]] = field(default_factory=list)
    at: datetime | None = None


class Limits:
    """One process's view of the limits; safe between threads."""

    def __init__(self) -> None:
        self.lines = Lines()
        self.shares = SessionShares()
        self._lock = threading.Lock()
        self._known = False
        self._rates: dict[str, float] = {}
        self._closed: dict[str, float] = {}
        self._complaints = Complaints()
        self._transports: dict[int, str] = {}

    # --- before the hand-over ----------------------------------------------------------------

    def concerns(self, alias: str, rows: Iterable[Claimed]) -> bool:
        """Whether a limit may apply to any of these rows. Never asks the database."""
        if not self._known:
            return True
        rates, heard = self._rates, self._complaints.heard()
        if not rates and not heard:
            return False
        return any(key in rates or key in heard for row in rows for key in keys_of(alias, row))

    def admit(self, alias: str, rows: Sequence[Claimed]) -> Admission:
        """Permits for as many of ``rows`` as the limits allow now.

        One short transaction; none where no limit applies or others are in line already. May be
        called again after a failure: permits that were taken by then are lost, which only sends
        less. Raises ``django.db.Error`` subclasses.
        """
        if not self._known:
            self.refresh()
        self._complain()
        trying: list[tuple[Claimed, list[str]]] = []
        refused: dict[Claimed, str] = {}
        for row in rows:
            keys = [key for key in keys_of(alias, row) if key in self._rates]
            ahead = self._line_ahead(row, keys)
            if ahead is None:
                trying.append((row, keys))
            else:
                refused[row] = ahead
        # Behind a transactional message somebody waits.
        trying.sort(key=lambda pair: pair[0].campaign_id is not None)
        found = Admission()
        if any(keys for _, keys in trying):
            found.at = self._take_tokens(trying, refused)
        found.go = [row for row in rows if row not in refused]
        self.lines.leave(found.go)
        put_off: dict[str, list[Claimed]] = {}
        for row in rows:
            if row in refused:
                self._sort_out(row, refused[row], found, put_off)
        found.later = self._spread(put_off)
        return found

    def _line_ahead(self, row: Claimed, keys: Sequence[str]) -> str | None:
        """The limit for which others have waited longer than this row, if there is one."""
        if row.campaign_id is None or self.lines.waited(row):
            return None
        ahead = [(self.lines.length(key) / self._rates.get(key, 1.0), key) for key in keys]
        longest, key = max(ahead, default=(0.0, ""))
        return key if longest > 0 else None

    def _take_tokens(
        self, trying: Sequence[tuple[Claimed, list[str]]], refused: dict[Claimed, str]
    ) -> datetime | None:
        """A token of each of its limits for whoever can have all; the others are ``refused``."""
        wanted = sorted({key for _, keys in trying for key in keys})
        buckets: dict[str, Bucket] = {}
        at: datetime | None = None
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute(RELAXED)
            cursor.execute(sql.LOCK_BUCKETS, {"keys": wanted})
            for key, rate, tokens, elapsed, read_at in cursor.fetchall():
                buckets[key] = Bucket.seen(rate, tokens, elapsed)
                at = read_at if at is None else max(at, read_at)
            answers = grant([keys for _, keys in trying], buckets)
            taken = [key for key, bucket in buckets.items() if bucket.taken]
            if taken:
                left = [buckets[key].tokens for key in taken]
                cursor.execute(
                    sql.TAKE_TOKENS, {"keys": taken, "tokens": left, "at": at, "idle": IDLE}
                )
        for (row, _), key in zip(trying, answers, strict=True):
            if key is not None:
                refused[row] = key
        self._pace(buckets, set(refused.values()))
        return at

    def _pace(self, buckets: Mapping[str, Bucket], refusing: set[str]) -> None:
        """Let the next few of each line out when there should be tokens for them."""
        now = clock.now()
        for key, bucket in buckets.items():
            with self._lock:
                self._note_closed(key, bucket.closed_for)
            if key in refusing or self.lines.length(key):
                several = batch(bucket.rate)
                # Competitors that came at the same moment again and again would all but one
                # come in vain.
                self.lines.pace(key, now + bucket.wait(several) + random.uniform(0, 0.003), several)

    def _sort_out(
        self, row: Claimed, key: str, found: Admission, put_off: dict[str, list[Claimed]]
    ) -> None:
        standing = self.lines.length(key) + sum(other == key for _, other in found.waiting)
        if standing < self._room(key) or self.lines.waited(row):
            found.waiting.append((row, key))
        elif is_of_domain(key) or row.campaign_id is None:
            put_off.setdefault(key, []).append(row)
        else:
            found.give_back.append(row)

    def _spread(self, put_off: Mapping[str, Sequence[Claimed]]) -> list[tuple[Claimed, float]]:
        """When each of those may try again."""
        later: list[tuple[Claimed, float]] = []
        now = clock.now()
        for key, rows in sorted(put_off.items()):
            closed = max(self._closed.get(key, now) - now, 0.0)
            after = closed + first_after(self._room(key), self._rates.get(key, 1.0))
            with transaction.atomic(), connection.cursor() as cursor:
                cursor.execute(RELAXED)
                cursor.execute(
                    sql.SPREAD,
                    {"key": key, "count": len(rows), "after": after, "longest": LONGEST},
                )
                # A limit that was lifted this very moment keeps nobody.
                end, rate = cursor.fetchone() or (1.0, float(len(rows)))
            later += zip(rows, waits(len(rows), end, rate), strict=True)
        return later

    def _room(self, key: str) -> int:
        """How many rows this process lets wait in line: its part of a few seconds' worth."""
        share = self._rates.get(key, 1.0) / self.shares.workers()
        return max(SHORTEST_LINE, min(LONGEST_LINE, int(share * LINE_SECONDS)))

    def held_accounts(self) -> set[int]:
        """Accounts of whose rows there are enough in line; not worth claiming for at this moment.
        Their transactional messages are: those come first in every line."""
        now = clock.now()
        full = {
            key for key in self.lines.standing() if self.lines.length(key) * 2 >= self._room(key)
        }
        full.update(key for key, until in list(self._closed.items()) if until > now + 1.0)
        if not full:
            return set()
        return {
            account
            for account, alias in list(self._transports.items())
            if account_key(account) in full or transport_key(alias) in full
        }

    def defer(self, later: Sequence[tuple[Claimed, float]]) -> int:
        """``claimed -> retry`` in so many seconds, by token, no attempt spent; returns how many
        were ours. A canceled campaign's row is closed instead. Safe to repeat. Raises
        ``django.db.Error`` subclasses."""
        lot = sorted(later, key=lambda pair: pair[0].id)
        self.lines.leave(row for row, _ in lot)
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute(RELAXED)
            # No gate, as for a give-back: claimed and retry are both open, and a cancel closes
            # both.
            cursor.execute(LOCK_ROWS, {"ids": [row.id for row, _ in lot]})
            cursor.execute(
                sql.DEFER,
                {
                    "ids": [row.id for row, _ in lot],
                    "tokens": [row.token for row, _ in lot],
                    "delays": [seconds for _, seconds in lot],
                },
            )
            moved = cursor.fetchall()
            events.record(
                cursor,
                [
                    events.Note(
                        send_id=row_id,
                        account_id=account_id,
                        kind=status,
                        stage="local",
                        reason="canceled",
                        text=WITHHELD["canceled"],
                    )
                    for row_id, account_id, status in moved
                    if status != "retry"
                ],
            )
        return len(moved)

    # --- after an answer ---------------------------------------------------------------------

    def note(self, alias: str, row: Claimed, verdict: Verdict, answer: Answer) -> None:
        """One message was answered: count it, and remember a wish to slow down. The database
        hears of it at the next ``admit`` or ``refresh``."""
        heard = self._complaints.note(alias, row, verdict, answer, workers=self.shares.workers())
        if heard is not None:
            with self._lock:
                self._note_closed(heard.key, heard.closed)

    def took(self, alias: str, rows: Sequence[Claimed]) -> None:
        """Count the acceptance of each of ``rows``: the same as ``note`` for one after the
        other."""
        self._complaints.took(alias, rows)

    def closed(self, alias: str) -> bool:
        """Whether the provider said that it takes nothing more for a while: what was handed over
        and not started is better given back."""
        closed = self._closed
        return bool(closed) and closed.get(transport_key(alias), 0.0) > clock.now()

    def _note_closed(self, key: str, seconds: float) -> None:
        if seconds > 0:
            self._closed[key] = max(self._closed.get(key, 0.0), clock.now() + seconds)

    def _complain(self) -> None:
        if self._complaints.heard():
            in_force = self._complaints.tell()
            with self._lock:
                self._rates = {**self._rates, **in_force}

    # --- about once a second -----------------------------------------------------------------

    def refresh(self, worker_id: int | None = None) -> None:
        """Tell what this process has heard, make the limits follow the configuration, raise those
        that were left in peace, and read them.

        With ``worker_id``, this process's, also who is alive: without it there are no sessions of
        a transport that allows only so many. Raises ``django.db.Error`` subclasses.
        """
        self._complain()
        with connection.cursor() as cursor:
            if worker_id is not None:
                self.shares.refresh(cursor, worker_id)
            cursor.execute(sql.ACCOUNTS)
            accounts = cursor.fetchall()
            cursor.execute(sql.LIMITS)
            stored = cursor.fetchall()
        wanted = configured_rates((pk, hourly) for pk, _, hourly in accounts)
        changed = {key: usual for key, usual, *_ in stored if usual is not None} != wanted
        if changed:
            self._configure(wanted)
        slow = any(slowed for *_, slowed in stored)
        if slow:
            self._recover()
        if changed or slow:
            with connection.cursor() as cursor:
                cursor.execute(sql.LIMITS)
                stored = cursor.fetchall()
        buckets = {
            key: Bucket.seen(rate, tokens, elapsed) for key, _, rate, tokens, elapsed, _ in stored
        }
        with self._lock:
            self._transports = {pk: alias for pk, alias, _ in accounts}
            self._rates = {key: bucket.rate for key, bucket in buckets.items()}
            untold = self._complaints.heard()
            self._closed = {key: at for key, at in self._closed.items() if key in untold}
            for key, bucket in buckets.items():
                self._note_closed(key, bucket.closed_for)
        self._let_out(buckets)
        self._known = True

    def _let_out(self, buckets: Mapping[str, Bucket]) -> None:
        """A line whose limit was raised, lifted or opened need not wait for what was."""
        now = clock.now()
        for key in self.lines.standing():
            if key in buckets:
                self.lines.sooner(key, now + buckets[key].wait())
            else:
                self.lines.pace(key, now, LONGEST_LINE)
        self.lines.tidy()

    def _configure(self, wanted: Mapping[str, float]) -> None:
        keys = sorted(wanted)
        with connection.cursor() as cursor:
            cursor.execute(sql.ONLY_SLOW, {"keys": keys})
            cursor.execute(sql.REMOVE, {"keys": keys})
            cursor.execute(sql.CONFIGURE, {"keys": keys, "rates": [wanted[k] for k in keys]})

    def _recover(self) -> None:
        given = {"recovery": slow_rates.RECOVERY, "increase": slow_rates.INCREASE}
        with connection.cursor() as cursor:
            cursor.execute(sql.FORGET_SLOW_DOWN, given)
            over = cursor.fetchall()
            cursor.execute(sql.RAISE, given)
            raised = cursor.fetchall()
        for key, rate in raised:
            log.info("rate raised", extra={"event": "rate_raised", "limit": key, "rate": rate})
        for key, _ in over:
            log.info("slow-down is over", extra={"event": "slow_down_over", "limit": key})

    # --- sessions ----------------------------------------------------------------------------

    def unreachable(self) -> set[str]:
        """Transports of which this process has no session and may open none: others have them.
        Nothing is to be claimed for them, and what was is to be given back."""
        return self.shares.without()
