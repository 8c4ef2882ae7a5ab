"""The senders as facts: who lives, what each holds, how fast mail leaves. For the page of senders.

Goes by the few rows in flight and by the rows that running campaigns handed over last.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from django.db import connection
from django.db.models import Count

from campaigns.models import Campaign

from .alive import ALIVE_WITHIN
from .models import Send, Worker
from .sql.senders import HANDED_LAST
from .status_limits import RECENT
from .watching_words import rate_now

#: Running campaigns that the rate is taken from, and rows of each that are looked at.
CAMPAIGNS = 25
SAMPLE = 500


@dataclass(frozen=True, slots=True)
class Senders:
    """``alive`` live, ``silent`` did not sign off and were not seen lately. ``a_minute`` messages
    were handed over by all of them, as of the last seconds; ``of`` by each, by the worker's id.
    ``holds``: claimed and on their way now, by the worker's id; None: by one that is gone.
    ``alone``: of those alive, how many serve nothing but the campaign they were started for.
    ``limited``: whether some, alive or silent, had sessions of a transport that limits them."""

    alive: int
    silent: int
    lanes: int
    a_minute: float
    of: dict[int, float]
    holds: Counter[int | None]
    running: bool
    alone: int = 0
    limited: bool = False


def senders(now: datetime) -> Senders:
    """Look once: four statements, whatever there is."""
    lately = Worker.objects.filter(ended__isnull=True, seen__gte=now - RECENT)
    seen = list(lately.values_list("seen", "lanes", "only_campaign", "sessions"))
    alive = [(lanes, only) for when, lanes, only, _ in seen if now - when <= ALIVE_WITHIN]
    running = Campaign.objects.filter(status=Campaign.Status.SENDING).order_by("-pk")
    ids = list(running.values_list("pk", flat=True)[:CAMPAIGNS])
    total, each = _rates(ids)
    return Senders(
        alive=len(alive),
        silent=len(seen) - len(alive),
        lanes=sum(lanes for lanes, _ in alive),
        a_minute=total,
        of=each,
        holds=holds(),
        running=bool(ids),
        alone=sum(only is not None for _, only in alive),
        limited=any(number for *_, held in seen for number in held.values()),
    )


def holds() -> Counter[int | None]:
    """Rows that are claimed or on their way, by worker."""
    flying = Send.objects.filter(queue=Send.Queue.IN_FLIGHT)
    return Counter(dict(flying.order_by().values_list("worker").annotate(n=Count("pk"))))


def _rates(ids: list[int]) -> tuple[float, dict[int, float]]:
    """Messages a minute of these campaigns, in all and by worker."""
    return rates(handed_last(ids), sample=SAMPLE) if ids else (0.0, {})


def handed_last(ids: list[int]) -> list[tuple[int, int | None, float | None]]:
    """``(campaign, worker, seconds since its hand-over)`` of each campaign's last rows, ``SAMPLE``
    at most; None: not handed over yet."""
    with connection.cursor() as cursor:
        cursor.execute(HANDED_LAST, {"campaigns": ids, "limit": SAMPLE})
        return cursor.fetchall()


def rates(
    handed: Iterable[tuple[int, int | None, float | None]], *, sample: int
) -> tuple[float, dict[int, float]]:
    """Messages a minute, in all and by worker, from ``(campaign, worker, seconds since its
    hand-over)`` of each campaign's last rows, ``sample`` at most. Pure."""
    by_campaign: dict[int, list[tuple[int | None, float | None]]] = defaultdict(list)
    for campaign, worker, age in handed:
        by_campaign[campaign].append((worker, age))
    total, each = 0.0, Counter[int]()
    for rows in by_campaign.values():
        rate = rate_now([age for _, age in rows], whole=len(rows) < sample)
        total += rate.per_second * 60
        for worker, age in rows:
            if worker is not None and age is not None and age <= rate.over:
                each[worker] += 60 / rate.over  # type: ignore[assignment]
    return total, dict(each)


def summary(found: Senders, *, command: bool) -> str:
    """The state of the senders in a sentence or two. Pure. ``command``: whoever reads it can start
    one."""
    if not found.alive:
        todo = (
            "Start one on the machine that sends: manage.py run_sender."
            if command
            else "Tell whoever runs the senders."
        )
        told = "No sender is alive: nothing leaves, and nothing is lost."
        if found.silent:
            told += f" {_many(found.silent, 'one')} fell silent within a day."
        return f"{told} {todo}"
    told = f"{_many(found.alive, 'sender')} alive, {_many(found.lanes, 'lane')}"
    if found.running:
        told += f", about {found.a_minute:,.0f} messages a minute at the moment"
    else:
        told += "; no campaign is on its way"
    if found.alone:
        told += f". {_alone(found)}"
    if found.silent:
        return (
            f"{told}. {_many(found.silent, 'other')} fell silent within a day without signing off; "
            f"what was held there is taken over by itself."
        )
    return f"{told}."


def _alone(found: Senders) -> str:
    if found.alone == found.alive:
        which = "It" if found.alive == 1 else "Each"
        return f"{which} serves nothing but the campaign that it was started for: no other leaves"
    if found.alone == 1:
        return "One of them serves nothing but the campaign that it was started for"
    return f"{found.alone:,} of them serve nothing but the campaign that each was started for"


def _many(number: int, what: str) -> str:
    if what == "one":
        return "One" if number == 1 else f"{number:,}"
    return f"{number:,} {what}{'' if number == 1 else 's'}"
