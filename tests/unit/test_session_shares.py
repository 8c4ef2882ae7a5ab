"""How many sessions each worker may hold: never more than the limit together."""

from __future__ import annotations

import random

import pytest

from sending.limits.session_shares import HEARD_OF, Peer, may_hold, share

OLD = 60.0


def _peers(*held: int) -> list[Peer]:
    return [Peer(number, OLD, count) for number, count in enumerate(held, 1)]


@pytest.mark.parametrize(
    ("limit", "workers", "shares"),
    [
        (5, 1, [5]),
        (5, 2, [3, 2]),
        (10, 4, [3, 3, 2, 2]),
        (2, 3, [1, 1, 0]),
        (1, 2, [1, 0]),
    ],
)
def test_shares_add_up_to_the_limit(limit: int, workers: int, shares: list[int]) -> None:
    peers = _peers(*[0] * workers)
    assert [share(limit, peer.id, peers) for peer in peers] == shares
    assert sum(shares) == limit


@pytest.mark.parametrize(
    ("limit", "me", "peers", "opens"),
    [
        (5, 1, _peers(0), 5),
        (5, 7, _peers(0), 0),  # the others take it for dead
        (5, 1, [Peer(1, 0.1, 0)], 5),  # young, but alone
        (4, 2, [Peer(1, OLD, 4), Peer(2, 1.0, 0)], 0),  # the other may not have heard of it
        (4, 2, _peers(4, 0), 0),  # it has heard, and not let go yet
        (4, 2, _peers(3, 0), 1),
        (4, 2, _peers(2, 0), 2),
        (4, 2, _peers(0, 0), 2),  # another's share is its own, used or not
        (4, 1, _peers(2, 0), 2),
        (6, 3, _peers(3, 3, 0), 0),
        (6, 3, _peers(3, 2, 0), 1),
    ],
)
def test_may_hold(limit: int, me: int, peers: list[Peer], opens: int) -> None:
    assert may_hold(limit, me, peers) == opens


@pytest.mark.parametrize("seed", range(20))
def test_workers_come_and_go_and_are_never_too_many(seed: int) -> None:
    """Each looks once a second at a moment of its own; closes what it may not keep, opens what it
    may; the others see what it told at its last look."""
    dice = random.Random(seed)
    limit = dice.randint(1, 12)
    born: dict[int, float] = {}
    held: dict[int, int] = {}
    told: dict[int, int] = {}
    view: dict[int, list[Peer]] = {}
    most = 0
    for tick in range(400):
        now = tick / 4
        if tick % 30 == 0 and (len(born) < 2 or dice.random() < 0.6):
            born[tick + 1] = now
            held[tick + 1] = told[tick + 1] = 0
        elif tick % 30 == 0:
            gone = dice.choice(sorted(born))
            for record in (born, held, told, view):
                record.pop(gone, None)
        for me in sorted(born):
            if (tick + me) % 4 == 0:
                view[me] = [Peer(pk, now - at, told[pk]) for pk, at in sorted(born.items())]
                told[me] = held[me]
            if me in view:
                held[me] = min(held[me], share(limit, me, view[me]))
                if held[me] < may_hold(limit, me, view[me]) and dice.random() < 0.7:
                    held[me] += 1
        assert sum(held.values()) <= limit
        most = max(most, sum(held.values()))
    assert most == limit
    assert HEARD_OF >= 2.0, "two looks of a second each"
