"""The story of one address: everything that was sent to it or not, and why, in order."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from django.db.models import Count, Q
from django.utils import timezone

from subscribers.addresses import canonical, erased_hashes, lower
from subscribers.models import Account, Membership, Subscriber, Suppression

from . import waits
from .answers import said
from .models import ArchivedCount, DeliveryEvent, Send
from .status_limits import pace_words

#: The latest sends that are told, unless all are asked for.
MOST = 200


@dataclass(frozen=True, slots=True)
class Person:
    """What an account knows of the address. ``segments``: those left are marked so.
    ``paused_until``: gets no campaign until then, by their own wish."""

    account: str
    status: str
    since: datetime
    consent_source: str
    segments: list[str]
    paused_until: datetime | None = None


@dataclass(frozen=True, slots=True)
class Block:
    """Why the address must not get mail; ``account`` None: from nobody here."""

    account: str | None
    reason: str
    created: datetime
    expires: datetime | None
    evidence: str
    holds: bool


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened to one of the sends, as far as it was no success; what a provider
    told later is among it. ``known`` False: no rule fitted the answer, a cautious guess decided.
    """

    at: datetime
    kind: str
    reason: str
    known: bool
    stage: str
    code: int | None
    enhanced: str
    text: str
    attempt: int | None
    by: str


@dataclass(frozen=True, slots=True)
class Chapter:
    """One message to the address; ``campaign`` None: a transactional one, named by its job.
    ``answer_code`` is that of ``answer``.

    ``waits``: what keeps it from leaving, which completes "It waits, because ..."; "" when
    nothing is known that does. ``limit``: the slowest limit that it goes by, and how slow it is.
    ``settle_at``: when a doubt is settled by itself; by ``replays`` under the same key until
    ``replay_until``, else by the account's policy.
    """

    send: int
    account: str
    campaign: int | None
    name: str
    campaign_status: str
    status: str
    reason: str
    attempts: int
    handed_at: datetime | None
    sent_at: datetime | None
    next_attempt_at: datetime | None
    settle_at: datetime | None
    replay_until: datetime | None
    replays: int
    answer_code: int | None
    answer: str
    waits: str
    limit: str
    events: list[Event]


@dataclass(frozen=True, slots=True)
class Story:
    """Oldest first. ``address`` is how it is stored; ``older`` is the number of messages before
    the first chapter that are not told; ``archived`` the number of campaigns, of the accounts that
    know the address, of which rows were pruned: whether it was among them nobody knows any more."""

    address: str
    people: list[Person]
    blocks: list[Block]
    chapters: list[Chapter]
    older: int = 0
    archived: int = 0

    @property
    def is_empty(self) -> bool:
        return not (self.people or self.blocks or self.chapters)

    @property
    def is_erased(self) -> bool:
        """Whether somebody with this address was erased, and nobody has it now."""
        reasons = {block.reason for block in self.blocks}
        return not self.people and Suppression.Reason.ERASED in reasons


def story(address: str, *, most: int | None = MOST) -> Story:
    """Everything known of ``address`` in all accounts, also after it was erased; of its
    messages the latest ``most`` (None: all)."""
    email = canonical(address)
    folded, hashes = lower(email), erased_hashes(email)
    every = {account.pk: account for account in Account.objects.all()}
    accounts = {pk: account.slug for pk, account in every.items()}
    # By account and address: the index of a person's story. An erased one has only the hash.
    sends = Send.objects.filter(
        Q(account__in=list(accounts), email_lower=folded) | Q(pk__in=_erased_sends(hashes))
    )
    chapters = chapters_of(
        sends.select_related("campaign")
        .defer("campaign__body", "campaign__text_body")
        .order_by("-pk")[:most],
        every,
        email,
    )
    people, blocks = _people(folded, accounts), _blocks(folded, hashes, accounts)
    known_by = {person.account for person in people} | {block.account for block in blocks}
    known_by |= {chapter.account for chapter in chapters}
    return Story(
        address=email,
        people=people,
        blocks=blocks,
        chapters=chapters,
        older=sends.count() - len(chapters) if len(chapters) == most else 0,
        archived=ArchivedCount.objects.filter(
            campaign__account__in=[pk for pk, slug in accounts.items() if slug in known_by]
        ).aggregate(n=Count("campaign", distinct=True))["n"],
    )


