"""The suppression list from files with columns ``email``, ``reason``, ``evidence``, ``expires``.

Importing only ever adds or makes stronger, in chunks that may be repeated: a file that was broken
off is imported again, with the same result. All of it is read before anything is written, so that
a file that can't be read to its end changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from itertools import islice
from typing import Any, BinaryIO, NamedTuple
from zoneinfo import ZoneInfo

from django.db import connection, transaction
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils import timezone
from django.utils.dateparse import parse_date, parse_datetime

from ..addresses import AddressError, lower, normalize
from ..audit import record
from ..models import Account, AuditEvent, Subscriber, Suppression
from ..rights.person_address import PersonAddress
from ..suppression import (
    HARD_BOUNCE_DAYS,
    LATEST,
    RANK,
    Entry,
    erased_among,
    hold_list,
    suppress_all,
    upsert_sql,
)
from ..tabular import BadRecord, ImportRefused, Options, Record, RowError, open_table
from ..tabular.columns import email_place, fold
from ..tabular.guarding import unguard
from ..timezones import zone_named
from .standing import is_live

Reason = Suppression.Reason

COLUMNS = ("email", "reason", "evidence", "expires", "created", "account")
#: What other systems call the reasons, without case and signs.
_REASONS: dict[str, Reason] = {
    **dict.fromkeys(("unsubscribed", "unsubscribe", "optout", "optedout"), Reason.UNSUBSCRIBED),
    **dict.fromkeys(
        ("hardbounce", "hardbounced", "bounce", "bounced", "invalid", "addressdead"),
        Reason.HARD_BOUNCE,
    ),
    **dict.fromkeys(
        ("complaint", "complained", "spam", "spamreport", "spamcomplaint", "abuse"),
        Reason.COMPLAINT,
    ),
    **dict.fromkeys(("manual", "blocked", "addedbystaff"), Reason.MANUAL),
}
_ALL = frozenset({"", "all accounts"})
_CHUNK = 5000
#: Characters of an evidence, and rejected rows that a report names.
_EVIDENCE = 2000
NAMED = 200

_GIVEN = """SELECT %(account)s::bigint, t.* FROM unnest(
    %(emails)s::varchar[], %(reasons)s::varchar[], %(evidence)s::text[], %(expires)s::timestamptz[])
    AS t(email, reason, evidence, expires) ORDER BY lower(t.email COLLATE "C")"""


class Reject(NamedTuple):
    """A row that was not taken. ``text``: the beginning of it."""

    line: int
    reason: str
    text: str


@dataclass(slots=True)
class FileReport:
    """What an import did, or in a dry run would do, in rows of the file. ``known``: on the list
    already, for this reason or a stronger one, which stays; ``duplicates``: an address that stood
    in the file before, near by; ``erased``: people who are known by their hash alone. ``rejects``
    names the first ``NAMED``."""

    added: int = 0
    strengthened: int = 0
    known: int = 0
    duplicates: int = 0
    erased: int = 0
    rejected: int = 0
    rejects: list[Reject] = field(default_factory=list)
    passed_over: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    dry_run: bool = False


def import_file(
    binary: BinaryIO,
    *,
    account: Account | None,
    file_name: str,
    reason: Suppression.Reason | str = Reason.MANUAL,
    by_name: str = "",
    request: HttpRequest | None = None,
    dry_run: bool = False,
    on_reject: Callable[[Reject], object] | None = None,
) -> FileReport:
    """Suppress the addresses of a CSV or ``.xlsx`` file for an account, or for all (``None``).

    ``reason`` is for rows that give none. What the file says is written down as evidence, or where
    it says nothing, the file's name and who imported it. Constant memory. ``on_reject`` gets every
    row that is not taken. Raises ``ImportRefused`` for a file as a whole, and ``ValueError`` for
    ``erased`` as the reason.
    """
    default = Reason(reason)
    if default not in RANK:
        raise ValueError("a file can't erase anybody")
    name = by_name or (request.user.get_username() if request is not None else "")
    reading = _Reading(account, default, f"Imported from {file_name} by {name}.")
    told = FileReport(dry_run=dry_run)
    good = sum(len(chunk) for chunk in reading.chunks(binary, told, on_reject))
    binary.seek(0)
    event, written = None, 0
    for chunk in reading.chunks(binary, None, None):
        with transaction.atomic():
            _write(account, chunk, told)
            if dry_run:
                continue
            # What is written, chunk by chunk: an import that breaks off says how far it came.
            written += len(chunk)
            detail = {
                "rows": written,
                "of": good,
                "rejected": told.rejected,
                "reason": default.value,
            }
            event = event or record(
                account,
                "suppression.import",
                by_name=by_name,
                subject=file_name,
                detail=detail,
                request=request,
            )
            AuditEvent.objects.filter(pk=event.pk).update(detail=detail)
    return told


class _Reading:
    """A file's good rows in chunks; what is wrong goes into the report."""

    def __init__(self, account: Account | None, default: Reason, evidence: str) -> None:
        self.account = account
        self.default = default
        self.evidence = evidence
        self.zone = zone_named(account.timezone) if account else ZoneInfo("UTC")

    def chunks(
        self,
        binary: BinaryIO,
        report: FileReport | None,
        on_reject: Callable[[Reject], object] | None,
    ) -> Iterator[list[Entry]]:
        table = open_table(binary, "", Options())
        header = [unguard(name) for name in table.header]
        place = email_place(header)
        if place is None:
            raise ImportRefused(
                "The first line names no column of addresses; call it \u201cemail\u201d."
            )
        places = {fold(name): number for number, name in reversed(list(enumerate(header)))}
        known = {column: places.get(column) for column in COLUMNS} | {"email": place}
        if report is not None:
            report.notes += table.notes
            used = set(known.values())
            report.passed_over += [n for i, n in enumerate(header) if i not in used and n.strip()]
        rows = self._good(table, known, report, on_reject)
        while chunk := list(islice(rows, _CHUNK)):
            yield chunk

    def _good(
        self,
        table: Any,
        places: dict[str, int | None],
        report: FileReport | None,
        on_reject: Callable[[Reject], object] | None,
    ) -> Iterator[Entry]:
        for row in table:
            try:
                if isinstance(row, BadRecord):
                    raise RowError(row.reason)
                yield self._entry(row, places)
            except (RowError, AddressError) as error:
                if report is not None:
                    _reject(report, row, str(error), on_reject)

    def _entry(self, row: Record, places: dict[str, int | None]) -> Entry:
        cells = {
            name: unguard(row.cells[at]).strip() if at is not None and at < len(row.cells) else ""
            for name, at in places.items()
        }
        if any("\0" in cell for cell in cells.values()):
            raise RowError("A cell holds a NUL character.")
        email = normalize(cells["email"])
        if cells["account"].lower() not in self._mine():
            raise RowError(f"This row is of the account \u201c{cells['account'][:60]}\u201d.")
        reason = reason_of(cells["reason"], self.default)
        expires = expiry_of(cells["expires"], self.zone)
        if expires is not None and reason not in (Reason.HARD_BOUNCE, Reason.MANUAL):
            raise RowError(f"A suppression for the reason {reason.value} can't expire.")
        if expires is not None and expires <= timezone.now():
            raise RowError(f"It has expired already ({cells['expires'][:40]}).")
        evidence = cells["evidence"][:_EVIDENCE] or self.evidence
        return Entry(self.account, email, reason, evidence, expires)

    def _mine(self) -> frozenset[str]:
        return _ALL if self.account is None else frozenset({"", self.account.slug.lower()})


