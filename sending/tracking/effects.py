"""What provider events change: rows, the people behind them, and the record of it.

All within the transaction of ``sending.tracking.inbox.apply_waiting``, behind the gates and the row
locks: what is read here can't change before it is written.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from subscribers.addresses import lower
from subscribers.consent import unsubscribe
from subscribers.models import Subscriber, Suppression
from subscribers.suppression import suppress

from ..answers import Reason, Stage
from ..providers.table import Speaks
from ..sql import tracking as statements
from ..transports import transport
from .bounce_kinds import SOFT_BOUNCE, reply_in
from .matching import is_recipient
from .rules import (
    ARRIVED,
    COMPLAINED,
    HARD_BOUNCE,
    NOT_DELIVERED,
    UNSUBSCRIBED,
    Result,
    Row,
    decide,
)

log = logging.getLogger("sendonce.webhooks")

#: Why a row has failed although the provider took it; see ``outcomes.Reason`` for the others.
REASONS = {
    HARD_BOUNCE: str(Reason.ADDRESS_DEAD),
    "rejected": "provider_rejected",
    "failed": "provider_failed",
    COMPLAINED: "complaint",
}


#: Kinds that suppress or unsubscribe somebody.
_HURT = frozenset({HARD_BOUNCE, COMPLAINED, UNSUBSCRIBED})
#: By how much a provider's clock and the database's may differ.
_SKEW = timedelta(minutes=1)


class Tracked(NamedTuple):
    """A stored event whose row is known; see ``models.ProviderEvent``."""

    id: int
    event_id: str
    esp: str
    kind: str
    message_id: str
    recipient: str
    at: datetime
    text: str


class _Send(NamedTuple):
    """A row as ``TRACKED_ROWS`` reads it."""

    id: int
    account_id: int
    campaign_id: int | None
    subscriber_id: int | None
    email: str | None
    email_hash: str | None
    status: str
    handed_at: datetime | None
    is_doubted: bool
    reason: str
    via: str
    known: list[str] | None


@dataclass(slots=True)
class _Effects:
    """What is to be written, collected over all rows."""

    rows: list[tuple[_Send, str, Tracked]] = field(default_factory=list)
    confirmed: list[int] = field(default_factory=list)
    notes: list[tuple[_Send, Tracked]] = field(default_factory=list)
    people: list[tuple[_Send, Tracked]] = field(default_factory=list)
    bounced: Counter[int] = field(default_factory=Counter)
    complained: Counter[int] = field(default_factory=Counter)
    refused: Counter[int] = field(default_factory=Counter)
    refusals: dict[int, str] = field(default_factory=dict)


def write(
    cursor: Any, sends: Mapping[int, Sequence[Tracked]], erased: set[int]
) -> dict[int, Result]:
    """Do what these events, by the number of their row, ask for; returns what came of each, by
    the number of the event. The rows are locked. Adds to ``erased`` the events of persons who
    were erased."""
    cursor.execute(statements.TRACKED_ROWS, {"ids": sorted(sends)})
    rows = sorted((_Send(*row) for row in cursor.fetchall()), key=lambda row: row.id)
    every = [event for events in sends.values() for event in events]
    cursor.execute(statements.KNOWN_EVENTS, {"event_ids": [e.event_id for e in every]})
    before = {event_id for (event_id,) in cursor.fetchall()}
    results = dict.fromkeys((e.id for e in every), Result.UNKNOWN_JOB)
    effects, providers = _Effects(), _Providers()
    for row in rows:
        mine = sends[row.id]
        if row.email is None:
            erased.update(e.id for e in mine)
        results |= _fold(row, [e for e in mine if e.event_id not in before], effects, providers)
        results |= {e.id: Result.IGNORED for e in mine if e.event_id in before}
    _write_rows(cursor, effects)
    _write_notes(cursor, effects)
    _write_people(effects)
    _write_health(cursor, effects)
    return results


def _fold(
    send: _Send, events: Sequence[Tracked], effects: _Effects, providers: _Providers
) -> dict[int, Result]:
    """Apply events to one row, one after the other."""
    results: dict[int, Result] = {}
    now = Row(send.status, send.handed_at, frozenset(send.known or ()))
    last: Tracked | None = None
    for event in events:
        if not is_recipient(event.recipient, send.email, send.email_hash):
            results[event.id] = Result.WRONG_RECIPIENT
            continue
        if not send.is_doubted and providers.is_another(send.via, event.esp):
            results[event.id] = Result.WRONG_PROVIDER
            continue
        if event.kind in _HURT and not event.recipient:
            # Whoever knows a job id and the shared secret must not suppress people by it alone.
            results[event.id] = Result.WRONG_RECIPIENT
            continue
        if event.kind in NOT_DELIVERED and _is_of_before(event, send):
            results[event.id] = Result.IGNORED
            continue
        is_first = event.kind not in now.known
        decision = decide(now, event.kind)
        results[event.id] = decision.result
        if decision.result is not Result.APPLIED:
            continue
        if decision.row.status != now.status:
            last = event
        now = decision.row
        effects.notes.append((send, event))
        if event.kind in _HURT:
            effects.people.append((send, event))
        if send.campaign_id is not None:
            effects.bounced[send.campaign_id] += decision.bounced
            effects.complained[send.campaign_id] += decision.complained
            if is_first and _speaks_of_us(event):
                effects.refused[send.campaign_id] += 1
                effects.refusals[send.campaign_id] = f"({event.esp} told): {event.text}"[:400]
    if last is not None and now.status != send.status:
        effects.rows.append((send, str(now.status), last))
    elif send.reason == "treated_as_sent" and now.known & ARRIVED:
        effects.confirmed.append(send.id)
    return results


def _is_of_before(event: Tracked, send: _Send) -> bool:
    """Whether a rejection speaks of an earlier hand-over than the last, which staff asked for: it
    must not bar the acceptance of that one. Clocks may differ by a little."""
    return send.handed_at is not None and event.at < send.handed_at - _SKEW


def _speaks_of_us(event: Tracked) -> bool:
    """Whether a bounce is a refusal of the sender (policy, content), which the brakes count: a
    provider accepts first, and tells by webhook that we are blocked."""
    reply = reply_in(event.text)
    return event.kind == SOFT_BOUNCE and reply.is_coded and reply.verdict(Stage.DOT).brakes


class _Providers:
    """anymail's names of the providers behind the transports, looked up once each."""

    def __init__(self) -> None:
        self._names: dict[str, str] = {}

    def is_another(self, via: str, esp: str) -> bool:
        """Whether the row went by a transport of another provider; False where that is unknown.

        An earlier hand-over that is in doubt may have gone elsewhere: don't ask then.
        """
        alias = via.rpartition(":")[0]
        if alias not in self._names:
            self._names[alias] = self._name(alias) if alias else ""
        return self._names[alias] not in ("", esp)

    @staticmethod
    def _name(alias: str) -> str:
        try:
            found = transport(alias).provider
            # Who speaks SMTP gives no metadata along: no provider's event can be about it.
            return found.esp_name or (found.name if found.speaks is Speaks.SMTP else "")
        except Exception:  # a web of settings that a host may have changed since: unknown
            log.debug("the provider of a transport is unknown", exc_info=True)
            return ""


