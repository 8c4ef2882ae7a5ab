"""A campaign while it sends, as facts: what its progress page shows.

Every question goes by the rolled-up counters, a small table or a bounded walk of an index, so that
the page costs the database the same at a thousand sends and at ten million
(``benchmarks/bench_progress_page.py``). Times are the database's.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime

from django.db import connection
from django.db.models import Count, Q

from campaigns.models import Campaign
from subscribers.database_clock import database_time
from subscribers.segments.big_counts import one_snapshot

from . import counters
from .alive import ALIVE_WITHIN, worker_state
from .limits.slow_downs import limit_keys
from .models import Worker
from .sql import watching as statements
from .status import PauseFact, pauses
from .status_limits import LimitFact, brakes_in_words, slowed_limits
from .waits import of_campaign
from .watching_words import (
    ErrorGroup,
    Event,
    Line,
    Mark,
    Rate,
    Retries,
    announcement,
    closed,
    eta_words,
    group,
    identity,
    lines,
    open_rows,
    rate_now,
    rate_since,
    retries,
    step,
)
from .wording import doubt_words, trouble, words

Status = Campaign.Status

#: Rows handed over last that are looked at for the rate, retries and rows in doubt that are looked
#: at, and events of the account among which the campaign's are looked for.
SAMPLE = 2000
RETRIES = 1000
DOUBTS = 1000
EVENTS = 2000
#: Kinds of errors, and senders, that are shown.
GROUPS = 8
WORKERS = 50
#: Statuses in which the page goes on changing by itself.
MOVING = (Status.APPROVED, Status.SENDING, Status.PAUSED)


@dataclass(frozen=True, slots=True)
class DoubtLine:
    """Rows in doubt of one kind, in words. ``since``: the oldest hand-over among them."""

    why: str
    becomes: str
    number: int
    since: datetime


@dataclass(frozen=True, slots=True)
class WorkerLine:
    """A sender that is alive or was lost; ``rate``: this campaign's messages a second. ``serves``:
    this campaign, and not another one alone."""

    name: str
    state: str
    lanes: int
    seen: datetime
    rate: float
    note: str
    serves: bool = True


@dataclass(frozen=True, slots=True)
class Progress:
    """``counts`` by status, also of rows that were pruned. ``holds`` and ``identity``: whether
    every recipient is accounted for, and the sentence. ``doubt_more``: rows in doubt beyond those
    that ``doubts`` tells of. ``errors`` are among the account's last ``EVENTS`` that went wrong.
    ``alive``: senders that serve it; ``elsewhere``: that serve another campaign alone."""

    now: datetime
    counts: dict[str, int]
    audience: int
    built: bool
    lines: list[Line]
    holds: bool
    identity: str
    done: int
    rate: Rate
    rate_lately: Rate | None
    eta: str
    #: Of this look, and of the one that the next is to be compared with.
    looked: Mark
    mark: Mark
    waits: str
    retries: Retries
    doubts: list[DoubtLine]
    doubt_more: int
    errors: list[ErrorGroup]
    errors_more: int
    pauses: list[PauseFact]
    limits: list[LimitFact]
    brakes: list[tuple[str, str]]
    workers: list[WorkerLine]
    alive: int
    elsewhere: int
    said: str
    moving: bool

    @property
    def shown(self) -> list[Line]:
        """The lines with rows, and the ones that are always of interest."""
        return [line for line in self.lines if line.number or line.status in ("sent", "queued")]


def progress(campaign: Campaign, *, mark: Mark | None = None) -> Progress:
    """Look at a campaign now; its account is read. ``mark``: of an earlier look, for the rate
    since then. Raises ``Campaign.DoesNotExist`` when it was deleted meanwhile.

    Counters and rows are of one moment, so that they agree (but for a host that has put the
    request into a transaction of its own)."""
    with one_snapshot():
        return _look(campaign, mark)


def _look(campaign: Campaign, mark: Mark | None) -> Progress:
    audience, built, totals = counters.with_campaign(campaign.pk)
    counts = dict.fromkeys((line.status for line in lines({}, 0)), 0)
    for (status, _), number in totals.items():
        counts[status] += number
    now = database_time()
    sending = campaign.status == Status.SENDING
    flying = counts["claimed"] + counts["sending"] > 0
    samples = _sample(campaign.pk, flying) if sending else []
    rate = rate_now([age for _, age in samples], whole=len(samples) < SAMPLE)
    looked = Mark(now.timestamp(), closed(counts))
    lately = rate_since(mark, looked) if sending else None
    kept = mark if mark is not None and 0 <= looked.at - mark.at <= 300 else looked
    held = [p for p in pauses() if _concerns(p, campaign)] if sending else []
    holds, sentence = identity(counts, audience, built=built)
    moving = campaign.status in MOVING
    workers = _workers(campaign.pk, now, samples, rate.over) if moving else []
    alive, elsewhere = _alive(campaign.pk, now) if moving else (0, 0)
    doubts = _doubts(campaign.pk) if counts["in_doubt"] else []
    errors = group(_events(campaign)) if campaign.started_at is not None else []
    return Progress(
        now=now,
        counts=counts,
        audience=audience,
        built=built,
        lines=lines(counts, audience),
        holds=holds,
        identity=sentence,
        done=max(0, audience - open_rows(counts)),
        rate=rate,
        rate_lately=lately,
        # Behind a pause nobody can tell: what just left was the last for now.
        eta=eta_words(counts, (lately or rate).per_second, built=built)
        if sending and not held
        else "",
        looked=looked,
        mark=kept,
        waits=of_campaign(campaign.pk, totals.get(("retry", "rate_limited"), 0)),
        retries=_retries(campaign.pk, counts["retry"]),
        doubts=doubts,
        doubt_more=counts["in_doubt"] - sum(doubt.number for doubt in doubts),
        errors=errors[:GROUPS],
        errors_more=max(0, len(errors) - GROUPS),
        pauses=held,
        limits=_limits(campaign) if moving else [],
        brakes=brakes_in_words(campaign.pk) if campaign.started_at is not None else [],
        workers=workers,
        alive=alive,
        elsewhere=elsewhere,
        said=announcement(
            campaign.get_status_display().capitalize(),
            step(counts, audience) if built else None,
            _trouble(campaign, held, alive, counts),
        ),
        moving=moving,
    )


def _sample(campaign_id: int, flying: bool) -> list[tuple[int | None, float | None]]:
    """``(worker, seconds ago)`` of the rows handed over last; None: not handed over yet."""
    given = {"campaign": campaign_id, "limit": SAMPLE, "flying": flying}
    with connection.cursor() as cursor:
        cursor.execute(statements.HANDED_LAST, given)
        return cursor.fetchall()


def _retries(campaign_id: int, total: int) -> Retries:
    if not total:
        return Retries([], False, None)
    with connection.cursor() as cursor:
        cursor.execute(statements.NEXT_RETRIES, {"campaign": campaign_id, "limit": RETRIES})
        waits = [wait for (wait,) in cursor.fetchall()]
        cursor.execute(statements.LAST_RETRY, {"campaign": campaign_id})
        last = cursor.fetchone()
    return retries(waits, total, last[0] if last else None)


_BECOMES = {
    "held": "held for evidence, or a person's decision",
    "replayed": "repeated under its key, which can't deliver it twice",
    "policy": "settled by the account's policy",
}


def _doubts(campaign_id: int) -> list[DoubtLine]:
    with connection.cursor() as cursor:
        cursor.execute(statements.DOUBT, {"campaign": campaign_id, "limit": DOUBTS})
        rows = cursor.fetchall()
    found = []
    for how, reason, answered, number, since in rows:
        why = doubt_words(reason, 0 if answered else None)
        told = words(reason)
        found.append(DoubtLine(f"{why} ({told})" if told else why, _BECOMES[how], number, since))
    return found


def _events(campaign: Campaign) -> list[Event]:
    with connection.cursor() as cursor:
        cursor.execute(
            statements.LATEST_EVENTS,
            {
                "account": campaign.account_id,
                "campaign": campaign.pk,
                "limit": EVENTS,
            },
        )
        return cursor.fetchall()


def _concerns(pause: PauseFact, campaign: Campaign) -> bool:
    account = campaign.account
    return pause.transport == account.transport and pause.account in (None, account.slug)


def pause_title(pause: PauseFact) -> str:
    """``Transport default can't be reached``."""
    return f"Transport {pause.transport} {trouble(pause.stage, pause.code, said=pause.reason)}"


