"""The state of the sending, as facts: what ``sender_status`` prints and a page may show.

Each function asks one question and answers with plain data (``dataclasses.asdict`` makes it
JSON). All are cheap on a table of ten million sends: they go by partial indexes, never by a
count of what is done. Times are the database's.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from datetime import datetime

from django.db.models import Case, Count, F, Max, Min, Q, When
from django.db.models.functions import Now

from campaigns.models import Campaign
from subscribers.database_clock import database_time

from .alive import worker_state
from .answers import said
from .models import DeliveryEvent, Send, TransportPause, Worker
from .status_limits import (
    RECENT,
    HealthFact,
    LimitedFact,
    LimitFact,
    PaceFact,
    UnclassifiedFact,
    WebhookFact,
    health,
    limited,
    paces,
    slowed_limits,
    unclassified,
    webhooks,
)

#: The latest events among which failures are looked for: providers tell of every delivery, too.
#: ``Status.failures_since`` says how far back they reached.
EVENTS = 20_000
FAILURES = (
    "bounced", "failed", "in_doubt", "retry",
    "hard_bounce", "soft_bounce", "rejected", "deferred", "complained",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class WorkerFact:
    """``state`` is ``alive``, ``ended`` (signed off) or ``lost`` (silent, did not sign off).
    ``campaign``: the only one that it serves, None where it serves all. Each lane has up to
    ``sessions_a_lane`` mail sessions to a transport."""

    id: int
    host: str
    pid: int
    lanes: int
    state: str
    started: datetime
    seen: datetime
    holds: int
    note: str
    campaign: int | None = None
    sessions_a_lane: int = 1


@dataclass(frozen=True, slots=True)
class CampaignFact:
    """``done`` people are finished with, ``open`` ones still wait; both None before it starts.

    ``rate`` is people a second between two looks, None when there was only one. ``building``:
    the audience is still being counted.
    """

    id: int
    name: str
    account: str
    transport: str
    status: str
    reason: str
    scheduled_for: datetime | None
    started_at: datetime | None
    finished_at: datetime | None
    audience: int
    done: int | None
    open: int | None
    queued: int
    in_flight: int
    retry: int
    in_doubt: int
    building: bool
    next_retry: datetime | None
    health: HealthFact | None
    pace: PaceFact | None
    rate: float | None = None


@dataclass(frozen=True, slots=True)
class PauseFact:
    """``account`` None: the transport takes nothing from anybody."""

    transport: str
    account: str | None
    stage: str
    code: int | None
    reason: str
    since: datetime
    failures: int
    probe_at: datetime


@dataclass(frozen=True, slots=True)
class DoubtFact:
    """Rows in doubt; ``campaign`` None: transactional. ``settles_at`` is when the first of them
    is replayed or settled by the account's policy, None when they are held for evidence or a
    person. ``replayed_until`` is set where their transport deduplicates: they are replayed until
    then at the latest, and held afterwards."""

    campaign: int | None
    name: str
    reason: str
    rows: int
    settles_at: datetime | None
    replayed_until: datetime | None


@dataclass(frozen=True, slots=True)
class TransactionalFact:
    """Messages without campaign that still wait."""

    queued: int
    in_flight: int
    retry: int
    next_retry: datetime | None


@dataclass(frozen=True, slots=True)
class FailureFact:
    """Events of one kind and reason among the latest; ``latest`` is what was said last."""

    kind: str
    reason: str
    events: int
    last: datetime
    latest: str


@dataclass(frozen=True, slots=True)
class Status:
    """Everything, as of ``now``; the lists are whole, but for what is counted beside them.

    ``ended_workers`` counts those of the last day that signed off; the list has the latest few.
    ``failures`` are those since ``failures_since``: a day ago, or later when the latest
    ``EVENTS`` events do not reach so far back.
    """

    now: datetime
    workers: list[WorkerFact]
    ended_workers: int
    campaigns: list[CampaignFact]
    transactional: TransactionalFact
    pauses: list[PauseFact]
    doubts: list[DoubtFact]
    failures: list[FailureFact]
    failures_since: datetime
    limits: list[LimitFact]
    limited: list[LimitedFact]
    webhooks: WebhookFact
    unclassified: UnclassifiedFact


def status() -> Status:
    """Look at everything once."""
    now = database_time()
    found = campaigns(now)
    return Status(
        now=now,
        workers=workers(now),
        ended_workers=Worker.objects.filter(ended__gte=now - RECENT).count(),
        campaigns=found,
        transactional=transactional(),
        pauses=pauses(),
        doubts=doubts(),
        failures=failures(now),
        failures_since=failures_since(now),
        limits=slowed_limits(),
        limited=limited([campaign.id for campaign in found if campaign.retry]),
        webhooks=webhooks(now),
        unclassified=unclassified(now),
    )


def workers(now: datetime) -> list[WorkerFact]:
    """Those alive, those lost within a day (or that still hold rows), the last few that ended."""
    in_flight = Send.objects.filter(queue=Send.Queue.IN_FLIGHT, worker__isnull=False)
    held = Counter(dict(in_flight.values_list("worker").annotate(n=Count("pk"))))
    here = Worker.objects.filter(
        Q(ended__isnull=True, seen__gte=now - RECENT) | Q(pk__in=list(held))
    )
    gone = Worker.objects.filter(ended__gte=now - RECENT).order_by("-pk")[:5]
    found = {worker.pk: worker for worker in (*here, *gone)}
    return [
        WorkerFact(
            id=pk,
            host=worker.host,
            pid=worker.pid,
            lanes=worker.lanes,
            state=worker_state(worker.ended, worker.seen, now),
            started=worker.started,
            seen=worker.seen,
            holds=held[pk],
            note=worker.note,
            campaign=worker.only_campaign,
            sessions_a_lane=worker.sessions_a_lane,
        )
        for pk, worker in sorted(found.items())
    ]


def campaigns(now: datetime) -> list[CampaignFact]:
    """Running, paused and approved ones, drafts put back with a reason, and the day's finished."""
    wanted = Campaign.objects.filter(
        Q(status__in=["approved", "sending", "paused"])
        | (Q(status="draft") & ~Q(status_reason=""))
        | Q(status__in=["sent", "canceled"], finished_at__gte=now - RECENT)
        | Q(status="canceled", started_at__gte=now - RECENT)
    )
    chosen = list(wanted.select_related("account").defer("body", "text_body").order_by("pk"))
    ids = [campaign.pk for campaign in chosen]
    queued = _by_campaign(ids, Q(queue=Send.Queue.QUEUED))
    flying = _by_campaign(ids, Q(queue=Send.Queue.IN_FLIGHT))
    retry = _by_campaign(ids, Q(queue=Send.Queue.RETRY))
    doubt = _by_campaign(ids, Q(queue=Send.Queue.IN_DOUBT))
    due = dict(
        Send.objects.filter(campaign__in=ids, queue=Send.Queue.RETRY)
        .values_list("campaign")
        .annotate(first=Min("next_attempt_at"))
    )
    healths = health(ids)
    running = [campaign for campaign in chosen if campaign.status == "sending"]
    limits = paces({(c.account_id, c.account.transport) for c in running})
    return [
        _campaign_fact(
            campaign,
            queued=queued[campaign.pk],
            in_flight=flying[campaign.pk],
            retry=retry[campaign.pk],
            in_doubt=doubt[campaign.pk],
            next_retry=due.get(campaign.pk),
            health=healths.get(campaign.pk),
            pace=limits.get((campaign.account_id, campaign.account.transport)),
        )
        for campaign in chosen
    ]


