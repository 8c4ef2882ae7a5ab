"""What holds mail back and what nobody could read, as facts; a part of ``sending.status``.

As there, every question goes by a small table or a partial index. Times are the database's.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db.models import Count, Sum

from campaigns.models import Campaign

from .answers import said
from .brakes import Totals
from .limits import slow_downs
from .models import CampaignHealth, DeliveryEvent, ProviderEvent, RateLimit, WebhookCount
from .wording import limit_words, percent, refusal_words, share_words

#: The latest unclassified answers that are looked at, and how many kinds of them are told.
ANSWERS = 2000
EXAMPLES = 5
RECENT = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class LimitFact:
    """A limit that is slowed down. ``rate`` and ``usual`` are messages a second; ``usual`` None:
    there is no limit but while it is slow. ``nothing_before``: none may start until then, because
    the other side said so. ``key`` is the row's, ``of`` says it in words."""

    key: str
    of: str
    rate: float
    usual: float | None
    since: datetime
    nothing_before: datetime | None
    reason: str


@dataclass(frozen=True, slots=True)
class PaceFact:
    """The slowest limit of a campaign's account and transport, in messages a second; it is not
    the campaign's alone. ``nothing_before``: as in ``LimitFact``."""

    rate: float
    nothing_before: datetime | None


@dataclass(frozen=True, slots=True)
class WebhookCountFact:
    """What webhooks brought since yesterday that was out of order, by provider."""

    esp: str
    what: str
    times: int


@dataclass(frozen=True, slots=True)
class WebhookFact:
    """``waiting`` provider events are stored and not applied yet; ``oldest`` came first."""

    waiting: int
    oldest: datetime | None
    odd: list[WebhookCountFact]


@dataclass(frozen=True, slots=True)
class AnswerFact:
    """Answers that no rule knows and that differ in numbers at most; ``text`` is the latest.

    ``became`` is the outcome that the cautious guess gave them.
    """

    became: str
    stage: str
    code: int | None
    enhanced: str
    text: str
    times: int
    last: datetime


@dataclass(frozen=True, slots=True)
class UnclassifiedFact:
    """Unclassified answers since ``since``: a day ago, or later when there were too many to look
    at all. ``examples`` are the most frequent ones."""

    answers: int
    since: datetime
    examples: list[AnswerFact]


@dataclass(frozen=True, slots=True)
class HealthFact:
    """What the brakes of a campaign count, and what its account allows. The rates are percent
    since it was resumed last; None of nothing."""

    accepted: int
    bounced: int
    refused: int
    complained: int
    bounce_rate: float | None
    max_bounce_rate: float
    complaint_rate: float | None
    max_complaint_rate: float
    in_a_row: int
    max_refusals: int
    #: How often a brake has paused the campaign, and why the last time.
    trips: int
    trip: str


def slowed_limits(now: datetime) -> list[LimitFact]:
    """Limits that let less through than usual, the longest slowed first."""
    rows: Iterable[Any] = slow_downs.named(slow_downs.slowed()).order_by("slowed_at", "key")
    return [
        LimitFact(
            key=limit.key,
            of=limit_words(limit.key, limit.account_name or ""),
            rate=limit.rate,
            usual=limit.usual,
            since=limit.slowed_at,
            nothing_before=limit.updated if limit.updated > now else None,
            reason=limit.reason,
        )
        for limit in rows
    ]


def paces(campaigns: Collection[Campaign], now: datetime) -> dict[int, PaceFact]:
    """By campaign; those whose account and transport have no limit are left out. The campaigns'
    accounts are read."""
    keys = {c.pk: slow_downs.limit_keys(c.account_id, c.account.transport) for c in campaigns}
    wanted = {key for pair in keys.values() for key in pair}
    found = {limit.key: limit for limit in RateLimit.objects.filter(key__in=wanted)}
    limits = {pk: [found[key] for key in pair if key in found] for pk, pair in keys.items()}
    return {
        pk: PaceFact(
            rate=min(limit.rate for limit in those),
            nothing_before=max((x.updated for x in those if x.updated > now), default=None),
        )
        for pk, those in limits.items()
        if those
    }


