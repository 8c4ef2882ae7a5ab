"""A lane: a thread with mail sessions of its own, one or a few, that moves one lot after another.

Per lot: render, make sure that a session is open, hand over (durable commit), send one by
one, write the outcomes; only then the next lot. Where all was accepted and the next lot can go at
once, its hand-over writes them: one transaction for both. The database is never in a transaction
while the network is used.

Before a relay that is far away or slow half a lot is handed over at a time, while the half before
it is on the wire, by a thread that does it for all lanes (``clerk``). So no lane waits for a
commit, and none has more rows handed over and not settled than those of one lot, as elsewhere.
"""

from __future__ import annotations

import logging
import threading
import time
from typing import TYPE_CHECKING, Any

from . import clock
from .compose import ComposeError
from .connections import LOST, Busy
from .handover import Handed
from .lane_hand import InHand
from .lane_sessions import LaneSessions
from .lane_wire import OnWire
from .lot import Ahead, Lot, LotSize
from .outcomes import Stage, answer
from .queue import Claimed
from .settle import Settlement, refused_here
from .transports import Transport, TransportFailure, UnknownTransport

if TYPE_CHECKING:
    from .shared import Shared

log = logging.getLogger("sendonce.sender")


def _log_not_acknowledged(rows: int, error: Exception) -> None:
    log.warning(
        "hand-over not acknowledged, nothing was sent",
        extra={"event": "handover_failed", "rows": rows, "error": str(error)},
    )


