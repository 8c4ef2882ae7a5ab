"""The brakes: what the answers to each campaign were, counted by all workers together.

A process adds up what its lanes were told and flushes the sums about once a second, or at once
when refusals come in a row, so that workers which each see a part of them stop together. A process
that is lost takes at most a second of counts with it, and one whose commit was not acknowledged
may count some twice: these are brakes, not the ledger. Bounces and complaints that providers tell
by webhook are added by ``sending.tracking.inbox``.

Errors of a transport (connections lost, time-outs, answers that can't be read) are counted by each
process alone, over all its lanes and campaigns.
"""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from django.db import connection, transaction

from campaigns import lifecycle
from campaigns.errors import WrongState
from campaigns.models import Campaign

from . import sql
from .answers import Answer, Outcome, Reason, Stage, Verdict, said, unnamed_answer
from .brakes import USUAL_REFUSALS, Thresholds, Totals, judge, step
from .limits.mailbox_providers import group
from .outcomes import ACCEPTED
from .pauses import Pauses
from .queue import Claimed
from .sql import health as statements
from .sql.pauses import ERRORS
from .wording import stage_words

log = logging.getLogger("sendonce.sender")

#: So many errors in a row over one transport, no acceptance between them, pause it.
ERRORS_IN_A_ROW = 10

_NO_WORDS = Answer(Stage.DOT, 250)
_LOST = frozenset({Reason.CONNECTION_LOST, Reason.TIMEOUT, Reason.UNREADABLE})


#: Where a refusal for now is not about the recipient: not named yet, or taken before.
_NOT_ABOUT_RECIPIENT = frozenset({Stage.MAIL, Stage.DATA, Stage.BODY, Stage.DOT})


def is_error(verdict: Verdict, answer: Answer | None = None) -> bool:
    """Whether an answer is the transport's failure: none came, or none that says anything, or it
    is out of order (a full disk, 4.3.x) or its allowance is spent. One such answer may be about
    one message; many in a row would spend everybody's attempts."""
    if verdict.outcome is Outcome.IN_DOUBT:
        return True
    if verdict.outcome is not Outcome.RETRY:
        return False
    if verdict.reason in _LOST or verdict.reason is Reason.QUOTA:
        return True
    return (
        verdict.reason is Reason.TRANSIENT
        and answer is not None
        and (answer.stage in _NOT_ABOUT_RECIPIENT or answer.enhanced.startswith("4.3."))
    )


@dataclass(slots=True)
class Unflushed:
    """One campaign's answers that only this process knows of; ``in_a_row`` since the last
    acceptance among them."""

    accepted: int = 0
    bounced: int = 0
    refused: int = 0
    in_a_row: int = 0
    refusal: str = ""
    complained: int = 0

    def add(self, later: Unflushed) -> None:
        self.in_a_row = later.in_a_row + (0 if later.accepted > 0 else self.in_a_row)
        self.accepted += later.accepted
        self.bounced += later.bounced
        self.refused += later.refused
        self.complained += later.complained
        self.refusal = later.refusal or self.refusal


