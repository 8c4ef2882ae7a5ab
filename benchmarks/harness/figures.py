"""What a benchmark found, for whoever runs several: lines of JSON in a file."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from .table import Extent

_file: list[Path] = []


@dataclass
class Found:
    """By key: numbers, how they were come by, what they rest on, and tables (a heading first).
    And sentences about what could not be measured."""

    reached: dict[str, float] = field(default_factory=dict)
    notes: dict[str, str] = field(default_factory=dict)
    extents: dict[str, Extent] = field(default_factory=dict)
    tables: dict[str, list[list[str]]] = field(default_factory=dict)
    left_out: list[str] = field(default_factory=list)

    def take(self, text: str) -> None:
        """Add what the functions below wrote."""
        for line in text.splitlines():
            entry = json.loads(line)
            if "left_out" in entry:
                self.left_out.append(entry["left_out"])
            elif "rows" in entry:
                self.tables[entry["key"]] = entry["rows"]
            else:
                self.reached[entry["key"]] = entry["value"]
                self.notes[entry["key"]] = entry["note"]
                self.extents[entry["key"]] = Extent(**entry["extent"])


def write_to(path: Path | None) -> None:
    """From now on, tell it there; None: nowhere."""
    _file[:] = [] if path is None else [path]


def tell(key: str, value: float, note: str = "", extent: Extent | None = None) -> None:
    """``key`` is one of ``table.TARGETS``, or a name of its own."""
    _append({"key": key, "value": value, "note": note, "extent": asdict(extent or Extent())})


def tell_table(key: str, rows: Sequence[Sequence[str]]) -> None:
    _append({"key": key, "rows": rows})


def tell_left_out(sentence: str) -> None:
    _append({"left_out": sentence})


def _append(entry: object) -> None:
    for path in _file:
        with path.open("a") as file:
            file.write(json.dumps(entry) + "\n")
