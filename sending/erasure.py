"""Forgetting a person: the ledger goes on counting their rows and no longer says whose they are.

In the caller's transaction: everybody locks sends first, then people, then the list, so that nobody
waits in a circle. It may be called again with the person held; only rows committed meanwhile are
locked then. Holds no gate: a running campaign goes on.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from django.db import connection

from subscribers.addresses import canonical, erased_hashes, lower

from . import events, installation, trials
from .sql import erasure as sql
from .withheld import WITHHELD

#: What a job id becomes whose own part named an address.
_NAMELESS = "message:{account}:erased:{digest}"


@dataclass(slots=True)
class _Person:
    """Whom to forget. ``forms``: their addresses, in lower case, as they are found on the way."""

    account_id: int
    subscriber_id: int | None
    email_lower: str
    email_hash: str
    forms: set[str]
    #: Those that were asked for; the others are addresses that the person had before.
    own: frozenset[str] = frozenset()
    sends: set[int] = field(default_factory=set)
    contents: set[int] = field(default_factory=set)


def erase_personal_data(
    account_id: int, subscriber_id: int | None, email: str, email_hash: str
) -> dict[str, int]:
    """Forget a person's address, words and answers in this account's sends and their events.

    ``email_hash`` is the keyed hash of ``email`` (``subscribers.addresses.erased_hashes``), which
    stays on the rows. What is open becomes ``suppressed`` with the reason ``erased``; what is on
    the wire settles as ever, without the words of its answer. Rows of the person and rows to the
    address are both theirs. Returns how many rows of each kind were changed. Raises ``ValueError``
    outside a transaction. Safe to repeat.
    """
    if not connection.in_atomic_block:
        raise ValueError("an erasure belongs into the transaction that forgets the person")
    person = _Person(
        account_id,
        subscriber_id,
        lower(canonical(email)),
        email_hash,
        {lower(email.strip()), lower(canonical(email))} - {""},
    )
    person.own = frozenset(person.forms)
    with connection.cursor() as cursor:
        sends = _forget_rows(cursor, person)
        if subscriber_id is not None:
            cursor.execute(sql.HOLD_PERSON, {"subscriber": subscriber_id})
            # Those that a build has committed meanwhile; from now on none can.
            sends += _forget_rows(cursor, person)
            trials.forget_shown(account_id, subscriber_id)
        person.forms -= _taken(cursor, person)
        given: dict[str, Any] = {
            "account": account_id,
            "ids": sorted(person.sends),
            "forms": sorted(person.forms),
            "contents": sorted(person.contents),
            "tag": installation.tag(),
        }
        counts = {"sends": sends}
        for name, statement in (
            ("events of providers", sql.FORGET_PROVIDER_EVENTS),
            ("events", sql.FORGET_EVENTS),
            ("contents", sql.FORGET_CONTENTS),
        ):
            cursor.execute(statement, given)
            counts[name] = int(cursor.rowcount)
    return counts


def _forget_rows(cursor: Any, person: _Person) -> int:
    whose = {"account": person.account_id, "subscriber": person.subscriber_id}
    former = person.forms - person.own - _taken(cursor, person)
    cursor.execute(sql.PERSONS_ROWS, {**whose, "own": sorted(person.own), "former": sorted(former)})
    rows = cursor.fetchall()
    if not rows:
        return 0
    person.sends.update(send_id for send_id, *_ in rows)
    person.contents.update(content for *_, content in rows if content is not None)
    person.forms.update(lower(email) for _, email, *_ in rows if email)
    digests = [_digest(person, email or "") for _, email, *_ in rows]
    cursor.execute(
        sql.FORGET_ROWS,
        {
            **whose,
            "ids": [send_id for send_id, *_ in rows],
            "digests": digests,
            "own_digests": [
                erased_hashes(f"{job_id}:{digest}")[0]
                for (_, _, job_id, _), digest in zip(rows, digests, strict=True)
            ],
            "job_ids": [_nameless(person, job_id) for _, _, job_id, _ in rows],
        },
    )
    _note_closed(cursor, cursor.fetchall())
    return len(rows)


def _taken(cursor: Any, person: _Person) -> set[str]:
    """Addresses that the person had before and somebody else has now."""
    cursor.execute(
        sql.TAKEN,
        {
            "account": person.account_id,
            "subscriber": person.subscriber_id,
            "forms": sorted(person.forms - person.own),
        },
    )
    return {email for (email,) in cursor.fetchall()}


def _digest(person: _Person, email: str) -> str:
    """A row keeps the hash of its own address, which may be one that the person had before."""
    if lower(email) == person.email_lower:
        return person.email_hash
    return erased_hashes(email)[0]


def _nameless(person: _Person, job_id: str) -> str:
    """A host's key may have been the address: such a job id goes, too."""
    if not any(form in lower(job_id) for form in person.forms):
        return job_id
    return _NAMELESS.format(account=person.account_id, digest=erased_hashes(job_id)[0])


def _note_closed(cursor: Any, rows: Iterable[tuple[int, int, str, bool]]) -> None:
    events.record(
        cursor,
        [
            events.Note(
                send_id=send_id,
                account_id=account_id,
                kind=status,
                stage="local",
                reason="erased",
                text=WITHHELD["erased"],
            )
            for send_id, account_id, status, was_open in rows
            if was_open
        ],
    )
