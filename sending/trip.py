"""One lot on its way in the sessions of a lane: which message goes in which, and who is next."""

from __future__ import annotations

import select
from collections import deque
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from .lot import Lot
from .outcomes import Answer
from .queue import Claimed
from .smtp_wire import TICK
from .transports import Session, Transport

if TYPE_CHECKING:
    from .smtp_transaction import Transaction


class Track:
    """A session of the lane, and what is known of its next message."""

    __slots__ = ("is_new", "promised", "session", "socket")

    def __init__(self, session: Session) -> None:
        self.session = session
        #: The number of its socket while that is listened to, else -1.
        self.socket = -1
        #: Whose envelope may have gone out with the message before: the next here can be no other.
        self.promised: Claimed | None = None
        #: It was opened for its next message, and nothing was said to it yet.
        self.is_new = False


class Trip:
    """Every track is in ``free``, in ``under_way``, or given up."""

    def __init__(
        self,
        over: Transport,
        lot: Lot,
        messages: dict[int, Any],
        handed_at: float,
        sessions: Iterable[Session],
    ) -> None:
        self.over = over
        self.lot = lot
        self.messages = messages
        self.handed_at = handed_at
        self.replay_wait = over.answer_timeout if over.deduplicates else 0.0
        self.free: deque[Track] = deque()
        #: In order of their last step, but those first from which something was heard.
        self.under_way: deque[tuple[Track, Claimed, Transaction]] = deque()
        #: How many those are.
        self._heard = 0
        #: Nothing came for a tick, for which all of them have waited.
        self.is_silent = False
        self._look = select.poll()
        #: To whom a track is promised; all of them are unstarted.
        self._promised: set[Claimed] = set()
        #: Accepted, and not told to the brake and the limits yet; since when (``sending.clock``).
        self.taken: list[Claimed] = []
        self.told_at = 0.0
        #: When the last message ended.
        self.answered_at = 0.0
        self.done = 0
        #: No message of it is started any more.
        self.is_over = False
        #: What speaks against the relay, for all accounts (None) or for one.
        self.down: dict[int | None, Answer] = {}
        for session in sessions:
            self.add(Track(session))

    def add(self, track: Track) -> None:
        """Its session is open: it is free."""
        self.listen_to(track)
        self.free.append(track)

    def listen_to(self, track: Track) -> None:
        """Know when the relay says something in it."""
        track.socket = track.session.fileno()
        if track.socket >= 0:
            self._look.register(track.socket, select.POLLIN)

    # --- who is next -------------------------------------------------------------------------

    def next_start(self) -> tuple[Track, Claimed] | None:
        """What can be started now, in the track that is free and open for the longest time: whom
        it was promised to, else the first who has no promise of another."""
        if self.is_over or not self.lot.unstarted:
            return None
        for track in self.free:
            if not track.session.seems_open:
                self.forget(track)  # whom it was promised to may have another
                continue
            row = track.promised or self._unpromised()
            if row is not None:
                return track, row
        return None

    @property
    def closed(self) -> list[Track]:
        """Those whose session is used up, or has ended, where there are messages for them."""
        if self.is_over or self._unpromised() is None:
            return []
        return [track for track in self.free if not track.session.seems_open]

    def promise(self, track: Track) -> Claimed | None:
        """To whom the track that starts now promises its next message: nobody for whom another
        has nothing to do."""
        idle = sum(other.promised is None for other in self.free)
        if len(self.lot.unstarted) - len(self._promised) <= idle:
            return None
        row = track.promised = self._unpromised()
        if row is not None:
            self._promised.add(row)
        return row

    def forget(self, track: Track) -> None:
        """Its promise is kept now, or void."""
        if track.promised is not None:
            self._promised.discard(track.promised)
            track.promised = None

    def _unpromised(self) -> Claimed | None:
        return next((row for row in self.lot.unstarted if row not in self._promised), None)

    # --- who goes on -------------------------------------------------------------------------

    def next_step(self) -> tuple[Track, Claimed, Transaction]:
        """Which of those under way goes on: where the relay has said something, or else, after a
        tick (``is_silent``), the one that had its last step the longest time ago, to look at its
        clock. One alone waits by itself."""
        self.is_silent = False
        if not self._heard and len(self.under_way) > 1:
            while not self._listen():
                pass
        self._heard = max(0, self._heard - 1)
        return self.under_way.popleft()

    def _listen(self) -> bool:
        """Wait for a tick at most; False where only others than those under way were heard."""
        ready = {number for number, _ in self._look.poll(TICK * 1000)}
        heard = [way for way in self.under_way if way[0].socket in ready]
        self._heard, self.is_silent = len(heard), not ready
        if len(heard) < len(ready):
            # Of a session that waits for nothing, or a socket that is closed by now.
            for number in ready.difference(way[0].socket for way in heard):
                self._look.unregister(number)
            for track in self.free:
                if track.socket in ready:
                    track.socket = -1
        if 0 < len(heard) < len(self.under_way):
            heard += [way for way in self.under_way if way[0].socket not in ready]
            self.under_way = deque(heard)
        return self.is_silent or bool(heard)
