"""What came of a campaign, as facts: its report. From the rolled-up counters, which go on counting
rows that were pruned; names are in none of it."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db import connection
from django.db.models import Sum

from campaigns.models import Campaign
from subscribers.segments.big_counts import one_snapshot

from . import counters
from .models import ArchivedCount
from .progress_page import MOVING
from .sql import watching as statements
from .unsubscriptions import AGAIN
from .watching_words import identity, share_words
from .wording import percent, words

HOUR = timedelta(hours=1)
#: Hours that a chart shows one by one; longer stretches are shown by the day.
MOST_COLUMNS = 48
#: Rows drawn for the recipient domains, and domains that are told.
DRAWN = 500
DOMAINS = 10
#: What providers tell by webhook that the report counts, as its rows call it.
TOLD = {
    "delivered": "Delivered, as the provider tells",
    "hard_bounce": "Bounced for good, told later",
    "soft_bounce": "Bounced for now, told later",
    "complained": "Complaints",
    "unsubscribed": "Unsubscribed",
}
_STATUS_TITLES = {
    "sent": "Sent",
    "in_doubt": "In doubt",
    "bounced": "Bounced",
    "failed": "Failed",
    "suppressed": "Suppressed",
    "canceled": "Canceled",
}
_SHOWN_ALWAYS = ("sent", "bounced", "failed", "suppressed", "in_doubt")


@dataclass(frozen=True, slots=True)
class Outcome:
    """A status that rows ended in, and of why, most first. ``share``: percent of the audience."""

    status: str
    title: str
    number: int
    share: float | None
    reasons: list[tuple[str, int]]


@dataclass(frozen=True, slots=True)
class Told:
    """What was heard afterwards; ``share``: percent of what was sent."""

    kind: str
    title: str
    number: int
    share: float | None


@dataclass(frozen=True, slots=True)
class Hour:
    """What happened within an hour, or within ``hours`` from ``since`` on. ``sent`` is by how much
    the number of sent grew; negative where providers told of bounces later."""

    since: datetime
    sent: int
    bounced: int
    failed: int
    complained: int
    unsubscribed: int


@dataclass(frozen=True, slots=True)
class Reached:
    """How many were sent up to so long after the start; ``share``: percent of all sent."""

    title: str
    until: datetime
    number: int
    share: float | None


@dataclass(frozen=True, slots=True)
class Domain:
    """Of the rows drawn: so many at this domain, so many of them sent or not delivered."""

    name: str
    number: int
    sent: int
    bounced: int
    failed: int


@dataclass(frozen=True, slots=True)
class Report:
    """``still_open``: recipients who may still get it. ``archived``: rows that were pruned."""

    audience: int
    built: bool
    holds: bool
    identity: str
    outcomes: list[Outcome]
    still_open: int
    told: list[Told]
    sent: int
    hours: list[Hour]
    reached: list[Reached]
    archived: int
    moving: bool


def report(campaign: Campaign) -> Report:
    """What came of a campaign up to now. Raises ``Campaign.DoesNotExist`` when it was deleted."""
    with one_snapshot():
        audience, built, totals = counters.with_campaign(campaign.pk)
        status_hours = counters.by_hour(campaign.pk)
        event_hours = counters.events_by_hour(campaign.pk)
        archived = ArchivedCount.objects.filter(campaign=campaign.pk).aggregate(n=Sum("number"))
    counts: Counter[str] = Counter()
    for (status, _), number in totals.items():
        counts[status] += number
    events: Counter[str] = Counter()
    for _, kind, reason, number in event_hours:
        if reason != AGAIN:
            events[kind] += number
    holds, sentence = identity(counts, audience, built=built)
    hours = by_hour(status_hours, event_hours)
    sent = counts["sent"]
    return Report(
        audience=audience,
        built=built,
        holds=holds,
        identity=sentence,
        outcomes=outcomes(totals, audience),
        still_open=sum(counts[status] for status in ("queued", "claimed", "sending", "retry")),
        told=[
            Told(kind, title, events[kind], percent(events[kind], sent))
            for kind, title in TOLD.items()
            if events[kind] or kind in ("complained", "unsubscribed")
        ],
        sent=sent,
        hours=hours,
        reached=reached(hours, campaign.started_at, sent),
        archived=archived["n"] or 0,
        moving=campaign.status in MOVING,
    )


def outcomes(totals: dict[tuple[str, str], int], audience: int) -> list[Outcome]:
    """The statuses that rows ended in, with their reasons. Pure."""
    by_reason: dict[str, Counter[str]] = defaultdict(Counter)
    for (status, reason), number in totals.items():
        by_reason[status][reason] += number
    found = []
    for status, title in _STATUS_TITLES.items():
        reasons = +by_reason[status]
        number = sum(reasons.values())
        if not number and status not in _SHOWN_ALWAYS:
            continue
        told = [(words(reason), n) for reason, n in reasons.most_common() if reason]
        if told and reasons[""]:
            told.append(("no reason recorded", reasons[""]))
        found.append(Outcome(status, title, number, percent(number, audience), told))
    return found


def by_hour(
    statuses: Iterable[tuple[datetime, str, str, int]],
    events: Iterable[tuple[datetime, str, str, int]],
) -> list[Hour]:
    """The hours in which anything came of it, oldest first, those without anything left out.
    Pure."""
    hours: dict[datetime, Counter[str]] = defaultdict(Counter)
    for hour, status, _, number in statuses:
        if status in ("sent", "bounced", "failed"):
            hours[hour][status] += number
    for hour, kind, reason, number in events:
        if kind in ("complained", "unsubscribed") and reason != AGAIN:
            hours[hour][kind] += number
    return [
        Hour(
            since=hour,
            sent=found["sent"],
            bounced=found["bounced"],
            failed=found["failed"],
            complained=found["complained"],
            unsubscribed=found["unsubscribed"],
        )
        for hour, found in sorted(hours.items())
        if any(found.values())
    ]


def columns_of(hours: list[Hour]) -> tuple[list[Hour], timedelta]:
    """The hours as a chart shows them, gaps filled: by the hour, or where that would be more than
    ``MOST_COLUMNS``, by as many days as it takes. Returns how long each is. Pure."""
    if not hours:
        return [], HOUR
    first, last = hours[0].since, hours[-1].since
    span = int((last - first) / HOUR) + 1
    width = HOUR
    if span > MOST_COLUMNS:
        days = -(-span // 24)
        width = timedelta(days=-(-days // MOST_COLUMNS))
    sums: dict[int, Counter[str]] = defaultdict(Counter)
    names = ("sent", "bounced", "failed", "complained", "unsubscribed")
    for one in hours:
        sums[int((one.since - first) / width)].update({n: getattr(one, n) for n in names})
    return [
        Hour(first + place * width, **{n: sums[place][n] for n in names})
        for place in range(max(sums) + 1)
    ], width


_REACHED = ((HOUR, "first hour"), (24 * HOUR, "first day"), (168 * HOUR, "first week"))


def reached(hours: list[Hour], started_at: datetime | None, sent: int) -> list[Reached]:
    """What was sent by when, counted by whole hours of the clock: up to the end of the one in
    which the campaign was so old. Pure."""
    if started_at is None or not hours:
        return []
    found = []
    for age, title in _REACHED:
        until = (started_at + age).replace(minute=0, second=0, microsecond=0) + HOUR
        number = max(0, min(sent, sum(one.sent for one in hours if one.since < until)))
        found.append(Reached(title, until, number, percent(number, sent)))
        if until > hours[-1].since:
            break
    return found


def domains(campaign_id: int) -> tuple[list[Domain], int, int]:
    """The most frequent recipient domains among rows drawn evenly from a campaign; how many rows
    were drawn, and at how many domains. Of rows that were pruned nothing is known."""
    with connection.cursor() as cursor:
        cursor.execute(statements.SAMPLE, {"campaign": campaign_id, "limit": DRAWN})
        rows = cursor.fetchall()
    found: dict[str, Counter[str]] = defaultdict(Counter)
    for domain, status, number in rows:
        found[domain][status] += number
    listed = sorted(found.items(), key=lambda item: (-sum(item[1].values()), item[0]))
    told = [
        Domain(name, sum(of.values()), of["sent"], of["bounced"], of["failed"])
        for name, of in listed[:DOMAINS]
    ]
    return told, sum(sum(of.values()) for of in found.values()), len(found)


def in_shares(number: int, of: int) -> str:
    """``43 %`` of what was sent, ``-`` of nothing."""
    return share_words(percent(number, of))
