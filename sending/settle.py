"""Outcomes: what the relay said becomes the row's state, by token, in batches."""

from __future__ import annotations

import logging
import random
import threading
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from uuid import UUID

from django.db import connection, transaction

from campaigns.gate import try_shared
from subscribers.models import Suppression
from subscribers.suppression import suppress

from . import events, sql
from .answers import said
from .connections import Busy
from .handover import reopen_for_row
from .outcomes import Answer, Outcome, Reason, Verdict, retry_delay
from .queue import Claimed

log = logging.getLogger("sendonce.sender")


@dataclass(frozen=True, slots=True)
class Settlement:
    """One outcome, complete in itself so that it can be written again after a reconnect."""

    send_id: int
    token: UUID
    campaign_id: int | None
    outcome: str
    answer: Answer
    reason: str
    suppress: bool = False
    delay: float = 0.0


def decide(
    row: Claimed, answer: Answer, verdict: Verdict, *, jitter: float | None = None
) -> Settlement:
    """What the row becomes. Pure but for the jitter, which is drawn when not given.

    A transient refusal becomes a retry until the attempts are spent, then ``failed``.
    """
    outcome, reason, delay = verdict.outcome, str(verdict.reason), 0.0
    if outcome == Outcome.RETRY:
        wait = retry_delay(
            row.attempts,
            retry_after=answer.retry_after,
            jitter=random.random() if jitter is None else jitter,
        )
        if wait is None:
            outcome = Outcome.FAILED
        else:
            delay = wait
    return Settlement(
        send_id=row.id,
        token=row.token,
        campaign_id=row.campaign_id,
        outcome=str(outcome),
        answer=answer,
        reason="" if outcome == Outcome.SENT else reason,
        suppress=verdict.suppress,
        delay=delay,
    )


def refused_here(row: Claimed, answer: Answer) -> Settlement:
    """A message that could not even be made: failed before the network, nothing was tried."""
    return Settlement(
        send_id=row.id,
        token=row.token,
        campaign_id=row.campaign_id,
        outcome=str(Outcome.FAILED),
        answer=answer,
        reason=str(Reason.REFUSED_LOCALLY),
    )


def settle(
    settlements: Sequence[Settlement], *, doubt_wait: float, durable: bool = False
) -> dict[int, str]:
    """Write outcomes in one transaction; returns ``{send id: status it became}`` for those
    that took effect. Idempotent: writing them again changes nothing more.

    The commit may be asynchronous (the caller keeps them until a later durable one), save
    where an address is suppressed. Raises ``connections.Busy`` when a decision about a campaign
    is under way: nothing was written then. ``doubt_wait``: seconds after which an account's policy
    may settle a doubt.
    """
    if not settlements:
        return {}
    todo = sorted(settlements, key=lambda s: s.send_id)
    accepted = [s for s in todo if s.outcome == Outcome.SENT]
    others = [s for s in todo if s.outcome != Outcome.SENT]
    durable = durable or any(s.suppress for s in others)
    became: dict[int, str] = {}
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(sql.DURABLE if durable else sql.RELAXED)
        if try_shared(cursor, (s.campaign_id for s in todo if s.campaign_id is not None)):
            raise Busy("a decision about the campaign is under way")
        cursor.execute(sql.LOCK_ROWS, {"ids": [s.send_id for s in todo]})
        if accepted:
            cursor.execute(
                sql.ACCEPT,
                {**_columns(accepted), "message_ids": [s.answer.message_id for s in accepted]},
            )
            became.update(dict.fromkeys((r[0] for r in cursor.fetchall()), str(Outcome.SENT)))
        if others:
            cursor.execute(
                sql.REFUSE,
                {
                    **_columns(others),
                    "outcomes": [s.outcome for s in others],
                    "delays": [s.delay for s in others],
                    "reasons": [s.reason for s in others],
                    "doubt_wait": doubt_wait,
                },
            )
            # By address: two lots that suppress the same people take the locks in one order.
            changed = sorted(cursor.fetchall(), key=lambda r: (r[3] or "", r[0]))
            by_token = {s.token: s for s in others}
            _reopen(
                by_token[row[5]] for row in changed if row[1] == "retry" and row[6] == "in_doubt"
            )
            notes = []
            for row_id, status, account_id, email, attempts, token, _was in changed:
                became[row_id] = status
                told = by_token[token]
                notes.append(_note(told, account_id, status, attempts))
                if told.suppress and status == "bounced" and email:
                    suppress_dead(account_id, email, told.answer)
            events.record(cursor, notes)
    return became


def _reopen(late: Iterable[Settlement]) -> None:
    """Held doubt does not keep a campaign open, so it may have been finished when the answer
    "not accepted" comes at last: the row is open again, and so must the campaign be."""
    for campaign_id in sorted({s.campaign_id for s in late if s.campaign_id is not None}):
        reopen_for_row(campaign_id)


def suppress_dead(account_id: int, email: str, answer: Answer) -> None:
    """Suppress a dead address, in the caller's transaction, with the reply as evidence."""
    evidence = said(answer.code, answer.enhanced, answer.text)
    suppress(account_id, email, Suppression.Reason.HARD_BOUNCE, evidence=evidence[:500])


def _columns(settlements: Sequence[Settlement]) -> dict[str, list[object]]:
    return {
        "ids": [s.send_id for s in settlements],
        "tokens": [s.token for s in settlements],
        "stages": [str(s.answer.stage) for s in settlements],
        "codes": [s.answer.code for s in settlements],
        "enhanced": [s.answer.enhanced[:20] for s in settlements],
        "texts": [s.answer.text[:500] for s in settlements],
    }


def _note(told: Settlement, account_id: int, status: str, attempts: int) -> events.Note:
    return events.Note(
        send_id=told.send_id,
        account_id=account_id,
        kind=status,
        stage=str(told.answer.stage),
        code=told.answer.code,
        enhanced=told.answer.enhanced[:20],
        text=told.answer.text,
        reason=told.reason,
        attempt=attempts,
    )


def not_written(settlements: Sequence[Settlement]) -> list[Settlement]:
    """Those that the ledger does not show (any more)."""
    if not settlements:
        return []
    with connection.cursor() as cursor:
        cursor.execute(
            sql.NOT_WRITTEN,
            {
                "ids": [s.send_id for s in settlements],
                "tokens": [s.token for s in settlements],
                "outcomes": [s.outcome for s in settlements],
            },
        )
        return [settlements[place - 1] for (place,) in cursor.fetchall()]


class Journal:
    """Outcomes whose commit was asynchronous, kept until it is certain that they are durable.

    WAL is flushed in order, so after a durable commit every earlier one is either on disk or was
    lost in a crash before it; then, and only then, a look at the rows tells which. Bounded by
    the heartbeat, which does both every couple of seconds.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._kept: list[Settlement] = []

    def keep(self, settlements: Sequence[Settlement]) -> None:
        """Their asynchronous commit has returned."""
        with self._lock:
            self._kept.extend(settlements)

    def kept(self) -> list[Settlement]:
        """All of them, oldest first; ``forget`` these after a durable commit begun later and a
        look at the rows."""
        with self._lock:
            return list(self._kept)

    def forget(self, durable: Sequence[Settlement]) -> None:
        """These very ones are durable. Named one by one and not counted: at sign-off a heartbeat
        that hangs may beat beside the last one, and what came between them must stay."""
        gone = {id(s) for s in durable}
        with self._lock:
            self._kept = [s for s in self._kept if id(s) not in gone]
