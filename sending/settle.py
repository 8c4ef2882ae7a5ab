"""Outcomes: what the relay said becomes the row's state, by token, in batches."""

from __future__ import annotations

import logging
import random
import threading
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple
from uuid import UUID

from django.db import connection, transaction

from campaigns.gate import try_shared
from subscribers.conf import conf
from subscribers.models import Suppression
from subscribers.suppression import Entry, suppress_all

from . import events, sql, statements
from .answers import said
from .connections import Busy
from .models import Send
from .outcomes import Answer, Outcome, Reason, Stage, Verdict, retry_delay
from .queue import Claimed
from .reopening import reopen_for_row
from .replies.wait_hints import wait_hint
from .statements import array
from .withheld import WITHHELD

log = logging.getLogger("sendonce.sender")


_NO_LIMIT = 1 << 30
_SENT = str(Outcome.SENT)


class Settlement(NamedTuple):
    """One outcome, complete in itself so that it can be written again after a reconnect."""

    send_id: int
    token: UUID
    campaign_id: int | None
    outcome: str
    answer: Answer
    reason: str
    suppress: bool = False
    #: Seconds until the next attempt, or until a hand-over in doubt may be replayed.
    delay: float = 0.0
    #: False: no rule fitted the answer.
    known: bool = True


def decide(
    row: Claimed,
    answer: Answer,
    verdict: Verdict,
    *,
    replay_wait: float = 0.0,
    jitter: float | None = None,
) -> Settlement:
    """What the row becomes. Pure but for the jitter, which is drawn when not given.

    A transient refusal becomes a retry until the attempts are spent, then ``failed``.
    ``replay_wait``: seconds after which a deduplicating transport may be given the message again
    (its answer time-out); 0 where it does not deduplicate. A replay spends no attempts: the
    provider's window ends it.
    """
    if verdict.outcome == Outcome.SENT:
        known = verdict.known
        return Settlement(row.id, row.token, row.campaign_id, _SENT, answer, "", False, 0.0, known)
    outcome, reason, delay = verdict.outcome, str(verdict.reason), 0.0
    drawn = random.random() if jitter is None else jitter
    if outcome == Outcome.RETRY and row.replays:
        delay = _replay_delay(row, row.replays, drawn, answer.retry_after)
    elif outcome == Outcome.RETRY:
        wait = retry_delay(
            row.attempts,
            retry_after=answer.retry_after,
            jitter=drawn,
            waits=row.retry_waits,
            limit=row.max_attempts,
        )
        if wait is not None and (hint := _hint(answer)) is not None:
            # "Try again in 1 second", says many a server: five attempts would be spent at once.
            wait = max(wait, hint)
        if wait is None:
            outcome = Outcome.FAILED
        else:
            delay = wait
    elif outcome == Outcome.IN_DOUBT and replay_wait > 0:
        delay = max(replay_wait, _replay_delay(row, row.replays, drawn) if row.replays else 0.0)
    return Settlement(
        send_id=row.id,
        token=row.token,
        campaign_id=row.campaign_id,
        outcome=str(outcome),
        answer=answer,
        reason=reason,
        suppress=verdict.suppress,
        delay=delay,
        known=verdict.known,
    )


def _replay_delay(row: Claimed, replays: int, jitter: float, asked: float | None = None) -> float:
    wait = retry_delay(
        replays, retry_after=asked, jitter=jitter, waits=row.retry_waits, limit=_NO_LIMIT
    )
    return wait or 0.0


def _hint(answer: Answer) -> float | None:
    """For how many seconds a greylisting server says, in its words, that it is to be left alone."""
    if answer.retry_after is not None or answer.stage is Stage.HTTP:
        return None
    return wait_hint(answer.text)


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
    settlements: Sequence[Settlement],
    *,
    doubt_wait: float,
    durable: bool = False,
    hurried: bool = False,
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
    durable = durable or any(s.suppress or _ended_full(s) for s in others)
    became: dict[int, str] = {}
    with transaction.atomic(), statements.cursor() as cursor:
        begin = sql.DURABLE if durable else sql.RELAXED
        cursor.execute(f"{begin}; {sql.HURRIED}" if hurried else begin)
        if try_shared(cursor, (s.campaign_id for s in todo if s.campaign_id is not None)):
            raise Busy("a decision about the campaign is under way")
        cursor.execute(sql.LOCK_ROWS, {"ids": array(s.send_id for s in todo)})
        if accepted:
            became.update(accept(cursor, accepted))
        if others:
            cursor.execute(
                sql.REFUSE,
                {
                    **_columns(others),
                    "outcomes": array(s.outcome for s in others),
                    "delays": array(s.delay for s in others),
                    "reasons": array(s.reason for s in others),
                    "doubt_wait": doubt_wait,
                },
            )
            changed = cursor.fetchall()
            by_token = {s.token: s for s in others}
            _reopen(
                by_token[row[5]] for row in changed if row[1] == "retry" and row[6] == "in_doubt"
            )
            notes: list[events.Note] = []
            dead: list[Entry] = []
            for row_id, status, account_id, email, attempts, token, _was in changed:
                became[row_id] = status
                told = by_token[token]
                notes.append(_note(told, account_id, status, attempts, erased=email is None))
                if told.suppress and status == "bounced" and email:
                    dead.append(_dead(account_id, email, told.answer))
            events.record(cursor, notes)
            full = [r for r in changed if r[1] == "failed" and _ended_full(by_token[r[5]])]
            dead += _full_again(cursor, [(r[2], r[3]) for r in full if r[3]])
            # All at once, in one order of the addresses: two lots never wait in a circle.
            suppress_all(dead)
    return became


