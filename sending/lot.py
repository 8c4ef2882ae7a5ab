"""How many messages a lane hands over at once: few to a slow relay, up to the limit to a fast
one, so that what a crash leaves in doubt is about what was really on its way."""

from __future__ import annotations

from dataclasses import dataclass, field

from .queue import Claimed
from .settle import Settlement

#: A lot is sized to take about this many seconds; well below the freshness of a hand-over.
TARGET_SECONDS = 1.0
#: Weight of the newest message in the moving average.
_WEIGHT = 0.2


@dataclass(slots=True)
class LotSize:
    """Adapts between 1 and ``limit``. Starts at 1 and at most doubles per lot, so that a relay
    nobody knows yet is met with one message, and is at the limit after five good lots."""

    limit: int
    size: int = 1
    seconds_each: float | None = None

    def observe(self, seconds: float, messages: int) -> None:
        """A lot of ``messages`` took ``seconds`` on the network."""
        if messages <= 0:
            return
        each = max(seconds / messages, 1e-6)
        if self.seconds_each is None or each > self.seconds_each * 4:
            self.seconds_each = each  # first look, or the relay has become slow: believe it now
        else:
            self.seconds_each += _WEIGHT * (each - self.seconds_each)
        fits = int(TARGET_SECONDS / self.seconds_each)
        self.size = max(1, min(self.limit, fits, self.size * 2))


@dataclass
class Lot:
    """What a lane has in hand; read by a shutdown that cannot wait for it."""

    unstarted: list[Claimed] = field(default_factory=list)
    on_wire: Claimed | None = None
    settlements: list[Settlement] = field(default_factory=list)
    #: Rows of the lot before, which ``settlements`` are about until the hand-over writes them.
    before: list[Claimed] = field(default_factory=list)
    #: When its permits were given, where a limit applies to it (``sending.clock``).
    permitted_at: float | None = None
    rows: dict[int, Claimed] = field(default_factory=dict)