def _write_rows(cursor: Any, effects: _Effects) -> None:
    if effects.confirmed:
        cursor.execute(statements.CONFIRM_SENT, {"ids": effects.confirmed})
    if not effects.rows:
        return
    replies = [reply_in(event.text) for _, _, event in effects.rows]
    cursor.execute(
        statements.TRACK_ROWS,
        {
            "ids": [send.id for send, _, _ in effects.rows],
            "was": [send.status for send, _, _ in effects.rows],
            "statuses": [status for _, status, _ in effects.rows],
            "ats": [event.at for _, _, event in effects.rows],
            "message_ids": [event.message_id for _, _, event in effects.rows],
            "codes": [reply.code for reply in replies],
            "enhanced": [reply.enhanced for reply in replies],
            "texts": [_text(send, event) for send, _, event in effects.rows],
            "reasons": [
                "" if status == "sent" else REASONS.get(event.kind, "")
                for _, status, event in effects.rows
            ],
        },
    )


def _write_notes(cursor: Any, effects: _Effects) -> None:
    if not effects.notes:
        return
    replies = [reply_in(event.text) for _, event in effects.notes]
    cursor.execute(
        statements.TRACKED_EVENTS,
        {
            "ids": [send.id for send, _ in effects.notes],
            "accounts": [send.account_id for send, _ in effects.notes],
            "kinds": [event.kind for _, event in effects.notes],
            "event_ids": [event.event_id for _, event in effects.notes],
            "codes": [reply.code for reply in replies],
            "enhanced": [reply.enhanced for reply in replies],
            "texts": [_text(send, event) for send, event in effects.notes],
            "reasons": [
                str(reply.verdict(Stage.DOT).reason)
                if event.kind == SOFT_BOUNCE and reply.is_coded
                else REASONS.get(event.kind, "")
                for (_, event), reply in zip(effects.notes, replies, strict=True)
            ],
            "ats": [event.at for _, event in effects.notes],
        },
    )


def _text(send: _Send, event: Tracked) -> str:
    """A reply often repeats the address; of an erased person none is kept."""
    return event.text if send.email is not None else ""


def _write_people(effects: _Effects) -> None:
    """Suppress, in order of the address, so that two transactions that suppress the same people
    never wait in a circle. The address is the row's, not the one that the event names."""
    done: set[tuple[int, str]] = set()
    for send, event in sorted(
        effects.people, key=lambda p: (p[0].account_id, lower(p[0].email or ""), p[1].id)
    ):
        # An erased person is suppressed already, by the hash.
        if send.email is None or (send.id, event.kind) in done:
            continue
        done.add((send.id, event.kind))
        evidence = f"{event.esp} told: {event.text or event.kind.replace('_', ' ')}"[:500]
        if event.kind == UNSUBSCRIBED:
            _unsubscribe(send, send.email, evidence)
            continue
        dead = event.kind == HARD_BOUNCE
        suppress(
            send.account_id,
            send.email,
            Suppression.Reason.HARD_BOUNCE if dead else Suppression.Reason.COMPLAINT,
            evidence=evidence,
        )


def _unsubscribe(send: _Send, email: str, evidence: str) -> None:
    if send.subscriber_id is not None:
        person = Subscriber.objects.filter(pk=send.subscriber_id).first()
        if person is not None:
            unsubscribe(person, evidence=evidence)
    # Their address may be another by now; the one that the message went to wants no more, either.
    suppress(send.account_id, email, Suppression.Reason.UNSUBSCRIBED, evidence=evidence)


def _write_health(cursor: Any, effects: _Effects) -> None:
    campaigns = sorted(+effects.bounced | +effects.complained | +effects.refused)
    if campaigns:
        cursor.execute(
            statements.HEALTH_UP,
            {
                "campaigns": campaigns,
                "bounced": [effects.bounced[c] for c in campaigns],
                "complained": [effects.complained[c] for c in campaigns],
                "refused": [effects.refused[c] for c in campaigns],
                "refusals": [effects.refusals.get(c, "") for c in campaigns],
            },
        )
