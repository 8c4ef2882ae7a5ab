"""A lane: a thread with a mail connection of its own that moves one lot after another.

Per lot: render, make sure that the session is open, hand over (durable commit), send one by
one, write the outcomes; only then the next lot. Where all was accepted and the next lot can go at
once, its hand-over writes them: one transaction for both. The database is never in a transaction
while the network is used.
"""

from __future__ import annotations

import logging
import threading
import time
from typing import TYPE_CHECKING, Any

from . import clock
from .answers import unnamed_answer
from .compose import ComposeError
from .connections import LOST, Busy
from .health import is_error
from .judge import BEFORE_RCPT, Judge
from .lane_hand import InHand
from .lane_sessions import LaneSessions
from .lot import Lot, LotSize
from .outcomes import Answer, Outcome, Reason, Stage, Verdict, answer
from .queue import Claimed
from .settle import Settlement, decide, refused_here
from .transports import NotOpen, Transport, TransportFailure, UnknownTransport

if TYPE_CHECKING:
    from .shared import Shared

log = logging.getLogger("sendonce.sender")

#: Seconds after which others hear of acceptances, at the latest: the end of a lot is soon.
TELL_AFTER = 0.2
#: Seconds within which a permit of a limit is to be used.
PERMIT_LASTS = 1.0


def _is_stale(permitted_at: float | None, now: float) -> bool:
    """A permit not used soon is no permit: after a stall of the relay many lanes would use theirs
    at the same moment. (The first message of a lot goes all the same: somebody has to.)"""
    return permitted_at is not None and now - permitted_at > PERMIT_LASTS


