"""The two desks of a process: hand-overs, and outcomes, of all lanes.

Both do for several lots what ``hand_over`` and ``settle`` do for one: one transaction, one set of
gates, one commit, whose end is known before any of them goes on. What a lane may do depends on
its own lot alone: a row that is withheld, or a campaign that is busy, is its lane's.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from .clerk import Clerk, Ticket
from .desk import Desk
from .handover import Handed, hand_over
from .queue import Claimed
from .settle import Settlement, settle
from .transports import Transport

if TYPE_CHECKING:
    from .shared import Shared

#: Rows of one transaction: more gain nothing, and whoever decides about a campaign waits for it.
MOST_ROWS = 500


@dataclass(frozen=True, slots=True)
class Lot:
    """Rows to be handed over by one lane; ``via`` and ``window`` as of ``hand_over``.
    ``accepted``: what came of the lane's lot before, where all of that was accepted."""

    rows: Sequence[Claimed]
    via: str
    window: float
    accepted: Sequence[Settlement] = ()


class Desks:
    """Used by all lanes; each write borrows one of the process's connections."""

    def __init__(self, shared: Shared) -> None:
        self._shared = shared
        self._handing: Desk[Lot, Handed] = Desk(
            self._hand_over,
            alone=lambda lot: self._hand_over([lot], hurried=False)[0],
            together=lambda lot: (lot.via, lot.window),
            rows=_ids,
            most=MOST_ROWS,
        )
        self._clerk: Clerk[Lot, Handed] = Clerk(self._handing.put_all, "hand-overs")
        self._settling: Desk[Sequence[Settlement], dict[int, str]] = Desk(
            self._settle,
            alone=lambda told: self._settle([told], hurried=False)[0],
            together=lambda _: None,
            rows=lambda lot: [told.send_id for told in lot],
            most=MOST_ROWS,
        )

    def hand_over(
        self, rows: Sequence[Claimed], over: Transport, accepted: Sequence[Settlement] = ()
    ) -> Handed:
        """As ``handover.hand_over``, with what other lanes hand over at this moment."""
        return self._handing.put(Lot(rows, over.via, over.window, accepted))

    def lay(
        self,
        rows: Sequence[Claimed],
        over: Transport,
        accepted: Sequence[Settlement],
        patience: float,
    ) -> Ticket[Handed]:
        """The same without waiting for it, begun within ``patience`` seconds: the ticket is for
        what ``hand_over`` would return or raise."""
        return self._clerk.lay(Lot(rows, over.via, over.window, accepted), patience)

    def settle(self, settlements: Sequence[Settlement]) -> dict[int, str]:
        """As ``settle.settle``, with other lanes' outcomes."""
        return self._settling.put(settlements)

    def _hand_over(self, lots: Sequence[Lot], *, hurried: bool = True) -> list[Handed]:
        shared, first = self._shared, lots[0]
        with shared.pool.lend():
            handed = hand_over(
                [row for lot in lots for row in lot.rows],
                lease=shared.lease,
                via=first.via,
                window=first.window,
                accepted=[told for lot in lots for told in lot.accepted],
                hurried=hurried,
            )
        parts = handed.split([lot.rows for lot in lots])
        return [
            replace(part, became=_own(handed.became, lot.accepted))
            for part, lot in zip(parts, lots, strict=True)
        ]

    def _settle(
        self, lots: Sequence[Sequence[Settlement]], *, hurried: bool = True
    ) -> list[dict[int, str]]:
        shared = self._shared
        with shared.pool.lend():
            became = settle(
                [told for lot in lots for told in lot],
                doubt_wait=shared.doubt_wait,
                hurried=hurried,
            )
        return [_own(became, lot) for lot in lots]


def _ids(lot: Lot) -> list[int]:
    return [row.id for row in lot.rows] + [told.send_id for told in lot.accepted]


def _own(became: dict[int, str], lot: Sequence[Settlement]) -> dict[int, str]:
    """What became of this lot's, among all."""
    return {t.send_id: became[t.send_id] for t in lot if t.send_id in became}
