"""Why somebody did not get a campaign, in a sentence; also where nothing was ever made for them.

``look`` reads what there is to know, ``sentence`` is pure. A campaign's audience is counted when
it starts: who was not in it then has no row, and what was different then is told from what is
known of the person today.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, tzinfo

from django.db.models import Q

from campaigns.models import Campaign
from subscribers.addresses import erased_hashes, lower
from subscribers.database_clock import database_time
from subscribers.models import Membership, Subscriber, Suppression
from subscribers.suppressing.standing import known_as

from .models import ArchivedCount, Send
from .story import Chapter, chapters_of
from .story_text import explain
from .wording import words

Status = Campaign.Status


@dataclass(frozen=True, slots=True)
class Place:
    """A place in one of the campaign's segments, or of those that it excludes."""

    segment: str
    joined: datetime
    left: datetime | None = None

    def held_at(self, moment: datetime) -> bool:
        return self.joined <= moment and (self.left is None or self.left > moment)


@dataclass(frozen=True, slots=True)
class Block:
    """A suppression. ``reason`` in words, "" where it is not this user's to know."""

    reason: str
    since: datetime
    until: datetime | None = None


@dataclass(frozen=True, slots=True)
class Facts:
    """What is known. ``counted``: when the audience was complete, None while it is not.
    ``person``: the status, "" where nobody has the address (any more)."""

    campaign: str
    status: str
    now: datetime
    starts: datetime | None = None
    counted: datetime | None = None
    started: datetime | None = None
    archived: bool = False
    chapter: Chapter | None = None
    chapter_at: datetime | None = None
    other_address: bool = False
    person: str = ""
    added: datetime | None = None
    confirmed: datetime | None = None
    unsubscribed: datetime | None = None
    erased: datetime | None = None
    blocks: Sequence[Block] = field(default_factory=list)
    segments: Sequence[str] = field(default_factory=list)
    places: Sequence[Place] = field(default_factory=list)
    excluded: Sequence[Place] = field(default_factory=list)


def sentence(facts: Facts, zone: tzinfo) -> str:
    """Why they did not get it, or that they did. One sentence, or two."""
    if facts.chapter is not None:
        return _of_row(facts, facts.chapter, zone)
    if facts.status == Status.DRAFT:
        return "Not yet: the campaign is a draft."
    if facts.status == Status.APPROVED:
        at = f" on {_at(facts.starts, zone)}" if facts.starts else ""
        return f"Not yet: the campaign starts{at}, and who gets it is counted then."
    if facts.started is None:
        return "They did not get it: the campaign was canceled before it started."
    why = _why_no_row(facts, zone)
    if facts.counted is None and facts.status in (Status.SENDING, Status.PAUSED):
        told = f" As of now they would not: {why}." if why else ""
        return f"Not yet: who gets the campaign is still being counted.{told}"
    if facts.archived:
        told = f" What speaks against it: {why}." if why else ""
        return (
            f"Nobody knows any more: the campaign is so old that who got it was made counts.{told}"
        )
    if facts.counted is None:
        # Nobody was counted after that, whatever speaks against them today.
        return (
            "They did not get it: the campaign was canceled before its audience was counted whole."
        )
    if why:
        return f"They did not get it: {why}."
    return (
        "They did not get it: they were not in the audience when it was counted. Nothing that is "
        "known today says why, so something about them was changed since."
    )


_LEADS = {
    Send.Status.SENT: "It was sent to them.",
    Send.Status.IN_DOUBT: "Nobody knows whether they got it.",
    Send.Status.QUEUED: "Not yet.",
    Send.Status.CLAIMED: "Not yet.",
    Send.Status.SENDING: "Not yet.",
    Send.Status.RETRY: "Not yet.",
}


def _of_row(facts: Facts, chapter: Chapter, zone: tzinfo) -> str:
    where = " (Under the address that they had then.)" if facts.other_address else ""
    lead = _LEADS.get(Send.Status(chapter.status), "They did not get it.")
    if chapter.status == Send.Status.SENT and chapter.reason == "treated_as_sent":
        lead = "Perhaps."
    told = explain(chapter, facts.now, zone)
    if chapter.status == Send.Status.SUPPRESSED:
        told = f"Not handed over: {_withheld(facts, chapter, zone)}."
    return f"{lead} {told}{'' if told.endswith('.') else '.'}{where}"


def _withheld(facts: Facts, chapter: Chapter, zone: tzinfo) -> str:
    """Why a row was closed before its hand-over, with what and since when."""
    moment = facts.chapter_at or facts.now
    match chapter.reason:
        case "suppressed":
            block = next((b for b in facts.blocks if b.since <= moment), None)
            if block is None:
                return "the address was suppressed then; it is not any more"
            why = f" ({block.reason})" if block.reason else ""
            over = f", until {_at(block.until, zone)}" if block.until else ""
            return f"the address is suppressed since {_at(block.since, zone)}{over}{why}"
        case "unsubscribed":
            when = f" on {_at(facts.unsubscribed, zone)}" if facts.unsubscribed else ""
            return f"the person unsubscribed{when}, before it was their turn"
        case "left":
            left = [place.left for place in facts.places if place.left and place.left <= moment]
            when = f" on {_at(max(left), zone)}" if left else ""
            return f"the person left the campaign's segments{when}, before it was their turn"
        case "paused":
            return "the person had paused their mail for a while"
        case "moved":
            return "the person had changed their address, and the new one was reached by itself"
        case "erased":
            when = f" on {_at(facts.erased, zone)}" if facts.erased else ""
            return f"the person was erased{when}"
    return words(chapter.reason) or "it was withdrawn"


