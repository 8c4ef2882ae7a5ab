"""The heartbeat: says "I live", renews leases, keeps the journal short, listens for news."""

from __future__ import annotations

import logging
import os
import random
import socket
import threading

from django.db import connection, connections, transaction
from django.db.models.functions import Now
from psycopg import Error as PsycopgError

from campaigns.lifecycle import CHANNEL

from . import clock, cluster, sql
from .connections import LOST, Busy, Unacknowledged, acknowledged, close_quietly
from .models import Worker
from .queue import renew
from .rescue import worker_lock_key
from .settle import Settlement, not_written, settle
from .shared import Shared

log = logging.getLogger("sendonce.sender")

#: Seconds between two beats. A beat commits durably, which also covers what was committed
#: asynchronously before it.
BEAT = 2.0


class Heartbeat(threading.Thread):
    """Owns one connection: beats, LISTEN and, on direct connections, the session lock."""

    def __init__(self, shared: Shared, *, direct: bool) -> None:
        super().__init__(name="heartbeat", daemon=True)
        self.shared = shared
        self.direct = direct
        self.done = threading.Event()
        self._prepared = False
        self._next_beat = 0.0

    def register(self) -> None:
        """Make this process's ``Worker`` row; call it in the thread that will not beat."""
        worker = Worker.objects.create(
            host=socket.gethostname()[:200],
            pid=os.getpid(),
            lanes=self.shared.lanes,
            sessions_a_lane=min(self.shared.sessions, self.shared.lot_limit),
            only_campaign=self.shared.campaign_id,
            started=Now(),
            seen=Now(),
        )
        self.shared.worker_id = worker.pk

    def run(self) -> None:
        while not self.done.is_set():
            try:
                self.step()
            except (*LOST, PsycopgError) as error:
                log.warning(
                    "database not reached, trying again",
                    extra={
                        "event": "database_wait",
                        "what": "heartbeat",
                        "error": str(error).strip(),
                    },
                )
                self._reconnect()
            except Exception:
                log.exception("the heartbeat failed", extra={"event": "heartbeat_error"})
                self._reconnect()
        connections.close_all()

    def _reconnect(self) -> None:
        close_quietly(connection)
        self._prepared = False
        self.done.wait(random.uniform(0.3, 0.8))

    def step(self) -> None:
        """Beat when it is time; then wait for a notification, a second at most."""
        if not self._prepared:
            self._prepare()
        if clock.now() >= self._next_beat:
            self.beat()
            self._next_beat = clock.now() + BEAT
        if self.direct:
            raw = connection.connection
            for _ in raw.notifies(timeout=0.5, stop_after=1):
                self.shared.wake()
        else:
            self.done.wait(0.5)

    def _prepare(self) -> None:
        """After every (re)connect: the session lock, and LISTEN."""
        cluster.check()
        if self.direct:
            self._take_session_lock()
            with connection.cursor() as cursor:
                cursor.execute(f"LISTEN {CHANNEL}")
            # From here on this session lives as long as no outcome is lost: see ``Journal``.
            self.shared.journal.session += 1
        self._prepared = True
        self.shared.wake()

    def _take_session_lock(self) -> None:
        """Hold our id's lock as long as this connection lives.

        Another worker that found it free meanwhile has taken us for dead and ended our row:
        then go on under a new one. What it relabelled is fenced by the tokens.
        """
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT pg_try_advisory_lock(%s)", [worker_lock_key(self.shared.worker_id)]
            )
            (locked,) = cursor.fetchone()
        kept = locked and Worker.objects.filter(
            pk=self.shared.worker_id, ended__isnull=True
        ).update(locked=True)
        if not kept:
            self.register()
            with connection.cursor() as cursor:
                cursor.execute(
                    "SELECT pg_advisory_lock(%s)", [worker_lock_key(self.shared.worker_id)]
                )
            Worker.objects.filter(pk=self.shared.worker_id).update(locked=True)

    def beat(self, *, ending: bool = False) -> None:
        """One durable commit: seen now. Then write again what a crash of the server has lost,
        forget the rest, and renew the leases that are half over."""
        shared = self.shared
        kept = shared.journal.kept()
        # Behind a pooler nobody knows whose session a commit was made in, and the last beat is
        # made in another one. What is kept only now is looked at too, if not forgotten.
        doubtful = shared.journal.uncertain() if self.direct and not ending else kept
        try:
            with acknowledged(connection):
                self._say_alive(ending=ending)
        except Unacknowledged as error:
            # Committed here, not on the standby: the outcomes before it stay in the journal.
            log.warning(str(error), extra={"event": "not_acknowledged"})
        else:
            if self._write_again(doubtful):
                shared.journal.forget(kept)
        if not ending:
            self._renew()

    def _say_alive(self, *, ending: bool) -> None:
        shared = self.shared
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute(sql.DURABLE)
            changes: dict[str, object] = {
                "seen": Now(),
                "note": "; ".join([*shared.pauses.reasons, *shared.makes_do()])[:500],
            }
            if ending:
                changes |= {"ended": Now(), "note": "signed off"}
            seen = Worker.objects.filter(pk=shared.worker_id).update(**changes)
        if not seen:
            # Somebody deleted our row. A commit that wrote nothing flushes nothing, so this beat
            # proves nothing: go on under a new row, and let the next one count.
            self.register()
            raise Unacknowledged("the worker's row is gone; registered anew")

    def _write_again(self, kept: list[Settlement]) -> bool:
        """Settle what the ledger does not show although its commit had returned; False when a
        decision is under way and the next beat has to do it."""
        for start in range(0, len(kept), 1000):
            lost = not_written(kept[start : start + 1000])
            if lost:
                log.warning(
                    "the database lost outcomes in a crash; they are written again",
                    extra={"event": "journal_replayed", "rows": len(lost)},
                )
                try:
                    settle(lost, doubt_wait=self.shared.doubt_wait, durable=True)
                except Busy:
                    return False
        return True

    def _renew(self) -> None:
        shared, now = self.shared, clock.now()
        half = (shared.lease - shared.margin) / 2
        old = [r for r in shared.ready.held() if r.trusted_until - now < half]
        for start in range(0, len(old), 500):
            renew(old[start : start + 500], lease=shared.lease, margin=shared.margin)

    def sign_off(self) -> None:
        """The last beat, in the calling thread: outcomes are durable when it returns."""
        self.done.set()
        self.shared.wake()
        self.join(5.0)

        def last() -> None:
            self.beat(ending=True)
            if self.shared.journal.kept():
                raise Busy("outcomes are not durable yet")

        self.shared.insist(last, "sign-off")
