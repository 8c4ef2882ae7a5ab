"""What one process has done since it started, for its display and its log."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Mapping

from . import clock


class Tally:
    """Counts of rows by the status they reached; safe between threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counts: Counter[str] = Counter()
        self.started = clock.now()

    def settled(self, became: Mapping[int, str]) -> None:
        """``{send id: status}`` as ``settle`` returns it."""
        with self._lock:
            self._counts.update(became.values())

    def withheld(self, findings: Mapping[int, str]) -> None:
        """``{send id: finding}`` of a hand-over; a paused campaign's rows only went back."""
        with self._lock:
            self._counts["withheld"] += sum(f != "not_sending" for f in findings.values())

    def counts(self) -> dict[str, int]:
        with self._lock:
            return dict(self._counts)