@dataclass
class Brake:
    """What one process has counted. ``note`` needs no database, ``flush`` does; both are safe
    between threads.

    ``urgent``: refusals or errors came in a row; the lane should end its lot and flush.
    """

    pauses: Pauses = field(default_factory=Pauses)
    urgent: bool = False
    _campaigns: dict[int, Unflushed] = field(default_factory=dict)
    #: The accounts' ``max_refusals``, by campaign, as the last flush found them.
    _limits: dict[int, int] = field(default_factory=dict)
    #: By transport, the errors since its last acceptance.
    _errors: dict[str, int] = field(default_factory=dict)
    #: Transports to be paused, and the last of their errors.
    _broken: dict[str, tuple[str, Answer]] = field(default_factory=dict)
    #: By campaign and big mailbox provider, the refusals since its last acceptance. One of several
    #: that blocks us is hidden from the campaign's own row by the others' acceptances.
    _by_house: dict[tuple[int, str], int] = field(default_factory=dict)
    #: Campaigns to be paused for that.
    _blocked: dict[int, str] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def note(self, alias: str, row: Claimed, verdict: Verdict, answer: Answer) -> None:
        """Count the answer to one message.

        Refusals of the relay's as a whole (``relay_down``) are not counted: they pause the
        transport by themselves. A transactional message counts for its transport only.
        """
        if verdict.outcome is not Outcome.SENT:
            answer = unnamed_answer(answer, row.email)
        with self._lock:
            self._note_transport(alias, verdict, answer)
            if row.campaign_id is not None:
                self._note_campaign(row.campaign_id, verdict, answer)
                self._note_house(row.campaign_id, row, verdict)

    def took(self, alias: str, rows: Sequence[Claimed]) -> None:
        """Count the acceptance of each of ``rows``: the same as ``note`` for one after the
        other."""
        if not rows:
            return
        with self._lock:
            self._errors.pop(alias, None)
            for row in rows:
                if row.campaign_id is not None:
                    self._note_campaign(row.campaign_id, ACCEPTED, _NO_WORDS)
                    if self._by_house:
                        self._note_house(row.campaign_id, row, ACCEPTED)

    def _note_transport(self, alias: str, verdict: Verdict, answer: Answer) -> None:
        if verdict.outcome is Outcome.SENT:
            self._errors.pop(alias, None)
        if not is_error(verdict, answer):
            return
        count = self._errors[alias] = self._errors.get(alias, 0) + 1
        if count >= ERRORS_IN_A_ROW:
            del self._errors[alias]
            words = said(answer.code, answer.enhanced, answer.text) or "no answer"
            where = stage_words(answer.stage)
            self._broken[alias] = (f"{count} errors in a row, {where}: {words}", answer)
            self.pauses.note(alias, None, ERRORS)
            self.urgent = True
        elif self.pauses.knows(alias, None):
            self.urgent = True  # paused by another lane or a probe: no more of this lot

    def _note_campaign(self, campaign_id: int, verdict: Verdict, answer: Answer) -> None:
        outcome = verdict.outcome
        refused = outcome is Outcome.FAILED and verdict.brakes
        if not (refused or outcome in (Outcome.SENT, Outcome.BOUNCED)):
            return
        counts = self._campaigns.setdefault(campaign_id, Unflushed())
        if outcome is Outcome.SENT:
            counts.accepted += 1
            counts.in_a_row = 0
        elif outcome is Outcome.BOUNCED:
            counts.bounced += 1
        else:
            words = said(answer.code, answer.enhanced, answer.text)
            counts.refused += 1
            counts.in_a_row += 1
            counts.refusal = f"({verdict.reason.replace('_', ' ')}): {words}"[:400]
            limit = self._limits.get(campaign_id, USUAL_REFUSALS)
            if counts.in_a_row >= step(limit):
                self.urgent = True

    def _note_house(self, campaign_id: int, row: Claimed, verdict: Verdict) -> None:
        """Counted by each process alone, and only of providers of many domains: a company that
        takes no bulk mail refuses its own people and says nothing about us."""
        house = group((row.email_lower or row.email or "").rpartition("@")[2])
        if "." in house:
            return
        if verdict.outcome is Outcome.SENT:
            self._by_house.pop((campaign_id, house), None)
        elif verdict.outcome is Outcome.FAILED and verdict.brakes:
            count = self._by_house[campaign_id, house] = (
                self._by_house.get((campaign_id, house), 0) + 1
            )
            if count >= self._limits.get(campaign_id, USUAL_REFUSALS):
                del self._by_house[campaign_id, house]
                refusal = self._campaigns[campaign_id].refusal
                self._blocked[campaign_id] = (
                    f"{count} refusals in a row by mailboxes at {house} {refusal}"[:500]
                )
                self.urgent = True

    def flush(self) -> list[tuple[int, str]]:
        """Tell the others what was counted since the last flush, and pause the transports that
        failed; returns the campaigns to be paused and why. Cheap when nothing was counted.

        Should the database fail, the counts are kept for the next flush.
        """
        with self._lock:
            counted, self._campaigns = self._campaigns, {}
            broken, self._broken = self._broken, {}
            blocked, self._blocked = self._blocked, {}
            self.urgent = False
        try:
            for alias, (words, answer) in broken.items():
                self.pauses.write(alias, None, answer, stage=ERRORS, words=words)
            found = self._write(counted) if counted else []
            return list({**blocked, **dict(found)}.items())
        except BaseException:
            with self._lock:
                for campaign_id, later in self._campaigns.items():
                    counted.setdefault(campaign_id, Unflushed()).add(later)
                self._campaigns = counted
                self._broken = {**broken, **self._broken}
                self._blocked = {**blocked, **self._blocked}
                self.urgent = True
            raise

    def keep(self, campaign_id: int, reason: str) -> None:
        """It could not be paused now, since somebody decides about it: the next ``flush`` says
        so again."""
        with self._lock:
            self._blocked.setdefault(campaign_id, reason)

    def _write(self, counted: dict[int, Unflushed]) -> list[tuple[int, str]]:
        ids = sorted(counted)
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute(sql.READ_COMMITTED)
            cursor.execute(sql.RELAXED)
            add(cursor, {campaign_id: counted[campaign_id] for campaign_id in ids})
            cursor.execute(statements.START_AGAIN, {"campaigns": ids})
            found = _running(cursor, ids)
        self._limits.update({campaign_id: limits.max_refusals for campaign_id, _, limits in found})
        return _judged(found)


