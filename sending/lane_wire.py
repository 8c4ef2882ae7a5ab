"""What a lane does with a lot that is handed over: its messages, one after another.

With several sessions (``run_sender --sessions``) one message is under way in each of them, and the
lane writes the next while the relay thinks about the others. What is handed over at once is the
same lot, so that no more is in doubt after a crash.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from . import clock
from .answers import unnamed_answer
from .health import is_error
from .judge import BEFORE_RCPT, Judge
from .lane_hand import InHand
from .lane_sessions import EXTRA_PATIENCE, LaneSessions
from .lot import Lot, LotSize
from .outcomes import Answer, Outcome, Reason, Verdict
from .queue import Claimed
from .settle import decide
from .transports import NotOpen, Transport, TransportFailure
from .trip import Track, Trip

if TYPE_CHECKING:
    from .shared import Shared
    from .smtp_transaction import Transaction

#: Seconds after which others hear of acceptances, at the latest: the end of a lot is soon.
TELL_AFTER = 0.2
#: Seconds without an answer after which messages that are under way are no longer waited for alone.
QUIET = 2.0
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
        """Send what was handed over, until a brake is pulled; nothing is under way then."""
        sessions = self.sessions.abreast(over.alias)
        # Permits are for a moment, and what came of one message may stop the next.
        abreast = sessions if lot.permitted_at is None else sessions[:1]
        first = clock.now()
        trip = Trip(over, lot, messages, handed_at, abreast)
        trip.told_at = trip.answered_at = first
        try:
            self._send_started(trip)
        except BaseException:
            # In the midst of their messages nobody can so much as take leave of the relay.
            for session in abreast:
                session.abort()
            raise
        self._tell_taken(trip)
        most = max(len(abreast), self.sessions.most(over.alias) if lot.permitted_at is None else 1)
        self.size.observe(clock.now() - first, trip.done, most)
        for account_id, said in trip.down.items():
            self.relay_down(over.alias, account_id, said)

    def _send_started(self, trip: Trip) -> None:
        while True:
            start = trip.next_start()
            if start is not None:
                self._start(trip, *start)
                continue
            is_quiet = clock.now() - trip.answered_at > QUIET
            # To open a session may take long: not while others may have to be heard.
            closed = trip.closed if is_quiet or not trip.under_way else []
            if closed or (trip.under_way and is_quiet):
                # Perhaps for minutes: what was accepted before waits no longer.
                self._tell_taken(trip)
                self.hand.write_so_far(trip.lot)
            if closed:
                self._open_again(trip, closed)
            elif trip.under_way:
                self._go_on(trip, *trip.next_step(), trip.is_silent or None)
            else:
                return

    # --- one message -------------------------------------------------------------------------

    def _may_start(self, trip: Trip, row: Claimed) -> bool:
        """Whether nothing speaks against the next message; else the lot is over."""
        shared, now = self.shared, clock.now()
        trip.is_over = trip.is_over or (
            shared.stopping.is_set()
            or now > row.trusted_until
            or now - trip.handed_at > shared.freshness
            or shared.limits.closed(trip.over.alias)
            or (trip.done > 0 and _is_stale(trip.lot.permitted_at, now))
        )
        return not trip.is_over

    def _start(self, trip: Trip, track: Track, row: Claimed) -> None:
        """Begin this message, unless that can't be now."""
        lot = trip.lot
        if not self._may_start(trip, row):
            return
        trip.free.remove(track)
        if track.socket < 0:
            trip.listen_to(track)
        with self.hand.lock:
            lot.unstarted.remove(row)
            lot.on_wire[row.id] = row
        trip.forget(track)
        following = None
        if track.session.announces and lot.permitted_at is None and (after := trip.promise(track)):
            following = trip.messages[after.id]
        transaction = track.session.transaction(trip.messages[row.id], following)
        self._go_on(trip, track, row, transaction)

    def _go_on(
        self,
        trip: Trip,
        track: Track,
        row: Claimed,
        transaction: Transaction,
        was_silent: bool | None = None,
    ) -> None:
        """Have a message take its next step."""
        try:
            transaction.send(was_silent)
        except StopIteration as end:
            said: Answer = end.value
        except NotOpen as ended:
            self._take_back(trip, row)
            trip.forget(track)
            if track.is_new:
                # It greets and goes away: to open one after another would only be a flood.
                self._do_without(trip, ended.answer)
            else:
                trip.free.append(track)
            return
        except TransportFailure as failure:
            said = failure.answer
        else:
            trip.under_way.append((track, row, transaction))
            return
        track.is_new = False
        trip.free.append(track)
        self._answered(trip, row, said)

    def _answered(self, trip: Trip, row: Claimed, said: Answer) -> None:
        shared, alias, lot = self.shared, trip.over.alias, trip.lot
        verdict = self.judge.verdict(alias, row, said)
        if verdict.outcome is Outcome.RELAY_DOWN:
            self._take_back(trip, row)
            # Only a refusal of its sender address is this account's alone.
            its_own = verdict.reason == Reason.SENDER_REFUSED
            about_all = unnamed_answer(said, row.email)
            trip.down.setdefault(row.account_id if its_own else None, about_all)
            trip.is_over = True
            return
        with self.hand.lock:
            lot.settlements.append(decide(row, said, verdict, replay_wait=trip.replay_wait))
            del lot.on_wire[row.id]
        trip.done += 1
        trip.answered_at = clock.now()
        if verdict.outcome is Outcome.SENT:
            trip.taken.append(row)
            if trip.answered_at - trip.told_at > TELL_AFTER:
                self._tell_taken(trip)
                trip.told_at = trip.answered_at
        else:
            self._tell_taken(trip)  # first, as they came: refusals in a row count
            shared.brake.note(alias, row, verdict, said)
            shared.limits.note(alias, row, verdict, said)
        self._lift_by(alias, row, verdict, said)
        if shared.brake.urgent:
            trip.is_over = True

    def _take_back(self, trip: Trip, row: Claimed) -> None:
        """Nothing of its message was attempted."""
        with self.hand.lock:
            trip.lot.unstarted.insert(0, row)
            del trip.lot.on_wire[row.id]

    # --- sessions that end -------------------------------------------------------------------

    def _open_again(self, trip: Trip, closed: list[Track]) -> None:
        """Open these anew, as far as there are messages for them. After one that is refused no
        other is tried: each might take as long."""
        lot = trip.lot
        if not self._may_start(trip, lot.unstarted[0]):
            return
        for track in closed:
            trip.free.remove(track)
        for track in closed[: len(lot.unstarted)]:
            has_others = trip.free or trip.under_way
            try:
                track.session.open(EXTRA_PATIENCE if has_others else None)
            except TransportFailure as failure:
                self._do_without(trip, failure.answer)
                return
            track.is_new = True
            trip.add(track)

    def _do_without(self, trip: Trip, said: Answer) -> None:
        """A session is given up; the last one speaks for the relay."""
        if trip.free or trip.under_way:
            self.sessions.fewer(trip.over.alias, said)
        else:
            trip.down.setdefault(None, said)
            trip.is_over = True

    # --- what others hear --------------------------------------------------------------------

    def _tell_taken(self, trip: Trip) -> None:
        self.shared.brake.took(trip.over.alias, trip.taken)
        self.shared.limits.took(trip.over.alias, trip.taken)
        trip.taken.clear()

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
