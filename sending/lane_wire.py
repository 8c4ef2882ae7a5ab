"""What a lane does with a lot that is handed over: its messages, one after another."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from . import clock
from .answers import unnamed_answer
from .health import is_error
from .judge import BEFORE_RCPT, Judge
from .lane_hand import InHand
from .lane_sessions import LaneSessions
from .lot import Lot, LotSize
from .outcomes import Answer, Outcome, Reason, Verdict
from .queue import Claimed
from .settle import decide
from .transports import NotOpen, Transport, TransportFailure

if TYPE_CHECKING:
    from .shared import Shared

#: Seconds after which others hear of acceptances, at the latest: the end of a lot is soon.
TELL_AFTER = 0.2
#: Seconds within which a permit of a limit is to be used.
PERMIT_LASTS = 1.0


def _is_stale(permitted_at: float | None, now: float) -> bool:
    """A permit not used soon is no permit: after a stall of the relay many lanes would use theirs
    at the same moment. (The first message of a lot goes all the same: somebody has to.)"""
    return permitted_at is not None and now - permitted_at > PERMIT_LASTS


class OnWire:
    """One for each lane, used by its thread."""

    def __init__(self, shared: Shared, sessions: LaneSessions, hand: InHand, size: LotSize) -> None:
        self.shared = shared
        self.sessions = sessions
        self.hand = hand
        self.size = size
        self.judge = Judge(shared)

    def send_all(
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
                    self.relay_down(alias, None, failure.answer)
                    break
                renewed = True
                continue
            with self.hand.lock:
                lot.on_wire = lot.unstarted.pop(0)
            # Permits are for a moment, and what came of this one may stop the next.
            goes_on = lot.unstarted and lot.permitted_at is None
            following = messages[lot.unstarted[0].id] if goes_on else None
            try:
                said = session.send(messages[row.id], following)
            except NotOpen as ended:
                with self.hand.lock:
                    lot.unstarted.insert(0, row)
                    lot.on_wire = None
                if renewed:
                    # It greets and goes away: to open one after another would only be a flood.
                    self.relay_down(alias, None, ended.answer)
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
                self.relay_down(alias, row.account_id if its_own else None, about_all)
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
            self.lift(alias, row.account_id)
        if not is_error(verdict, said) and shared.pauses.knows(alias, None):
            self.lift(alias, None)

    def relay_down(self, alias: str, account_id: int | None, said: Answer) -> None:
        if account_id is None and self.shared.last_success.recent(alias):
            # Others get through: this is about one session too many, not about the relay.
            self.shared.stopping.wait(1.0)
            return
        self.shared.pause(alias, account_id, said)

    def lift(self, alias: str, account_id: int | None) -> None:
        self.shared.insist(lambda: self.shared.pauses.worked(alias, account_id), "lift a pause")
