"""What a token bucket holds and who gets its tokens; pure.

A bucket of rate ``r`` holds at most ``1 + BURST * r`` tokens. So over any window of ``w`` seconds
at most ``r * w + 1 + BURST * r`` messages start: one that stands at the window's edge, and for
windows of a second or longer no more than 5 % above the rate. The same 50 milliseconds' worth
is how late somebody may come for a token without losing any of the rate.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

#: Seconds' worth of the rate that may pile up beside the one token.
BURST = 0.05
#: Whoever waits for tokens waits for so many seconds' worth, or for one: half the burst, so that
#: a fast limit is used in lots and not message by message.
BATCH = 0.025


def burst(rate: float) -> float:
    """The most tokens that a bucket of this rate (messages a second) can hold."""
    return 1.0 + BURST * rate


def batch(rate: float) -> int:
    """How many tokens are worth waiting for at once."""
    return max(1, int(BATCH * rate))


def refilled(tokens: float, elapsed: float, rate: float) -> float:
    """What is in the bucket ``elapsed`` seconds after it held ``tokens``."""
    return min(burst(rate), tokens + max(elapsed, 0.0) * rate)


@dataclass(slots=True)
class Bucket:
    """A bucket at one moment. ``closed_for``: seconds in which it gives nothing, whatever it
    holds. ``idle``: seconds since somebody last took a token."""

    rate: float
    tokens: float
    closed_for: float = 0.0
    idle: float = 0.0
    taken: int = 0

    @classmethod
    def seen(cls, rate: float, tokens: float, elapsed: float) -> Bucket:
        """As stored ``elapsed`` seconds ago; negative: it is closed for so long."""
        return cls(
            rate=rate,
            tokens=refilled(tokens, elapsed, rate),
            closed_for=max(-elapsed, 0.0),
            idle=max(elapsed, 0.0),
        )

    @property
    def gives(self) -> bool:
        return self.closed_for <= 0 and self.tokens >= 1

    def take(self) -> None:
        self.tokens -= 1
        self.taken += 1

    def wait(self, tokens: int = 1) -> float:
        """Seconds until so many tokens are there, if nobody takes any; 0.0: now."""
        return self.closed_for + max(tokens - self.tokens, 0.0) / self.rate


def grant(wanted: Sequence[Sequence[str]], buckets: Mapping[str, Bucket]) -> list[str | None]:
    """Give tokens in the order of ``wanted``: for each message the keys of the buckets that it
    needs a token of; a key without bucket is no limit.

    For each message None, and its tokens were taken; or the key that it waits for longest, and
    none was. ``buckets`` change in place.
    """
    answers: list[str | None] = []
    for keys in wanted:
        needed = [key for key in keys if key in buckets]
        refusing = [key for key in needed if not buckets[key].gives]
        if refusing:
            answers.append(max(refusing, key=lambda key: buckets[key].wait()))
            continue
        for key in needed:
            buckets[key].take()
        answers.append(None)
    return answers
