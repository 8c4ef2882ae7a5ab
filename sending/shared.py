"""What the threads of one sender process share."""

from __future__ import annotations

import logging
import random
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import TypeVar

from campaigns.errors import GateBusy

from . import clock, cluster, health
from .compose import Composer
from .connections import LOST, Busy, Pool
from .desks import Desks
from .doors import Doors
from .health import Brake
from .limits.admission import Limits
from .outcomes import Answer
from .pauses import LastSuccess, Pauses
from .ready import Ready
from .settle import Journal
from .tally import Tally

log = logging.getLogger("sendonce.sender")

T = TypeVar("T")

#: Lanes and the dispatcher share these; heartbeat and upkeep have one each. Four in all.
POOL_SIZE = 2
#: Seconds for which a campaign whose gate was closed is left alone.
PARKED = 0.5


class Abandoned(Exception):
    """The process ends and waits for the database no longer; leases settle what is left."""


@dataclass
class Shared:
    """Options are seconds or rows; see ``subscribers.conf``."""

    lanes: int
    lot_limit: int
    lease: float
    margin: float
    freshness: float
    doubt_wait: float
    poll: float
    campaign_id: int | None = None
    #: Mail sessions of each lane to one transport.
    sessions: int = 1
    worker_id: int = 0
    pool: Pool = field(default_factory=lambda: Pool(POOL_SIZE, verify=cluster.check))
    ready: Ready = field(default_factory=Ready)
    doors: Doors = field(init=False)
    desks: Desks = field(init=False)
    composer: Composer = field(default_factory=Composer)
    pauses: Pauses = field(default_factory=Pauses)
    last_success: LastSuccess = field(default_factory=LastSuccess)
    journal: Journal = field(default_factory=Journal)
    tally: Tally = field(default_factory=Tally)
    brake: Brake = field(init=False)
    limits: Limits = field(default_factory=Limits)
    #: By transport, the row at whose recipient it said that it takes nothing at all.
    suspects: dict[str, int] = field(default_factory=dict)
    #: By transport, until when some lane does without a further session (``sending.clock``).
    fewer_until: dict[str, float] = field(default_factory=dict)
    #: Campaigns about which somebody decides: not claimed from until then (``sending.clock``).
    parked: dict[int, float] = field(default_factory=dict)
    #: Finish the message on the wire, start no other.
    stopping: threading.Event = field(default_factory=threading.Event)
    #: Do not even wait for the database any more.
    abandon: threading.Event = field(default_factory=threading.Event)
    #: Something happened that makes a look at the queue worthwhile.
    wake_dispatcher: threading.Event = field(default_factory=threading.Event)
    wake_upkeep: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self) -> None:
        self.brake = Brake(self.pauses)
        self.doors = Doors(self.limits.shares)
        self.desks = Desks(self)

    def wake(self) -> None:
        self.wake_dispatcher.set()
        self.wake_upkeep.set()

    def insist(self, write: Callable[[], T], what: str) -> T:
        """Run an idempotent database step on a borrowed connection until it is done.

        Waits through a restart of the database. Raises ``Abandoned`` when the process ends
        first; anything but a lost connection propagates.
        """

        def lent() -> T:
            with self.pool.lend():
                return write()

        return self.persist(lent, what)

    def persist(self, attempt: Callable[[], T], what: str) -> T:
        """As ``insist``, for a step that borrows its connection itself."""
        wait = 0.1
        while True:
            try:
                return attempt()
            except Busy:
                # A decision takes milliseconds; no connection is held while we wait for it.
                if self.abandon.is_set():
                    raise Abandoned(f"{what} not written: the campaign was busy") from None
                self.abandon.wait(random.uniform(0.02, 0.1))
                continue
            except LOST as error:
                if self.abandon.is_set():
                    raise Abandoned(f"{what} not written: {error}") from error
                log.warning(
                    "database not reached, trying again",
                    extra={"event": "database_wait", "what": what, "error": str(error).strip()},
                )
            self.abandon.wait(wait * random.uniform(0.5, 1.0))
            wait = min(wait * 2, 5.0)

    def park(self, campaign_ids: Iterable[int | None]) -> None:
        """Claim nothing of these campaigns for a moment."""
        until = clock.now() + PARKED
        self.parked.update({c: until for c in campaign_ids if c is not None})

    def parked_now(self) -> set[int]:
        now = clock.now()
        for campaign_id in [c for c, until in list(self.parked.items()) if until <= now]:
            self.parked.pop(campaign_id, None)
        return set(self.parked)

    def makes_do(self) -> list[str]:
        """What staff are told of transports to which some lane has fewer sessions than it may."""
        now = clock.now()
        return [
            f"{alias} allows no more mail sessions, going on with fewer"
            for alias, until in sorted(self.fewer_until.copy().items())
            if until > now
        ]

    def pause_campaign(self, campaign_id: int, reason: str) -> None:
        """The brake was pulled: pause the campaign, unless somebody was faster."""

        def pause() -> bool:
            try:
                return health.pause(campaign_id, reason)
            except GateBusy as error:
                raise Busy(str(error)) from error

        if self.insist(pause, "campaign pause"):
            health.log_pause(campaign_id, reason)

    def pause(self, alias: str, account_id: int | None, said: Answer) -> None:
        """Pause a transport for everybody; the dispatcher takes back what waits for it here."""
        self.pauses.note(alias, account_id, str(said.stage))
        self.insist(lambda: self.pauses.write(alias, account_id, said), "transport pause")
