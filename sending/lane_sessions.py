"""The mail sessions of one lane, at most one for each transport, and the slots they take."""

from __future__ import annotations

from typing import TYPE_CHECKING

from . import clock
from .transports import Session, Transport, transport

if TYPE_CHECKING:
    from .shared import Shared

#: An open session that had nothing to do for this long is closed, politely, by us.
IDLE_CLOSE = 30.0


class LaneSessions:
    """Used by its lane's thread alone, save for ``abort``."""

    def __init__(self, shared: Shared) -> None:
        self._shared = shared
        self._roads: dict[str, Transport] = {}
        self._sessions: dict[str, Session] = {}
        self._last_used = clock.now()

    def __getitem__(self, alias: str) -> Session:
        return self._sessions[alias]

    def road(self, alias: str) -> Transport:
        """The transport, which knows its ``via``. Raises ``UnknownTransport``."""
        found = self._roads.get(alias)
        if found is None:
            made = transport(alias)
            # It asks the database, once; nobody who has no connection in hand shall.
            self._shared.insist(lambda: made.via, "installation")
            found = self._roads[alias] = made
        return found

    def open(self, alias: str) -> bool:
        """Have an open, authenticated session of it; False when there is no turn or no slot for
        one now. May take minutes. Raises ``TransportFailure`` and ``UnknownTransport``."""
        session = self._sessions.get(alias)
        if session is None:
            session = self._sessions[alias] = self.road(alias).session()
        if session.is_open:
            return True
        doors = self._shared.doors
        if not doors.enter(alias, self._shared):
            return False
        try:
            session.open()
        finally:
            doors.leave(alias)
        return True

    def is_open(self, alias: str) -> bool:
        """Whether there is an open session of it."""
        session = self._sessions.get(alias)
        return session is not None and session.is_open

    def begin(self, alias: str) -> None:
        """A lot of this transport begins: make room for those who need the other sessions."""
        self._last_used = clock.now()
        for other in self._shared.doors.to_close(self._shared, alias):
            self._close(other)

    def end(self, alias: str) -> None:
        """The lot is over; without a session that can go on the lane needs no slot."""
        session = self._sessions.get(alias)
        if session is None or not session.is_open:
            if session is not None:
                session.close()  # it may be used up and still be connected
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
        for session in self._sessions.values():
            session.abort()
        self.close()

    def _close(self, alias: str) -> None:
        session = self._sessions.pop(alias, None)
        if session is not None:
            session.close()
        self._shared.doors.closed(alias)
