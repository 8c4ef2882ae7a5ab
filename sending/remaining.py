"""How much is left to send, asked of the database seldom and off everybody's way.

A display wants to know twice a second what only a count can tell. Here one background thread
counts on a borrowed connection, at a pace that keeps it under two per cent of that connection's
time; whoever shows the result reads the last answer and never waits.
"""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from django.db import connection, transaction
from django.db.models import Q
from django.db.models.functions import Now

from campaigns.models import Campaign

from . import clock
from .models import Send

if TYPE_CHECKING:
    from .shared import Shared

log = logging.getLogger("sendonce.sender")

#: Milliseconds after which a count is given up: the lanes need the connection more.
COUNT_LIMIT_MS = 2000
#: A count that took t seconds is not made again for t times this.
REST = 50
#: Seconds between two counts while there is nothing to send.
IDLE_EVERY = 0.5
#: Seconds over which rates are taken.
WINDOW = 10.0

#: What a row became in this process that closes it; ``withheld`` are those a check stopped.
CLOSING = ("sent", "bounced", "failed", "in_doubt", "withheld")


@dataclass(frozen=True, slots=True)
class Remaining:
    """People of the campaigns that are being sent (and of those that finished in the same
    stretch of work), and how many of them still wait.

    ``waiting`` is the part of ``open`` that waits for a retry; ``building``: people are still
    being added to ``total``.
    """

    total: int
    open: int
    waiting: int
    building: bool
    #: Rows that this process had closed when it was counted.
    closed_here: int
    #: When (``sending.clock``): the clock is the machine's, other processes read the same.
    at: float = 0.0

    def done(self, closed_now: int) -> int:
        """People finished with, ``closed_now`` rows closed in this process since it began.

        Between two counts our own progress is added, so that the number moves smoothly.
        """
        counted = max(0, self.total - self.open)
        return min(self.total, counted + max(0, closed_now - self.closed_here))


def closed(counts: Mapping[str, int]) -> int:
    """Rows that this process has closed, from its tally."""
    return sum(counts.get(status, 0) for status in CLOSING)


class Window:
    """A rate over the last seconds, not since the start; a bounded number of samples."""

    def __init__(self, seconds: float = WINDOW) -> None:
        self.seconds = seconds
        self._samples: deque[tuple[float, int]] = deque(maxlen=1000)

    def add(self, at: float, value: int) -> None:
        """A running total as of ``at`` (seconds). One that fell starts the window anew."""
        if self._samples and (value < self._samples[-1][1] or at < self._samples[-1][0]):
            self._samples.clear()
        self._samples.append((at, value))
        while len(self._samples) > 2 and self._samples[1][0] <= at - self.seconds:
            self._samples.popleft()

    @property
    def rate(self) -> float:
        """Per second; 0 while less than a second is known."""
        if len(self._samples) < 2:
            return 0.0
        (start, first), (end, last) = self._samples[0], self._samples[-1]
        return (last - first) / (end - start) if end - start >= 1.0 else 0.0


def eta(left: int, rate: float) -> float | None:
    """Seconds until ``left`` rows are done at ``rate`` a second; None when nobody can tell."""
    return left / rate if rate > 0 else None


class Watcher:
    """Keeps ``latest`` fresh: ``poke`` says that somebody looks, and never waits."""

    def __init__(self, shared: Shared, *, every: float) -> None:
        self.shared = shared
        self.every = every
        self.latest: Remaining | None = None
        self._since: datetime | None = None
        self._next = float("-inf")
        self._asked = threading.Event()
        self._thread: threading.Thread | None = None

    def poke(self) -> None:
        """Have it counted again if it is time. A stopping sender closes its connections: then
        the last count must do."""
        if self.shared.stopping.is_set() or clock.now() < self._next or self._asked.is_set():
            return
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="progress", daemon=True)
            self._thread.start()
        self._asked.set()

    def _run(self) -> None:
        while not self.shared.stopping.is_set():
            if not self._asked.wait(1.0):
                continue
            begun = clock.now()
            try:
                self.latest = self.count()
            except Exception as error:
                # The display does without; those who send report a database that is away.
                log.debug("progress not counted: %s", error)
            took = clock.now() - begun
            # A campaign that starts now is worth an early look.
            idle = self.latest is None or not self.latest.total
            every = min(self.every, IDLE_EVERY) if idle else self.every
            self._next = clock.now() + max(every, took * REST)
            self._asked.clear()

    def count(self) -> Remaining:
        """Count now, on a borrowed connection. Raises what the database raises."""
        before, at = closed(self.shared.tally.counts()), clock.now()
        with self.shared.pool.lend(), transaction.atomic():
            with connection.cursor() as cursor:
                cursor.execute(f"SET LOCAL statement_timeout = {COUNT_LIMIT_MS}")
                cursor.execute("SELECT clock_timestamp()")
                (now,) = cursor.fetchone()
            rows = self._scope()
            sending = [pk for pk, status, _, _ in rows if status == Campaign.Status.SENDING]
            waiting = _count(sending, Q(queue=Send.Queue.RETRY))
            left = waiting + sum(
                _count(sending, condition)
                # Each has a partial index of its own, which a single IN would not use.
                for condition in (
                    Q(queue=Send.Queue.QUEUED),
                    Q(queue=Send.Queue.IN_FLIGHT),
                )
            )
        # A stretch of work begins with its first campaign and ends when none is left.
        if not sending or self._since is None:
            self._since = now
        return Remaining(
            total=sum(audience for _, _, audience, _ in rows),
            open=left,
            waiting=waiting,
            building=any(built is None for _, _, _, built in rows),
            closed_here=before,
            at=at,
        )

    def _scope(self) -> list[tuple[int, str, int, datetime | None]]:
        in_scope = Q(status=Campaign.Status.SENDING)
        if self._since is not None:
            in_scope |= Q(
                status=Campaign.Status.SENT, finished_at__gte=self._since, finished_at__lte=Now()
            )
        campaigns = Campaign.objects.filter(in_scope)
        if self.shared.campaign_id is not None:
            campaigns = campaigns.filter(pk=self.shared.campaign_id)
        return list(campaigns.order_by("id").values_list("id", "status", "audience", "built_at"))


def _count(campaigns: list[int], condition: Q) -> int:
    if not campaigns:
        return 0
    return Send.objects.filter(condition, campaign_id__in=campaigns).count()
