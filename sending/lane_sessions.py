"""The mail sessions of one lane and the slots they take.

There is one for each transport, and with ``--sessions`` there are more of it, in which messages
are under way at the same time. Those are extras: a lane goes on without one that can't be had.
Where a transport says how many connections there may be, lanes have no extras.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from . import clock
from .answers import Answer
from .transports import Session, Transport, TransportFailure, transport

if TYPE_CHECKING:
    from .shared import Shared

log = logging.getLogger("sendonce.sender")

#: An open session that had nothing to do for this long is closed, politely, by us.
IDLE_CLOSE = 30.0
#: Seconds for which a lane makes do with the sessions it has, after one more was refused; twice as
#: many each time, up to the second: a refusal may be a silence, of ``EXTRA_PATIENCE``.
FEWER, FEWER_AT_MOST = 60.0, 3600.0
#: Seconds for each step of opening a session that the lane can do without: its messages wait.
EXTRA_PATIENCE = 10.0


class LaneSessions:
    """Used by its lane's thread alone."""

    def __init__(self, shared: Shared) -> None:
        self._shared = shared
        self._roads: dict[str, Transport] = {}
        self._sessions: dict[str, list[Session]] = {}
        #: Until when no extra session of a transport is opened (``sending.clock``).
        self._fewer_until: dict[str, float] = {}
        self._fewer_for: dict[str, float] = {}
        self._last_used = clock.now()

    def abreast(self, alias: str) -> list[Session]:
        """The session of it, and the extras that are open."""
        first, *extras = self._sessions[alias]
        return [first, *(session for session in extras if session.seems_open)]

    def road(self, alias: str) -> Transport:
        """The transport, which knows its ``via``. Raises ``UnknownTransport``."""
        found = self._roads.get(alias)
        if found is None:
            made = transport(alias)
            # It asks the database, once; nobody who has no connection in hand shall.
            self._shared.insist(lambda: made.via, "installation")
            found = self._roads[alias] = made
        return found

    def open(self, alias: str, messages: int = 1) -> bool:
        """Have an open, authenticated session of it, and extras as far as there are so many
        ``messages`` for them; False when there is no turn or no slot for one now. May take
        minutes. Raises ``TransportFailure`` and ``UnknownTransport``."""
        sessions = self._sessions.get(alias)
        if sessions is None:
            sessions = self._sessions[alias] = [self.road(alias).session()]
        if len(sessions) > 1:
            sessions.sort(key=lambda session: not session.is_open)  # one that is open serves
        if not self._open(alias, sessions[0]):
            return False
        for number in range(1, min(self.most(alias), messages)):
            if number == len(sessions):
                sessions.append(self.road(alias).session())
            if sessions[number].is_open:
                continue
            try:
                if not self._open(alias, sessions[number], EXTRA_PATIENCE):
                    break
                self._fewer_for.pop(alias, None)
            except TransportFailure as failure:
                self.fewer(alias, failure.answer)
                break
        return True

    def _open(self, alias: str, session: Session, patience: float | None = None) -> bool:
        if session.is_open:
            return True
        doors = self._shared.doors
        if not doors.enter(alias, self._shared):
            return False
        try:
            session.open(patience)
        finally:
            doors.leave(alias)
        return True

    def most(self, alias: str) -> int:
        """How many sessions of it the lane may have open now."""
        road = self.road(alias)
        is_alone = clock.now() < self._fewer_until.get(alias, 0.0)
        if is_alone or not road.takes_bytes or road.connections is not None:
            return 1
        return self._shared.sessions

    def fewer(self, alias: str, said: Answer) -> None:
        """The relay refused an extra session, or ended it: do without for a while."""
        wait = min(2 * self._fewer_for.get(alias, FEWER / 2), FEWER_AT_MOST)
        self._fewer_for[alias] = wait
        self._fewer_until[alias] = until = clock.now() + wait
        of_all = self._shared.fewer_until
        of_all[alias] = max(until, of_all.get(alias, 0.0))
        log.info(
            "the relay refused a further session, going on with fewer",
            extra={
                "event": "session_refused",
                "transport": alias,
                "stage": str(said.stage),
                "code": said.code,
                "reason": said.text,
                "wait": f"{wait:.0f}s",
            },
        )

    def is_open(self, alias: str, messages: int) -> bool:
        """Whether ``open`` of it would have nothing to open, which may take long."""
        sessions = self._sessions.get(alias)
        if sessions is None:
            return False
        wanted = max(1, min(self.most(alias), messages))
        return len(sessions) >= wanted and all(session.is_open for session in sessions[:wanted])

    def begin(self, alias: str) -> None:
        """A lot of this transport begins: make room for those who need the other sessions."""
        self._last_used = clock.now()
        for other in self._shared.doors.to_close(self._shared, alias):
            self._close(other)

    def end(self, alias: str) -> None:
        """The lot is over; without a session that can go on the lane needs no slot."""
        sessions = self._sessions.get(alias, [])
        for session in sessions:
            if not session.is_open:
                session.close()  # it may be used up and still be connected
        if not any(session.is_open for session in sessions):
            self._shared.doors.closed(alias)

    def rest(self) -> None:
        """There is nothing to do: close what was idle for long, or what is wanted elsewhere."""
        if self._sessions and clock.now() - self._last_used > IDLE_CLOSE:
            self.close()
        for alias in self._shared.doors.to_close(self._shared):
            self._close(alias)

    def close(self) -> None:
        """Close all of them."""
        for alias in list(self._sessions):
            self._close(alias)

    def drop(self) -> None:
        """After a fault of ours: nobody knows what state they are in."""
        for sessions in self._sessions.values():
            for session in sessions:
                session.abort()
        self.close()

    def _close(self, alias: str) -> None:
        for session in self._sessions.pop(alias, []):
            session.close()
        self._shared.doors.closed(alias)
