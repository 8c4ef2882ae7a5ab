"""Addresses that must not get mail: putting them on the list, and asking whether they are.

A suppression only grows stronger here: a later, weaker reason never replaces an earlier one.
Letting go is another act, of a person with a permission.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import islice

from django.db import connection, transaction
from django.db.models import QuerySet

from .addresses import canonical, erased_hashes, lower
from .models import Account, Subscriber, Suppression

#: From weak to strong. A complaint and an unsubscribe are for ever, a dead address is not
#: (mailboxes come back, domains change hands).
RANK = (
    Suppression.Reason.HARD_BOUNCE,
    Suppression.Reason.MANUAL,
    Suppression.Reason.UNSUBSCRIBED,
    Suppression.Reason.COMPLAINT,
)
#: The same for what is remembered behind an erasure: what a new sign-up can't take back outweighs
#: what it can.
REMEMBERED = (
    Suppression.Reason.HARD_BOUNCE,
    Suppression.Reason.UNSUBSCRIBED,
    Suppression.Reason.MANUAL,
    Suppression.Reason.COMPLAINT,
)
HARD_BOUNCE_DAYS = 365
#: The first moment that is too late for an end: near the calendar's own end a moment can't be shown
#: in every time zone, nor read back from the database. "9999-12-31" means never, which is blank.
LATEST = datetime(9000, 1, 1, tzinfo=UTC)

_TABLE = Suppression._meta.db_table
_CHUNK = 5000
#: Upper 24 bits of the advisory locks' keys ("SEP" and its next); the lower 40 are the account's
#: id, or 0. An erasure takes all three, in this order, and sends and people in between: the first
#: against imports, which hold it for long; the second against whoever makes people; the last
#: against whoever writes the list, as settling a send or an unsubscription does at its end.
_NAMESPACE = 0x534550 << 40
_ERASING = 0x534551 << 40
_LISTING = 0x534552 << 40

_LIVE = "(expires IS NULL OR expires > clock_timestamp())"
_RANK = f"array_position(ARRAY[{', '.join(repr(r.value) for r in RANK)}], {{}}.reason::text)"
_LAPSED = "s.expires <= clock_timestamp()"
_STRONGER = f"({_LAPSED} OR {_RANK.format('excluded')} > {_RANK.format('s')})"
#: What staff added stays known when the person also unsubscribes: a new sign-up takes back their
#: own wish, not the staff's.
_BANNED_TOO = (
    f"(s.reason, excluded.reason) IN"
    f" (('{Suppression.Reason.MANUAL.value}', '{Suppression.Reason.UNSUBSCRIBED.value}'),"
    f" ('{Suppression.Reason.UNSUBSCRIBED.value}', '{Suppression.Reason.MANUAL.value}'))"
)
_EXPIRES = (
    f"CASE {{}} WHEN '{Suppression.Reason.HARD_BOUNCE.value}'"
    f" THEN clock_timestamp() + interval '{HARD_BOUNCE_DAYS} days' END"
)

Tenant = Account | int | None


@dataclass(frozen=True, slots=True)
class Entry:
    """One address to suppress; see ``suppress`` for the meaning of the fields."""

    account: Tenant
    email: str
    reason: Suppression.Reason | str
    evidence: str = ""
    expires: datetime | None = None


def suppress(
    account: Tenant,
    email: str,
    reason: Suppression.Reason | str,
    *,
    evidence: str = "",
    expires: datetime | None = None,
) -> Suppression:
    """Suppress an address for an account, or for all (``account=None``), at once.

    Repeatable and safe in a race. Where the address is suppressed already, the stronger reason
    stays (``RANK``) with its evidence, and the later end (none: never). ``expires=None`` means
    never, for a hard bounce a year from now; a complaint and an unsubscribe can't expire.

    ``erased`` keeps a keyed hash of the address and nothing else: the address is cut out of the
    evidence, too. It waits for an import of that account that is being written. What is said of
    an erased person later is noted with their hash (``former_reason``): the address is not
    written down again.

    Raises ``ValueError``: an unknown reason, an empty address, an expiry that can't be.
    """
    return suppress_all([Entry(account, email, reason, evidence, expires)])[0]


def suppress_all(entries: Iterable[Entry]) -> list[Suppression]:
    """``suppress`` for many, in one transaction; the rows in the order of the entries.

    Addresses are locked in ascending order, so that two callers never wait in a circle.
    """
    forms = [_with_stored_forms(entry) for entry in entries]
    todo = [entry for group in forms for entry in group]
    todo.sort(key=lambda entry: (_id(entry.account) or 0, lower(entry.email)))
    ids: dict[Entry, int] = {}
    with transaction.atomic():
        plain = [entry for entry in todo if entry.reason != Suppression.Reason.ERASED]
        for account_id in sorted({_id(entry.account) or 0 for entry in plain}):
            hold_list(account_id or None)
        for entry in todo:
            if entry.reason == Suppression.Reason.ERASED:
                ids[entry] = _erase(entry)
            else:
                ids[entry] = _note_of_erased(entry) or _upsert(entry)
        rows = Suppression.objects.in_bulk(ids.values())
    return [rows[ids[group[0]]] for group in forms]


def is_suppressed(account: Tenant, email: str) -> bool:
    """Must this address get no mail from this account (or, with ``None``, from any)?"""
    return bool(suppressed_among(account, [email]))


def suppressed_among(account: Tenant, emails: Iterable[str]) -> set[str]:
    """Those of the addresses, spelt as given, that must get no mail from this account.

    By the account's list and the one for all, by address and by the hash of an erased one under
    every signing key; what has expired by the database's clock does not count.
    """
    suppressed: set[str] = set()
    waiting = iter(emails)
    while chunk := list(islice(waiting, _CHUNK)):
        suppressed |= _suppressed_in(_id(account), chunk)
    return suppressed


def upsert_sql(rows: str, *, for_all: bool = False) -> str:
    """The statement that suppresses ``rows``: a ``VALUES`` or ``SELECT`` of account id, email,
    reason, evidence, expires, in ascending order of the address."""
    target = (
        "(email_lower) WHERE account_id IS NULL"
        if for_all
        else "(account_id, email_lower) WHERE account_id IS NOT NULL"
    )
    return f"""
        INSERT INTO {_TABLE} AS s (account_id, email, reason, evidence, created, expires)
        SELECT account_id, email, reason, evidence, clock_timestamp(),
            COALESCE(expires, {_EXPIRES.format("reason")})
        FROM ({rows}) AS given (account_id, email, reason, evidence, expires)
        ON CONFLICT {target} DO UPDATE SET
            reason = CASE WHEN {_STRONGER} THEN excluded.reason ELSE s.reason END,
            evidence = CASE WHEN {_STRONGER} OR s.evidence = ''
                THEN excluded.evidence ELSE s.evidence END,
            created = CASE WHEN {_LAPSED} THEN excluded.created ELSE s.created END,
            former_reason = CASE
                WHEN {_LAPSED} THEN ''
                WHEN {_BANNED_TOO} THEN '{Suppression.Reason.MANUAL.value}'
                ELSE s.former_reason END,
            expires = CASE
                WHEN {_LAPSED} THEN excluded.expires
                WHEN s.expires IS NULL OR excluded.expires IS NULL THEN NULL
                ELSE greatest(s.expires, excluded.expires) END
        RETURNING id"""


def hold_erasures(account_id: int) -> None:
    """Until the transaction ends, nobody is erased from this account, and no other import of it
    writes. Read in a later statement, which then sees every erasure there was."""
    _shared(_NAMESPACE)
    _exclusive(_NAMESPACE | account_id)


def hold_erasing(account_id: int) -> None:
    """Until the transaction ends, nobody is erased from this account, while a person's own wish
    makes or moves a subscriber. The transaction's first lock; an import does not stop it."""
    _shared(_ERASING | account_id)


