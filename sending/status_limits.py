"""What holds mail back and what nobody could read, as facts; a part of ``sending.status``.

As there, every question goes by a small table or a partial index. Times are the database's.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db.models import Count, DateTimeField, Func, Sum

from .answers import said
from .brakes import Totals
from .limits import slow_downs
from .limits.keys import account_key, domain_key, transport_key
from .models import CampaignHealth, DeliveryEvent, ProviderEvent, RateLimit, Send, WebhookCount
from .wording import limit_words, percent, rate_words, refusal_words, share_words

#: The latest unclassified answers that are looked at, and how many kinds of them are told.
ANSWERS = 2000
EXAMPLES = 5
RECENT = timedelta(days=1)
#: Of a campaign's next retries, so many are looked at to say for which limit they wait.
LOOKED_AT = 1000
#: Read with the rows: what is later than this was still to come when they were read.
READ_AT = Func(function="clock_timestamp", output_field=DateTimeField())


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
    """The slowest limit of an account and its transport, in messages a second; it is not one
    campaign's alone. ``key`` and ``of`` are its own, or those of the one that lets nothing start
    before ``nothing_before``, as in ``LimitFact``."""

    key: str
    of: str
    rate: float
    nothing_before: datetime | None


@dataclass(frozen=True, slots=True)
class LimitedFact:
    """Rows of a campaign that wait for a limit, no attempt spent. ``at_least``: there were too
    many to look at all."""

    campaign: int
    key: str
    of: str
    rows: int
    at_least: bool
    next_at: datetime


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
    #: How often a brake has paused the campaign; why and when the last time.
    trips: int
    trip: str
    tripped_at: datetime | None


def slowed_limits() -> list[LimitFact]:
    """Limits that let less through than usual, the longest slowed first."""
    limits = slow_downs.named(slow_downs.slowed()).annotate(read_at=READ_AT)
    rows: Iterable[Any] = limits.order_by("slowed_at", "key")
    return [
        LimitFact(
            key=limit.key,
            of=limit_words(limit.key, limit.account_name or ""),
            rate=limit.rate,
            usual=limit.usual,
            since=limit.slowed_at,
            nothing_before=limit.updated if limit.updated > limit.read_at else None,
            reason=limit.reason,
        )
        for limit in rows
    ]


def paces(
    users: Collection[tuple[int, str]], more: Iterable[str] = ()
) -> dict[tuple[int, str], PaceFact]:
    """By ``(account, transport that it uses)``; those without any limit are left out. ``more``
    are keys of limits that count for all of them."""
    keys = {user: {*slow_downs.limit_keys(*user), *more} for user in users}
    wanted = {key for those in keys.values() for key in those}
    limits = slow_downs.named(RateLimit.objects.filter(key__in=wanted)).annotate(read_at=READ_AT)
    found: dict[str, Any] = {limit.key: limit for limit in limits}
    own = {
        user: [found[key] for key in sorted(those & found.keys())] for user, those in keys.items()
    }
    return {user: _pace(those) for user, those in own.items() if those}


def _pace(limits: list[Any]) -> PaceFact:
    slowest = min(limits, key=lambda limit: limit.rate)
    shut = max(
        (limit for limit in limits if limit.updated > limit.read_at),
        key=lambda limit: limit.updated,
        default=None,
    )
    told = shut or slowest
    return PaceFact(
        key=told.key,
        of=limit_words(told.key, told.account_name or ""),
        rate=slowest.rate,
        nothing_before=shut.updated if shut else None,
    )


def pace_words(pace: PaceFact) -> str:
    """``account City Theatre is limited to 1,000 an hour``, or until when nothing may start."""
    if pace.nothing_before is not None:
        return f"{pace.of} is limited to nothing before {pace.nothing_before:%H:%M:%S} UTC"
    return f"{pace.of} is limited to {rate_words(pace.rate, hourly=_is_account(pace.key))}"


def _is_account(key: str) -> bool:
    return key.startswith("account:")


def limited(
    campaign_ids: Collection[int], known: Mapping[int, int] | None = None
) -> list[LimitedFact]:
    """Rows that wait for a limit, by campaign and limit, most first. The rows themselves don't
    say for which: it is taken to be that of their provider of mailboxes where that has one, else
    their account's, else their transport's. ``known``: how many wait, by campaign, where that was
    counted before; to count a million takes a while."""
    waiting = Send.objects.filter(
        campaign__in=campaign_ids, queue=Send.Queue.RETRY, reason="rate_limited"
    )
    if known is None:
        known = dict(waiting.order_by().values_list("campaign").annotate(n=Count("pk")))
    counts = +Counter(dict(known))
    if not counts:
        return []
    limits: Iterable[Any] = slow_downs.named(RateLimit.objects.all())
    names = {limit.key: limit_words(limit.key, limit.account_name or "") for limit in limits}
    facts = []
    for campaign in sorted(counts):
        # The next ones of whatever reason: the index is in their order, and has no reasons.
        rows = Send.objects.filter(campaign=campaign, queue=Send.Queue.RETRY)
        next_ones = rows.order_by("next_attempt_at").values_list(
            "email_lower", "account", "account__transport", "next_attempt_at", "reason"
        )
        seen = [row[:-1] for row in next_ones[:LOOKED_AT] if row[-1] == "rate_limited"]
        first: dict[str, datetime] = {}
        looked_at: Counter[str] = Counter()
        for email, account, alias, at in seen:
            asked = (
                domain_key((email or "").rpartition("@")[2]),
                account_key(account),
                transport_key(alias),
            )
            key = next((key for key in asked if key in names), asked[-1])
            looked_at[key] += 1
            first.setdefault(key, at)  # type: ignore[arg-type]  # a retry's is never null
        facts += [
            LimitedFact(
                campaign=campaign,
                key=key,
                of=names.get(key) or limit_words(key),
                rows=rows_of_it,
                at_least=counts[campaign] > len(seen),
                next_at=first[key],
            )
            for key, rows_of_it in looked_at.most_common()
        ]
    return facts


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
        tripped_at=_moment(row.base.get("tripped_at")),
    )


def _moment(told: object) -> datetime | None:
    """A time as PostgreSQL writes it into JSON."""
    return datetime.fromisoformat(told) if isinstance(told, str) else None


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
        times = "once" if fact.trips == 1 else f"{fact.trips} times, the last time"
        at = f" at {fact.tripped_at:%Y-%m-%d %H:%M} UTC" if fact.tripped_at else ""
        told.append(("paused by a brake", f"{times}{at}: {fact.trip}"))
    return told
