"""What every transport does now, as facts: whether it takes mail, how fast, and what waits for it;
and the campaigns that a brake has paused.

Small tables and partial indexes alone; rows of the ledger are not looked at.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from django.db.models import Count, F, QuerySet, Window
from django.db.models.functions import RowNumber

from campaigns.models import Campaign
from subscribers.conf import conf
from subscribers.models import Account

from .alive import ALIVE_WITHIN
from .limits.keys import transport_key
from .models import CampaignHealth, RateLimit, TransportPause, Worker
from .status_limits import HealthFact, health_fact
from .transport_facts import TransportFact, transport_facts
from .waits import BRAKED
from .wording import rate_words, remedy, trouble

#: Campaigns that are named of one transport.
NAMED = 10
#: Campaigns paused by a brake that are listed.
BRAKES = 50


@dataclass(frozen=True, slots=True)
class PauseNote:
    """A pause in words. ``whose`` "": everybody's."""

    pause: TransportPause
    whose: str
    trouble: str
    said: str
    remedy: str
    is_due: bool


@dataclass(frozen=True, slots=True)
class TransportState:
    """``pauses``: everybody's first. ``limit``: in words, "" without one. ``sessions``: how many
    senders that live have open, told by those of a transport that limits them; None elsewhere.
    ``campaigns``: of those that are being sent by it, the first; ``more`` that are not named."""

    fact: TransportFact
    pauses: list[PauseNote] = field(default_factory=list)
    limit: str = ""
    slowed: bool = False
    sessions: int | None = None
    campaigns: list[Campaign] = field(default_factory=list)
    more: int = 0

    @property
    def is_paused(self) -> bool:
        return any(not note.whose for note in self.pauses)


@dataclass(frozen=True, slots=True)
class Brake:
    """A campaign that a brake has paused, and its counts."""

    campaign: Campaign
    health: HealthFact


def transport_states(
    accounts: QuerySet[Account],
    pauses: QuerySet[TransportPause],
    campaigns: QuerySet[Campaign],
    now: datetime,
    *,
    everything: bool,
) -> list[TransportState]:
    """Of the transports of these accounts, paused ones first; with ``everything``, of all that are
    configured. The querysets are what whoever asks may see."""
    notes: dict[str, list[PauseNote]] = defaultdict(list)
    for pause in pauses.select_related("account").order_by("account_id", "alias"):
        notes[pause.alias].append(_note(pause, now))
    aliases = set(accounts.order_by().values_list("transport", flat=True).distinct()) | set(notes)
    if everything:
        aliases |= set(conf.TRANSPORTS)
    facts = transport_facts(aliases)
    keys = {transport_key(alias): alias for alias in facts}
    limits = {keys[row.key]: row for row in RateLimit.objects.filter(key__in=list(keys))}
    open_sessions = _sessions(now)
    sending, running = _running(campaigns)
    states = [
        TransportState(
            fact=fact,
            pauses=sorted(notes[alias], key=lambda note: (note.whose != "", note.whose)),
            limit=_limit(fact, limits.get(alias)),
            slowed=alias in limits and limits[alias].slowed_at is not None,
            sessions=open_sessions[alias] if fact.connections is not None else None,
            campaigns=sending[alias],
            more=running[alias] - len(sending[alias]),
        )
        for alias, fact in facts.items()
    ]
    return sorted(
        states, key=lambda state: (not state.is_paused, not state.pauses, state.fact.alias)
    )


def _running(campaigns: QuerySet[Campaign]) -> tuple[dict[str, list[Campaign]], Counter[str]]:
    """By transport: the first of those that are being sent, and how many there are."""
    of_transport = [F("account__transport")]
    rows: QuerySet[Any] = campaigns.filter(status=Campaign.Status.SENDING).annotate(
        place=Window(RowNumber(), partition_by=of_transport, order_by="pk"),
        every=Window(Count("*"), partition_by=of_transport),
    )
    named: dict[str, list[Campaign]] = defaultdict(list)
    counts: Counter[str] = Counter()
    first = rows.filter(place__lte=NAMED).select_related("account")
    for campaign in first.defer("body", "text_body").order_by("pk"):
        named[campaign.account.transport].append(campaign)
        counts[campaign.account.transport] = campaign.every
    return named, counts


def brakes(healths: QuerySet[CampaignHealth]) -> tuple[list[Brake], int]:
    """Campaigns that a brake has paused, of those whose counts are given, the latest first; and how
    many there are beyond these."""
    # Somebody's own pause must not take the place of a brake's.
    rows = healths.filter(BRAKED)
    rows = rows.select_related("campaign__account").defer("campaign__body", "campaign__text_body")
    found: list[Any] = list(rows.annotate(every=Window(Count("*"))).order_by("-campaign")[:BRAKES])
    facts = [(row.campaign, health_fact(row)) for row in found]
    more = found[0].every - len(found) if found else 0
    return [Brake(c, fact) for c, fact in facts if fact.trip], more


def _note(pause: TransportPause, now: datetime) -> PauseNote:
    whose = str(pause.account) if pause.account else None
    return PauseNote(
        pause=pause,
        whose=whose or "",
        trouble=trouble(pause.stage, pause.code, whose=whose, said=pause.reason),
        said=pause.reason,
        remedy=remedy(pause.stage, pause.code, whose=whose, said=pause.reason),
        is_due=pause.probe_at <= now,
    )


def _limit(fact: TransportFact, row: RateLimit | None) -> str:
    """Pure: how fast it may go."""
    if row is not None and row.slowed_at is not None:
        usual = f", usually {rate_words(row.usual)}" if row.usual is not None else ""
        why = f": {row.reason}" if row.reason else ""
        return f"slowed down to {rate_words(row.rate)}{usual}{why}"
    return rate_words(fact.rate) if fact.rate is not None else ""


def _sessions(now: datetime) -> Counter[str]:
    found: Counter[str] = Counter()
    alive = Worker.objects.filter(ended__isnull=True, seen__gte=now - ALIVE_WITHIN)
    for sessions in alive.values_list("sessions", flat=True):
        counts: dict[str, Any] = sessions or {}
        found.update({alias: int(held) for alias, held in counts.items()})
    return found
