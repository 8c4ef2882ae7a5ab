"""Transports that take no mail now: paused for all workers, with the reason, and probed.

A row of ``TransportPause`` is the pause. Whoever moves its ``probe_at`` forward makes the next
try; when a try works, the row goes. Its ``failures`` are the outage that made it and the tries
since then, the one under way included, whatever the number of lanes that ran into it.
"""

from __future__ import annotations

import logging
import threading
from dataclasses import dataclass, field

from django.db import connection, transaction

from subscribers.models import Account

from . import clock, sql
from .answers import said
from .outcomes import Answer

log = logging.getLogger("sendonce.sender")

#: Seconds before the first probe; doubled per probe up to the longest wait.
FIRST_WAIT = 1.0
LONGEST_WAIT = 60.0


def pause(alias: str, account_id: int | None, answer: Answer) -> None:
    """Pause a transport (``account_id`` None) or one account's use of it, because of
    ``answer``. A repeat, from another lane or a probe, only brings the latest reason: the wait
    before the next probe has begun already."""
    words = said(answer.code, answer.enhanced, answer.text) or "no answer"
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(
            sql.PAUSE_ALIAS if account_id is None else sql.PAUSE_ACCOUNT,
            {
                "alias": alias,
                "account": account_id,
                "stage": str(answer.stage),
                "code": answer.code,
                "reason": words[:500],
                "first": FIRST_WAIT,
                "longest": LONGEST_WAIT,
            },
        )
        (failures,) = cursor.fetchone()
    log.warning(
        "transport paused",
        extra={
            "event": "transport_paused",
            "transport": alias,
            "account": account_id,
            "stage": str(answer.stage),
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


@dataclass
class Pauses:
    """What one process knows of the pauses, refreshed about once a second.

    A transport that this process probes counts as free here from the ``refresh`` that took the
    probe until the next one, or until ``note`` says that it failed.
    """

    aliases: set[str] = field(default_factory=set)
    accounts: dict[int, str] = field(default_factory=dict)
    reasons: list[str] = field(default_factory=list)
    _blocked_accounts: set[tuple[str, int]] = field(default_factory=set)
    _known: set[tuple[str, int | None]] = field(default_factory=set)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def refresh(self) -> None:
        """Read the pauses and the accounts' transports; take probes that are due."""
        accounts = dict(Account.objects.values_list("pk", "transport"))
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute(sql.TAKE_PROBES, {"first": FIRST_WAIT, "longest": LONGEST_WAIT})
            probing = {(alias, account) for alias, account in cursor.fetchall()}
            cursor.execute(sql.PAUSED)
            rows = cursor.fetchall()
        blocked = {(alias, account) for alias, account, _ in rows} - probing
        with self._lock:
            self.accounts = accounts
            self.aliases = {alias for alias, account in blocked if account is None}
            self._blocked_accounts = {(a, acc) for a, acc in blocked if acc is not None}
            self._known = {(alias, account) for alias, account, _ in rows}
            self.reasons = [f"{alias}: {reason}" for alias, _, reason in rows]

    def blocks(self, alias: str, account_id: int) -> bool:
        """Whether this account's mail over this transport must wait."""
        with self._lock:
            return alias in self.aliases or (alias, account_id) in self._blocked_accounts

    def blocked_accounts(self) -> list[int]:
        return [pk for pk, alias in list(self.accounts.items()) if self.blocks(alias, pk)]

    def note(self, alias: str, account_id: int | None) -> None:
        """This process has just paused it: do not wait for the next refresh."""
        with self._lock:
            self._known.add((alias, account_id))
            if account_id is None:
                self.aliases.add(alias)
            else:
                self._blocked_accounts.add((alias, account_id))

    def knows(self, alias: str, account_id: int | None) -> bool:
        """Whether it counts as paused as far as this process knows; cheap."""
        with self._lock:
            return (alias, account_id) in self._known

    def hold(self, alias: str) -> None:
        """Claim nothing for it until the next refresh: those who try it are still trying."""
        with self._lock:
            self.aliases.add(alias)

    def worked(self, alias: str, account_id: int | None) -> None:
        """It took something (for ``account_id`` None: a session opened): lift the pause."""
        with self._lock:
            self._known.discard((alias, account_id))
            if account_id is None:
                self.aliases.discard(alias)
            else:
                self._blocked_accounts.discard((alias, account_id))
        lift(alias, account_id)


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
