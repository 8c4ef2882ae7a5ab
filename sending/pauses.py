"""Transports that take no mail now: paused for all workers, with the reason, and probed.

A row of ``TransportPause`` is the pause. Whoever moves its ``probe_at`` forward makes the next
try; when a try works, the row goes. Its ``failures`` are the outage that made it and the tries
since then, the one under way included, whatever the number of lanes that ran into it.

What a try is depends on what is known to be wrong. Where a session could not be opened, one that
opens shows that it works. Where messages failed (errors in a row, a refusal of everything, any
trouble of an HTTP backend, which opens nothing), only an answer to a message does: one message of
one lane is let through.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field

from django.db import connection, transaction

from subscribers.conf import conf
from subscribers.models import Account

from . import clock, sql
from .answers import Answer, Stage, said
from .queue import Claimed
from .sql.pauses import ERRORS, RETURN_PROBES, TRY_NOW
from .transport_facts import transport_fact
from .transports import UnknownTransport, transport

log = logging.getLogger("sendonce.sender")

#: Seconds before the first probe; doubled per probe up to the longest wait.
FIRST_WAIT = 1.0
LONGEST_WAIT = 60.0
#: After errors in a row each probe may leave a message in doubt, so there are fewer of them.
LONGEST_WAIT_OF_ERRORS = 600.0
#: What happened here says that no session could be had.
_OPENING = frozenset({Stage.CONNECT, Stage.GREETING, Stage.EHLO, Stage.TLS, Stage.AUTH})

#: ``(alias, account)``; account None: the transport itself, for everybody.
Whose = tuple[str, int | None]


def pause(
    alias: str,
    account_id: int | None,
    answer: Answer,
    *,
    stage: str | None = None,
    words: str | None = None,
) -> None:
    """Pause a transport (``account_id`` None) or one account's use of it, because of
    ``answer``, or of what ``stage`` and ``words`` say in its place. A repeat, from another lane
    or a probe, only brings the latest reason: the wait before the next probe has begun already."""
    words = words or said(answer.code, answer.enhanced, answer.text) or "no answer"
    stage = stage or str(answer.stage)
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(
            sql.PAUSE_ALIAS if account_id is None else sql.PAUSE_ACCOUNT,
            {
                "alias": alias,
                "account": account_id,
                "stage": stage,
                "code": answer.code,
                "reason": words[:500],
                "first": FIRST_WAIT,
            },
        )
        failures, is_new = cursor.fetchone()
    # Forty lanes run into one outage: whose row it is tells of it.
    log.log(
        logging.WARNING if is_new else logging.DEBUG,
        "transport paused",
        extra={
            "event": "transport_paused",
            "transport": alias,
            "account": account_id,
            # Not part of the reason: that is read by staff who may not know it.
            "where": (is_new and transport_fact(alias).where) or None,
            "stage": stage,
            "reason": words,
            "failures": failures,
        },
    )


def lift(alias: str, account_id: int | None) -> bool:
    """It works again. Returns whether it was paused."""
    with connection.cursor() as cursor:
        cursor.execute(sql.LIFT, {"alias": alias, "account": account_id})
        lifted = cursor.rowcount > 0
    if lifted:
        log.info(
            "transport works again",
            extra={"event": "transport_lifted", "transport": alias, "account": account_id},
        )
    return lifted


def try_now(alias: str, account_id: int | None) -> bool:
    """A person says that it works again: the next try is due at once, and lifts the pause when it
    works. Returns whether there is one to come: a pause that nobody's mail goes by any more is
    lifted instead."""
    using = Account.objects.filter(transport=alias)
    if account_id is not None:
        using = using.filter(pk=account_id)
    if not using.exists() and (account_id is not None or alias not in conf.TRANSPORTS):
        lift(alias, account_id)
        return False
    with connection.cursor() as cursor:
        cursor.execute(TRY_NOW, {"alias": alias, "account": account_id})
        return cursor.rowcount > 0


def risks_others(account_id: int | None, stage: str) -> bool:
    """Whether a try may leave another account's message in doubt: one of everybody's, after errors
    in a row. Pure."""
    return account_id is None and stage == ERRORS


@dataclass
class Pauses:
    """What one process knows of the pauses, refreshed about once a second.

    A transport that this process probes counts as free here from the ``refresh`` that took the
    probe until the next one, or until ``note`` says that it failed; where the probe is a message,
    only until ``let_through`` has let one pass.
    """

    aliases: set[str] = field(default_factory=set)
    accounts: dict[int, str] = field(default_factory=dict)
    reasons: list[str] = field(default_factory=list)
    _blocked_accounts: set[tuple[str, int]] = field(default_factory=set)
    #: The stage of each pause.
    _known: dict[Whose, str] = field(default_factory=dict)
    #: Probes by message that are this process's and that no lane has begun yet.
    _untried: set[str] = field(default_factory=set)
    #: What ``note`` has told and a read may not show yet, with its stage, and which of it is
    #: committed: a read that began before the commit must not wipe it out.
    _told: dict[Whose, str] = field(default_factory=dict)
    _written: set[Whose] = field(default_factory=set)
    #: What was lifted while a read was under way that may still show it.
    _lifted: set[Whose] = field(default_factory=set)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def refresh(self) -> bool:
        """Read the pauses and the accounts' transports; take probes that are due. Returns whether
        any was."""
        accounts = dict(Account.objects.values_list("pk", "transport"))
        with self._lock:
            shown, self._written = self._written, set()
            self._told = {whose: s for whose, s in self._told.items() if whose not in shown}
            self._lifted.clear()
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute(
                sql.TAKE_PROBES,
                {
                    "first": FIRST_WAIT,
                    "longest": LONGEST_WAIT,
                    "longest_of_errors": LONGEST_WAIT_OF_ERRORS,
                },
            )
            probing = {(alias, account) for alias, account in cursor.fetchall()}
            with self._lock:
                untried, self._untried = sorted(self._untried), set()
            # There was nothing to send: whatever comes next shall not wait for it.
            cursor.execute(RETURN_PROBES, {"aliases": untried})
            cursor.execute(sql.PAUSED)
            rows = cursor.fetchall()
        with self._lock:
            stages = {(alias, account): stage for alias, account, stage, _ in rows}
            known = {whose: s for whose, s in stages.items() if whose not in self._lifted}
            blocked = {*(known.keys() - probing), *self._told}
            self.accounts = accounts
            self.aliases = {alias for alias, account in blocked if account is None}
            self._blocked_accounts = {(a, acc) for a, acc in blocked if acc is not None}
            self._known = {**self._told, **known}
            self.reasons = [f"{alias}: {reason}" for alias, _, _, reason in rows]
        mine = {alias for alias, account in probing if account is None}
        by_message = {alias for alias in mine if self.probing(alias)}
        with self._lock:
            self._untried = by_message
        return bool(probing)

    def blocks(self, alias: str, account_id: int) -> bool:
        """Whether this account's mail over this transport must wait."""
        with self._lock:
            return self._blocks(alias, account_id)

    def _blocks(self, alias: str, account_id: int) -> bool:
        return alias in self.aliases or (alias, account_id) in self._blocked_accounts

    def blocked_accounts(self) -> list[int]:
        return [pk for pk, alias in list(self.accounts.items()) if self.blocks(alias, pk)]

    def let_through(
        self, alias: str, rows: Sequence[Claimed]
    ) -> tuple[list[Claimed], list[Claimed]]:
        """``(go, back)``: those of ``rows`` that may be tried over ``alias`` now, and those that
        must wait."""
        with self._lock:
            go = [r for r in rows if not self._blocks(alias, r.account_id)]
        kept = {r.id for r in go}
        return go, [r for r in rows if r.id not in kept]

    def probe(self, alias: str, rows: Sequence[Claimed]) -> tuple[list[Claimed], list[Claimed]]:
        """As ``let_through``, for rows that nothing but the pause keeps any more: where the
        transport is probed by a message that is one row, for one lane. Asked last, so that a row
        which waits for a permit does not use the probe up and leave everybody else's waiting."""
        by_message = self.probing(alias)
        go, back = self.let_through(alias, rows)
        if not by_message:
            return go, back
        with self._lock:
            if alias in self.aliases:
                return [], list(rows)  # another lane was faster
            if go:
                self.aliases.add(alias)
                self._untried.discard(alias)
        return go[:1], [*go[1:], *back]

    def probing(self, alias: str) -> bool:
        """Whether ``alias`` is known to be paused, and only an answer to a message lifts it."""
        return self.knows(alias, None) and not self.lifts_at_open(alias)

    def lifts_at_open(self, alias: str) -> bool:
        """Whether ``alias`` is known to be paused, and a session that opens shows that it works.

        It does where none could be opened, over our own SMTP backend: any other may have
        connected to nothing yet (anymail's open is a session object).
        """
        with self._lock:
            stage = self._known.get((alias, None))
        if stage not in _OPENING:
            return False
        try:
            return transport(alias).takes_bytes
        except UnknownTransport:
            return False

    def note(self, alias: str, account_id: int | None, stage: str = "") -> None:
        """This process is about to pause it, at this stage of a hand-over (or for errors in a
        row): nobody here goes on meanwhile. ``write`` does it."""
        with self._lock:
            self._written.discard((alias, account_id))
            self._lifted.discard((alias, account_id))
            if self._known.get((alias, account_id)) != ERRORS:
                self._known[alias, account_id] = stage
            self._told[alias, account_id] = self._known[alias, account_id]
            if account_id is None:
                self.aliases.add(alias)
            else:
                self._blocked_accounts.add((alias, account_id))

    def write(
        self,
        alias: str,
        account_id: int | None,
        answer: Answer,
        *,
        stage: str | None = None,
        words: str | None = None,
    ) -> None:
        """Pause what was noted, for everybody; arguments as of ``pause``."""
        pause(alias, account_id, answer, stage=stage, words=words)
        with self._lock:
            self._written.add((alias, account_id))

    @property
    def is_clear(self) -> bool:
        """Whether nothing counts as paused as far as this process knows."""
        return not self._known

    def knows(self, alias: str, account_id: int | None) -> bool:
        """Whether it counts as paused as far as this process knows; cheap."""
        with self._lock:
            return (alias, account_id) in self._known

    def hold(self, alias: str) -> None:
        """Claim nothing for it until the next refresh: those who try it are still trying."""
        with self._lock:
            self.aliases.add(alias)

    def worked(self, alias: str, account_id: int | None) -> None:
        """It took something (for ``account_id`` None: see ``lifts_at_open``): lift the pause."""
        lift(alias, account_id)
        with self._lock:
            self._lifted.add((alias, account_id))
            self._told.pop((alias, account_id), None)
            self._written.discard((alias, account_id))
            self._known.pop((alias, account_id), None)
            if account_id is None:
                self.aliases.discard(alias)
            else:
                self._blocked_accounts.discard((alias, account_id))


@dataclass
class LastSuccess:
    """When each transport last took something from this process, on ``sending.clock``."""

    at: dict[str, float] = field(default_factory=dict)

    def note(self, alias: str) -> None:
        self.at[alias] = clock.now()

    def recent(self, alias: str, within: float = 5.0) -> bool:
        """Whether another lane's session works: one more that is refused is then this lane's
        trouble (a connection limit), not the transport's."""
        return clock.now() - self.at.get(alias, float("-inf")) < within
