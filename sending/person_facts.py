"""What is known of a person beside their messages, by its time: consent, segments, suppressions,
what staff did. A page of it ends at a ``Mark`` and the next begins there, also among what has the
same time.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import IntEnum
from typing import Any

from django.db.models import Exists, OuterRef, Q, QuerySet

from subscribers.addresses import lower
from subscribers.audit_words import words as act_words
from subscribers.models import (
    Account,
    AuditEvent,
    Membership,
    MembershipChange,
    Signup,
    Subscriber,
    Suppression,
)
from subscribers.suppressing.standing import known_as


@dataclass(frozen=True, slots=True)
class Happening:
    """Something in the delivery of one message."""

    at: datetime
    what: str
    detail: str


@dataclass(frozen=True, slots=True)
class Entry:
    """``at`` None: of now, it waits. ``kind``: ``message``, ``consent``, ``segment``,
    ``suppression`` or ``staff``. ``send`` and ``campaign``: ids of what it is about."""

    at: datetime | None
    kind: str
    title: str
    text: str = ""
    status: str = ""
    send: int | None = None
    campaign: int | None = None
    events: tuple[Happening, ...] = ()
    more_events: bool = False


@dataclass(frozen=True, slots=True)
class Sees:
    """What of the story is this user's to know: why an address is suppressed for all accounts,
    and what staff did."""

    everywhere: bool = False
    staff: bool = False


class Source(IntEnum):
    """Where a fact is from: the order of those of one moment. Two times of a row are two."""

    PERSON = 1
    SIGNED_UP = 2
    CONFIRMED = 3
    CHANGED = 4
    JOINED = 5
    LEFT = 6
    SUPPRESSED = 7
    ENDED = 8
    ACT = 9


@dataclass(frozen=True, slots=True, order=True)
class Mark:
    """A place among the facts: before the one with this time, source and id. Without the latter
    two, before all of that time."""

    at: datetime
    source: int = 0
    id: int = 0

    def __str__(self) -> str:
        return f"{self.at.isoformat()}_{self.source}_{self.id}"


def read_mark(text: str) -> Mark | None:
    """A mark as ``str`` wrote it; None for anything else."""
    at, _, rest = text.partition("_")
    source, _, number = rest.partition("_")
    if not all(part.isascii() and part.isdigit() and len(part) < 19 for part in (source, number)):
        return None
    try:
        moment = datetime.fromisoformat(at)
        if moment.tzinfo is None:
            return None
        # In UTC: PostgreSQL knows fewer zones than Python, and would fail.
        return Mark(moment.astimezone(UTC), int(source), int(number))
    except (ValueError, OverflowError):
        return None


#: A fact and its place.
Fact = tuple[Mark, Entry]


@dataclass(frozen=True, slots=True)
class _Stretch:
    """From ``since`` on, and before ``until``; ``most`` of each source are read, and one more."""

    since: Mark | None
    until: Mark | None
    most: int

    def of(self, rows: QuerySet[Any], time: str, source: Source) -> list[Any]:
        """The latest of ``rows`` that are within it."""
        rows = rows.filter(**{f"{time}__isnull": False})
        if self.until is not None:
            rows = rows.filter(_before(self.until, time, source))
        if self.since is not None:
            rows = rows.exclude(_before(self.since, time, source))
        return list(rows.order_by(f"-{time}", "-pk")[: self.most + 1])

    def has(self, mark: Mark) -> bool:
        started = self.since is None or mark >= self.since
        return started and (self.until is None or mark < self.until)


def _before(mark: Mark, time: str, source: Source) -> Q:
    earlier = Q(**{f"{time}__lt": mark.at})
    if source < mark.source:
        return earlier | Q(**{time: mark.at})
    if source == mark.source:
        return earlier | Q(**{time: mark.at, "pk__lt": mark.id})
    return earlier


@dataclass(frozen=True)
class _Whose:
    account: Account
    email: str
    person: Subscriber | None
    sees: Sees
    now: datetime
    stretch: _Stretch = field(repr=False)


def facts(
    account: Account,
    email: str,
    person: Subscriber | None,
    sees: Sees,
    now: datetime,
    *,
    since: Mark | None,
    until: Mark | None,
    most: int,
) -> tuple[list[Entry], Mark | None]:
    """What happened from ``since`` on and before ``until``, the latest ``most``; and where the rest
    of it begins, None where this is all."""
    whose = _Whose(account, email, person, sees, now, _Stretch(since, until, most))
    found = sorted(_all(whose), key=lambda fact: fact[0], reverse=True)
    told = [entry for _, entry in found[:most]]
    return told, found[most - 1][0] if len(found) > most else None


def _all(whose: _Whose) -> Iterator[Fact]:
    yield from _consent(whose)
    yield from _signups(whose)
    if whose.person is not None:
        yield from _places(whose, whose.person)
    yield from _suppressions(whose)
    if whose.sees.staff:
        yield from _acts(whose)


def _consent(whose: _Whose) -> Iterator[Fact]:
    person = whose.person
    if person is None:
        return
    source = f"Consent: {person.consent_source}." if person.consent_source else ""
    for number, at, title, text in (
        (1, person.created, "Added as a subscriber", ""),
        (2, person.confirmed_at, "Confirmed", source),
        (3, person.unsubscribed_at, "Unsubscribed", "No campaign reaches them since."),
    ):
        if at is not None and whose.stretch.has(mark := Mark(at, Source.PERSON, number)):
            yield mark, Entry(at, "consent", title, text)


def _signups(whose: _Whose) -> Iterator[Fact]:
    folded = lower(whose.email)
    ways: list[Q] = [Q(email_lower=folded), Q(former_lower=folded)]
    if whose.person is not None:
        ways.append(Q(subscriber=whose.person))
    for time, source in (
        ("requested_at", Source.SIGNED_UP),
        ("confirmed_at", Source.CONFIRMED),
    ):
        found: dict[int, Signup] = {}
        for way in ways:
            rows = Signup.objects.filter(way, account=whose.account).select_related("form")
            found |= {row.pk: row for row in whose.stretch.of(rows, time, source)}
        for row in found.values():
            title, text = (_asked if source is Source.SIGNED_UP else _confirmed)(row)
            at = getattr(row, time)
            yield Mark(at, source, row.pk), Entry(at, "consent", title, text)


def _asked(row: Signup) -> tuple[str, str]:
    changes = row.kind == Signup.Kind.ADDRESS
    return "Asked to change their address" if changes else "Signed up", _by_form(row)


def _confirmed(row: Signup) -> tuple[str, str]:
    if row.kind == Signup.Kind.ADDRESS and row.former_email:
        text = f"From {row.former_email} to {row.email or 'another one'}."
        return "Changed their address", text
    return "Confirmed their sign-up", _by_form(row)


def _by_form(row: Signup) -> str:
    return f"By the form {row.form}." if row.form else ""


def _places(whose: _Whose, person: Subscriber) -> Iterator[Fact]:
    stretch = whose.stretch
    changes = MembershipChange.objects.filter(subscriber=person).select_related("segment")
    for change in stretch.of(changes, "at", Source.CHANGED):
        left = change.kind == MembershipChange.Kind.LEFT
        what = "Left" if left else "Joined again:"
        source = f"{change.source[:1].upper()}{change.source[1:]}." if change.source else ""
        yield (
            Mark(change.at, Source.CHANGED, change.pk),
            Entry(change.at, "segment", f"{what} {change.segment.name}", source),
        )
    members = Membership.objects.filter(subscriber=person).select_related("segment")
    for member in stretch.of(members, "joined_at", Source.JOINED):
        yield (
            Mark(member.joined_at, Source.JOINED, member.pk),
            Entry(member.joined_at, "segment", f"Joined {member.segment.name}"),
        )
    # Told above where the change was noted.
    noted = MembershipChange.objects.filter(
        subscriber=person, segment=OuterRef("segment"), kind=MembershipChange.Kind.LEFT
    )
    for member in stretch.of(members.exclude(Exists(noted)), "left_at", Source.LEFT):
        yield (
            Mark(member.left_at, Source.LEFT, member.pk),
            Entry(member.left_at, "segment", f"Left {member.segment.name}"),
        )


def _suppressions(whose: _Whose) -> Iterator[Fact]:
    mine = Q(account=whose.account) | Q(account__isnull=True)
    entries = Suppression.objects.filter(mine, known_as(whose.email))
    for entry in whose.stretch.of(entries, "created", Source.SUPPRESSED):
        title, text = _suppressed(entry, whose.sees)
        yield (
            Mark(entry.created, Source.SUPPRESSED, entry.pk),
            Entry(entry.created, "suppression", title, text),
        )
    over = entries.filter(expires__lte=whose.now)
    for entry in whose.stretch.of(over, "expires", Source.ENDED):
        yield (
            Mark(entry.expires, Source.ENDED, entry.pk),
            Entry(entry.expires, "suppression", "Suppression ended"),
        )


def _suppressed(entry: Suppression, sees: Sees) -> tuple[str, str]:
    everywhere = entry.account_id is None
    if entry.reason == Suppression.Reason.ERASED:
        title = "Erased" + (" in all accounts" if everywhere else "")
        return title, "A keyed hash is all that is kept of the address. No mail reaches it."
    may = not everywhere or sees.everywhere
    why = f"{entry.get_reason_display()}".capitalize() if may else ""
    evidence = entry.evidence.strip() if may else ""
    title = "Suppressed for all accounts" if everywhere else "Suppressed"
    return title, ": ".join(filter(None, (why, evidence)))


#: What staff did with a person, by the verb of the record.
ACTS = {
    "subscriber.confirm": "Staff confirmed the subscription",
    "subscriber.change": "Staff changed the subscriber",
    "subscriber.unsubscribe": "Staff unsubscribed them",
    "subscriber.delete": "Staff deleted the subscriber",
    "membership.add": "Staff put them into a segment",
    "suppression.add": "Staff suppressed the address",
    "suppression.release": "Staff released the address from suppression",
    "suppression.lift": "They lifted the suppression themselves, by confirming anew",
    "person.export": "Staff exported what is known of them",
}


def _acts(whose: _Whose) -> Iterator[Fact]:
    events: QuerySet[Any] = AuditEvent.objects.filter(
        subject_lower=lower(whose.email), account=whose.account
    )
    for event in whose.stretch.of(events, "at", Source.ACT):
        title = ACTS.get(event.verb) or f"Staff: {act_words(event.verb)}"
        by = f"By {event.by_name}." if event.by_name else ""
        reason = f" {event.reason}" if event.reason else ""
        yield (
            Mark(event.at, Source.ACT, event.pk),
            Entry(event.at, "staff", title, f"{by}{reason}".strip()),
        )
