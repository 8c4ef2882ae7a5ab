"""The facts of ``sending.status_limits`` as lines of plain text, each section only when needed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from .answers import said
from .plain_table import ago, duration, listed, short
from .status_limits import RECENT, HealthFact
from .wording import rate_words, result_words, words

if TYPE_CHECKING:
    from .status import CampaignFact, Status


def brakes(status: Status) -> Iterator[str]:
    """Campaigns that a brake has paused, and those whose brakes counted anything."""
    tripped = [(c, c.health) for c in status.campaigns if c.health and _is_tripped(c)]
    if tripped:
        yield "PAUSED BY A BRAKE: mend the cause, then resume"
        yield from listed(
            ["id", "campaign", "since", "because"],
            [
                [
                    str(campaign.id),
                    short(campaign.name, 30),
                    ago(health.tripped_at, status.now) if health.tripped_at else None,
                    health.trip,
                ]
                for campaign, health in tripped
            ],
        )
    counted = [
        (c, c.health)
        for c in status.campaigns
        if c.health and _counts(c.health) and not _is_tripped(c)
    ]
    if tripped and counted:
        yield ""
    if not counted:
        return
    yield "BRAKES: at the limit a campaign is paused; counted roughly, the ledger is exact"
    yield from listed(
        ["id", "campaign", "accepted", "dead", "limit", "complaints", "limit", "in a row", "limit"],
        [
            [
                str(campaign.id),
                short(campaign.name, 30),
                health.accepted,
                _share(health.bounced, health.bounce_rate),
                f"{health.max_bounce_rate:g} %",
                _share(health.complained, health.complaint_rate),
                f"{health.max_complaint_rate:g} %",
                health.in_a_row,
                health.max_refusals,
            ]
            for campaign, health in counted
        ],
    )


def _is_tripped(campaign: CampaignFact) -> bool:
    """Whether it is a brake's pause that lasts: somebody's own has other words."""
    health = campaign.health
    return campaign.status == "paused" and health is not None and campaign.reason == health.trip


def _counts(health: HealthFact) -> bool:
    return bool(health.bounced or health.refused or health.complained or health.in_a_row)


def _share(count: int, rate: float | None) -> str:
    return f"{count:,}" if rate is None else f"{count:,} ({rate:.2f} %)"


def slowed(status: Status) -> Iterator[str]:
    """Limits that let less through than usual."""
    if not status.limits:
        return
    yield "SLOWED DOWN: the other side asked for it; the rate rises again by itself"
    yield from listed(
        ["limit", "messages now", "usually", "since", "said"],
        [
            [
                limit.of,
                f"none, until {limit.nothing_before:%H:%M:%S} UTC"
                if limit.nothing_before
                else rate_words(limit.rate, hourly=limit.key.startswith("account:")),
                "no limit"
                if limit.usual is None
                else rate_words(limit.usual, hourly=limit.key.startswith("account:")),
                ago(limit.since, status.now),
                short(limit.reason, 80),
            ]
            for limit in status.limits
        ],
    )


def waiting_events(status: Status) -> Iterator[str]:
    """Provider events that wait."""
    found = status.webhooks
    if found.oldest is not None:
        wait = duration((status.now - found.oldest).total_seconds())
        alive = any(worker.state == "alive" for worker in status.workers)
        yield (
            f"PROVIDER EVENTS: {found.waiting:,} not applied yet, the oldest for {wait}"
            + ("" if alive else "; a sender applies them, and none is alive")
        )


def webhooks(status: Status) -> Iterator[str]:
    """What webhooks brought in vain."""
    found = status.webhooks
    if found.odd:
        yield "WEBHOOKS: what was out of order since yesterday"
        yield from listed(
            ["provider", "brought", "times"],
            [[count.esp, result_words(count.what), count.times] for count in found.odd],
        )


def unclassified(status: Status) -> Iterator[str]:
    """Answers that no rule knows."""
    found = status.unclassified
    if not found.answers:
        return
    span = duration((status.now - found.since).total_seconds())
    whole = found.since <= status.now - RECENT
    yield (
        f"UNCLASSIFIED ANSWERS: {found.answers:,} "
        + ("within a day" if whole else f"or more, looked at those of the last {span}")
        + "; no rule knows them, a cautious guess decided"
    )
    yield from listed(
        ["guessed", "at", "times", "last", "said"],
        [
            [
                words(fact.became),
                fact.stage or "-",
                fact.times,
                ago(fact.last, status.now),
                short(said(fact.code, fact.enhanced, fact.text), 120),
            ]
            for fact in found.examples
        ],
    )
