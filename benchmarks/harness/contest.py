"""Several contestants in turn, round after round, so that what disturbs one disturbs all.

A round of a contestant is: fill its queue, drain it, and start the same programs once more with
nothing to do. What the second took is start-up, and is taken off: a queue of a few thousand
messages would else say more about imports than about sending. A contestant that has records of
its first hand-over and its last outcome is timed by them instead. The rate of the whole, start-up
and all, is told beside it.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from .table import median, ratio
from .timing import Failed, Took


class Contestant(Protocol):
    @property
    def name(self) -> str: ...

    @property
    def messages(self) -> int:
        """How many it sends in a round."""

    def prepare(self) -> None: ...

    def drain(self) -> Took:
        """Send all; with nothing left, end soon. Raises ``timing.Failed``."""

    def check(self) -> float | None:
        """Seconds from the first hand-over to the last outcome, if there is a record of them.
        Raises ``timing.Failed`` unless all were sent."""


@dataclass(frozen=True, slots=True)
class Round:
    """``idle`` is the same programs with nothing to send; ``bytes`` are those of all messages;
    ``span`` is what ``check`` returned."""

    messages: int
    whole: Took
    idle: Took
    bytes: int = 0
    span: float | None = None

    @property
    def seconds(self) -> float:
        """Of sending, start-up taken off."""
        if self.span is not None:
            return max(self.span, 1e-9)
        return max(self.whole.seconds - self.idle.seconds, 1e-9)

    @property
    def rate(self) -> float:
        """Messages a second of sending."""
        return self.messages / self.seconds

    @property
    def rate_with_start(self) -> float:
        return self.messages / self.whole.seconds

    @property
    def cpu(self) -> float:
        """Processor seconds for a message in the contestant's own processes, start-up taken off."""
        return max(self.whole.cpu - self.idle.cpu, 0.0) / self.messages


Rounds = Mapping[str, Sequence[Round]]


def contest(
    contestants: Sequence[Contestant],
    rounds: int,
    bytes_read: Callable[[], int],
    say: Callable[[str], None],
    until: float = math.inf,
    may_fail: Container[str] = (),
) -> dict[str, list[Round]]:
    """The rounds of each, by name: ``rounds``, or fewer when the next would not be over by
    ``until`` (as ``time.monotonic``), but one. Of those that ``may_fail`` one that does has none:
    a peer that hangs takes nobody else's figures along. Raises ``timing.Failed`` of the others."""
    found: dict[str, list[Round]] = {contestant.name: [] for contestant in contestants}
    started = time.monotonic()
    for number in range(1, rounds + 1):
        if number > 1 and time.monotonic() + (time.monotonic() - started) / (number - 1) > until:
            say(f"no time for round {number}")
            break
        for contestant in [one for one in contestants if one.name in found]:
            try:
                done = one_round(contestant, bytes_read)
            except Failed as error:
                if contestant.name not in may_fail:
                    raise
                say(f"round {number}: {contestant.name} is left out: {error}")
                del found[contestant.name]
                continue
            found[contestant.name].append(done)
            say(
                f"round {number}: {contestant.name:24} {done.messages:>7} messages "
                f"{done.rate:>7.0f}/s, with start-up {done.rate_with_start:.0f}/s"
            )
    return found


def one_round(contestant: Contestant, bytes_read: Callable[[], int]) -> Round:
    contestant.prepare()
    before = bytes_read()
    whole = contestant.drain()
    size = bytes_read() - before
    span = contestant.check()
    idle = contestant.drain()
    return Round(contestant.messages, whole, idle, size, span)


def ratio_of(found: Rounds, ours: str, theirs: str, *, with_start: bool = False) -> float:
    """The median over the rounds of our rate over theirs. Raises ``KeyError``."""

    def rates(name: str) -> list[float]:
        return [r.rate_with_start if with_start else r.rate for r in found[name]]

    return ratio(rates(ours), rates(theirs))


def rows(found: Rounds, best: str, columns: Mapping[str, Mapping[str, str]]) -> list[list[str]]:
    """A table of medians; ``best`` is who the ratios are to, ``columns`` more words by name."""
    table = [
        [
            "contestant",
            "messages/s",
            "with start-up",
            f"to {best}",
            "CPU ms/message",
            "bytes",
            *columns,
        ]
    ]
    for name, rounds in found.items():
        table.append(
            [
                name,
                f"{median(r.rate for r in rounds):,.0f}",
                f"{median(r.rate_with_start for r in rounds):,.0f}",
                f"{ratio_of(found, name, best):.3f}",
                f"{median(r.cpu for r in rounds) * 1000:.3f}",
                f"{median(r.bytes / r.messages for r in rounds):,.0f}",
                *(words.get(name, "") for words in columns.values()),
            ]
        )
    return table
