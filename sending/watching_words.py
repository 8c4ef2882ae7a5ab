"""What somebody who watches a campaign reads, worked out from numbers: no database here.

``progress_page`` and ``reporting`` ask the database and hand what it said to these.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from .plain_table import duration
from .remaining import eta
from .status_limits import without_numbers
from .wording import percent

#: The order in which a bar and its table show the statuses: what is done, then what is open.
ORDER = (
    "sent",
    "in_doubt",
    "bounced",
    "failed",
    "suppressed",
    "canceled",
    "retry",
    "sending",
    "claimed",
    "queued",
)
MEANING = {
    "sent": "accepted by the relay or the provider",
    "in_doubt": "handed over; nobody knows whether it was taken",
    "bounced": "the address is dead",
    "failed": "refused for good, or given up",
    "suppressed": "not sent: they had left or must get no mail",
    "canceled": "not sent: the campaign was canceled",
    "retry": "refused or put off for now, to be tried again",
    "sending": "being handed over",
    "claimed": "taken by a sender, next to go",
    "queued": "waiting for their turn",
}
OPEN = ("queued", "claimed", "sending", "retry")

#: Seconds over which the rate of now is taken.
NOW = 10.0
#: How old a mark may be, in seconds, to tell a rate over the last minutes.
MARK_AGES = (20.0, 900.0)


@dataclass(frozen=True, slots=True)
class Line:
    """One status: ``share`` is percent of the audience, None of nothing."""

    status: str
    label: str
    number: int
    share: float | None
    meaning: str


def lines(counts: Mapping[str, int], audience: int) -> list[Line]:
    """A line for every status, in the order of the bar. Pure, as all here."""
    return [
        Line(
            status=status,
            label=status.replace("_", " "),
            number=counts.get(status, 0),
            share=percent(counts.get(status, 0), audience),
            meaning=MEANING[status],
        )
        for status in ORDER
    ]


def share_words(share: float | None) -> str:
    """``43 %``, ``0.2 %``, ``under 0.1 %``, ``over 99.9 %``: never 0 % of some, nor 100 % of less
    than all."""
    if share is None:
        return "-"
    if share in (0, 100):
        return f"{share:.0f}\u00a0%"
    if share < 0.1:
        return "under 0.1\u00a0%"
    if share > 99.9:
        return "over 99.9\u00a0%"
    return f"{share:.1f}\u00a0%"


def identity(counts: Mapping[str, int], audience: int, *, built: bool) -> tuple[bool, str]:
    """Whether every recipient is in exactly one state, and the sentence that says so."""
    rows = sum(counts.values())
    so_far = "" if built else " The audience is still being built, and grows."
    if rows == audience:
        whole = f"{rows:,} of {audience:,}"
        return True, f"Every recipient is accounted for: {whole}.{so_far}"
    missing = audience - rows
    what = (
        f"{missing:,} of {audience:,} recipients have no row"
        if missing > 0
        else f"there are {-missing:,} rows more than the {audience:,} recipients"
    )
    return False, f"The ledger does not add up: {what}. The command ledger looks closer.{so_far}"


@dataclass(frozen=True, slots=True)
class Rate:
    """Messages a second, over so many seconds."""

    per_second: float
    over: float


def rate_now(ages: Sequence[float | None], *, whole: bool) -> Rate:
    """The rate of the last seconds, from how many seconds ago rows were handed over; None: not
    yet. ``whole``: these are all rows there are, not the last of many."""
    known = sorted(age for age in ages if age is not None)
    reaches = whole or any(age >= NOW for age in known)
    over = NOW if reaches or not known else min(NOW, max(known[-1], 0.5))
    return Rate(sum(age <= over for age in known) / over, over)


@dataclass(frozen=True, slots=True)
class Mark:
    """How many rows were closed (``done``) at a moment, in seconds since 1970; what a page that
    is looked at again tells of when it was looked at before."""

    at: float
    done: int

    def __str__(self) -> str:
        return f"{self.at:.1f}-{self.done}"


def read_mark(text: str) -> Mark | None:
    """A mark as ``str`` wrote it; None for anything else."""
    at, _, done = text.partition("-")
    whole, _, tenth = at.partition(".")
    parts = (whole, tenth or "0", done)
    if len(text) > 40 or not all(part.isascii() and part.isdigit() for part in parts):
        return None
    return Mark(float(f"{parts[0]}.{parts[1]}"), int(done))


def rate_since(mark: Mark | None, now: Mark) -> Rate | None:
    """The rate between two looks; None when nobody can tell from them."""
    if mark is None:
        return None
    over = now.at - mark.at
    if not MARK_AGES[0] <= over <= MARK_AGES[1] or now.done < mark.done:
        return None
    return Rate((now.done - mark.done) / over, over)


def closed(counts: Mapping[str, int]) -> int:
    """Rows that were handed over and need it no more."""
    return sum(counts.get(status, 0) for status in ("sent", "bounced", "failed", "in_doubt"))


def open_rows(counts: Mapping[str, int]) -> int:
    return sum(counts.get(status, 0) for status in OPEN)


def eta_words(counts: Mapping[str, int], rate: float, *, built: bool) -> str:
    """How long the rest takes at this rate; "" when nothing is left or nobody can tell."""
    left = sum(counts.get(status, 0) for status in ("queued", "claimed", "sending"))
    seconds = eta(left, rate)
    if not left or seconds is None:
        return ""
    more = "" if built else ", and longer as the audience grows"
    retries = f"; then {counts['retry']:,} to be tried again" if counts.get("retry") else ""
    return f"about {duration(seconds)} for {left:,} more at this rate{more}{retries}"


@dataclass(frozen=True, slots=True)
class Retries:
    """When the retries come: ``due`` now, or within so long, or later. ``at_least``: only the next
    ones were looked at. ``last``: the latest moment that one waits for."""

    buckets: list[tuple[str, int]]
    at_least: bool
    last: datetime | None


#: Seconds up to which a retry is in which group.
_WITHIN = (
    (0.0, "due now"),
    (60.0, "within a minute"),
    (600.0, "within 10 minutes"),
    (3600.0, "within an hour"),
    (6 * 3600.0, "within 6 hours"),
)


def retries(waits: Sequence[float], total: int, last: datetime | None) -> Retries:
    """Groups of the next retries, by the seconds that each still waits; ``total`` are there."""
    groups: dict[str, int] = {}
    for wait in waits:
        name = next((name for most, name in _WITHIN if wait <= most), "later")
        groups[name] = groups.get(name, 0) + 1
    missing = total - len(waits)
    buckets = list(groups.items())
    if missing > 0 and waits:
        buckets.append(("after these", missing))
    return Retries(buckets, missing > 0 and bool(waits), last)


@dataclass(frozen=True, slots=True)
class ErrorGroup:
    """Answers alike but for numbers and names; ``text`` is the latest."""

    kind: str
    stage: str
    code: int | None
    enhanced: str
    text: str
    reason: str
    known: bool
    times: int
    last: datetime


#: ``(kind, stage, code, enhanced, text, reason, known, at)`` of a delivery event.
Event = tuple[str, str, int | None, str, str, str, bool, datetime]


def group(events: Iterable[Event]) -> list[ErrorGroup]:
    """Events, latest first: alike ones together, most first."""
    latest: dict[tuple[object, ...], ErrorGroup] = {}
    times: Counter[tuple[object, ...]] = Counter()
    for kind, stage, code, enhanced, text, reason, known, at in events:
        alike = (kind, stage, code, enhanced, reason, without_numbers(text))
        times[alike] += 1
        if alike not in latest:
            latest[alike] = ErrorGroup(kind, stage, code, enhanced, text, reason, known, 1, at)
    groups = [replace(one, times=times[alike]) for alike, one in latest.items()]
    return sorted(groups, key=lambda one: (-one.times, one.kind, one.stage, one.text))


def step(counts: Mapping[str, int], audience: int) -> int | None:
    """How far it is in whole tens of percent, rounded down; None of nothing."""
    if audience <= 0:
        return None
    done = max(0, audience - open_rows(counts))
    return min(100, 10 * (10 * done // audience))


def announcement(state: str, far: int | None, trouble: str) -> str:
    """What a screen reader says: it changes with the state, each tenth and trouble, and not with
    every number."""
    parts = [state, f"{far} percent done" if far is not None else "", trouble]
    return ". ".join(part.rstrip(".") for part in parts if part) + "."
