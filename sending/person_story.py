"""One person's story in one account: what was sent to them or not, and what they and others did.

Facts of all tables that know an address, as entries with a time and a sentence each, latest first.
Messages come in pages; what else there is of a page's time stands between them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime, tzinfo
from typing import Any
from zoneinfo import ZoneInfo

from django.db.models import Q, QuerySet

from subscribers.addresses import canonical, erased_hashes, lower
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

from .answers import said
from .models import ArchivedCount, Send
from .status import database_time
from .story import Chapter, chapters_of
from .story_text import explain
from .wording import kind_words, reason_words, words

#: Messages of a page, and the latest entries of every other kind that are read.
PAGE = 30
MOST = 300
#: Events of one message that are told; its own page has all.
EVENTS = 12


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
class PersonStory:
    """``person`` None: nobody's subscriber (any more). ``before`` and ``until`` lead to the next
    page, None at the end. ``archived``: campaigns of the account of which rows were pruned."""

    account: Account
    email: str
    person: Subscriber | None
    entries: list[Entry] = field(default_factory=list)
    before: int | None = None
    until: datetime | None = None
    archived: int = 0

    @property
    def is_empty(self) -> bool:
        return self.person is None and not self.entries


@dataclass(frozen=True, slots=True)
class Sees:
    """What of the story is this user's to know: why an address is suppressed for all accounts,
    and what staff did."""

    everywhere: bool = False
    staff: bool = False


def person_story(
    account: Account,
    address: str,
    *,
    sees: Sees,
    before: int | None = None,
    until: datetime | None = None,
) -> PersonStory:
    """A page of the story, latest first: messages with ids before ``before``, and what else
    happened before ``until`` and not before the oldest of them."""
    email = canonical(address)
    person = Subscriber.objects.filter(account=account, email_lower=lower(email)).first()
    rows = _sends(account, email, person, before)
    shown, more = rows[:PAGE], len(rows) > PAGE
    now, zone = database_time(), ZoneInfo(account.timezone)
    sends = {row.pk: row for row in shown}
    told = [
        _message(chapter, sends[chapter.send], email, now, zone)
        for chapter in chapters_of(shown, {account.pk: account}, email)
    ]
    oldest = min((entry.at for entry in told if entry.at is not None), default=None)
    since = oldest if more else None
    others = [
        entry
        for entry in _others(account, email, person, sees, now)
        if entry.at is not None
        and (since is None or entry.at >= since)
        and (until is None or entry.at < until)
    ]
    last = datetime.max.replace(tzinfo=now.tzinfo)
    return PersonStory(
        account=account,
        email=person.email if person is not None else email,
        person=person,
        entries=sorted([*told, *others], key=lambda entry: entry.at or last, reverse=True),
        before=shown[-1].pk if more else None,
        until=oldest if more else None,
        archived=ArchivedCount.objects.filter(campaign__account=account)
        .values("campaign")
        .distinct()[:1000]
        .count(),
    )


# --- messages ---------------------------------------------------------------------------------


def _sends(
    account: Account, email: str, person: Subscriber | None, before: int | None
) -> list[Send]:
    """The latest messages, one more than a page has. Three look-ups: of an OR of them none would
    find its index."""
    ways = [Q(email_lower=lower(email)), Q(email_hash__in=erased_hashes(email))]
    if person is not None:
        ways.append(Q(subscriber=person))
    ids: set[int] = set()
    for way in ways:
        found = Send.objects.filter(way, account=account)
        if before is not None:
            found = found.filter(pk__lt=before)
        ids |= set(found.order_by("-pk").values_list("pk", flat=True)[: PAGE + 1])
    rows = Send.objects.filter(pk__in=sorted(ids, reverse=True)[: PAGE + 1])
    return list(
        rows.select_related("campaign")
        .defer("context", "frozen", "campaign__body", "campaign__text_body")
        .order_by("-pk")
    )


def _message(chapter: Chapter, row: Send, email: str, now: datetime, zone: tzinfo) -> Entry:
    events = tuple(_happenings(chapter))
    begun = row.campaign.started_at if row.campaign is not None else None
    first = chapter.events[0].at if chapter.events else None
    what = f"Campaign {chapter.name}" if chapter.campaign is not None else "Single message"
    if chapter.campaign is None:
        what = f"Single message ({row.job_id.split(':')[2]})" if _is_job(row.job_id) else what
    other = row.email is not None and row.email_lower != lower(email)
    text = explain(chapter, now, zone)
    return Entry(
        at=row.sent_at or row.handed_at or first or begun,
        kind="message",
        title=what,
        text=f"{text}{'' if text.endswith('.') else '.'}"
        + (f" To their address of then, {row.email}." if other else ""),
        status=words(chapter.status),
        send=row.pk,
        campaign=chapter.campaign,
        events=events[-EVENTS:],
        more_events=len(events) > EVENTS,
    )


def _is_job(job_id: str) -> bool:
    return job_id.startswith("message:") and job_id.count(":") >= 3


def _happenings(chapter: Chapter) -> Iterator[Happening]:
    for event in chapter.events:
        why = "" if event.reason == event.kind else event.reason
        answer = said(event.code, event.enhanced, event.text)
        parts = [
            reason_words(why, known=event.known),
            f"attempt {event.attempt}" if event.attempt else "",
            answer,
            f"by {event.by}" if event.by else "",
        ]
        yield Happening(
            event.at, kind_words(event.kind, event.stage), ", ".join(filter(None, parts))
        )


# --- everything else --------------------------------------------------------------------------


def _others(
    account: Account, email: str, person: Subscriber | None, sees: Sees, now: datetime
) -> Iterator[Entry]:
    yield from _consent(person)
    yield from _signups(account, email, person)
    if person is not None:
        yield from _places(person)
    yield from _suppressions(account, email, sees, now)
    if sees.staff:
        yield from _acts(account, email)


def _consent(person: Subscriber | None) -> Iterator[Entry]:
    if person is None:
        return
    source = f"Consent: {person.consent_source}." if person.consent_source else ""
    yield Entry(person.created, "consent", "Added as a subscriber")
    if person.confirmed_at is not None:
        yield Entry(person.confirmed_at, "consent", "Confirmed", source)
    if person.unsubscribed_at is not None:
        yield Entry(
            person.unsubscribed_at, "consent", "Unsubscribed", "No campaign reaches them since."
        )


def _signups(account: Account, email: str, person: Subscriber | None) -> Iterator[Entry]:
    ways: list[Q] = [Q(email_lower=lower(email)), Q(former_lower=lower(email))]
    if person is not None:
        ways.append(Q(subscriber=person))
    found: dict[int, Signup] = {}
    for way in ways:
        rows = Signup.objects.filter(way, account=account).select_related("form")
        found |= {row.pk: row for row in rows.order_by("-pk")[:MOST]}
    for row in found.values():
        changes = row.kind == Signup.Kind.ADDRESS
        form = f"By the form {row.form}." if row.form else ""
        yield Entry(
            row.requested_at,
            "consent",
            "Asked to change their address" if changes else "Signed up",
            form,
        )
        if row.confirmed_at is None:
            continue
        if changes and row.former_email:
            text = f"From {row.former_email} to {row.email or 'another one'}."
            yield Entry(row.confirmed_at, "consent", "Changed their address", text)
        else:
            yield Entry(row.confirmed_at, "consent", "Confirmed their sign-up", form)


def _places(person: Subscriber) -> Iterator[Entry]:
    changes = MembershipChange.objects.filter(subscriber=person).select_related("segment")
    told = set()
    for change in changes.order_by("-pk")[:MOST]:
        left = change.kind == MembershipChange.Kind.LEFT
        told.add((change.segment_id, left))
        what = "Left" if left else "Joined again:"
        source = f"{change.source[:1].upper()}{change.source[1:]}." if change.source else ""
        yield Entry(change.at, "segment", f"{what} {change.segment.name}", source)
    members = Membership.objects.filter(subscriber=person).select_related("segment")
    for member in members.order_by("-pk")[:MOST]:
        yield Entry(member.joined_at, "segment", f"Joined {member.segment.name}")
        if member.left_at is not None and (member.segment_id, True) not in told:
            yield Entry(member.left_at, "segment", f"Left {member.segment.name}")


def _suppressions(account: Account, email: str, sees: Sees, now: datetime) -> Iterator[Entry]:
    mine = Q(account=account) | Q(account__isnull=True)
    entries: Iterable[Suppression] = Suppression.objects.filter(mine, known_as(email))
    for entry in entries:
        everywhere = entry.account_id is None
        may = not everywhere or sees.everywhere
        title = "Suppressed for all accounts" if everywhere else "Suppressed"
        if entry.reason == Suppression.Reason.ERASED:
            title = "Erased" + (" in all accounts" if everywhere else "")
            text = "A keyed hash is all that is kept of the address. No mail reaches it."
        else:
            why = f"{entry.get_reason_display()}".capitalize() if may else ""
            evidence = entry.evidence.strip() if may else ""
            text = ": ".join(filter(None, (why, evidence)))
        yield Entry(entry.created, "suppression", title, text)
        if entry.expires is not None and entry.expires <= now:
            yield Entry(entry.expires, "suppression", "Suppression ended")


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


def _acts(account: Account, email: str) -> Iterator[Entry]:
    events: QuerySet[Any] = AuditEvent.objects.filter(subject_lower=lower(email), account=account)
    for event in events.order_by("-pk")[:MOST]:
        title = ACTS.get(event.verb) or f"Staff: {act_words(event.verb)}"
        by = f"By {event.by_name}." if event.by_name else ""
        reason = f" {event.reason}" if event.reason else ""
        yield Entry(event.at, "staff", title, f"{by}{reason}".strip())