def _campaign_fact(
    campaign: Campaign,
    *,
    queued: int,
    in_flight: int,
    retry: int,
    in_doubt: int,
    next_retry: datetime | None,
    health: HealthFact | None,
    pace: PaceFact | None,
) -> CampaignFact:
    started = campaign.started_at is not None
    left = queued + in_flight + retry
    return CampaignFact(
        id=campaign.pk,
        name=campaign.name,
        account=campaign.account.slug,
        transport=campaign.account.transport,
        status=campaign.status,
        reason=campaign.status_reason,
        scheduled_for=campaign.scheduled_for,
        started_at=campaign.started_at,
        finished_at=campaign.finished_at,
        audience=campaign.audience,
        done=max(0, campaign.audience - left) if started else None,
        open=left if started else None,
        queued=queued,
        in_flight=in_flight,
        retry=retry,
        in_doubt=in_doubt,
        building=campaign.status in ("sending", "paused") and campaign.built_at is None,
        next_retry=next_retry,
        health=health,
        pace=pace,
    )


def _by_campaign(ids: list[int], condition: Q) -> Counter[int]:
    rows = Send.objects.filter(condition, campaign__in=ids).order_by()
    return Counter(dict(rows.values_list("campaign").annotate(n=Count("pk"))))


def transactional() -> TransactionalFact:
    """What waits without a campaign."""
    rows = Send.objects.filter(campaign__isnull=True).order_by()
    retry = rows.filter(queue=Send.Queue.RETRY).aggregate(
        n=Count("pk"), first=Min("next_attempt_at")
    )
    return TransactionalFact(
        queued=rows.filter(queue=Send.Queue.QUEUED).count(),
        in_flight=rows.filter(queue=Send.Queue.IN_FLIGHT).count(),
        retry=retry["n"],
        next_retry=retry["first"],
    )


