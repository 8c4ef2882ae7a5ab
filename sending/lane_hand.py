"""What a lane has in hand, and how what came of it is written.

Outcomes are written when a lot ends, or, where all of it was accepted and there is a next lot, by
the hand-over of that (``Lane``): one transaction for both.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from .answers import answer
from .handover import give_back
from .lot import Ahead, Lot
from .outcomes import Outcome, Reason, Stage, Verdict
from .queue import Claimed
from .rescue import replay_wait
from .settle import Settlement, decide, settle

if TYPE_CHECKING:
    from .shared import Shared


class InHand:
    """The lot of one lane. Changed by its thread, and read by a shutdown that cannot wait for it:
    whatever of it is given away or written is changed under ``lock``."""

    def __init__(self, shared: Shared) -> None:
        self.shared = shared
        self.lock = threading.Lock()
        self.lot: Lot | None = None
        #: What is handed over already, or is being so, while ``lot`` is on the wire.
        self.ahead: Ahead | None = None

    def current(self) -> Lot | None:
        """The lot this lane works on, for a shutdown that waits no longer."""
        with self.lock:
            return self.lot or (self.ahead.lot if self.ahead is not None else None)

    def begin(self, rows: list[Claimed]) -> Lot:
        """A lot of these rows is in hand now, with what the one before left to be written."""
        lot = Lot(rows={r.id: r for r in rows})
        with self.lock:
            self._follow(lot)
        return lot

    def _follow(self, lot: Lot) -> None:
        """It takes the place of the lot in hand."""
        if self.lot is not None:
            lot.carried = self.lot.settlements
            lot.before = list(self.lot.rows.values())
            # A row of both was taken from us and claimed anew: it goes by the new claim.
            lot.rows = {**self.lot.rows, **lot.rows}
        self.lot = lot

    # --- the lot after it --------------------------------------------------------------------

    def look_ahead(self, ahead: Ahead | None) -> None:
        """This, or nothing, is handed over meanwhile."""
        with self.lock:
            self.ahead = ahead

    def go_on(self, ahead: Ahead) -> Lot:
        """What was handed over meanwhile is in hand now."""
        with self.lock:
            self.ahead = None
            self._follow(ahead.lot)
        return ahead.lot

    def turn_back(self) -> None:
        """What was handed over meanwhile, or may have been, is not started: return it."""
        ahead = self.ahead
        if ahead is not None:
            self.give_back(list(ahead.lot.rows.values()))
            with self.lock:
                self.ahead = None

    # --- its end -----------------------------------------------------------------------------

    def carries(self, lot: Lot) -> bool:
        """Whether the outcomes of a lot can wait for the hand-over of the next: all of it was
        accepted, nothing was left over, and there is a next."""
        shared = self.shared
        return (
            not lot.unstarted
            and bool(lot.settlements)
            and all(told.outcome == Outcome.SENT for told in lot.settlements)
            and not shared.brake.urgent
            and not shared.stopping.is_set()
            and (self.ahead is not None or shared.ready.waiting() > 0)
        )

    def write_carried(self) -> None:
        """Write what waited for a next lot, if there is any."""
        with self.lock:
            lot = self.lot
        if lot is None:
            return
        try:
            self.end(lot)
        except Exception as fault:
            self.give_up(lot, fault)
            raise

    def close(self) -> None:
        """The lane ends: nothing is in hand afterwards."""
        try:
            self.turn_back()
        finally:
            self.write_carried()

    def give_up(self, lot: Lot, fault: Exception) -> None:
        """Account for a lot that a fault ended, as far as that is possible."""
        try:
            self.conclude(lot, f"{type(fault).__name__}: {fault}")
        finally:
            with self.lock:
                self.lot = self.ahead = None

    def end(self, lot: Lot) -> None:
        """Write what is known of the lot; it is in hand no longer."""
        self._write(lot)
        with self.lock:
            self.lot = None

    def write_before(self, lot: Lot) -> None:
        """Write the outcomes of the lot before by themselves."""
        session, told = self.shared.journal.session, lot.carried
        if told:
            became = self.shared.persist(lambda: self.shared.desks.settle(told), "outcomes")
            self.written(lot, became, session)

    def written(self, lot: Lot, became: dict[int, str], session: int) -> None:
        """The outcomes of the lot before are committed: as of ``settle``, and it is behind us."""
        shared = self.shared
        shared.journal.keep(lot.carried, session)
        shared.tally.settled(became)
        with self.lock:
            lot.carried = []
            before, lot.before = lot.before, []
            for row in before:
                if lot.rows.get(row.id) is row:
                    del lot.rows[row.id]
        shared.ready.release(before)

    def write_so_far(self, lot: Lot) -> None:
        """Write what is known of a lot whose rest may take long."""
        told = [*lot.settlements]
        if not told:
            return
        self.settle(told)
        with self.lock:
            del lot.settlements[: len(told)]
            done = [lot.rows.pop(one.send_id) for one in told]
        self.shared.ready.release(done)

    def _write(self, lot: Lot) -> None:
        with self.lock:
            settlements, unstarted = [*lot.carried, *lot.settlements], lot.unstarted
        self.settle(settlements)
        if unstarted:
            self.give_back(unstarted)
        self.shared.ready.release(lot.rows.values())

    def conclude(self, lot: Lot, why: str) -> None:
        """Account for a lot that is given up: by a fault, or by a shutdown that waits no more.

        What is known is written, what is on the wire is in doubt, the rest was never started.
        """
        with self.lock:
            settlements, wire = [*lot.carried, *lot.settlements], [*lot.on_wire.values()]
            rows = [*lot.rows.values()]
            if self.ahead is not None and self.ahead.lot is not lot:
                rows += self.ahead.lot.rows.values()
        if wire:
            said = answer(Stage.DOT, None, f"given up while on the wire: {why}")
            # It may still be under way: a replay waits as long as for a lost worker's.
            verdict, wait = Verdict(Outcome.IN_DOUBT, Reason.CONNECTION_LOST), replay_wait()
            settlements += (decide(row, said, verdict, replay_wait=wait) for row in wire)
        known = {s.token for s in settlements}
        try:
            self.settle(settlements, alone=True)
            self.give_back([r for r in rows if r.token not in known])
        finally:
            # Whatever went wrong: a row that nobody renews is settled by its lease.
            self.shared.ready.release(rows)

    def settle(self, settlements: list[Settlement], *, alone: bool = False) -> None:
        """Write outcomes. ``alone``: not together with other lanes', of which one may hang."""
        if not settlements:
            return
        shared = self.shared
        session = shared.journal.session
        if alone:
            became = shared.insist(
                lambda: settle(settlements, doubt_wait=shared.doubt_wait), "outcomes"
            )
        else:
            became = shared.persist(lambda: shared.desks.settle(settlements), "outcomes")
        # Kept only now: the heartbeat forgets what was kept before its own durable commit.
        shared.journal.keep(settlements, session)
        shared.tally.settled(became)

    def give_back(self, rows: list[Claimed]) -> None:
        """Return rows that were never started."""
        if rows:
            self.shared.insist(lambda: give_back(rows), "give-back")
            self.shared.ready.release(rows)
