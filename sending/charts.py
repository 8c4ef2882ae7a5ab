"""Charts as plain SVG geometry: no script and no style in the page, no database here.

Numbers are counts of anything between nothing and all the people there are; drawings have units of
their own, which the page scales. What is there is seen, be it one beside ten million.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

#: Percent of a stacked bar's width that the smallest part takes, so that it can be seen.
LEAST = 0.6

#: The size of a column chart, and what its axes take of it: room for the numbers at the left and
#: the times below.
WIDTH, HEIGHT = 640, 240
LEFT, RIGHT, TOP, BOTTOM = 60, 8, 12, 28
#: Labels below the columns: more would run into each other on a phone.
LABELS = 4


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a stacked bar: where it begins and how wide it is, in percent of the bar."""

    kind: str
    number: int
    x: float
    width: float


def stack(numbers: Sequence[tuple[str, int]]) -> list[Part]:
    """The parts of one bar, in the order given; those of none are left out. Pure.

    Together they fill the bar exactly. A part that would be narrower than ``LEAST`` is that wide,
    at the cost of the wide ones. Negative numbers count as none.
    """
    there = [(kind, number) for kind, number in numbers if number > 0]
    total = sum(number for _, number in there)
    if not total:
        return []
    wide = [max(LEAST, 100 * number / total) for _, number in there]
    over = sum(wide) - 100
    spare = sum(width - LEAST for width in wide)
    if over > 0 and spare > 0:
        wide = [width - over * (width - LEAST) / spare for width in wide]
    parts, x = [], 0.0
    for (kind, number), width in zip(there, wide, strict=True):
        parts.append(Part(kind, number, round(x, 3), round(width, 3)))
        x += width
    return parts


@dataclass(frozen=True, slots=True)
class Rect:
    kind: str
    x: float
    y: float
    width: float
    height: float


@dataclass(frozen=True, slots=True)
class Tick:
    """A line across the chart at ``y``, and what it stands for in few characters."""

    y: float
    label: str


@dataclass(frozen=True, slots=True)
class Label:
    """``place`` of the column that it is below; ``anchor``: ``start``, ``middle`` or ``end``."""

    x: float
    place: int
    anchor: str


@dataclass(frozen=True, slots=True)
class Columns:
    """Columns of stacked parts. ``labels``: which columns are told below, and where."""

    rects: tuple[Rect, ...]
    ticks: tuple[Tick, ...]
    labels: tuple[Label, ...]
    width: int = WIDTH
    height: int = HEIGHT
    left: int = LEFT
    #: Where the columns end at the right, and stand.
    right: int = WIDTH - RIGHT
    floor: int = HEIGHT - BOTTOM


def columns(rows: Sequence[Sequence[int]], kinds: Sequence[str]) -> Columns:
    """A column for each of ``rows``, oldest at the left, of its numbers in the order of
    ``kinds`` from the floor up. Pure. Negative numbers count as none; without any number there
    are no rectangles."""
    floor, room = HEIGHT - BOTTOM, HEIGHT - BOTTOM - TOP
    top = ceiling(max((sum(max(0, n) for n in row) for row in rows), default=0))
    step = (WIDTH - LEFT - RIGHT) / max(1, len(rows))
    rects = []
    for place, row in enumerate(rows):
        x, wide = LEFT + place * step + step * 0.1, min(step * 0.8, 60.0)
        x += (step * 0.8 - wide) / 2
        y = float(floor)
        for kind, number in zip(kinds, row, strict=True):
            if number > 0:
                height = max(2.0, number * room / top)
                y = max(0.0, y - height)
                rects.append(Rect(kind, round(x, 1), round(y, 1), round(wide, 1), round(height, 1)))
    ticks = tuple(
        Tick(round(floor - room * share, 1), compact(round(top * share)))
        for share in ((0, 0.5, 1) if top > 1 else (0, 1))
    )
    return Columns(tuple(rects), ticks, labels(len(rows), step))


def labels(count: int, step: float) -> tuple[Label, ...]:
    """Which of ``count`` columns are told: the first, the last and a few between."""
    if count <= 0:
        return ()
    shown = min(count, LABELS)
    places = sorted({round(n * (count - 1) / max(1, shown - 1)) for n in range(shown)})
    told = []
    for place in places:
        middle = LEFT + (place + 0.5) * step
        anchor = "middle"
        if count > LABELS and place == 0:
            middle, anchor = float(LEFT), "start"
        elif count > LABELS and place == count - 1:
            middle, anchor = float(WIDTH - RIGHT), "end"
        told.append(Label(round(middle, 1), place, anchor))
    return tuple(told)


def ceiling(most: int) -> int:
    """The number that a chart ends with: 1, 2, 4, 5, 6, 8 or 10 times a power of ten, at least
    ``most``; 1 of nothing."""
    if most <= 1:
        return 1
    power = 10 ** (len(str(most - 1)) - 1)
    return next(step * power for step in (1, 2, 4, 5, 6, 8, 10) if step * power >= most)


def compact(number: int) -> str:
    """``0``, ``950``, ``1.5k``, ``20k``, ``4M``: what stands beside an axis."""
    for unit, size in (("G", 10**9), ("M", 10**6), ("k", 1000)):
        if abs(number) >= size:
            return f"{number / size:.1f}".removesuffix(".0") + unit
    return str(number)