def webhooks(now: datetime) -> WebhookFact:
    """Provider events that wait, and what was out of order yesterday and today."""
    waiting = ProviderEvent.objects.filter(applied_at__isnull=True)
    oldest = waiting.order_by("pk").values_list("received", flat=True).first()
    counts = (
        WebhookCount.objects.filter(day__gte=(now - RECENT).date())
        .order_by()
        .values("esp", "what")
        .annotate(times=Sum("count"))
        .order_by("-times", "esp", "what")
    )
    return WebhookFact(
        waiting=waiting.aggregate(n=Count("pk"))["n"] if oldest else 0,
        oldest=oldest,
        odd=[WebhookCountFact(row["esp"], row["what"], row["times"]) for row in counts],
    )


def unclassified(now: datetime) -> UnclassifiedFact:
    """The day's answers that no rule knows, alike ones together."""
    latest = DeliveryEvent.objects.filter(known=False).order_by("-pk")
    rows = latest.values_list("kind", "stage", "code", "enhanced", "text", "at")[:ANSWERS]
    seen = list(rows)
    groups: dict[tuple[object, ...], list[tuple[str, datetime]]] = {}
    fresh = [row for row in seen if row[-1] >= now - RECENT]
    for kind, stage, code, enhanced, text, at in fresh:
        alike = (kind, stage, code, enhanced, without_numbers(text))
        groups.setdefault(alike, []).append((text, at))
    all_fresh = len(seen) == ANSWERS == len(fresh)
    examples = [
        AnswerFact(kind, stage, code, enhanced, told[0][0], len(told), told[0][1])  # type: ignore[arg-type]
        for (kind, stage, code, enhanced, _), told in groups.items()
    ]
    examples.sort(key=lambda fact: (-fact.times, fact.stage, said(fact.code, "", fact.text)))
    return UnclassifiedFact(
        answers=len(fresh),
        since=seen[-1][-1] if all_fresh else now - RECENT,
        examples=examples[:EXAMPLES],
    )


_NUMBERED = re.compile(r"\S*[\d@]\S*")


def without_numbers(text: str) -> str:
    """An answer without what differs from one message to the next: queue ids, addresses, times."""
    return _NUMBERED.sub("#", text)


def health(campaign_ids: Collection[int]) -> dict[int, HealthFact]:
    """By campaign; those that sent nothing yet have none."""
    rows = CampaignHealth.objects.filter(campaign__in=campaign_ids)
    return {
        row.pk: health_fact(row) for row in rows.select_related("campaign__account").order_by("pk")
    }


def health_fact(row: CampaignHealth) -> HealthFact:
    """One campaign's counts beside its account's limits; ``row.campaign.account`` is read."""
    account = row.campaign.account
    counts = {name: getattr(row, name) for name in ("accepted", "bounced", "refused", "complained")}
    since = Totals.since(counts, row.base, row.in_a_row)
    return HealthFact(
        accepted=row.accepted,
        bounced=row.bounced,
        refused=row.refused,
        complained=row.complained,
        bounce_rate=percent(since.bounced, since.answered),
        max_bounce_rate=float(account.max_bounce_rate),
        complaint_rate=percent(since.complained, since.accepted_in_all),
        max_complaint_rate=float(account.max_complaint_rate),
        in_a_row=row.in_a_row,
        max_refusals=account.max_refusals,
        trips=int(row.base.get("trips") or 0),
        trip=str(row.base.get("trip") or ""),
    )


def brakes_in_words(campaign_id: int) -> list[tuple[str, str]]:
    """What the brakes of a campaign count, for its page; empty before they counted anything."""
    fact = health([campaign_id]).get(campaign_id)
    if fact is None:
        return []
    told = [
        ("dead addresses", share_words(fact.bounced, fact.bounce_rate, fact.max_bounce_rate)),
        (
            "complaints",
            share_words(fact.complained, fact.complaint_rate, fact.max_complaint_rate),
        ),
        ("refused in a row", refusal_words(fact.in_a_row, fact.refused, fact.max_refusals)),
    ]
    if fact.trip:
        times = "once" if fact.trips == 1 else f"{fact.trips} times"
        told.append(("paused by a brake", f"{times}, the last time because {fact.trip}"))
    return told
