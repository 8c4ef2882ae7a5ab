"""How many sessions of a transport each worker may hold, when the transport allows so many.

Every worker counts the same list of those alive, so the shares add up to the limit. A worker that
comes makes the others' shares smaller: it waits until they must have heard of it, and then opens
no more than they have said that they have let go of.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .. import clock
from ..sql import limits as sql
from .keys import configured_connections

#: A worker that was not seen for so many seconds is dead, and its sessions with it.
ALIVE = 10.0
#: A worker holds no session in its first seconds: the others look at who is alive every second.
HEARD_OF = 3.0
#: What was read so many seconds ago says nothing about who is alive.
STALE = 5.0


@dataclass(frozen=True, slots=True)
class Peer:
    """A worker that is alive. ``age`` in seconds, ``held`` the sessions that it said it has."""

    id: int
    age: float
    held: int


def share(limit: int, me: int, peers: Sequence[Peer]) -> int:
    """What this worker may keep of ``limit`` sessions: an equal part, what is left over to those
    that came first. 0 where it is not among ``peers``: the others take it for dead."""
    ids = sorted(peer.id for peer in peers)
    return _part(limit, ids.index(me), len(ids)) if me in ids else 0


def may_hold(limit: int, me: int, peers: Sequence[Peer]) -> int:
    """Up to how many sessions it may open: its share, less what others have not yet let go."""
    mine = share(limit, me, peers)
    if len(peers) <= 1:
        return mine
    if any(peer.id == me and peer.age < HEARD_OF for peer in peers):
        return 0
    ids = sorted(peer.id for peer in peers)
    too_many = sum(
        max(0, peer.held - _part(limit, ids.index(peer.id), len(ids)))
        for peer in peers
        if peer.id != me
    )
    return max(0, mine - too_many)


def _part(limit: int, rank: int, count: int) -> int:
    return limit // count + (rank < limit % count)


class SessionShares:
    """What one process knows of it; safe between threads."""

    def __init__(self) -> None:
        #: How many sessions this process has, by transport; told to the others.
        self.held: Callable[[], Mapping[str, int]] = dict
        self._lock = threading.Lock()
        self._connections: dict[str, int] | None = None
        self._worker: int | None = None
        self._read_at = 0.0
        self._peers: list[tuple[int, float, dict[str, int]]] = []
        self._told: dict[str, int] = {}

    def refresh(self, cursor: Any, worker_id: int) -> None:
        """Read who is alive and tell what this process, the worker of this id, holds."""
        cursor.execute(sql.PEERS, {"alive": ALIVE})
        peers = [(pk, age, _counts(sessions)) for pk, age, sessions in cursor.fetchall()]
        with self._lock:
            self._connections = configured_connections()
            self._worker, self._peers, self._read_at = worker_id, peers, clock.now()
        told = {alias: count for alias, count in self.held().items() if count}
        if told != self._told:
            given = {"sessions": json.dumps(told), "worker": worker_id}
            cursor.execute(sql.TELL_SESSIONS, given)
            self._told = told

    def workers(self) -> int:
        """How many are alive, this one included."""
        return max(1, len(self._peers))

    def may_hold(self, alias: str) -> int | None:
        """Up to how many sessions of it this process may open; None: any number."""
        limit, worker, peers = self._view(alias)
        if limit is None:
            return None
        if worker is None or clock.now() - self._read_at > STALE:
            return 0
        return may_hold(limit, worker, peers)

    def keeps(self, alias: str) -> int | None:
        """How many of those that it has it may keep; None: all."""
        limit, worker, peers = self._view(alias)
        if limit is None or worker is None:
            return limit
        return share(limit, worker, peers)

    def without(self) -> set[str]:
        """Transports of which it has none and may open none."""
        held = self.held()
        limited = self._connections if self._connections is not None else configured_connections()
        return {alias for alias in limited if not held.get(alias) and self.may_hold(alias) == 0}

    def _view(self, alias: str) -> tuple[int | None, int | None, list[Peer]]:
        with self._lock:
            if self._connections is None:
                self._connections = configured_connections()
            limit = self._connections.get(alias)
            if limit is None:
                return None, self._worker, []
            return (
                limit,
                self._worker,
                [Peer(pk, age, held.get(alias, 0)) for pk, age, held in self._peers],
            )


def _counts(sessions: Any) -> dict[str, int]:
    """Whatever a worker of another version may have written."""
    told = json.loads(sessions) if isinstance(sessions, str) else sessions
    if not isinstance(told, dict):
        return {}
    return {str(alias): n for alias, n in told.items() if isinstance(n, int)}