def _limits(campaign: Campaign) -> list[LimitFact]:
    """Slowed limits of its account, its transport and of providers of mailboxes."""
    mine = limit_keys(campaign.account_id, campaign.account.transport)
    return [fact for fact in slowed_limits() if fact.key in mine or fact.key.startswith("domain:")]


def _alive(campaign_id: int, now: datetime) -> tuple[int, int]:
    """How many senders live that serve the campaign, and how many that serve another one alone."""
    alive = Worker.objects.filter(ended__isnull=True, seen__gte=now - ALIVE_WITHIN)
    serving = Q(only_campaign__isnull=True) | Q(only_campaign=campaign_id)
    found = alive.aggregate(serving=Count("pk", filter=serving), every=Count("pk"))
    return found["serving"], found["every"] - found["serving"]


def _workers(
    campaign_id: int,
    now: datetime,
    samples: Iterable[tuple[int | None, float | None]],
    over: float,
) -> list[WorkerLine]:
    """Senders that have not signed off and were seen within an hour, the first ``WORKERS``."""
    handed = Counter(worker for worker, age in samples if age is not None and age <= over)
    alive = Worker.objects.filter(ended__isnull=True).order_by("-seen")[:WORKERS]
    return [
        WorkerLine(
            name=str(worker),
            state=worker_state(worker.ended, worker.seen, now),
            lanes=worker.lanes,
            seen=worker.seen,
            rate=handed[worker.pk] / over,
            note=worker.note,
            serves=worker.only_campaign in (None, campaign_id),
        )
        for worker in alive
        if (now - worker.seen).total_seconds() < 3600
    ]


def _trouble(
    campaign: Campaign,
    held: list[PauseFact],
    alive: int,
    counts: Mapping[str, int],
) -> str:
    """What is wrong, without numbers that change all the time."""
    parts = []
    if campaign.status == Status.SENDING:
        parts += [pause_title(pause) for pause in held]
        if not alive:
            parts.append("No sender is alive that serves it")
    if campaign.status == Status.PAUSED and campaign.status_reason:
        parts.append(f"Reason: {campaign.status_reason}")
    if counts["in_doubt"]:
        parts.append("Some are in doubt")
    return ". ".join(parts)