def accept(cursor: Any, accepted: Sequence[Settlement]) -> dict[int, str]:
    """Write acceptances whose rows are locked already, behind their campaigns' gates; returns
    ``{send id: "sent"}`` for those that took effect. The caller's transaction commits them."""
    columns = _columns(accepted)
    message_ids = array(told.answer.message_id for told in accepted)
    cursor.execute(sql.ACCEPT, {**columns, "message_ids": message_ids})
    return dict.fromkeys((row[0] for row in cursor.fetchall()), _SENT)


def _ended_full(told: Settlement) -> bool:
    return (
        told.campaign_id is not None
        and told.outcome == Outcome.FAILED
        and told.reason == Reason.MAILBOX_FULL
    )


def _full_again(cursor: Any, people: list[tuple[int, str]]) -> list[Entry]:
    """Those of ``people`` (account, address) whose mailbox was full to the end in so many campaigns
    in a row: nobody reads it any more."""
    if not people:
        return []
    times = conf.MAILBOX_FULL_CAMPAIGNS
    given = {
        "accounts": [account for account, _ in people],
        "emails": [email for _, email in people],
        "campaigns": times,
    }
    cursor.execute(sql.FULL_AGAIN, given)
    evidence = f"mailbox full in {times} campaigns in a row"
    return [
        Entry(account_id, email, Suppression.Reason.HARD_BOUNCE, evidence)
        for account_id, email in cursor.fetchall()
    ]


def _reopen(late: Iterable[Settlement]) -> None:
    """Held doubt does not keep a campaign open, so it may have been finished when the answer
    "not accepted" comes at last: the row is open again, and so must the campaign be."""
    for campaign_id in sorted({s.campaign_id for s in late if s.campaign_id is not None}):
        reopen_for_row(campaign_id)


def _dead(account_id: int, email: str, answer: Answer) -> Entry:
    """A dead address, with the reply as evidence."""
    evidence = said(answer.code, answer.enhanced, answer.text)
    return Entry(account_id, email, Suppression.Reason.HARD_BOUNCE, evidence[:500])


def _columns(settlements: Sequence[Settlement]) -> dict[str, str]:
    return {
        "ids": array(s.send_id for s in settlements),
        "tokens": array(s.token for s in settlements),
        "stages": array(s.answer.stage for s in settlements),
        "codes": array(s.answer.code for s in settlements),
        "enhanced": array(s.answer.enhanced[:20] for s in settlements),
        "texts": array(s.answer.text[:500] for s in settlements),
    }


def _note(
    told: Settlement, account_id: int, status: str, attempts: int, *, erased: bool
) -> events.Note:
    """A reply often repeats the address; of an erased person none is kept."""
    if status == Send.Status.SUPPRESSED:
        return events.Note(
            send_id=told.send_id,
            account_id=account_id,
            kind=status,
            stage=str(Stage.LOCAL),
            text=WITHHELD["erased"],
            reason="erased",
            attempt=attempts,
        )
    return events.Note(
        send_id=told.send_id,
        account_id=account_id,
        kind=status,
        stage=str(told.answer.stage),
        code=told.answer.code,
        enhanced=told.answer.enhanced[:20],
        text="" if erased else told.answer.text,
        reason=told.reason,
        known=told.known,
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
                "ids": array(s.send_id for s in settlements),
                "tokens": array(s.token for s in settlements),
                "outcomes": array(s.outcome for s in settlements),
            },
        )
        return [settlements[place - 1] for (place,) in cursor.fetchall()]


class Journal:
    """Outcomes whose commit was asynchronous, kept until it is certain that they are durable.

    WAL is flushed in order, so after a durable commit every earlier one is either on disk or was
    lost in a crash before it; then, and only then, a look at the rows tells which. Bounded by
    the heartbeat, which does both every couple of seconds.

    A crash, of one backend or of the machine, ends every session. So a durable commit in a session
    of the database that is older than an outcome's own transaction shows that nothing was lost
    between them, and no look is needed. ``session`` counts the heartbeat's.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._kept: list[tuple[int, Settlement]] = []
        self.session = 0

    def keep(self, settlements: Sequence[Settlement], session: int = 0) -> None:
        """Their asynchronous commit has returned; it was begun in the heartbeat's ``session``."""
        with self._lock:
            self._kept.extend((session, told) for told in settlements)

    def kept(self) -> list[Settlement]:
        """All of them, oldest first; ``forget`` these after a durable commit begun later and a
        look at the rows."""
        with self._lock:
            return [told for _, told in self._kept]

    def uncertain(self) -> list[Settlement]:
        """Those that a crash before the heartbeat's present session may have lost."""
        with self._lock:
            return [told for session, told in self._kept if session != self.session]

    def forget(self, durable: Sequence[Settlement]) -> None:
        """These very ones are durable. Named one by one and not counted: at sign-off a heartbeat
        that hangs may beat beside the last one, and what came between them must stay."""
        gone = {id(s) for s in durable}
        with self._lock:
            self._kept = [pair for pair in self._kept if id(pair[1]) not in gone]