def begin_erasing(account_id: int) -> None:
    """The other side of ``hold_erasing``: waits for those who write, and then keeps them out."""
    _exclusive(_ERASING | account_id)


def hold_list(account_id: int | None) -> None:
    """Until the transaction ends, no erasure replaces addresses of this account's list (``None``:
    of the one for all). After the locks of rows that are no suppressions; read in a later
    statement."""
    _shared(_LISTING | (account_id or 0))


def close_list(account_id: int) -> None:
    """The other side of ``hold_list``."""
    _exclusive(_LISTING | account_id)


def _shared(key: int) -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock_shared(%s)", [key])


def _exclusive(key: int) -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(%s)", [key])


def erased_among(account: Tenant, emails: Iterable[str]) -> set[str]:
    """Those of the addresses, spelt as given, that were erased from this list itself (the list for
    all does not count for an account's)."""
    spelt: dict[str, set[str]] = {}
    for email in emails:
        for digest in erased_hashes(canonical(email)):
            spelt.setdefault(digest, set()).add(email)
    rows = _of(account).filter(email_hash__in=list(spelt)).values_list("email_hash", flat=True)
    return {email for digest in rows if digest is not None for email in spelt[digest]}


def _of(account: Tenant) -> QuerySet[Suppression]:
    account_id = _id(account)
    if account_id is None:
        return Suppression.objects.filter(account__isnull=True)
    return Suppression.objects.filter(account=account_id)