def pauses() -> list[PauseFact]:
    """Transports that take no mail now."""
    return [
        PauseFact(
            transport=pause.alias,
            account=pause.account.slug if pause.account else None,
            stage=pause.stage,
            code=pause.code,
            reason=pause.reason,
            since=pause.since,
            failures=pause.failures,
            probe_at=pause.probe_at,
        )
        for pause in TransportPause.objects.select_related("account").order_by("pk")
    ]


def doubts() -> list[DoubtFact]:
    """Rows in doubt by campaign, reason and whether they are being replayed, most first."""
    replayed = Q(settle_at__isnull=False, replay_until__gt=Now())
    rows = (
        Send.objects.filter(queue=Send.Queue.IN_DOUBT)
        .order_by()
        .annotate(replayed=Case(When(replayed, then=True), default=False))
        .values("campaign", "reason", "replayed", name=F("campaign__name"))
        .annotate(n=Count("pk"), settles=Min("settle_at"), until=Max("replay_until"))
        .order_by("-n", "campaign", "reason", "replayed")
    )
    return [
        DoubtFact(
            campaign=row["campaign"],
            name=row["name"] or "transactional",
            reason=row["reason"],
            rows=row["n"],
            settles_at=row["settles"],
            replayed_until=row["until"] if row["replayed"] else None,
        )
        for row in rows
    ]


def failures(now: datetime) -> list[FailureFact]:
    """The latest events that were no success, grouped by kind and reason, most first."""
    failed = DeliveryEvent.objects.filter(kind__in=FAILURES, at__gte=now - RECENT)
    oldest = _oldest_looked_at()
    if oldest is not None:
        failed = failed.filter(pk__gte=oldest[0])
    groups: dict[tuple[str, str], list[tuple[datetime, str]]] = {}
    for kind, reason, at, code, enhanced, text in failed.order_by("-pk").values_list(
        "kind", "reason", "at", "code", "enhanced", "text"
    ):
        groups.setdefault((kind, reason), []).append((at, said(code, enhanced, text)))
    return sorted(
        (
            FailureFact(
                kind=kind, reason=reason, events=len(told), last=told[0][0], latest=told[0][1]
            )
            for (kind, reason), told in groups.items()
        ),
        key=lambda fact: (-fact.events, fact.kind, fact.reason),
    )


def failures_since(now: datetime) -> datetime:
    """How far back ``failures`` looked: a day, or to the oldest of the latest ``EVENTS``."""
    oldest = _oldest_looked_at()
    return now - RECENT if oldest is None else max(now - RECENT, oldest[1])


def _oldest_looked_at() -> tuple[int, datetime] | None:
    """The number and the time of the oldest of the latest ``EVENTS``; None: there are fewer."""
    latest = DeliveryEvent.objects.order_by("-pk").values_list("pk", "at")
    return next(iter(latest[EVENTS - 1 : EVENTS]), None)


def rate(before: CampaignFact, after: CampaignFact, seconds: float) -> float | None:
    """People a second between two looks, never more than the limit in force. None when the
    audience grew or rows opened again: then nobody can tell from these two."""
    if before.done is None or after.done is None or seconds <= 0:
        return None
    if before.audience != after.audience or after.done < before.done:
        return None
    seen = (after.done - before.done) / seconds
    return min(seen, after.pace.rate) if after.pace is not None else seen
