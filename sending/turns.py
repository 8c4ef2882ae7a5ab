"""The order in which rows of one transport leave: single messages first, then campaigns in turn."""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain

from .queue import Claimed


class Turns:
    """Rows that wait for a lane. Not safe between threads.

    A lot is of one campaign as far as that goes, and the next lot of the next one: who begins
    beside a big campaign waits for a lot of each other, not for all that was claimed before.
    """

    def __init__(self) -> None:
        #: Put back, transactional, let in: each goes before the next, and all before campaigns.
        self._next: deque[Claimed] = deque()
        self._single: deque[Claimed] = deque()
        self._let_in: deque[Claimed] = deque()
        self._campaigns: OrderedDict[int, deque[Claimed]] = OrderedDict()
        self._length = 0

    def __len__(self) -> int:
        return self._length

    def __iter__(self) -> Iterator[Claimed]:
        return chain(self._next, self._single, self._let_in, *self._campaigns.values())

    def append(self, row: Claimed) -> None:
        """A row behind those of its campaign; a transactional one behind those alone."""
        self._length += 1
        if row.campaign_id is None:
            self._single.append(row)
            return
        rows = self._campaigns.get(row.campaign_id)
        if rows is None:
            rows = self._campaigns[row.campaign_id] = deque()
        rows.append(row)

    def let_in(self, rows: Sequence[Claimed]) -> None:
        """These are next in this order, but for transactional rows."""
        for row in reversed(rows):
            (self._single if row.campaign_id is None else self._let_in).appendleft(row)
        self._length += len(rows)

    def put_back(self, rows: Sequence[Claimed]) -> None:
        """These are the very next."""
        self._next.extendleft(reversed(rows))
        self._length += len(rows)

    def take(self, count: int) -> list[Claimed]:
        """The next ``count`` rows, or as many as there are."""
        taken: list[Claimed] = []
        for first in (self._next, self._single, self._let_in):
            while first and len(taken) < count:
                taken.append(first.popleft())
        while self._campaigns and len(taken) < count:
            campaign_id, rows = next(iter(self._campaigns.items()))
            taken += [rows.popleft() for _ in range(min(count - len(taken), len(rows)))]
            if rows:
                self._campaigns.move_to_end(campaign_id)
            else:
                del self._campaigns[campaign_id]
        self._length -= len(taken)
        return taken

    def take_out(self, unwanted: Callable[[Claimed], bool]) -> list[Claimed]:
        """All that are ``unwanted``, wherever they stand."""
        out = [row for row in self if unwanted(row)]
        if out:
            gone = set(map(id, out))
            self._next = _without(self._next, gone)
            self._single = _without(self._single, gone)
            self._let_in = _without(self._let_in, gone)
            for campaign_id, rows in list(self._campaigns.items()):
                stay = _without(rows, gone)
                if stay:
                    self._campaigns[campaign_id] = stay
                else:
                    del self._campaigns[campaign_id]
            self._length -= len(out)
        return out


def _without(rows: Iterable[Claimed], gone: set[int]) -> deque[Claimed]:
    return deque(row for row in rows if id(row) not in gone)
