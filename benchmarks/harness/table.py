"""Figures, their medians and ratios, tables of text and Markdown, and the verdict. All pure."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass


def median(values: Iterable[float]) -> float:
    """Raises ``statistics.StatisticsError`` when there is none."""
    return statistics.median(values)


def ratio(ours: Sequence[float], theirs: Sequence[float]) -> float:
    """The median of the rounds' ratios: what disturbed a whole round cancels out in it.

    Raises ``ValueError`` when the rounds don't correspond.
    """
    return median(a / b for a, b in zip(ours, theirs, strict=True))


@dataclass(frozen=True, slots=True)
class Target:
    """What is asked: ``least`` at least (or at most), and better: the ``climb``."""

    key: str
    what: str
    least: float
    climb: float
    unit: str = ""
    at_most: bool = False

    def meets(self, reached: float, limit: float) -> bool:
        return reached <= limit if self.at_most else reached >= limit

    def bound(self, limit: float) -> str:
        return f"{'at most' if self.at_most else 'at least'} {limit:g}{self.unit}"


@dataclass(frozen=True, slots=True)
class Extent:
    """What a figure rests on: runs, their size in words, whether it is less than was meant."""

    runs: int = 1
    size: str = ""
    smaller: bool = False

    @property
    def mark(self) -> str:
        """What a verdict must not hide; nothing when there were ``ENOUGH`` runs of full size."""
        marks = [plural(self.runs, "run")] * (self.runs < ENOUGH) + ["smaller"] * self.smaller
        return f" ({', '.join(marks)})" if marks else ""


#: Runs whose median is worth a verdict.
ENOUGH = 3


def plural(number: int, noun: str) -> str:
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {_PLURALS.get(noun, noun + 's')}"


_PLURALS = {"process": "processes"}


TARGETS = (
    Target(
        "drain",
        "drain over SMTP, personalised 6 kB multipart, durable, against `smtp-source -d -s 20`",
        least=0.30,
        climb=0.50,
    ),
    Target("post_office", "the same against django-post_office's best setting", 6, 10, "x"),
    Target(
        "relay",
        "relay with 20 ms per reply, 50 lanes, against lanes / (round trips x latency)",
        0.90,
        0.97,
    ),
    Target(
        "build",
        "build of sends against the raw `INSERT ... SELECT` of the same rows and indexes",
        0.60,
        0.85,
    ),
    Target(
        "claim",
        "claim p50 on a big table half done, xmin pinned, against 10 k rows fresh",
        2,
        1.3,
        "x",
        at_most=True,
    ),
    Target(
        "fairness",
        "a small campaign's first message while a big campaign drains",
        1,
        0.3,
        " s",
        at_most=True,
    ),
    Target(
        "memory",
        "resident memory, a big campaign against 10 k",
        1.2,
        1.05,
        "x",
        at_most=True,
    ),
    Target(
        "cpu",
        "CPU per message in the sender against building the same message with Django alone",
        0.5,
        0.25,
        "x",
        at_most=True,
    ),
)


def verdict(target: Target, reached: float | None) -> str:
    """``climbed``, ``reached``, ``missed``, or ``not measured``."""
    if reached is None:
        return "not measured"
    if target.meets(reached, target.climb):
        return "climbed"
    return "reached" if target.meets(reached, target.least) else "missed"


def score(
    reached: Mapping[str, float],
    notes: Mapping[str, str],
    extents: Mapping[str, Extent],
    targets: Sequence[Target] = TARGETS,
    *,
    quick: bool = False,
) -> list[list[str]]:
    """The targets, a heading and a row for each; ``notes`` say how it was measured. ``quick``: of
    small numbers nothing is concluded, and no peer's settings were tried."""
    rows = [["what", "target", "climb", "reached", "verdict", "runs", "size", "how"]]
    for target in targets:
        found = reached.get(target.key)
        extent = extents.get(target.key, Extent())
        judged = verdict(target, found) + (extent.mark if found is not None else "")
        rows.append(
            [
                target.what.replace("'s best setting", "") if quick else target.what,
                target.bound(target.least),
                f"{target.climb:g}{target.unit}",
                "" if found is None else f"{found:.3g}{target.unit}",
                "-" if quick else judged,
                "" if found is None else str(extent.runs),
                extent.size,
                notes.get(target.key, ""),
            ]
        )
    return rows


def text(rows: Sequence[Sequence[str]]) -> str:
    """Columns under their headings; what looks like a number stands to the right."""
    widths = [max(len(cell) for cell in column) for column in zip(*rows, strict=True)]
    lines = []
    for row in rows:
        cells = [
            cell.rjust(width) if _is_number(cell) else cell.ljust(width)
            for cell, width in zip(row, widths, strict=True)
        ]
        lines.append("  ".join(cells).rstrip())
    return "\n".join(lines)


def markdown(rows: Sequence[Sequence[str]]) -> str:
    heading, *body = [[cell.replace("|", "\\|") for cell in row] for row in rows]
    lines = [heading, ["---"] * len(heading), *body]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _is_number(cell: str) -> bool:
    return cell[:1].isdigit() and not any(c.isalpha() for c in cell.rstrip("xs "))
