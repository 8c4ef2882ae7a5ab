"""The front page's facts: what needs somebody, what runs, what is to come, what is done.

A fixed number of statements, whatever there is: each reads a bounded number of rows, by the
counters or an index. All of it is of some accounts; times are the database's.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import reduce
from typing import Any

from django.db import connection
from django.db.models import Count, Exists, OuterRef, Q, QuerySet, Window
from django.db.models.functions import Coalesce, Now

from campaigns.lifecycle import Editor, second_person
from campaigns.models import Approval, Campaign
from subscribers.models import Account, ImportJob, Segment, Subscriber

from .alive import ALIVE_WITHIN, serves
from .models import CampaignHealth, TransportPause
from .senders import SAMPLE, handed_last
from .sql import dashboard as sql
from .waits import BRAKED
from .watching_words import Rate, rate_now

Status = Campaign.Status

#: Campaigns of one kind, pauses, imports that are shown.
SHOWN = 8
#: Rows in doubt of a campaign that are counted.
COUNTED = 1000
#: How long something that is over, or that nobody took up, is told of.
LATELY = timedelta(days=7)
WAITING = timedelta(days=30)


@dataclass(frozen=True, slots=True)
class May:
    """What somebody may see, and so is told of; ``approve``: may let a draft go."""

    campaigns: bool = False
    approve: bool = False
    sends: bool = False
    pauses: bool = False
    imports: bool = False


@dataclass(frozen=True, slots=True)
class Running:
    """``open``: rows that still wait or are on their way; ``rate`` over the last seconds."""

    campaign: Campaign
    counts: dict[str, int]
    rate: Rate


@dataclass(frozen=True, slots=True)
class Held:
    """Rows in doubt that wait for a person; ``campaign`` None: messages of none, of any account."""

    campaign: int | None
    name: str
    rows: int
    account: str


@dataclass(frozen=True, slots=True)
class Start:
    """What there is of what a newcomer makes first."""

    account: bool
    people: bool
    segment: bool
    campaign: bool


@dataclass(frozen=True)
class Facts:
    """``more``: of which kinds there are more than are told; how many, where that is known.
    ``served``: see ``alive.served``; asked only where something is to be sent. ``start``: only
    while there is no campaign at all."""

    now: datetime | None = None
    served: frozenset[int | None] = frozenset({None})
    #: With ``braked``: whether a brake has paused it.
    paused: Sequence[Any] = ()
    back: Sequence[Campaign] = ()
    second: Sequence[Campaign] = ()
    drafts: Sequence[Campaign] = ()
    scheduled: Sequence[Campaign] = ()
    running: Sequence[Running] = ()
    sent: Sequence[Campaign] = ()
    sent_counts: dict[int, dict[str, int]] = field(default_factory=dict)
    pauses: Sequence[TransportPause] = ()
    held: Sequence[Held] = ()
    imports: Sequence[ImportJob] = ()
    more: dict[str, int | None] = field(default_factory=dict)
    start: Start | None = None

    def without_sender(self) -> list[Campaign]:
        """What is to be sent now and nobody is there to do it."""
        now = self.now
        if now is None:
            return []
        due = [c for c in self.scheduled if c.scheduled_for and c.scheduled_for <= now]
        wanted = [*(one.campaign for one in self.running), *due]
        return [campaign for campaign in wanted if not serves(self.served, campaign.pk)]


def look(accounts: list[int] | None, may: May, *, by: Editor = None) -> Facts:
    """What somebody may see of these accounts; None: of all. ``by``: who looks, and is or is not
    the second person that a draft waits for."""
    more: dict[str, int | None] = {}
    pauses = _cut("pauses", _pauses(accounts), more) if may.pauses else []
    imports = _cut("imports", _imports(accounts), more) if may.imports else []
    if not may.campaigns:
        return Facts(pauses=pauses, imports=imports, more=more)
    kinds = _campaigns(accounts, may, by)
    for kind, some in kinds.items():
        if len(some) > SHOWN:
            more[kind] = None
    kinds = {kind: some[:SHOWN] for kind, some in kinds.items()}
    held = _held(accounts) if may.sends else []
    if sum(one.campaign is not None for one in held) > SHOWN:
        more["held"] = None
        held = [*held[:SHOWN], *(one for one in held if one.campaign is None)]
    sending = kinds["running"]
    counted = [c.pk for c in (*sending, *kinds["sent"])]
    counts = _totals(counted) if counted else {}
    rates = _rates([c.pk for c in sending]) if sending else {}
    now, served = _served() if sending or kinds["scheduled"] else (None, frozenset({None}))
    none = not any(kinds.values())
    return Facts(
        now=now,
        served=served,
        paused=kinds["paused"],
        back=kinds["back"],
        second=kinds["second"],
        drafts=kinds["drafts"],
        scheduled=kinds["scheduled"],
        running=[Running(c, counts.get(c.pk, {}), rates[c.pk]) for c in sending],
        sent=kinds["sent"],
        sent_counts=counts,
        pauses=pauses,
        held=held,
        imports=imports,
        more=more,
        start=_start(accounts) if none else None,
    )


def _campaigns(accounts: list[int] | None, may: May, by: Editor) -> dict[str, list[Campaign]]:
    """The first of each kind, one more than is told of, read in one statement."""
    every: QuerySet[Campaign] = Campaign.objects.all()
    if accounts is not None:
        every = every.filter(account__in=accounts)
    voided = Approval.objects.filter(campaign=OuterRef("pk"), voided_at__gte=Now() - WAITING)
    drafts = every.filter(status=Status.DRAFT, created__gte=Now() - WAITING)
    addressed = Exists(Campaign.segments.through.objects.filter(campaign=OuterRef("pk")))
    braked = Exists(CampaignHealth.objects.filter(BRAKED, campaign=OuterRef("pk")))
    back = Q(status=Status.DRAFT) & ~Q(status_reason="")
    chosen = {
        "paused": every.filter(status=Status.PAUSED).order_by("-pk"),
        "running": every.filter(status=Status.SENDING).order_by("-pk"),
        "scheduled": every.filter(status=Status.APPROVED).order_by("scheduled_for", "pk"),
        "back": every.filter(back).filter(Exists(voided)).order_by("-pk"),
        "drafts": drafts.filter(status_reason="").order_by("-pk"),
        "sent": every.filter(status=Status.SENT, finished_at__gte=Now() - WAITING).order_by(
            "-finished_at", "-pk"
        ),
    }
    if may.approve and by is not None:
        # ``second_person`` decides; what waits for them must not take the places of what does not.
        own = Q(created_by=by.pk) | Q(edited_by=by.pk, edited_by__isnull=False)
        own |= Q(layout__edited_by=by.pk, layout__changed__gt=Coalesce("edited_at", "created"))
        others = Q(addressed, account__second_approver=True, created_by__isnull=False)
        mine = drafts.filter(status_reason="").filter(own).values("pk")
        waiting = drafts.filter(others, status_reason="").exclude(pk__in=mine)
        chosen["second"] = waiting.order_by("-pk")
        chosen["drafts"] = chosen["drafts"].exclude(pk__in=waiting.values("pk"))
    ids = reduce(
        lambda a, b: a.union(b, all=True),
        (rows.values("pk")[: SHOWN + 1] for rows in chosen.values()),
    )
    rows = (
        Campaign.objects.filter(pk__in=ids)
        .select_related("account", "approved_by", "created_by", "layout")
        .annotate(addressed=addressed, braked=braked)
        .defer("body", "text_body", "layout__body")
        .order_by("-pk")
    )
    found: dict[str, list[Campaign]] = {
        kind: [] for kind in ("paused", "running", "scheduled", "back", "sent", "second", "drafts")
    }
    for campaign in rows:
        found[_kind(campaign, may, by)].append(campaign)
    found["scheduled"].sort(key=lambda c: (c.scheduled_for, c.pk))
    found["sent"].sort(key=lambda c: (c.finished_at, c.pk), reverse=True)
    return found


def _kind(campaign: Any, may: May, by: Editor) -> str:
    if campaign.status == Status.DRAFT:
        if campaign.status_reason:
            return "back"
        waits = campaign.addressed and campaign.account.second_approver
        second = may.approve and waits and not second_person(campaign, by)
        return "second" if second else "drafts"
    return {
        Status.PAUSED: "paused",
        Status.SENDING: "running",
        Status.APPROVED: "scheduled",
    }.get(Status(campaign.status), "sent")


def _fetch(statement: str, parameters: dict[str, Any]) -> list[tuple[Any, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(statement, parameters)
        return cursor.fetchall()


def _totals(ids: list[int]) -> dict[int, dict[str, int]]:
    found: dict[int, dict[str, int]] = defaultdict(dict)
    for campaign_id, status, number in _fetch(sql.TOTALS, {"ids": ids}):
        found[campaign_id][status] = number
    return found


def _rates(ids: list[int]) -> dict[int, Rate]:
    ages: dict[int, list[float | None]] = {one: [] for one in ids}
    for campaign_id, _, age in handed_last(ids):
        ages[campaign_id].append(age)
    return {one: rate_now(seen, whole=len(seen) < SAMPLE) for one, seen in ages.items()}


def _served() -> tuple[datetime, frozenset[int | None]]:
    ((now, served),) = _fetch(sql.SERVED, {"within": ALIVE_WITHIN})
    return now, frozenset(served)


def _held(accounts: list[int] | None) -> list[Held]:
    given = {"accounts": accounts, "campaigns": SHOWN + 1, "most": COUNTED}
    return [Held(*row) for row in _fetch(sql.HELD, given)]


#: How many rows there are, beside the first of them.
_EVERY = Window(Count("*"))


def _pauses(accounts: list[int] | None) -> list[TransportPause]:
    rows: QuerySet[Any] = TransportPause.objects.select_related("account").order_by("pk")
    # When the next try is told by the clock that decides.
    rows = rows.annotate(db_now=Now())
    if accounts is not None:
        used = Account.objects.filter(pk__in=accounts).values("transport")
        rows = rows.filter(Q(account__in=accounts) | Q(account__isnull=True, alias__in=used))
    return list(rows.annotate(every=_EVERY)[:SHOWN])


def _imports(accounts: list[int] | None) -> list[ImportJob]:
    rows = ImportJob.objects.filter(status=ImportJob.Status.FAILED, created__gte=Now() - LATELY)
    if accounts is not None:
        rows = rows.filter(account__in=accounts)
    rows = rows.select_related("account").defer("preview", "options")
    return list(rows.order_by("-pk").annotate(every=_EVERY)[:SHOWN])


def _cut(kind: str, found: list[Any], more: dict[str, int | None]) -> list[Any]:
    """Note how many there are beyond those that were ``found``."""
    if found and found[0].every > len(found):
        more[kind] = found[0].every - len(found)
    return found


def _start(accounts: list[int] | None) -> Start | None:
    """None where there is a campaign, though none of those that are told of."""
    of = {} if accounts is None else {"account__in": accounts}
    there: Any = Account.objects.filter(**({} if accounts is None else {"pk__in": accounts}))
    row = (
        there.order_by()
        .annotate(
            some_people=Exists(Subscriber.objects.filter(**of)),
            some_segment=Exists(Segment.objects.filter(**of)),
            some_campaign=Exists(Campaign.objects.filter(**of)),
        )
        .values_list("some_people", "some_segment", "some_campaign")
        .first()
    )
    if row is None:
        return Start(account=False, people=False, segment=False, campaign=False)
    people, segment, campaign = row
    return None if campaign else Start(True, people, segment, campaign)