def _erased_sends(hashes: list[str]) -> list[int]:
    """Rows of an erased person, who may have come back since."""
    return list(Send.objects.filter(email_hash__in=hashes).values_list("pk", flat=True))


def _people(folded: str, accounts: dict[int, str]) -> list[Person]:
    found = Subscriber.objects.filter(account__in=list(accounts), email_lower=folded)
    return [
        Person(
            account=accounts[person.account_id],
            status=person.status,
            since=_since(person),
            consent_source=person.consent_source,
            segments=_segments(person),
            paused_until=_paused_until(person),
        )
        for person in found.order_by("pk")
    ]


def _since(person: Subscriber) -> datetime:
    if person.status == Subscriber.Status.UNSUBSCRIBED and person.unsubscribed_at:
        return person.unsubscribed_at
    return person.confirmed_at or person.created


def _paused_until(person: Subscriber) -> datetime | None:
    until = person.paused_until
    return until if until is not None and until > timezone.now() else None


def _segments(person: Subscriber) -> list[str]:
    members = Membership.objects.filter(subscriber=person).select_related("segment")
    return [
        f"{m.segment.slug} (left {m.left_at:%Y-%m-%d})" if m.left_at else m.segment.slug
        for m in members.order_by("segment__slug")
    ]


def _blocks(folded: str, hashes: list[str], accounts: dict[int, str]) -> list[Block]:
    now = timezone.now()
    found = Suppression.objects.filter(Q(email_lower=folded) | Q(email_hash__in=hashes))
    return [
        Block(
            account=accounts.get(block.account_id) if block.account_id else None,
            reason=block.reason,
            created=block.created,
            expires=block.expires,
            evidence=block.evidence,
            holds=block.expires is None or block.expires > now,
        )
        for block in found.order_by("created")
    ]


#: What is yet to leave, or to be repeated.
_OPEN = (Send.Status.QUEUED, Send.Status.RETRY, Send.Status.IN_DOUBT)


def chapters_of(sends: Iterable[Send], accounts: dict[int, Account], email: str) -> list[Chapter]:
    """The messages as they are told, by id; ``accounts`` are theirs, by id, and the campaigns are
    read."""
    rows = sorted(sends, key=lambda send: send.pk)
    waiting = [row for row in rows if row.status in _OPEN]
    users = {(row.account_id, waits.by(row, accounts[row.account_id])) for row in waiting}
    seen = waits.around(users, email)
    events: dict[int, list[Event]] = {row.pk: [] for row in rows}
    for event in DeliveryEvent.objects.filter(send__in=list(events)).order_by("at", "pk"):
        assert event.send_id is not None
        events[event.send_id].append(
            Event(
                at=event.at,
                kind=event.kind,
                reason=event.reason,
                known=event.known,
                stage=event.stage,
                code=event.code,
                enhanced=event.enhanced,
                text=event.text,
                attempt=event.attempt,
                by=event.by_name,
            )
        )
    return [
        Chapter(
            send=row.pk,
            account=accounts[row.account_id].slug,
            campaign=row.campaign_id,
            name=row.campaign.name if row.campaign else row.job_id,
            campaign_status=row.campaign.status if row.campaign else "",
            status=row.status,
            reason=row.reason,
            attempts=row.attempts,
            handed_at=row.handed_at,
            sent_at=row.sent_at,
            next_attempt_at=row.next_attempt_at if row.status == Send.Status.RETRY else None,
            settle_at=row.settle_at,
            replay_until=row.replay_until,
            replays=row.replays,
            answer_code=row.answer_code,
            answer=said(row.answer_code, row.answer_enhanced, row.answer_text),
            waits=waits.of_message(row, accounts[row.account_id], seen),
            limit=_limit(row, accounts[row.account_id], seen),
            events=events[row.pk],
        )
        for row in rows
    ]


def _limit(row: Send, account: Account, seen: waits.Around) -> str:
    pace = seen.paces.get((account.pk, waits.by(row, account))) if row.status in _OPEN else None
    return pace_words(pace) if pace is not None else ""
