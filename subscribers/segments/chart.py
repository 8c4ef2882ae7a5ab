"""A chart of joins and leaves as plain SVG geometry: no script and no style in the page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from .numbers import Move

#: The size of the drawing, in its own units; the page scales it.
WIDTH, HEIGHT = 600, 200
_TOP, _BOTTOM = 12, 12


@dataclass(frozen=True, slots=True)
class Bar:
    x: float
    y: float
    width: float
    height: float
    kind: str


@dataclass(frozen=True, slots=True)
class Chart:
    """Bars above the line ``zero`` are joins, those below it leaves, on one scale."""

    bars: tuple[Bar, ...]
    zero: float
    width: int = WIDTH
    height: int = HEIGHT


def draw(moves: Sequence[Move]) -> Chart:
    """The chart of these periods, oldest at the left. Pure; nothing happened: no bars."""
    joins = [move.joined + move.came_back for move in moves]
    leaves = [move.left for move in moves]
    up, down = max(joins, default=0), max(leaves, default=0)
    room = HEIGHT - _TOP - _BOTTOM
    if not up + down:
        return Chart((), round(_TOP + room / 2, 1))
    scale = room / (up + down)
    zero = _TOP + up * scale
    step = WIDTH / len(moves)
    bars: list[Bar] = []
    for index, (joined, left) in enumerate(zip(joins, leaves, strict=True)):
        x, width = round(index * step + step * 0.15, 1), round(step * 0.7, 1)
        # What is there is seen, be it one beside a million.
        if joined:
            height = max(1.5, joined * scale)
            bars.append(Bar(x, round(zero - height, 1), width, round(height, 1), "joined"))
        if left:
            height = max(1.5, left * scale)
            bars.append(Bar(x, round(zero, 1), width, round(height, 1), "left"))
    return Chart(tuple(bars), round(zero, 1))