def _checked(entry: Entry) -> Entry:
    reason = Suppression.Reason(entry.reason)
    email = canonical(entry.email)
    if not email or "\0" in email:
        raise ValueError("There is no address to suppress.")
    if entry.expires is not None and reason not in {
        Suppression.Reason.HARD_BOUNCE,
        Suppression.Reason.MANUAL,
    }:
        raise ValueError(f"A suppression for the reason {reason.value} can't expire.")
    if entry.expires is not None and entry.expires.year >= LATEST.year:
        raise ValueError("A suppression that never ends has no expiry.")
    evidence = entry.evidence.replace("\0", "\ufffd")
    if reason == Suppression.Reason.ERASED:
        for form in {email, entry.email.strip()} - {""}:
            evidence = re.sub(re.escape(form), "(address)", evidence, flags=re.IGNORECASE)
    return Entry(entry.account, email, reason, evidence, entry.expires)


def _with_stored_forms(entry: Entry) -> list[Entry]:
    """The entry, in its written form and, where a subscriber is stored under the form given
    (saved past every entrance by the host's own code), in that one too: sends compare with
    what is stored."""
    written = _checked(entry)
    given = entry.email.strip()
    if lower(given) == lower(written.email) or not _is_stored(entry.account, given):
        return [written]
    return [written, replace(written, email=given)]


def _is_stored(account: Tenant, email: str) -> bool:
    if "\0" in email:
        return False
    stored = Subscriber.objects.filter(email_lower=lower(email))
    return (stored if account is None else stored.filter(account=account)).exists()


def _upsert(entry: Entry) -> int:
    account_id = _id(entry.account)
    values = "SELECT %s::bigint, %s::varchar, %s::varchar, %s::text, %s::timestamptz"
    with connection.cursor() as cursor:
        cursor.execute(
            upsert_sql(values, for_all=account_id is None),
            [account_id, entry.email, str(entry.reason), entry.evidence, entry.expires],
        )
        return int(cursor.fetchone()[0])


def _note_of_erased(entry: Entry) -> int | None:
    """Note what is said of an erased person; the id of their row, ``None`` for anybody else."""
    row = _of(entry.account).filter(email_hash__in=erased_hashes(entry.email)).first()
    if row is None:
        return None
    weaker = ["", *REMEMBERED[: REMEMBERED.index(Suppression.Reason(entry.reason))]]
    Suppression.objects.filter(pk=row.pk, former_reason__in=weaker).update(
        former_reason=entry.reason
    )
    return row.pk


def _erase(entry: Entry) -> int:
    account_id = _id(entry.account)
    hashes = erased_hashes(entry.email)
    _exclusive(_NAMESPACE | (account_id or 0))
    with connection.cursor() as cursor:
        # Under whichever key it was hashed: a rotated key must not make a second row.
        row = _of(entry.account).filter(email_hash__in=hashes).first()
        if row is not None:
            return row.pk
        cursor.execute(
            f"INSERT INTO {_TABLE} (account_id, email_hash, reason, evidence, created)"
            " VALUES (%s, %s, %s, %s, clock_timestamp()) RETURNING id",
            [account_id, hashes[0], Suppression.Reason.ERASED.value, entry.evidence],
        )
        return int(cursor.fetchone()[0])


def _suppressed_in(account_id: int | None, emails: list[str]) -> set[str]:
    spelt: dict[str, set[str]] = {}
    for email in emails:
        for form in {lower(email.strip()), lower(canonical(email))}:
            spelt.setdefault(form, set()).add(email)
    hashed = {digest: form for form in spelt for digest in erased_hashes(form)}
    select = f"SELECT email_lower, email_hash FROM {_TABLE} WHERE account_id"
    found = "(email_lower = ANY(%(forms)s) OR email_hash = ANY(%(hashes)s))"
    with connection.cursor() as cursor:
        # Two halves, so that each finds its own partial indexes.
        cursor.execute(
            f"{select} = %(account)s AND {found} AND {_LIVE}"
            f" UNION ALL {select} IS NULL AND {found} AND {_LIVE}",
            {"account": account_id, "forms": list(spelt), "hashes": list(hashed)},
        )
        rows = cursor.fetchall()
    return {
        email
        for address, digest in rows
        for email in spelt[address if address is not None else hashed[digest]]
    }


def _id(account: Tenant) -> int | None:
    if not isinstance(account, Account):
        return account
    if account.pk is None:
        raise ValueError("The account is not saved; None would mean all accounts.")
    return int(account.pk)
