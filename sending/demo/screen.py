"""What the demo says while it runs: numbered steps, and how far the campaign is."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

#: Seconds between two lines of progress where there is no terminal.
LINE_EVERY = 2.0
#: The statuses of people who are finished with, in the order in which they are told.
DONE = ("sent", "bounced", "failed", "suppressed", "in_doubt", "canceled")


@dataclass(frozen=True, slots=True)
class Moment:
    """How far it is by the ledger alone, in one look: the server's own count is of another
    moment, and the two would not add up."""

    audience: int
    counts: Mapping[str, int]

    @property
    def settled(self) -> int:
        """People who are finished with."""
        return sum(self.counts.get(status, 0) for status in DONE)

    @property
    def line(self) -> str:
        """``412 of 1,000 done: 405 sent + 4 bounced + 3 in doubt; 38 to retry``."""
        parts = [f"{self.counts[s]:,} {s.replace('_', ' ')}" for s in DONE if self.counts.get(s)]
        done = f"{self.settled:,} of {self.audience:,} done"
        waiting = self.counts.get("retry")
        return (f"{done}: {' + '.join(parts)}" if parts else done) + (
            f"; {waiting:,} to retry" if waiting else ""
        )


class Screen:
    """Plain lines on ``stream``."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream
        self._number = 0
        self._last = ""
        self._next = float("-inf")

    def title(self, text: str) -> None:
        self.write(text)
        self.write("")

    def step(self, name: str, text: str) -> None:
        """The next step of the plot."""
        self._number += 1
        self.write(f"{self._number:>2}  {name:<12}  {text}")

    def detail(self, text: str) -> None:
        """One more line about the step."""
        self.write(f"{'':<18}{text}")

    def write(self, text: str) -> None:
        self._stream.write(f"{text}\n")
        self._stream.flush()

    @contextmanager
    def progress(self) -> Iterator[None]:
        """Around the part in which ``moment`` is called."""
        yield

    def moment(self, moment: Moment, *, last: bool = False) -> None:
        """How far it is now; shown as often as the screen sees fit, the ``last`` one always."""
        now = time.monotonic()
        if (last or now >= self._next) and moment.line != self._last:
            self._next, self._last = now + LINE_EVERY, moment.line
            self.detail(moment.line)


def open_screen(stream: Any) -> Screen:
    """A live bar where ``stream`` is a terminal and ``rich`` is there, else plain lines."""
    if not stream.isatty():
        return Screen(stream)
    try:
        from .live_screen import LiveScreen
    except ImportError:
        return Screen(stream)
    return LiveScreen(stream)