def add(cursor: Any, counted: dict[int, Unflushed]) -> None:
    """Add to the shared counts, in the caller's transaction. Campaigns that are gone are left
    out."""
    ids = sorted(counted)
    rows = [counted[campaign_id] for campaign_id in ids]
    cursor.execute(
        statements.ADD,
        {
            "campaigns": ids,
            "accepted": [r.accepted for r in rows],
            "bounced": [r.bounced for r in rows],
            "refused": [r.refused for r in rows],
            "complained": [r.complained for r in rows],
            "in_a_row": [r.in_a_row for r in rows],
            "refusals": [r.refusal for r in rows],
        },
    )


def look(campaign_id: int | None = None) -> list[tuple[int, str]]:
    """The running campaigns (or this one) to be paused and why, whoever counted: also those whose
    bounces and complaints a provider told. Begins anew with those that were resumed."""
    ids = None if campaign_id is None else [campaign_id]
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(sql.READ_COMMITTED)
        cursor.execute(sql.RELAXED)
        cursor.execute(statements.START_AGAIN, {"campaigns": ids})
        found = _running(cursor, ids)
    return _judged(found)


def mark_paused() -> int:
    """Note which campaigns are paused, by whomever: when they are resumed their counts begin
    anew. Returns how many were not noted yet."""
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(sql.READ_COMMITTED)
        cursor.execute(sql.RELAXED)
        cursor.execute(statements.MARK_PAUSED)
        return int(cursor.rowcount)


def pause(campaign_id: int, reason: str) -> bool:
    """Pause a campaign because of its counts, and note it with them; False when somebody was
    faster, or has paused and resumed it meanwhile. Raises ``campaigns.errors.GateBusy``."""
    try:
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute(sql.READ_COMMITTED)
            lifecycle.pause(Campaign(pk=campaign_id), reason=reason)
            cursor.execute(statements.TRIP, {"campaign": campaign_id, "reason": reason[:500]})
            if cursor.fetchone() is None:
                raise WrongState("pause", "resumed", (Campaign.Status.SENDING,))
    except WrongState:
        return False
    return True


def log_pause(campaign_id: int, reason: str) -> None:
    """The line about a campaign that was paused."""
    log.warning(
        "campaign paused by the brake",
        extra={"event": "campaign_paused", "campaign": campaign_id, "reason": reason},
    )


Found = tuple[int, Totals, Thresholds]


def _running(cursor: Any, ids: Sequence[int] | None) -> list[Found]:
    cursor.execute(statements.RUNNING, {"campaigns": None if ids is None else list(ids)})
    return [totals_of(row) for row in cursor.fetchall()]


def _judged(found: Iterable[Found]) -> list[tuple[int, str]]:
    judged = ((campaign_id, judge(totals, limits)) for campaign_id, totals, limits in found)
    return [(campaign_id, reason) for campaign_id, reason in judged if reason is not None]


def totals_of(row: tuple[Any, ...]) -> Found:
    """One row of ``RUNNING`` or ``SENT_LATELY``."""
    campaign_id, accepted, bounced, refused, complained, in_a_row, base = row[:7]
    counts = {
        "accepted": accepted,
        "bounced": bounced,
        "refused": refused,
        "complained": complained,
    }
    # Django's cursors hand jsonb out as text.
    base = json.loads(base) if isinstance(base, str) else base
    return campaign_id, Totals.since(counts, base, in_a_row), Thresholds(*row[7:10])
