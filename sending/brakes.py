"""When to stop a campaign: pure decisions about what the brakes have counted.

The counts are all workers' together (``sending.health``). A rate needs a minimum of evidence, so
that one dead address on a list of ten pauses nothing; and a campaign that staff have resumed
needs fresh evidence, since they knew.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

#: An account's usual ``max_refusals``.
USUAL_REFUSALS = 20
#: So many dead addresses and complaints at least before their rate says something. A list too
#: small to reach them does no harm that a brake could avert.
LEAST_BOUNCES = 20
LEAST_COMPLAINTS = 3
#: Refusals that speak of the sender need not come in a row: half of the answers is enough, once
#: there are this many times the account's ``max_refusals``. (Where one of several mailbox
#: providers blocks the sender, acceptances by the others stand between.)
REFUSALS_FOR_SHARE = 5
REFUSED_SHARE = 50.0

_COUNTS = ("accepted", "bounced", "refused", "complained")


@dataclass(frozen=True, slots=True)
class Totals:
    """What a campaign's answers were since it was last resumed.

    ``accepted_in_all`` is counted from its start: complaints are about any of those. ``refusal``
    is what the last refusal said.
    """

    accepted: int = 0
    bounced: int = 0
    refused: int = 0
    complained: int = 0
    in_a_row: int = 0
    accepted_in_all: int = 0
    refusal: str = ""

    @property
    def answered(self) -> int:
        return self.accepted + self.bounced + self.refused

    @classmethod
    def since(cls, counts: Mapping[str, int], base: Mapping[str, Any], in_a_row: int) -> Totals:
        """From the counts of a ``CampaignHealth`` and what they were at the last resume."""
        return cls(
            **{name: max(0, counts[name] - int(base.get(name) or 0)) for name in _COUNTS},
            in_a_row=in_a_row,
            accepted_in_all=counts["accepted"],
            refusal=str(base.get("refusal") or ""),
        )


@dataclass(frozen=True, slots=True)
class Thresholds:
    """An account's limits: refusals in a row, and rates in percent."""

    max_refusals: int = USUAL_REFUSALS
    max_bounce_rate: float = 5.0
    max_complaint_rate: float = 0.1


def judge(totals: Totals, thresholds: Thresholds) -> str | None:
    """Why the campaign must be paused, in a sentence without its stop; None: it may go on."""
    return _refusals(totals, thresholds) or judge_rates(totals, thresholds)


def _refusals(totals: Totals, thresholds: Thresholds) -> str | None:
    words = f" {totals.refusal}" if totals.refusal else ""
    if totals.in_a_row >= thresholds.max_refusals:
        return f"{totals.in_a_row} refusals in a row{words}"[:500]
    share = _percent(totals.refused, totals.answered)
    enough = REFUSALS_FOR_SHARE * thresholds.max_refusals
    if totals.refused >= enough and share >= REFUSED_SHARE:
        return f"{totals.refused} of {totals.answered} messages refused{words}"[:500]
    return None


def judge_rates(totals: Totals, thresholds: Thresholds) -> str | None:
    """As ``judge``, by bounces and complaints alone: these may still come when all is sent."""
    complaints = _percent(totals.complained, totals.accepted_in_all)
    if totals.complained >= LEAST_COMPLAINTS and complaints >= thresholds.max_complaint_rate:
        return (
            f"{totals.complained} complaints about {totals.accepted_in_all} messages "
            f"({_rate(complaints)} %; the account's limit is {thresholds.max_complaint_rate:g} %)"
        )
    bounces = _percent(totals.bounced, totals.answered)
    if totals.bounced >= LEAST_BOUNCES and bounces >= thresholds.max_bounce_rate:
        return (
            f"{totals.bounced} of {totals.answered} addresses are dead "
            f"({_rate(bounces)} %; the account's limit is {thresholds.max_bounce_rate:g} %)"
        )
    return None


def _percent(part: int, whole: int) -> float:
    """Of nothing, anything is all: complaints about messages that nobody saw accepted."""
    return 100.0 * part / max(part, whole, 1)


def _rate(percent: float) -> str:
    return f"{percent:.2f}".rstrip("0").rstrip(".")


def step(max_refusals: int) -> int:
    """After how many refusals in a row that nobody else knows of a process tells the others:
    with few, a handful of workers with many lanes each stop soon after the limit."""
    return max(1, max_refusals // 8)
