"""One person's story in one account: what was sent to them or not, and what they and others did.

Facts of all tables that know an address, as entries with a time and a sentence each, latest first.
It comes in pages, of messages by their ids, and of what else happened by its time: each page goes
on where the last one ended, in both, so that nothing is told twice or left out. (A message that
left long after younger ones may stand on an earlier page than what happened in between.)
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, tzinfo

from django.db.models import Q

from subscribers.addresses import canonical, erased_hashes, lower
from subscribers.database_clock import database_time
from subscribers.models import Account, Subscriber
from subscribers.timezones import zone_named

from .answers import said
from .models import ArchivedCount, Send
from .person_facts import Entry, Happening, Mark, Sees, facts
from .story import Chapter, chapters_of
from .story_text import explain, says_why
from .wording import kind_words, quoted, reason_words, words

#: Messages of a page, and what else it tells at most.
PAGE = 30
MOST = 300
#: Events of one message that are told; its own page has all.
EVENTS = 12


@dataclass(frozen=True, slots=True)
class PersonStory:
    """``person`` None: nobody's subscriber (any more). ``next``: where the next page begins, as
    ``(before, until)``; None at the end. ``archived``: campaigns of the account of which rows were
    pruned."""

    account: Account
    email: str
    person: Subscriber | None
    entries: list[Entry] = field(default_factory=list)
    next: tuple[int, Mark | None] | None = None
    archived: int = 0

    @property
    def is_empty(self) -> bool:
        return self.person is None and not self.entries


def person_story(
    account: Account,
    address: str,
    *,
    sees: Sees,
    before: int | None = None,
    until: Mark | None = None,
) -> PersonStory:
    """A page of the story, latest first: messages with ids before ``before``, and what else
    happened before ``until`` and not before the oldest of them."""
    email = canonical(address)
    person = Subscriber.objects.filter(account=account, email_lower=lower(email)).first()
    rows = _sends(account, email, person, before)
    shown, more = rows[:PAGE], len(rows) > PAGE
    now, zone = database_time(), zone_named(account.timezone)
    sends = {row.pk: row for row in shown}
    told = [
        _message(chapter, sends[chapter.send], email, now, zone)
        for chapter in chapters_of(shown, {account.pk: account}, email)
    ]
    since = _since(told, until) if more else None
    others, cut = facts(account, email, person, sees, now, since=since, until=until, most=MOST)
    following = None
    if more or cut is not None:
        # Of an id below 0 there is no message: what is left is something else.
        following = (shown[-1].pk if more else 0, cut or since)
    last = datetime.max.replace(tzinfo=now.tzinfo)
    return PersonStory(
        account=account,
        email=person.email if person is not None else email,
        person=person,
        entries=sorted([*told, *others], key=lambda entry: entry.at or last, reverse=True),
        next=following,
        archived=ArchivedCount.objects.filter(campaign__account=account)
        .values("campaign")
        .distinct()[:1000]
        .count(),
    )


def _since(messages: list[Entry], until: Mark | None) -> Mark:
    """Up to where a page tells what else happened: its oldest message, if that is before the end
    of the last page. Where they all wait it is told on the pages after it."""
    ends = [until] if until is not None else []
    times = [entry.at for entry in messages if entry.at is not None]
    ends += [Mark(min(times))] if times else []
    return min(ends, default=Mark(datetime.max.replace(tzinfo=UTC)))


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
        answer = said(event.code, event.enhanced, event.text)
        told = event.reason == event.kind or says_why(event.reason, answer)
        why = "" if told else event.reason
        parts = [
            reason_words(why, known=event.known),
            f"attempt {event.attempt}" if event.attempt else "",
            quoted(event.stage, event.code, event.enhanced, event.text),
            f"by {event.by}" if event.by else "",
        ]
        yield Happening(
            event.at, kind_words(event.kind, event.stage), ", ".join(filter(None, parts))
        )
