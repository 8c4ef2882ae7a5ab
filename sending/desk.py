"""One write for many: lanes that are ready together share a transaction.

A commit costs the same for one lot as for ten. Whoever comes while nobody writes, writes at once;
whoever comes meanwhile lays their job down and waits, and one of those who wait writes for all of
them next (what databases call a group commit). So nobody waits for company, and the busier it is
the more a transaction carries.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Hashable, Sequence
from functools import partial
from typing import Generic, TypeVar

from campaigns.gate import is_lock_timeout

from .connections import LOST, Busy

Job = TypeVar("Job")
Result = TypeVar("Result")


class _Place(Generic[Job, Result]):
    """A job that somebody waits for."""

    __slots__ = ("alone", "error", "job", "result", "settled", "turn")

    def __init__(self, job: Job) -> None:
        self.job = job
        self.turn = threading.Lock()
        self.turn.acquire()  # released when the job is done, or its owner's turn to write
        self.settled = False
        self.alone = False  # it, or one beside it, waits for a lock: not at the desk
        self.result: Result | None = None
        self.error: BaseException | None = None


class Desk(Generic[Job, Result]):
    """``write`` does several jobs in one transaction, all or none, and returns a result for each.

    ``together(job)``: only jobs for which it is the same are written together. ``rows(job)`` are
    the ids of its rows; no transaction is begun with more than ``most`` of them, unless one job
    has, and none with two jobs that share one: a row that was rescued and claimed again may be in
    two lanes' hands, under two tokens, and in one statement one of them would be lost.
    """

    def __init__(
        self,
        write: Callable[[Sequence[Job]], Sequence[Result]],
        *,
        alone: Callable[[Job], Result] | None = None,
        together: Callable[[Job], Hashable],
        rows: Callable[[Job], Collection[int]],
        most: int,
    ) -> None:
        self._write = write
        self._alone = alone
        self._together = together
        self._rows = rows
        self._most = most
        self._lock = threading.Lock()
        self._waiting: list[_Place[Job, Result]] = []
        self._writing = False

    def put(self, job: Job) -> Result:
        """Have ``job`` done; blocks until it is. Raises what writing it has raised.

        A database that is not reached, or a commit without acknowledgement, is everybody's error
        who was in the transaction. For any other error each job is tried alone, so that one that
        can't be written, or whose campaign is busy, keeps nobody else's. Where a row is locked
        by somebody else each is tried by who has brought it (``alone``), so that nobody else waits.
        """
        return self.put_all([job])[0]()

    def put_all(self, jobs: Sequence[Job]) -> list[Callable[[], Result]]:
        """The same for several jobs of others'; what to call for the result of each, once."""
        places: list[_Place[Job, Result]] = [_Place(job) for job in jobs]
        with self._lock:
            self._waiting += places
            writes = not self._writing
            self._writing = True
        for place in places:
            if not writes:
                place.turn.acquire()
            writes = False
            if not place.settled:
                self._take_turn(place)
        return [partial(self._told, place) for place in places]

    def _told(self, place: _Place[Job, Result]) -> Result:
        if place.alone and self._alone is not None:
            return self._alone(place.job)
        if place.error is not None:
            raise place.error
        return place.result  # type: ignore[return-value]

    def _take_turn(self, mine: _Place[Job, Result]) -> None:
        with self._lock:
            batch = self._batch(mine)
        try:
            self._do(batch)
        finally:
            with self._lock:
                for place in batch:
                    place.settled = True
                following = self._waiting[0] if self._waiting else None
                self._writing = following is not None
            for place in batch:
                if place is not mine:
                    place.turn.release()
            if following is not None:
                following.turn.release()

    def _batch(self, mine: _Place[Job, Result]) -> list[_Place[Job, Result]]:
        """Mine, and those of the others that fit to it, in the order in which they came."""
        kind, rows = self._together(mine.job), set(self._rows(mine.job))
        batch, stay = [mine], []
        for place in self._waiting:
            if place is mine:
                continue
            more = self._rows(place.job)
            fits = len(rows) + len(more) <= self._most and rows.isdisjoint(more)
            if fits and self._together(place.job) == kind:
                batch.append(place)
                rows.update(more)
            else:
                stay.append(place)
        self._waiting = stay
        return batch

    def _do(self, batch: Sequence[_Place[Job, Result]]) -> None:
        """Every place has its result or its error afterwards."""
        try:
            results = self._write([place.job for place in batch])
        except BaseException as error:
            if self._alone is not None and is_lock_timeout(error):
                for place in batch:
                    place.alone = True
                return
            shared = isinstance(error, LOST) and not isinstance(error, Busy)
            if len(batch) > 1 and isinstance(error, Exception) and not shared:
                for place in batch:
                    self._do([place])
                return
            for place in batch:
                place.error = error
            return
        for place, result in zip(batch, results, strict=True):
            place.result = result
