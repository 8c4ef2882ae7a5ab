"""One sender process: its threads, its signals, its end."""

from __future__ import annotations

import logging
import os
import signal
import threading
from collections.abc import Callable
from types import FrameType

from django.db import connections

from subscribers.conf import conf

from .connections import LOST
from .dispatcher import Dispatcher
from .handover import give_back
from .heartbeat import Heartbeat
from .lanes import Lane
from .ready import Ready
from .shared import Abandoned, Shared
from .upkeep import Upkeep

log = logging.getLogger("sendonce.sender")

#: How long after the grace the process insists on writing what it knows.
LAST_WRITES = 10.0


def lanes_of_one(lanes: int, transports: int) -> int:
    """How many of ``lanes`` may work for one of so many transports: all for the only one; else
    one less for every other, but at least half, so that one that hangs leaves some to them."""
    return max(lanes - (transports - 1), -(-lanes // 2), 1)


class Sender:
    """``run`` blocks until a signal, or with ``drain`` until nothing is left to do."""

    def __init__(
        self,
        *,
        lanes: int,
        lot: int,
        drain: bool = False,
        campaign_id: int | None = None,
        patience: float = 0.0,
    ) -> None:
        self.drain = drain
        self.shared = Shared(
            lanes=lanes,
            lot_limit=lot,
            lease=conf.LEASE,
            margin=conf.LEASE_MARGIN,
            freshness=conf.HANDOVER_FRESHNESS,
            doubt_wait=conf.ANSWER_TIMEOUT,
            poll=conf.POLL,
            campaign_id=campaign_id,
            ready=Ready(lanes_of_one(lanes, len(conf.TRANSPORTS))),
        )
        self.lanes = [Lane(n, self.shared) for n in range(lanes)]
        self.dispatcher = Dispatcher(self.shared, self.lanes)
        self.upkeep = Upkeep(self.shared, watch_drain=drain, patience=patience)
        self.heartbeat = Heartbeat(self.shared, direct=conf.DIRECT_CONNECTION)
        self.signals = 0

    def run(self, watch: Callable[[Sender], None] | None = None) -> None:
        """Send. ``watch`` is called about twice a second, for a display.

        Raises ``Abandoned`` when the last outcomes could not be written in time; the leases
        settle those rows (as in doubt), so nothing is lost or sent twice by it.
        """
        self._handle_signals()
        self.heartbeat.register()
        connections.close_all()  # this thread needs none while it waits
        log.info(
            "sender started",
            extra={
                "event": "sender_started",
                "worker": self.shared.worker_id,
                "lanes": len(self.lanes),
                "lot": self.shared.lot_limit,
            },
        )
        for thread in (self.heartbeat, self.upkeep, self.dispatcher, *self.lanes):
            thread.start()
        while not self.shared.stopping.wait(0.1 if self.drain else 0.5):
            if watch is not None:
                watch(self)
            if self.drain and self.upkeep.drained.is_set():
                break
        self.stop()
        if watch is not None:
            watch(self)

    def stop(self) -> None:
        """Stop claiming, let the messages on the wire finish, give back the rest, sign off."""
        shared = self.shared
        log.info("finishing what is on the wire", extra={"event": "sender_stopping"})
        shared.stopping.set()
        shared.wake()
        shared.ready.wake()
        self.dispatcher.join(5.0)
        waiting = shared.ready.drain()
        watchdog = threading.Timer(conf.GRACE + LAST_WRITES, shared.abandon.set)
        watchdog.daemon = True
        watchdog.start()
        if waiting:
            shared.insist(lambda: give_back(waiting), "give-back")
            shared.ready.release(waiting)
        self._await_lanes()
        # A claim that was under way while the dispatcher stopped.
        late = shared.ready.drain()
        if late:
            shared.insist(lambda: give_back(late), "give-back")
            shared.ready.release(late)
        self.upkeep.join(5.0)
        try:
            self.heartbeat.sign_off()
        except LOST as error:
            raise Abandoned(f"could not sign off: {error}") from error
        watchdog.cancel()
        shared.pool.close()
        log.info(
            "sender stopped",
            extra={
                "event": "sender_stopped",
                "worker": shared.worker_id,
                **{f"rows_{k}": v for k, v in sorted(shared.tally.counts().items())},
            },
        )

    def _await_lanes(self) -> None:
        """Up to the grace for the messages on the wire; then those are in doubt."""
        deadline = threading.Event()
        timer = threading.Timer(conf.GRACE, deadline.set)
        timer.daemon = True
        timer.start()
        while any(lane.is_alive() for lane in self.lanes) and not deadline.is_set():
            for lane in self.lanes:
                lane.join(0.05)
        timer.cancel()
        for lane in self.lanes:
            lot = lane.in_hand()
            if lane.is_alive() and lot is not None:
                lane.conclude(lot, "the sender was stopped")

    def _handle_signals(self) -> None:
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, self._on_signal)

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        # Only flags here: a handler that logs or locks can deadlock with what it interrupted.
        self.signals += 1
        if self.signals > 1:
            os._exit(128 + number)
        self.shared.stopping.set()
