"""The rows in doubt as facts for the desk where people decide about them.

Every question goes by the partial index of doubt. What is counted is bounded: ``COUNTED`` rows of
a campaign are looked at and no more, and a fact says when there were more.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db import connection
from django.db.models import QuerySet

from campaigns.models import Campaign
from subscribers.paging import AtLeast

from .answers import said
from .doubt_advice import Advice, advice, fate
from .models import DeliveryEvent, ProviderEvent, Send
from .sql import doubt_desk as sql
from .transport_facts import TransportFact, alias_of, transport_fact, transport_facts
from .wording import WEBHOOK, kind_words

#: Rows of one campaign that are looked at to count them by reason.
COUNTED = 10_000
#: Campaigns on a page of the desk, and rows of one campaign on a page.
CAMPAIGNS = 20
ROWS = 50
#: Events that are told of a page's rows; a row has a few.
EVENTS = 1000


@dataclass(frozen=True, slots=True)
class Group:
    """Rows of a campaign that are in doubt for one reason, and of which the same is to be said.

    ``since`` and ``latest``: their first and last hand-over. ``fate`` is a key of
    ``doubt_advice.FATES`` and ``until`` the moment it speaks of. ``harmless``: sent again now, the
    provider would not deliver them twice.
    """

    reason: str
    rows: int
    since: datetime
    latest: datetime
    transport: TransportFact
    fate: str
    until: datetime | None
    harmless: bool
    advice: Advice


@dataclass(frozen=True, slots=True)
class Doubtful:
    """A campaign with rows in doubt, its largest group first; ``more``: there are more rows than
    were looked at. ``campaign`` None: the single messages."""

    campaign: Campaign | None
    groups: list[Group]
    more: bool

    @property
    def rows(self) -> int:
        return sum(group.rows for group in self.groups)

    @property
    def since(self) -> datetime:
        return min(group.since for group in self.groups)

    @property
    def harmless(self) -> int:
        return sum(group.rows for group in self.groups if group.harmless)


@dataclass(frozen=True, slots=True)
class Row:
    """One message in doubt, with the evidence. ``told``: what its provider said of it, in words,
    with the moment."""

    send: Send
    answer: str
    transport: TransportFact
    harmless: bool
    fate: str
    until: datetime | None
    told: list[tuple[datetime, str]]


# --- the overview -----------------------------------------------------------------------------


def campaigns_in_doubt(
    accounts: list[int] | None, *, before: int | None = None
) -> tuple[list[int], bool]:
    """The ids of the latest campaigns of these accounts (None: of all) with rows in doubt, those
    before the id ``before``; and whether there are more."""
    with connection.cursor() as cursor:
        cursor.execute(
            sql.CAMPAIGNS_IN_DOUBT,
            {"accounts": accounts, "before": before, "most": CAMPAIGNS + 1},
        )
        ids = [pk for (pk,) in cursor.fetchall()]
    return ids[:CAMPAIGNS], len(ids) > CAMPAIGNS


def overview(ids: Sequence[int], now: datetime) -> list[Doubtful]:
    """Of these campaigns, in this order; one whose doubt was settled meanwhile is left out."""
    found = Campaign.objects.filter(pk__in=ids).select_related("account")
    campaigns = {campaign.pk: campaign for campaign in found.defer("body", "text_body")}
    with connection.cursor() as cursor:
        cursor.execute(sql.GROUPS_OF_CAMPAIGNS, {"ids": list(ids), "most": COUNTED})
        groups = _grouped(cursor.fetchall())
    facts = transport_facts(line.alias for lines in groups.values() for line in lines)
    return [
        _doubtful(campaigns[pk], groups[pk], facts, now)
        for pk in ids
        if pk in groups and pk in campaigns
    ]


def single_messages(accounts: list[int] | None, now: datetime) -> Doubtful | None:
    """The doubt about messages of no campaign; None where there is none."""
    with connection.cursor() as cursor:
        cursor.execute(sql.GROUPS_OF_SINGLES, {"accounts": accounts, "most": COUNTED})
        groups = _grouped(cursor.fetchall())
    if not groups:
        return None
    facts = transport_facts(line.alias for line in groups[None])
    return _doubtful(None, groups[None], facts, now)


def number_in_doubt(campaign_id: int) -> int:
    """How many rows of the campaign are in doubt; shown with a plus when there are more than were
    counted."""
    doubtful = Send.objects.filter(campaign=campaign_id, queue=Send.Queue.IN_DOUBT)
    found = doubtful.order_by()[: COUNTED + 1].count()
    return AtLeast(COUNTED) if found > COUNTED else found


@dataclass(frozen=True, slots=True)
class _Line:
    """A line of the statement: rows that have all of this in common."""

    campaign: int | None
    reason: str
    via: str
    alias: str
    policy: str
    code: int | None
    in_window: bool
    rows: int
    since: datetime
    latest: datetime
    settles: datetime | None
    until: datetime | None


def _grouped(rows: Iterable[tuple[Any, ...]]) -> dict[int | None, list[_Line]]:
    groups: dict[int | None, list[_Line]] = defaultdict(list)
    for campaign, reason, via, alias, policy, code, in_window, n, *moments in rows:
        since, latest, settles, until = moments
        alias = alias_of(via) or alias
        groups[campaign].append(
            _Line(
                campaign, reason, via, alias, policy, code, in_window, n, since, latest, settles,
                until,
            )
        )  # fmt: skip
    return groups


def _doubtful(
    campaign: Campaign | None,
    lines: list[_Line],
    facts: dict[str, TransportFact],
    now: datetime,
) -> Doubtful:
    status = campaign.status if campaign is not None else ""
    groups = []
    for line in lines:
        transport = facts[line.alias]
        # Another login or another provider by now: it knows nothing of the earlier hand-over.
        harmless = line.in_window and line.via == transport.via
        what, until = fate(
            settle_at=line.settles,
            replay_until=line.until,
            policy=line.policy,
            campaign_status=status,
            now=now,
        )
        canceled = status == Campaign.Status.CANCELED
        told = advice(line.reason, line.code, harmless=harmless, canceled=canceled)
        groups.append(
            Group(
                line.reason, line.rows, line.since, line.latest, transport, what, until, harmless,
                told,
            )
        )  # fmt: skip
    groups.sort(key=lambda group: (-group.rows, group.reason))
    return Doubtful(campaign, groups, more=sum(group.rows for group in groups) >= COUNTED)


# --- the rows of one campaign -------------------------------------------------------------------


def concerning(
    sends: QuerySet[Send], campaign_id: int | None, reason: str | None
) -> QuerySet[Send]:
    """Those of ``sends`` of a campaign (None: of none), for one reason (None: for any)."""
    found = (
        sends.filter(campaign__isnull=True)
        if campaign_id is None
        else sends.filter(campaign=campaign_id)
    )
    return found if reason is None else found.filter(reason=reason)


def in_doubt(sends: QuerySet[Send], campaign_id: int | None, reason: str | None) -> QuerySet[Send]:
    """Those that are in doubt, of ``concerning``."""
    return concerning(sends, campaign_id, reason).filter(queue=Send.Queue.IN_DOUBT)


def page_of(
    doubtful: QuerySet[Send], now: datetime, *, after: int = 0
) -> tuple[list[Row], int | None]:
    """A page of rows, behind the id ``after``; and the id to go on behind, None at the end."""
    chosen = (
        doubtful.filter(pk__gt=after)
        .select_related("account", "campaign")
        .defer("context", "frozen", "campaign__body", "campaign__text_body")
        .order_by("pk")
    )
    sends = list(chosen[: ROWS + 1])
    shown = sends[:ROWS]
    told = _told([send.pk for send in shown])
    aliases = {send.pk: _alias(send) for send in shown}
    facts = transport_facts(aliases.values())
    rows = []
    for send in shown:
        transport = facts[aliases[send.pk]]
        what, until = fate(
            settle_at=send.settle_at,
            replay_until=send.replay_until,
            policy=send.account.in_doubt_policy,
            campaign_status=send.campaign.status if send.campaign else "",
            now=now,
        )
        rows.append(
            Row(
                send=send,
                answer=said(send.answer_code, send.answer_enhanced, send.answer_text),
                transport=transport,
                harmless=_is_harmless(send, transport, now),
                fate=what,
                until=until,
                told=told[send.pk],
            )
        )
    return rows, shown[-1].pk if len(sends) > ROWS else None


def harmless(doubtful: QuerySet[Send], now: datetime) -> QuerySet[Send]:
    """Those that would not arrive twice if they were sent again now. One query for the ways by
    which they went."""
    window = doubtful.filter(replay_until__gt=now)
    vias = window.order_by("via").values_list("via", flat=True).distinct()
    current = [via for via in vias if transport_fact(alias_of(via)).via == via]
    return window.filter(via__in=current)


def waiting_events(most: int = 1000) -> int:
    """Provider events that are stored and not applied yet, ``most`` at most: they may settle some
    of the doubt in a moment."""
    waiting = ProviderEvent.objects.filter(applied_at__isnull=True)
    return waiting.order_by()[:most].count()


def _alias(send: Send) -> str:
    return alias_of(send.via) or send.transport or send.account.transport


def _is_harmless(send: Send, transport: TransportFact, now: datetime) -> bool:
    return (
        send.replay_until is not None
        and send.replay_until > now
        and bool(send.via)
        and send.via == transport.via
    )


def _told(ids: list[int]) -> dict[int, list[tuple[datetime, str]]]:
    found: dict[int, list[tuple[datetime, str]]] = {pk: [] for pk in ids}
    events = DeliveryEvent.objects.filter(stage=WEBHOOK, send__in=ids).order_by("at", "pk")
    for send_id, at, kind, stage in events.values_list("send", "at", "kind", "stage")[:EVENTS]:
        found[send_id].append((at, kind_words(kind, stage)))
    return found