def reason_of(cell: str, default: Reason) -> Reason:
    """The reason that a cell names; blank: the default. Pure. Raises ``RowError``."""
    if not cell:
        return default
    found = _REASONS.get(fold(cell))
    if found is None:
        raise RowError(
            f"\u201c{cell[:60]}\u201d is no reason: it is {', '.join(r.value for r in RANK)}."
        )
    return found


def expiry_of(cell: str, zone: ZoneInfo) -> datetime | None:
    """A day (its beginning) or a moment in ISO 8601, in ``zone`` where it names none. Pure. Raises
    ``RowError``."""
    if not cell:
        return None
    try:
        moment = parse_datetime(cell)
        day = None if moment else parse_date(cell)
    except ValueError:
        moment = day = None
    if moment is None and day is not None:
        moment = datetime(day.year, day.month, day.day)
    if moment is None:
        raise RowError(f"\u201c{cell[:60]}\u201d is no day as in 2027-01-31.")
    try:
        ends = moment.replace(tzinfo=zone) if timezone.is_naive(moment) else moment
        if ends >= LATEST:
            raise RowError(
                f"\u201c{cell[:60]}\u201d is too far away; leave it empty for \u201cnever\u201d."
            )
        return ends
    except OverflowError:
        raise RowError(f"\u201c{cell[:60]}\u201d is no day as in 2027-01-31.") from None