class Lane(threading.Thread):
    """One lane. ``step`` moves one lot and says whether there was one."""

    def __init__(self, number: int, shared: Shared) -> None:
        super().__init__(name=f"lane-{number}", daemon=True)
        self.shared = shared
        self.size = LotSize(shared.lot_limit)
        self.sessions = LaneSessions(shared)
        self.judge = Judge(shared)
        self.hand = InHand(shared)

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
            self.hand.write_carried()
        except Exception:
            log.exception("a lane failed at its end", extra={"event": "lane_error"})
        self.sessions.close()

    def step(self, timeout: float) -> bool:
        """Move one lot; False when none came within ``timeout`` seconds."""
        ready = self.shared.ready
        taken = ready.take(self.size.size, 0.0) if self.hand.lot is not None else None
        if taken is None:
            self.hand.write_carried()
            taken = ready.take(self.size.size, timeout)
        if taken is None:
            return False
        alias, rows = taken
        self.sessions.begin(alias)
        lot = self.hand.begin(rows)
        try:
            self._move(alias, rows, lot)
        except Exception as fault:
            self.hand.give_up(lot, fault)
            raise
        finally:
            self.sessions.end(alias)
            self.shared.ready.done(alias)
        return True

    # --- one lot -----------------------------------------------------------------------------

    def _move(self, alias: str, rows: list[Claimed], lot: Lot) -> None:
        shared = self.shared
        if lot.settlements and not self._goes_straight_on(alias, rows):
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
            handed = shared.desks.hand_over(rows, over, lot.settlements)
        except Busy:
            # Somebody decides about the campaign of the lot before, which is written first.
            self.hand.write_before(lot)
            self.hand.give_back(rows)
            self.hand.end(lot)
            return
        except LOST as error:
            self.hand.write_before(lot)  # as long as it takes; nothing of this lot was sent
            log.warning(
                "hand-over not acknowledged, nothing was sent",
                extra={"event": "handover_failed", "rows": len(rows), "error": str(error)},
            )
            self.hand.give_back(rows)
            self.hand.end(lot)
            return
        if lot.settlements:
            self.hand.written(lot, handed.became, session)
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
        self._send_all(over, lot, messages, started)
        if not self.hand.carries(lot):
            self.hand.end(lot)
        if shared.brake.urgent:
            self._brake()

    def _goes_straight_on(self, alias: str, rows: list[Claimed]) -> bool:
        """Whether nothing stands between these rows and their hand-over that could take long."""
        shared = self.shared
        return (
            self.sessions.is_open(alias)
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

    def _open(self, alias: str, rows: list[Claimed]) -> Transport | None:
        """The transport, once there is an open, authenticated session of it, before anything is
        handed over; or None, and the rows have gone back."""
        if not rows:
            return None
        try:
            over = self.sessions.road(alias)
            if not self.sessions.open(alias):
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
            self._relay_down(alias, None, said)
            return None
        if self.shared.pauses.lifts_at_open(alias):
            self._lift(alias, None)
        return over

    def _send_all(
        self, over: Transport, lot: Lot, messages: dict[int, Any], handed_at: float
    ) -> None:
        """Send what was handed over, one by one, until a brake is pulled."""
        alias = over.alias
        shared, session = self.shared, self.sessions[alias]
        replay_wait = over.answer_timeout if over.deduplicates else 0.0
        first, done = clock.now(), 0
        taken: list[Claimed] = []  # accepted, and not told to the brake and the limits yet
        told = first
        renewed = False  # a session was opened for this message, and nothing was said to it yet
        while lot.unstarted:
            row = lot.unstarted[0]
            now = clock.now()
            if (
                shared.stopping.is_set()
                or now > row.trusted_until
                or now - handed_at > shared.freshness
                or shared.limits.closed(alias)
                or (done and _is_stale(lot.permitted_at, now))
            ):
                break
            if not session.seems_open:
                # Used up, or closed by the relay. To open another may take long: the clock is
                # asked again before the message starts.
                try:
                    session.open()
                except TransportFailure as failure:
                    self._relay_down(alias, None, failure.answer)
                    break
                renewed = True
                continue
            with self.hand.lock:
                lot.on_wire = lot.unstarted.pop(0)
            try:
                said = session.send(messages[row.id])
            except NotOpen as ended:
                with self.hand.lock:
                    lot.unstarted.insert(0, row)
                    lot.on_wire = None
                if renewed:
                    # It greets and goes away: to open one after another would only be a flood.
                    self._relay_down(alias, None, ended.answer)
                    break
                continue
            except TransportFailure as failure:
                said = failure.answer
            renewed = False
            verdict = self.judge.verdict(alias, row, said)
            if verdict.outcome == Outcome.RELAY_DOWN:
                with self.hand.lock:
                    lot.unstarted.insert(0, row)
                    lot.on_wire = None
                # Only a refusal of its sender address is this account's alone.
                its_own = verdict.reason == Reason.SENDER_REFUSED
                about_all = unnamed_answer(said, row.email)
                self._relay_down(alias, row.account_id if its_own else None, about_all)
                break
            with self.hand.lock:
                lot.settlements.append(decide(row, said, verdict, replay_wait=replay_wait))
                lot.on_wire = None
            done += 1
            if verdict.outcome is Outcome.SENT:
                taken.append(row)
                if now - told > TELL_AFTER:
                    self._tell_taken(alias, taken)
                    told = now
            else:
                self._tell_taken(alias, taken)  # first, as they came: refusals in a row count
                shared.brake.note(alias, row, verdict, said)
                shared.limits.note(alias, row, verdict, said)
            self._lift_by(alias, row, verdict, said)
            if shared.brake.urgent:
                break
        self._tell_taken(alias, taken)
        self.size.observe(clock.now() - first, done)

    def _tell_taken(self, alias: str, taken: list[Claimed]) -> None:
        self.shared.brake.took(alias, taken)
        self.shared.limits.took(alias, taken)
        taken.clear()

    def _lift_by(self, alias: str, row: Claimed, verdict: Verdict, said: Answer) -> None:
        """A definite answer to a message shows that the transport works, for its account too."""
        shared = self.shared
        if said.stage in BEFORE_RCPT or said.code is None:
            return
        if verdict.outcome == Outcome.SENT:
            shared.last_success.note(alias)
        if shared.pauses.is_clear:
            return
        if shared.pauses.knows(alias, row.account_id):
            self._lift(alias, row.account_id)
        if not is_error(verdict, said) and shared.pauses.knows(alias, None):
            self._lift(alias, None)

    def _brake(self) -> None:
        """Tell the others what speaks against going on, and pause what must not."""
        shared = self.shared
        for campaign_id, reason in shared.insist(shared.brake.flush, "brakes"):
            shared.pause_campaign(campaign_id, reason)

    # --- effects that must not be lost -------------------------------------------------------

    def _relay_down(self, alias: str, account_id: int | None, said: Answer) -> None:
        if account_id is None and self.shared.last_success.recent(alias):
            # Others get through: this is about one session too many, not about the relay.
            self.shared.stopping.wait(1.0)
            return
        self.shared.pause(alias, account_id, said)

    def _lift(self, alias: str, account_id: int | None) -> None:
        self.shared.insist(lambda: self.shared.pauses.worked(alias, account_id), "lift a pause")