def _why_no_row(facts: Facts, zone: tzinfo) -> str:
    """Why nobody counted them, as far as it is known today; "" where nothing speaks against it."""
    counted = facts.counted or facts.now
    if not facts.person:
        if facts.erased is not None:
            return f"the person was erased on {_at(facts.erased, zone)}"
        return "nobody in this account has the address, or they were deleted since"
    if facts.added is not None and facts.added > counted:
        return (
            f"they were added on {_at(facts.added, zone)}, after the audience was counted on "
            f"{_at(counted, zone)}"
        )
    if facts.person == Subscriber.Status.PENDING:
        return "they have not confirmed their subscription"
    if facts.person == Subscriber.Status.UNSUBSCRIBED and (
        facts.unsubscribed is None or facts.unsubscribed <= counted
    ):
        when = f" on {_at(facts.unsubscribed, zone)}" if facts.unsubscribed else ""
        return f"they unsubscribed{when}"
    if facts.confirmed is not None and facts.confirmed > counted:
        return (
            f"they confirmed their subscription on {_at(facts.confirmed, zone)}, after the "
            f"audience was counted on {_at(counted, zone)}"
        )
    barred = next((place for place in facts.excluded if place.held_at(counted)), None)
    if barred is not None:
        return f"they are in {barred.segment}, which the campaign leaves out"
    if any(place.held_at(counted) for place in facts.places):
        return ""
    return _why_in_no_segment(facts, counted, zone)


def _why_in_no_segment(facts: Facts, counted: datetime, zone: tzinfo) -> str:
    later = [place for place in facts.places if place.joined > counted]
    if later:
        first = min(later, key=lambda place: place.joined)
        return (
            f"they joined {first.segment} on {_at(first.joined, zone)}, after the audience was "
            f"counted on {_at(counted, zone)}"
        )
    if facts.places:
        last = max(facts.places, key=lambda place: place.left or place.joined)
        when = f" on {_at(last.left, zone)}" if last.left else ""
        return f"they left {last.segment}{when}, before the audience was counted"
    named = ", ".join(facts.segments[:3]) + (" and others" if len(facts.segments) > 3 else "")
    return (
        f"they are in none of the campaign's segments ({named})"
        if named
        else ("the campaign has no segment (any more)")
    )


def _at(moment: datetime, zone: tzinfo) -> str:
    local = moment.astimezone(zone)
    return f"{local.day} {local:%b %Y, %H:%M}"


# --- what there is to know --------------------------------------------------------------------


def look(campaign: Campaign, email: str, person: Subscriber | None, *, sees_all: bool) -> Facts:
    """What is known of an address and a campaign of one account, which is read with the campaign.
    ``sees_all``: why an address is suppressed for all accounts is told."""
    account = campaign.account
    row, other = _row(campaign, email, person)
    chapter = chapters_of([row], {account.pk: account}, email)[0] if row is not None else None
    places = _places(campaign, person)
    entries = list(
        Suppression.objects.filter(
            Q(account=account) | Q(account__isnull=True), known_as(email)
        ).order_by("created")
    )
    erased = [entry for entry in entries if entry.reason == Suppression.Reason.ERASED]
    now = database_time()
    return Facts(
        campaign=campaign.name,
        status=campaign.status,
        now=now,
        starts=campaign.scheduled_for,
        started=campaign.started_at,
        counted=campaign.built_at,
        archived=row is None and ArchivedCount.objects.filter(campaign=campaign).exists(),
        chapter=chapter,
        chapter_at=_moment(row, chapter) if row is not None and chapter is not None else None,
        other_address=other,
        person=person.status if person is not None else "",
        added=person.created if person is not None else None,
        confirmed=person.confirmed_at if person is not None else None,
        unsubscribed=person.unsubscribed_at if person is not None else None,
        erased=erased[0].created if erased else None,
        blocks=[
            Block(
                entry.get_reason_display() if entry.account_id or sees_all else "",
                entry.created,
                entry.expires,
            )
            for entry in entries
        ],
        segments=list(campaign.segments.order_by("name").values_list("name", flat=True)[:4]),
        places=places[0],
        excluded=places[1],
    )


def _row(campaign: Campaign, email: str, person: Subscriber | None) -> tuple[Send | None, bool]:
    """The row of the address, of the person or of the erased one; whether it is under another
    address than ``email``."""
    rows = Send.objects.filter(campaign=campaign).select_related("campaign").defer(
        "context", "frozen", "campaign__body", "campaign__text_body"
    )  # fmt: skip
    found = rows.filter(email_lower=lower(email)).first()
    if found is not None:
        return found, False
    if person is not None:
        found = rows.filter(subscriber=person).first()
        if found is not None:
            return found, found.email is not None
    return rows.filter(email_hash__in=erased_hashes(email)).first(), False


def _places(campaign: Campaign, person: Subscriber | None) -> tuple[list[Place], list[Place]]:
    if person is None:
        return [], []
    ids = dict.fromkeys(campaign.segments.values_list("pk", flat=True), 0)
    ids |= dict.fromkeys(campaign.exclude_segments.values_list("pk", flat=True), 1)
    found: tuple[list[Place], list[Place]] = ([], [])
    members = Membership.objects.filter(subscriber=person, segment__in=list(ids))
    for member in members.select_related("segment").order_by("segment__name"):
        place = Place(member.segment.name, member.joined_at, member.left_at)
        found[ids[member.segment_id]].append(place)
    return found


def _moment(row: Send, chapter: Chapter) -> datetime | None:
    """When the row came to its end, or was last handed over."""
    return next(
        (event.at for event in chapter.events if event.kind == row.status),
        row.sent_at or row.handed_at,
    )