def _reject(
    report: FileReport,
    row: Record | BadRecord,
    reason: str,
    on_reject: Callable[[Reject], object] | None,
) -> None:
    text = row.text if isinstance(row, BadRecord) else ",".join(row.cells)
    reject = Reject(row.line, reason, text[:200])
    report.rejected += 1
    if len(report.rejects) < NAMED:
        report.rejects.append(reject)
    if on_reject is not None:
        on_reject(reject)


def _write(account: Account | None, chunk: list[Entry], report: FileReport) -> None:
    """Write a chunk, and count what it does; in a dry run only that."""
    if not report.dry_run:
        hold_list(account.pk if account else None)
    erased = erased_among(account, [entry.email for entry in chunk])
    strongest: dict[str, Entry] = {}
    noted: list[Entry] = []
    for entry in chunk:
        key = lower(entry.email)
        before = strongest.get(key)
        if entry.email in erased:
            noted.append(entry)
            continue
        report.duplicates += before is not None
        strongest[key] = entry if before is None else _together(before, entry)
    report.erased += len(noted)
    if noted and not report.dry_run:
        # All at once, in one order of the addresses: two files never wait in a circle.
        suppress_all(noted)
    mine = Suppression.objects.filter(account=account) if account else _for_all()
    rows = mine.filter(is_live(), email_lower__in=list(strongest))
    known = dict(rows.values_list("email_lower", "reason"))
    for key, entry in strongest.items():
        match effect(known.get(key), Reason(entry.reason)):
            case "added":
                report.added += 1
            case "strengthened":
                report.strengthened += 1
            case _:
                report.known += 1
    if not report.dry_run:
        _upsert(account, _with_stored_forms(account, list(strongest.values())))


def _together(one: Entry, other: Entry) -> Entry:
    """Two rows of an address as ``upsert_sql`` lays the second over the first: the stronger reason
    with its evidence, and the later end. Pure."""
    stronger = one
    if RANK.index(Reason(other.reason)) > RANK.index(Reason(one.reason)):
        stronger = other
    ends = [_end(one), _end(other)]
    expires = None if None in ends else max(end for end in ends if end is not None)
    return replace(stronger, expires=expires)


def _end(entry: Entry) -> datetime | None:
    if entry.expires is None and entry.reason == Reason.HARD_BOUNCE:
        return timezone.now() + timedelta(days=HARD_BOUNCE_DAYS)
    return entry.expires


def effect(before: str | None, given: Reason) -> str:
    """``added``, ``strengthened`` or ``known``, by what is on the list. Pure."""
    if before is None:
        return "added"
    return "strengthened" if RANK.index(given) > RANK.index(Reason(before)) else "known"


def _upsert(account: Account | None, entries: list[Entry]) -> None:
    if not entries:
        return
    with connection.cursor() as cursor:
        cursor.execute(
            upsert_sql(_GIVEN, for_all=account is None),
            {
                "account": account.pk if account else None,
                "emails": [entry.email for entry in entries],
                "reasons": [str(entry.reason) for entry in entries],
                "evidence": [entry.evidence for entry in entries],
                "expires": [entry.expires for entry in entries],
            },
        )


def _with_stored_forms(account: Account | None, entries: list[Entry]) -> list[Entry]:
    """With the IDN forms under which subscribers are stored who came past every entrance."""
    others: dict[str, Entry] = {}
    for entry in entries:
        if "@xn--" in entry.email or ".xn--" in entry.email:
            for form in PersonAddress(entry.email).forms - {lower(entry.email)}:
                others[form] = entry
    if not others:
        return entries
    people = Subscriber.objects.filter(email_lower__in=list(others))
    if account is not None:
        people = people.filter(account=account)
    # One for each, though several accounts may have it in other capitals.
    stored = {lower(email): email for email in people.values_list("email", flat=True)}
    return entries + [
        Entry(e.account, email, e.reason, e.evidence, e.expires)
        for email in sorted(stored.values())
        for e in (others[lower(email)],)
    ]


def _for_all() -> QuerySet[Suppression]:
    return Suppression.objects.filter(account__isnull=True)
