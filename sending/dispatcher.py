"""The dispatcher: one thread that claims ahead, so that lanes find rows ready."""

from __future__ import annotations

import logging
import random
import threading
from functools import partial

from campaigns.models import Campaign
from subscribers.conf import conf

from . import clock
from .connections import LOST
from .handover import give_back
from .lanes import Lane
from .queue import Claimed, Rotation, claim
from .shared import Shared

log = logging.getLogger("sendonce.sender")

#: No claim is smaller than this many rows unless less is wanted anyway.
SMALLEST_CLAIM = 4
#: Seconds between two looks at which campaigns are open, while there is work; and at least, when
#: somebody says that there is something new.
REFRESH = 0.5
REFRESH_AT_NEWS = 0.05


class Dispatcher(threading.Thread):
    """Keeps about two lots per lane ready. ``step`` makes one claim."""

    def __init__(self, shared: Shared, lanes: list[Lane]) -> None:
        super().__init__(name="dispatcher", daemon=True)
        self.shared = shared
        self.lanes = lanes
        self.rotation = Rotation()
        self._refreshed_at = float("-inf")
        self._refreshed = False
        self._aliases: dict[int, str] = {}
        self._accounts: dict[int, int] = {}

    def run(self) -> None:
        shared = self.shared
        while not shared.stopping.is_set():
            try:
                claimed = self.step()
            except LOST as error:
                log.warning(
                    "database not reached, trying again",
                    extra={"event": "database_wait", "what": "claim", "error": str(error).strip()},
                )
                shared.stopping.wait(random.uniform(0.5, 1.0))
                continue
            except Exception:
                log.exception("a claim failed", extra={"event": "claim_error"})
                shared.stopping.wait(1.0)
                continue
            if claimed == 0:
                shared.wake_dispatcher.wait(shared.poll * random.uniform(0.7, 1.0))
                self._refreshed_at = float("-inf")

    def step(self) -> int:
        """Top up what is ready, of every transport that has room; returns how many rows were
        claimed, -1 when nothing more could be had because there was no room.

        By transport, so that rows which wait for one that hangs keep nobody else's away.
        """
        shared = self.shared
        wanted = self._wanted()
        level = max(1, wanted // 2)
        rows: list[Claimed] = []
        with shared.pool.lend():
            self._refresh()
            crowded = shared.ready.crowded(level)
            if not (crowded and crowded >= set(conf.TRANSPORTS)):
                total = max(SMALLEST_CLAIM, wanted - level)
                rows = self._claim(total, crowded)
                # Less than was asked for: there is no more just now.
                shared.ready.shared_by = len(self.lanes) if len(rows) < total else 1
        shared.ready.put((r.alias, r) for r in rows)
        self._return_blocked()
        self._return_closed()
        if not rows and crowded:
            shared.ready.wait_for_room(crowded, level, 0.25)
            return -1
        return len(rows)

    def _claim(self, total: int, crowded: set[str]) -> list[Claimed]:
        shared = self.shared
        closed = crowded | shared.limits.unreachable()
        held = shared.limits.held_accounts()
        return claim(
            self.rotation,
            worker_id=shared.worker_id,
            total=total,
            lease=shared.lease,
            margin=shared.margin,
            blocked=self._accounts_without_room(closed),
            closed=closed | shared.pauses.aliases,
            transactional=shared.campaign_id is None,
            skip={c for c, alias in self._aliases.items() if alias in closed}
            | {c for c, account in self._accounts.items() if account in held}
            | shared.parked_now(),
        )

    def _accounts_without_room(self, closed: set[str]) -> list[int]:
        pauses = self.shared.pauses
        full = [pk for pk, alias in list(pauses.accounts.items()) if alias in closed]
        return sorted({*pauses.blocked_accounts(), *full})

    def _wanted(self) -> int:
        """Rows to have ready: two lots of what each lane takes at present."""
        return 2 * sum(lane.size.size for lane in self.lanes)

    def _refresh(self) -> None:
        """Which campaigns are open: looked up twice a second, not at every claim, so that the
        dry ones of a thousand stay out of the way for a while; and when there is news, so that a
        small campaign which begins beside a large one does not wait for that."""
        news = self.shared.wake_dispatcher
        if clock.now() < self._refreshed_at + (REFRESH_AT_NEWS if news.is_set() else REFRESH):
            return
        news.clear()
        self._refreshed_at = clock.now()
        campaigns = Campaign.objects.filter(status=Campaign.Status.SENDING)
        if self.shared.campaign_id is not None:
            campaigns = campaigns.filter(pk=self.shared.campaign_id)
        pauses = self.shared.pauses
        fields = ("pk", "account_id", "account__transport")
        open_ones = [
            (pk, account_id, alias)
            for pk, account_id, alias in campaigns.order_by("id").values_list(*fields)
            if not pauses.blocks(alias, account_id)
        ]
        self._aliases = {pk: alias for pk, _, alias in open_ones}
        self._accounts = {pk: account_id for pk, account_id, _ in open_ones}
        self.rotation.refresh(list(self._aliases))
        self._refreshed = True

    def _return_blocked(self) -> None:
        """Rows that wait for a transport paused meanwhile go back, for others or later."""
        for alias in {*self.shared.pauses.aliases, *self.shared.limits.unreachable()}:
            waiting: list[Claimed] = self.shared.ready.drain(alias)
            if waiting:
                self.shared.insist(partial(give_back, waiting), "give-back")
                self.shared.ready.release(waiting)

    def _return_closed(self) -> None:
        """Rows of campaigns that are not open any more (paused, canceled) go back: in the line of
        a slow limit they would wait for hours, and take permits that others of it could use."""
        if not self._refreshed:
            return
        self._refreshed = False
        closed = self.shared.ready.take_out(
            lambda row: row.campaign_id is not None and row.campaign_id not in self._aliases
        )
        if closed:
            self.shared.insist(partial(give_back, closed), "give-back")
            self.shared.ready.release(closed)
