"""What provider events change: rows, the people behind them, and the record of it.

All within the transaction of ``sending.tracking.inbox.apply_waiting``, behind the gates and the row
locks: what is read here can't change before it is written.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from django.db.models.functions import Collate

from subscribers.consent import unsubscribe
from subscribers.models import Subscriber, Suppression
from subscribers.suppression import Entry, suppress_all

from .. import events, health
from ..answers import Reason, Stage, unnamed
from ..health import Unflushed
from ..providers.table import Speaks
from ..sql import tracking as statements
from ..transports import transport
from ..unsubscriptions import AGAIN
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


#: Kinds that suppress somebody, and as what.
SUPPRESSED_AS = {
    HARD_BOUNCE: Suppression.Reason.HARD_BOUNCE,
    COMPLAINED: Suppression.Reason.COMPLAINT,
    UNSUBSCRIBED: Suppression.Reason.UNSUBSCRIBED,
}
#: What a person does or gets once, and a report counts once: told anew, its reason is ``AGAIN``.
COUNTED_ONCE = frozenset({"delivered", COMPLAINED, UNSUBSCRIBED})
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


class Whom(NamedTuple):
    """Whose mailbox an event speaks of. ``email`` None: of an erased person, who is suppressed."""

    account_id: int
    subscriber_id: int | None
    email: str | None


@dataclass(slots=True)
class _Effects:
    """What is to be written, collected over all rows."""

    rows: list[tuple[_Send, str, Tracked]] = field(default_factory=list)
    confirmed: list[int] = field(default_factory=list)
    notes: list[events.Note] = field(default_factory=list)
    people: list[tuple[Whom, Tracked]] = field(default_factory=list)
    #: For the brakes, by campaign. What bounces or is refused was counted as accepted before.
    counted: dict[int, Unflushed] = field(default_factory=dict)


def write(
    cursor: Any,
    sends: Mapping[int, Sequence[Tracked]],
    erased: set[int],
    rowless: Sequence[tuple[Whom, Tracked]] = (),
) -> dict[int, Result]:
    """Do what these events, by the number of their row, ask for; returns what came of each, by
    the number of the event. The rows are locked. Adds to ``erased`` the events of persons who
    were erased. ``rowless`` are about rows that were pruned: all that they change is people."""
    cursor.execute(statements.TRACKED_ROWS, {"ids": sorted(sends)})
    rows = sorted((_Send(*row) for row in cursor.fetchall()), key=lambda row: row.id)
    late = [event for _, event in rowless]
    every = [event for events in sends.values() for event in events] + late
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
    for whom, event in rowless:
        if whom.email is None:
            erased.add(event.id)
        is_news = event.kind in SUPPRESSED_AS and event.event_id not in before
        results[event.id] = Result.APPLIED if is_news else Result.IGNORED
        if is_news:
            effects.notes.append(_note(whom, event, send_id=None))
            effects.people.append((whom, event))
    _write_rows(cursor, effects)
    # People first: whoever leaves by a link at this moment is waited for, and seen.
    _write_people(effects)
    events.record(cursor, _without_repeats(cursor, effects.notes))
    health.add(cursor, effects.counted)
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
        if event.kind in SUPPRESSED_AS and not event.recipient:
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
        note = _note(send, event, send_id=send.id)
        again = event.kind in COUNTED_ONCE and not is_first
        effects.notes.append(replace(note, reason=AGAIN) if again else note)
        if event.kind in SUPPRESSED_AS:
            whom = Whom(send.account_id, send.subscriber_id, send.email)
            effects.people.append((whom, event))
        if send.campaign_id is not None:
            refused = is_first and _speaks_of_us(event)
            if decision.bounced or decision.complained or refused:
                told = Unflushed(
                    accepted=-(decision.bounced + refused),
                    bounced=int(decision.bounced),
                    refused=int(refused),
                    complained=int(decision.complained),
                    refusal=_refusal(event) if refused else "",
                )
                effects.counted.setdefault(send.campaign_id, Unflushed()).add(told)
    if last is not None and now.status != send.status:
        effects.rows.append((send, str(now.status), last))
    elif send.reason == "treated_as_sent" and now.known & ARRIVED:
        effects.confirmed.append(send.id)
    return results


def _without_repeats(cursor: Any, notes: Sequence[events.Note]) -> list[events.Note]:
    """Whom a provider tells to have left, and who had left by a link before, left once. The people
    are locked, as they are while they leave by a link."""
    told = {n.send_id for n in notes if n.kind == UNSUBSCRIBED and n.send_id is not None}
    if not told:
        return list(notes)
    cursor.execute(statements.LEFT_BEFORE, {"ids": sorted(told)})
    before = {send_id for (send_id,) in cursor.fetchall()}
    return [
        replace(n, reason=AGAIN) if n.kind == UNSUBSCRIBED and n.send_id in before else n
        for n in notes
    ]


def _is_of_before(event: Tracked, send: _Send) -> bool:
    """Whether a rejection speaks of an earlier hand-over than the last, which staff asked for: it
    must not bar the acceptance of that one. Clocks may differ by a little."""
    return send.handed_at is not None and event.at < send.handed_at - _SKEW


def _speaks_of_us(event: Tracked) -> bool:
    """Whether a bounce is a refusal of the sender (policy, content), which the brakes count: a
    provider accepts first, and tells by webhook that we are blocked."""
    reply = reply_in(event.text)
    return event.kind == SOFT_BOUNCE and reply.is_coded and reply.verdict(Stage.DOT).brakes


def _refusal(event: Tracked) -> str:
    return f"({event.esp} told): {unnamed(event.text, event.recipient)}"[:400]


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


def _note(about: _Send | Whom, event: Tracked, *, send_id: int | None) -> events.Note:
    reply = reply_in(event.text)
    coded = event.kind == SOFT_BOUNCE and reply.is_coded
    reason = str(reply.verdict(Stage.DOT).reason) if coded else REASONS.get(event.kind, "")
    return events.Note(
        send_id=send_id,
        account_id=about.account_id,
        kind=event.kind,
        stage="webhook",
        code=reply.code,
        enhanced=reply.enhanced,
        # Without a row an erasure does not find it, so it must name nobody.
        text=_text(about, event) if send_id is not None else "",
        reason=reason,
        event_id=event.event_id,
        at=event.at,
    )


def _text(about: _Send | Whom, event: Tracked) -> str:
    """A reply often repeats the address; of an erased person none is kept."""
    return event.text if about.email is not None else ""


def _write_people(effects: _Effects) -> None:
    """Suppress, and unsubscribe. The address is the row's, not the one that the event names; the
    person's may be another by now."""
    entries: dict[tuple[int, str, str], Entry] = {}
    leaving: dict[int, str] = {}
    for whom, event in sorted(effects.people, key=lambda p: p[1].id):
        # An erased person is suppressed already, by the hash.
        if whom.email is None:
            continue
        evidence = f"{event.esp} told: {event.text or event.kind.replace('_', ' ')}"[:500]
        reason = SUPPRESSED_AS[event.kind]
        entries.setdefault(
            (whom.account_id, whom.email, event.kind),
            Entry(whom.account_id, whom.email, reason, evidence),
        )
        if event.kind == UNSUBSCRIBED and whom.subscriber_id is not None:
            leaving.setdefault(whom.subscriber_id, evidence)
    # People before the list, as everybody locks them who unsubscribes or erases.
    people = Subscriber.objects.select_for_update(of=("self",), no_key=True)
    leavers = list(people.filter(pk__in=leaving).order_by(Collate("email_lower", "C")))
    suppress_all(entries.values())
    for person in leavers:
        unsubscribe(person, evidence=leaving[person.pk])
