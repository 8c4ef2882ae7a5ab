"""One sender process: its threads, its signals, its end."""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable

from django.db import connections

from subscribers.conf import conf

from .dispatcher import Dispatcher
from .handover import give_back
from .heartbeat import Heartbeat
from .lanes import Lane
from .ready import Ready, Shares
from .shared import Shared
from .stopping import EXIT_ABANDONED, Requests, end_at_once
from .upkeep import Upkeep

log = logging.getLogger("sendonce.sender")

#: How long after the grace the process insists on writing what it knows.
LAST_WRITES = 10.0
#: And how long it then waits for its threads to notice.
LAST_WORDS = 3.0


class Sender:
    """``run`` blocks until a signal, or with ``drain`` until nothing is left to do."""

    def __init__(
        self,
        *,
        lanes: int,
        lot: int,
        sessions: int = 1,
        drain: bool = False,
        campaign_id: int | None = None,
        patience: float = 0.0,
    ) -> None:
        self.drain = drain
        self.shared = Shared(
            lanes=lanes,
            lot_limit=lot,
            sessions=sessions,
            lease=conf.LEASE,
            margin=conf.LEASE_MARGIN,
            freshness=conf.HANDOVER_FRESHNESS,
            doubt_wait=conf.ANSWER_TIMEOUT,
            poll=conf.POLL,
            campaign_id=campaign_id,
        )
        self.shared.ready = Ready(
            Shares(
                lanes,
                list(conf.TRANSPORTS),
                self.shared.last_success.recent,
                doors=self.shared.doors,
            ),
            lines=self.shared.limits.lines,
        )
        self.lanes = [Lane(n, self.shared) for n in range(lanes)]
        self.dispatcher = Dispatcher(self.shared, self.lanes)
        self.upkeep = Upkeep(self.shared, watch_drain=drain, patience=patience)
        self.heartbeat = Heartbeat(self.shared, direct=conf.DIRECT_CONNECTION)
        self.signals = Requests()
        self.leaving = False

    def run(self, watch: Callable[[Sender], None] | None = None) -> None:
        """Send. ``watch`` is called ten times a second, for a display.

        Raises ``Abandoned`` when the last outcomes could not be written in time; the leases
        settle those rows (as in doubt), so nothing is lost or sent twice by it.
        """
        self.heartbeat.register()
        connections.close_all()  # this thread needs none while it waits
        log.info(
            "sender started",
            extra={
                "event": "sender_started",
                "worker": self.shared.worker_id,
                "pid": os.getpid(),
                "lanes": len(self.lanes),
                "sessions_at_most": len(self.lanes)
                * min(self.shared.sessions, self.shared.lot_limit),
                "lot": self.shared.lot_limit,
                "doubt_at_most": len(self.lanes) * self.shared.lot_limit,
            },
        )
        for thread in (self.heartbeat, self.upkeep, self.dispatcher, *self.lanes):
            thread.start()
        while not (self.signals or self.leaving or (self.drain and self.upkeep.drained.is_set())):
            if watch is not None:
                watch(self)
            time.sleep(0.1)
        self.stop()
        if watch is not None:
            watch(self)

    def leave(self) -> None:
        """Have ``run`` end as at a first signal. It is not counted as one: it may be said again,
        and beside a signal."""
        self.leaving = True

    def stop(self) -> None:
        """Stop claiming, let the messages on the wire finish, give back the rest, sign off."""
        shared = self.shared
        ended = threading.Event()
        # First: a log that nobody reads any more keeps whoever writes to it.
        threading.Thread(target=self._end_anyway, args=(ended,), daemon=True).start()
        log.info(
            "finishing what is on the wire",
            extra={"event": "sender_stopping", "worker": shared.worker_id},
        )
        shared.stopping.set()
        shared.wake()
        self.upkeep.imports.terminate()
        shared.ready.wake()
        self.dispatcher.join(5.0)
        waiting = shared.ready.drain()
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
        shared.insist(shared.brake.flush, "counts")
        self.heartbeat.sign_off()
        ended.set()
        shared.pool.close()
        self.upkeep.imports.stop()  # last: what is known of messages is written by now
        log.info(
            "sender stopped",
            extra={
                "event": "sender_stopped",
                "worker": shared.worker_id,
                **{f"rows_{k}": v for k, v in sorted(shared.tally.counts().items())},
            },
        )

    def _end_anyway(self, ended: threading.Event) -> None:
        """A supervisor's patience ends too: give the last writes up after the grace, and end
        the process even when a thread hangs in a connection that says nothing."""
        if ended.wait(conf.GRACE + LAST_WRITES):
            return
        self.shared.abandon.set()
        if not ended.wait(LAST_WORDS):
            # Who hangs may have the log's lock.
            said = "ended without the database: rows on the wire will be in doubt"
            end_at_once(EXIT_ABANDONED, "sender_abandoned", said, worker=self.shared.worker_id)

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
            lot = lane.hand.current()
            if lane.is_alive() and lot is not None:
                lane.hand.conclude(lot, "the sender was stopped")

    def handle_signals(self, within: float) -> None:
        """Stop on SIGTERM, SIGINT and SIGHUP from now on; a second one, later than the first by
        more than a second, ends the process, and so do ``within`` seconds."""
        self.signals.hear(within)
