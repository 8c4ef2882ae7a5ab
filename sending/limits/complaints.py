"""The other side asks to slow down: noted by the lane, told to all workers soon after."""

from __future__ import annotations

import logging
import math
import threading
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from django.db import connection

from ..answers import Answer, Reason, Stage, Verdict, said, unnamed
from ..queue import Claimed
from ..sql import limits as sql
from . import slow_rates
from .keys import domain_key, domain_of, recipient_key, transport_key
from .slow_rates import Observed, first_slow_down

log = logging.getLogger("sendonce.sender")

#: ``Retry-After`` of a provider closes its transport for no longer than this; the message itself
#: waits as long as it was told.
LONGEST_CLOSED = 3600.0
#: Stages at which it speaks of the transport and not of the recipient's provider.
_OF_TRANSPORT = frozenset(
    {Stage.CONNECT, Stage.GREETING, Stage.EHLO, Stage.TLS, Stage.AUTH, Stage.MAIL, Stage.HTTP}
)


@dataclass(frozen=True, slots=True)
class Complaint:
    """``words`` of the answer, what was sent then (messages a second), and for how many seconds
    the other side wants nothing at all."""

    key: str
    words: str
    observed: float
    closed: float


class Complaints:
    """What one process has heard and not told yet; safe between threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._observed = Observed()
        self._heard: dict[str, Complaint] = {}
        self._logged: dict[str, float] = {}

    def note(
        self, alias: str, row: Claimed, verdict: Verdict, answer: Answer, *, workers: int
    ) -> Complaint | None:
        """Count one answered message; the complaint, if it was one."""
        over, to = transport_key(alias), recipient_key(row)
        self._observed.count(over, to)
        if verdict.reason is not Reason.THROTTLED:
            return None
        of_transport = answer.stage in _OF_TRANSPORT
        key = over if of_transport else to
        told = said(answer.code, answer.enhanced, answer.text)
        words = unnamed(told, row.email) or "asked to slow down"
        observed = self._observed.rate(key) * max(1, workers)
        closed = closed_for(answer.retry_after) if of_transport else 0.0
        with self._lock:
            before = self._heard.get(key)
            if before is not None:
                observed, closed = max(observed, before.observed), max(closed, before.closed)
            heard = self._heard[key] = Complaint(key, words[:500], observed, closed)
        return heard

    def took(self, alias: str, rows: Sequence[Claimed]) -> None:
        """Count so many messages that were accepted."""
        counts = Counter({transport_key(alias): len(rows)})
        for domain, messages in Counter(map(domain_of, rows)).items():
            counts[domain_key(domain)] += messages
        self._observed.count_all(counts)

    def heard(self) -> Collection[str]:
        """The keys of what was not told yet."""
        return self._heard

    def tell(self) -> dict[str, float]:
        """Slow down for everybody; ``{key: messages a second}`` that are in force now. What was
        heard is kept until it is told. Raises ``django.db.Error`` subclasses."""
        with self._lock:
            heard = sorted(self._heard.values(), key=lambda complaint: complaint.key)
        return {complaint.key: self._slow_down(complaint) for complaint in heard}

    def _slow_down(self, complaint: Complaint) -> float:
        rate, ceiling = first_slow_down(complaint.observed)
        with connection.cursor() as cursor:
            cursor.execute(
                sql.SLOW_DOWN,
                {
                    "key": complaint.key,
                    "rate": rate,
                    "ceiling": ceiling,
                    "closed": complaint.closed,
                    "reason": complaint.words,
                    "patience": slow_rates.PATIENCE,
                    "decrease": slow_rates.DECREASE,
                    "slowest": slow_rates.SLOWEST,
                },
            )
            in_force = float(cursor.fetchone()[0])
        with self._lock:
            if self._heard.get(complaint.key) is complaint:
                del self._heard[complaint.key]
            again = self._logged.get(complaint.key) == in_force
            self._logged[complaint.key] = in_force
        if not again:
            log.warning(
                "slowed down",
                extra={
                    "event": "slowed_down",
                    "limit": complaint.key,
                    "rate": in_force,
                    "reason": complaint.words,
                },
            )
        return in_force


def closed_for(retry_after: float | None) -> float:
    """Seconds for which a transport takes nothing; bounded, whatever a header says."""
    if retry_after is None or not math.isfinite(retry_after):
        return 0.0
    return min(max(retry_after, 0.0), LONGEST_CLOSED)