class Lane(threading.Thread):
    """One lane. ``step`` moves one lot and says whether there was one."""

    def __init__(self, number: int, shared: Shared) -> None:
        super().__init__(name=f"lane-{number}", daemon=True)
        self.shared = shared
        self.size = LotSize(shared.lot_limit)
        self.sessions = LaneSessions(shared)
        self.hand = InHand(shared)
        self.wire = OnWire(shared, self.sessions, self.hand, self.size)

    def run(self) -> None:
        while not self.shared.stopping.is_set():
            try:
                if not self.step(timeout=0.5):
                    self.sessions.rest()
            except Exception:
                # A fault of ours stops neither the lane nor the row's accounting (see step).
                log.exception("a lane failed on a lot", extra={"event": "lane_error"})
                self.sessions.drop()
                time.sleep(0.5)
        try:
            self.hand.close()
        except Exception:
            log.exception("a lane failed at its end", extra={"event": "lane_error"})
        self.sessions.close()

    def step(self, timeout: float) -> bool:
        """Move one lot; False when none came within ``timeout`` seconds."""
        ahead = self.hand.ahead
        taken = (ahead.over.alias, []) if ahead is not None else self._take(timeout)
        if taken is None:
            return False
        alias, rows = taken
        self.sessions.begin(alias)
        lot = self.hand.begin(rows) if ahead is None else self.hand.go_on(ahead)
        try:
            if ahead is None:
                self._move(alias, rows, lot)
            else:
                self._go_on(alias, ahead)
        except Exception as fault:
            self.hand.give_up(lot, fault)
            raise
        finally:
            self.sessions.end(alias)
            if self.hand.ahead is None:
                self.shared.ready.done(alias)
        return True

    def _take(self, timeout: float) -> tuple[str, list[Claimed]] | None:
        # While a pause is known nothing is handed over ahead: halves would cost a commit each.
        ready = self.shared.ready
        size = self.size.portion if self.shared.pauses.is_clear else self.size.size
        taken = ready.take(size, 0.0) if self.hand.lot is not None else None
        if taken is None:
            self.hand.write_carried()
            taken = ready.take(size, timeout)
        return taken

    # --- one lot -----------------------------------------------------------------------------

    def _move(self, alias: str, rows: list[Claimed], lot: Lot) -> None:
        shared = self.shared
        if lot.carried and not self._goes_straight_on(alias, rows):
            self.hand.write_before(lot)
        rows = self._trusted(rows)
        rows, blocked = shared.pauses.let_through(alias, rows)
        self.hand.give_back(blocked)
        over = self._open(alias, rows)
        if over is None:
            self.hand.end(lot)
            return
        rows = self._admitted(alias, rows, lot)
        messages = self._compose(rows, over)
        rows, blocked = shared.pauses.probe(alias, [r for r in rows if r.id in messages])
        self.hand.give_back(blocked)
        if not rows:
            self.hand.end(lot)
            return
        started, session = clock.now(), shared.journal.session
        try:
            handed = shared.desks.hand_over(rows, over, lot.carried)
        except Busy:
            # Somebody decides about the campaign of the lot before, which is written first.
            self.hand.write_before(lot)
            self.hand.give_back(rows)
            self.hand.end(lot)
            return
        except LOST as error:
            self.hand.write_before(lot)  # as long as it takes; nothing of this lot was sent
            _log_not_acknowledged(len(rows), error)
            self.hand.give_back(rows)
            self.hand.end(lot)
            return
        if lot.carried:
            self.hand.written(lot, handed.became, session)
        self._handed(lot, rows, handed, started)
        self._send(over, lot, messages, started)

    def _handed(self, lot: Lot, rows: list[Claimed], handed: Handed, started: float) -> None:
        """These rows of the lot were handed over, in a transaction begun after ``started``."""
        shared = self.shared
        if handed.busy:
            shared.park(r.campaign_id for r in handed.busy)
            self.hand.give_back(handed.busy)
        going = {r.token for r in handed.go}
        shared.tally.withheld(handed.withheld)
        shared.ready.release(r for r in rows if r.token not in going)
        for row in handed.go:
            row.trusted_until = max(row.trusted_until, started + shared.lease - shared.margin)
        with self.hand.lock:
            lot.unstarted = list(handed.go)

    def _send(self, over: Transport, lot: Lot, messages: dict[int, Any], handed_at: float) -> None:
        """Send what was handed over, have more handed over meanwhile, and bring both to an end
        that ``step`` can go on from."""
        self._look_ahead(over, lot)
        self.wire.send_all(over, lot, messages, handed_at)
        self._await_ahead(lot)
        if not self.hand.carries(lot):
            self.hand.end(lot)
        if self.shared.brake.urgent:
            self._brake()

    # --- the next lot meanwhile --------------------------------------------------------------

    def _look_ahead(self, over: Transport, lot: Lot) -> None:
        """Have the next rows handed over while these are on the wire, where that takes long and
        nothing has to be asked for them; with what came of the lot before."""
        rows = self._next_rows(over.alias, lot)
        if rows:
            following = Lot(rows={r.id: r for r in rows})
            ahead = Ahead(following, over, clock.now(), self.shared.journal.session)
            self.hand.look_ahead(ahead)
            ahead.messages = self._compose(self._trusted(rows), over)
            rows = [r for r in rows if r.id in ahead.messages]
            with self.hand.lock:
                following.rows = {r.id: r for r in rows}  # of the others nothing is left to do
            if rows:
                ahead.ticket = self.shared.desks.lay(
                    rows, over, lot.carried, self.size.patience(len(lot.unstarted))
                )
                return
            self.hand.look_ahead(None)
        if lot.carried:
            self.hand.write_before(lot)

    def _next_rows(self, alias: str, lot: Lot) -> list[Claimed]:
        shared, size = self.shared, self.size
        if not size.goes_ahead or not 0 < len(lot.unstarted) <= size.portion:
            return []
        if lot.permitted_at is not None or shared.stopping.is_set() or shared.brake.urgent:
            return []
        if not shared.pauses.is_clear:
            return []
        rows = shared.ready.more(alias, size.portion)
        if rows and shared.limits.concerns(alias, rows):
            shared.ready.put_back(alias, rows)
            return []
        return rows

    def _await_ahead(self, lot: Lot) -> None:
        """Know what became of the hand-over meanwhile. The next lot can begin, or has gone back."""
        ahead, shared = self.hand.ahead, self.shared
        if ahead is None or ahead.ticket is None:
            return
        try:
            handed = ahead.ticket.result()
        except LOST as error:
            self.hand.write_before(lot)  # as long as it takes
            if not isinstance(error, Busy):
                _log_not_acknowledged(len(ahead.lot.rows), error)
            self.hand.turn_back()
            return
        if lot.carried:
            self.hand.written(lot, handed.became, ahead.session)
        self._handed(ahead.lot, list(ahead.lot.rows.values()), handed, ahead.asked_at)
        with self.hand.lock:
            # The others have gone back already. To return them once more would wait for the gate
            # of whoever decides about their campaign, and all lanes may wait there.
            ahead.lot.rows = {row.id: row for row in ahead.lot.unstarted}
        is_over = bool(lot.unstarted) or shared.brake.urgent or shared.stopping.is_set()
        if is_over or not ahead.lot.unstarted:
            self.hand.turn_back()

    def _go_on(self, alias: str, ahead: Ahead) -> None:
        """Send what was handed over meanwhile, if nothing has come in between."""
        lot, shared = ahead.lot, self.shared
        if lot.carried and not self.sessions.is_open(alias, 1):
            self.hand.write_before(lot)
        over = None
        if shared.pauses.is_clear and not shared.limits.concerns(alias, lot.unstarted):
            over = self._open(alias, lot.unstarted, extras=False)
        if over is None:
            self.hand.end(lot)
        else:
            self._send(over, lot, ahead.messages, ahead.asked_at)

    # --- what a lot passes -------------------------------------------------------------------

    def _goes_straight_on(self, alias: str, rows: list[Claimed]) -> bool:
        """Whether nothing stands between these rows and their hand-over that could take long."""
        shared = self.shared
        return (
            self.sessions.is_open(alias, len(rows))
            and shared.pauses.is_clear
            and not shared.limits.concerns(alias, rows)
        )

    def _trusted(self, rows: list[Claimed]) -> list[Claimed]:
        """Rows whose lease still holds; the others go back if they are still ours."""
        now = clock.now()
        stale = [r for r in rows if r.trusted_until <= now]
        if stale:
            self.hand.give_back(stale)
        return [r for r in rows if r.trusted_until > now]

    def _admitted(self, alias: str, rows: list[Claimed], lot: Lot) -> list[Claimed]:
        """Those that the limits let start now; the others wait, here or in the database."""
        shared, limits = self.shared, self.shared.limits
        if not rows or not limits.concerns(alias, rows):
            return rows
        lot.permitted_at = clock.now()
        admission = shared.insist(lambda: limits.admit(alias, rows), "permits")
        self.hand.give_back(admission.give_back)
        if admission.later:
            shared.insist(lambda: limits.defer(admission.later), "limits")
            shared.ready.release(row for row, _ in admission.later)
        if admission.waiting:
            with self.hand.lock:
                for row, _ in admission.waiting:
                    lot.rows.pop(row.id, None)  # another lane may have it at once
            shared.ready.wait(admission.waiting)
        return admission.go

    def _compose(self, rows: list[Claimed], over: Transport) -> dict[int, Any]:
        """A message per row; a row whose message can't be made fails alone."""
        composer = self.shared.composer
        wanted = {r.content_id for r in rows}
        loaded = composer.cached(wanted)
        if loaded is None:
            loaded = self.shared.insist(lambda: composer.load(wanted), "content")
        messages: dict[int, Any] = {}
        failed: list[Settlement] = []
        for row in rows:
            try:
                messages[row.id] = composer.compose(row, loaded, over=over)
            except ComposeError as error:
                failed.append(refused_here(row, answer(Stage.LOCAL, None, str(error))))
        if failed:
            self.hand.settle(failed)
            self.shared.ready.release(r for r in rows if r.id not in messages)
        return messages

    def _open(self, alias: str, rows: list[Claimed], *, extras: bool = True) -> Transport | None:
        """The transport, once there is an open, authenticated session of it, before anything is
        handed over; or None, and the rows have gone back. Without ``extras`` for what is handed
        over already: to open those may take longer than it stays fresh."""
        if not rows:
            return None
        try:
            over = self.sessions.road(alias)
            # Messages that need permits go one at a time, and so does one that tries a transport.
            extras = extras and self.shared.sessions > 1 and self.shared.pauses.is_clear
            extras = extras and not self.shared.limits.concerns(alias, rows)
            if not self.sessions.open(alias, len(rows) if extras else 1):
                self.hand.give_back(rows)
                self.shared.pauses.hold(alias)
                return None
        except (TransportFailure, UnknownTransport) as failure:
            self.hand.give_back(rows)
            said = (
                failure.answer
                if isinstance(failure, TransportFailure)
                else answer(Stage.CONNECT, None, str(failure))
            )
            self.wire.relay_down(alias, None, said)
            return None
        if self.shared.pauses.lifts_at_open(alias):
            self.wire.lift(alias, None)
        return over

    def _brake(self) -> None:
        """Tell the others what speaks against going on, and pause what must not."""
        shared = self.shared
        for campaign_id, reason in shared.insist(shared.brake.flush, "brakes"):
            shared.pause_campaign(campaign_id, reason)
