"""How many messages a lane hands over at once: few to a slow relay, up to the limit to a fast
one, so that what a crash leaves in doubt is about what was really on its way."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from .queue import Claimed
from .settle import Settlement

if TYPE_CHECKING:
    from .clerk import Ticket
    from .handover import Handed
    from .transports import Transport

#: A lot is sized to take about this many seconds; well below the freshness of a hand-over.
TARGET_SECONDS = 1.0
#: A relay that takes so many seconds for a message is far away, or slow: a hand-over takes no
#: longer. There the halves of a lot are handed over one by one, each while the other is under way.
FAR = 0.01
#: The part of that time for which such hand-overs are gathered.
PATIENCE = 0.25
#: Weight of the newest message in the moving average.
_WEIGHT = 0.2


@dataclass(slots=True)
class LotSize:
    """Adapts between 1 and ``limit``. Starts at 1 and at most doubles per lot, so that a relay
    nobody knows yet is met with one message, and is at the limit after five good lots."""

    limit: int
    size: int = 1
    seconds_each: float | None = None
    #: In how many sessions messages can be under way at once: so many take no longer than one.
    abreast: int = 1

    def observe(self, seconds: float, messages: int, abreast: int = 1) -> None:
        """A lot of ``messages`` took ``seconds`` on the network; ``abreast`` sessions can be had
        there."""
        self.abreast = abreast
        if messages <= 0:
            return
        each = max(seconds / messages, 1e-6)
        if self.seconds_each is None or each > self.seconds_each * 4:
            self.seconds_each = each  # first look, or the relay has become slow: believe it now
        else:
            self.seconds_each += _WEIGHT * (each - self.seconds_each)
        fits = int(TARGET_SECONDS / self.seconds_each)
        fits = max(abreast, fits - fits % abreast)  # four in three sessions are two rounds
        self.size = max(1, min(self.limit, fits, self.size * 2))

    @property
    def goes_ahead(self) -> bool:
        """Whether a lot is handed over in halves, of which each has a message for all sessions."""
        is_enough = self.size >= 2 * self.abreast
        return is_enough and self.seconds_each is not None and self.seconds_each >= FAR

    @property
    def portion(self) -> int:
        """How many rows are handed over at once. Of two portions, and no more are unsettled at
        a time, there are never more rows than of one lot."""
        if not self.goes_ahead:
            return self.size
        half = self.size // 2
        return half - half % self.abreast

    def patience(self, messages: int) -> float:
        """For how many seconds a hand-over that is needed after so many messages can wait for
        others': most of that time is left for it, since what came of a lot waits with it."""
        return PATIENCE * messages * (self.seconds_each or 0.0)


@dataclass
class Lot:
    """What a lane has in hand; read by a shutdown that cannot wait for it."""

    unstarted: list[Claimed] = field(default_factory=list)
    #: Whose messages are under way, by id; one for each session of the lane at most.
    on_wire: dict[int, Claimed] = field(default_factory=dict)
    settlements: list[Settlement] = field(default_factory=list)
    #: What came of the lot before, and its rows, until a hand-over writes that.
    carried: list[Settlement] = field(default_factory=list)
    before: list[Claimed] = field(default_factory=list)
    #: When its permits were given, where a limit applies to it (``sending.clock``).
    permitted_at: float | None = None
    rows: dict[int, Claimed] = field(default_factory=dict)


@dataclass
class Ahead:
    """A lot that is handed over, or just being so, while the one before it is on the wire."""

    lot: Lot
    over: Transport
    #: When it was asked for (``sending.clock``), and the journal's session then.
    asked_at: float
    session: int
    messages: dict[int, Any] = field(default_factory=dict)
    ticket: Ticket[Handed] | None = None
