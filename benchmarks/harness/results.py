"""``RESULTS.md``, of what a run found. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from . import table
from .figures import Found

HEAD = """# Results of the benchmarks

Written by `make bench`, never by hand. Ratios mean something on any machine, absolute figures on
this one only; sink, database and senders share its cores. What each benchmark does is in
[README.md](README.md). A verdict is marked when it rests on fewer than three runs or on a smaller
size than was meant.
"""


def document(
    found: Found,
    machine: Mapping[str, str],
    commands: Sequence[tuple[str, float, str]],
) -> str:
    """The whole file; ``commands`` are each command with its seconds and how it ended."""
    parts = [HEAD]
    score = table.score(found.reached, found.notes, found.extents)
    parts += ["## The targets\n", table.markdown(score), ""]
    for name, rows in found.tables.items():
        parts += [f"## {name}\n", table.markdown(rows), ""]
    more = [key for key in found.reached if key not in {t.key for t in table.TARGETS}]
    if more:
        rows = [["figure", "value", "runs", "size", "how"]]
        for key in more:
            extent = found.extents.get(key, table.Extent())
            value = f"{found.reached[key]:.3g}"
            rows.append([key, value, str(extent.runs), extent.size, found.notes[key]])
        parts += ["## More figures\n", table.markdown(rows), ""]
    if found.left_out:
        parts += ["## Not measured\n", *(f"- {sentence}" for sentence in found.left_out), ""]
    parts += ["## Machine\n"]
    parts += [table.markdown([["", ""], *([name, fact] for name, fact in machine.items())]), ""]
    parts += ["## Commands\n", "```"]
    parts += [f"{command}    # {seconds:.0f} s{ended}" for command, seconds, ended in commands]
    return "\n".join([*parts, "```", ""])
