"""The facts of ``sending.story`` as lines of plain text."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, tzinfo

from .answers import said
from .plain_table import due, short
from .story import Block, Chapter, Event, Story
from .withheld import WITHHELD
from .wording import WEBHOOK, doubt_words, kind_words, reason_words, words


def story_lines(story: Story, now: datetime) -> list[str]:
    """The story of an address, in order; says so when nothing is known."""
    if story.is_empty:
        return [f"Nothing is known of {story.address}: never imported, never sent to."]
    lines = [story.address]
    for person in story.people:
        since = f"{person.since:%Y-%m-%d %H:%M} UTC"
        segments = ", ".join(person.segments) or "no segment"
        source = f", consent: {person.consent_source}" if person.consent_source else ""
        lines.append(f"  in {person.account}: {person.status} since {since}, {segments}{source}")
        if person.paused_until is not None:
            lines.append(f"    {_pause(person.paused_until)}")
    if story.is_erased:
        lines.append("  erased person: a keyed hash is all that is kept of the address")
    elif not story.people:
        lines.append("  is nobody's subscriber (any more)")
    for block in story.blocks:
        state = "suppressed" if block.holds else "was suppressed"
        until = f" until {block.expires:%Y-%m-%d}" if block.expires else ""
        why = f": {block.evidence}" if block.evidence else ""
        lines.append(
            f"  {state} {_where(block)} since {block.created:%Y-%m-%d %H:%M} UTC{until} "
            f"({words(block.reason)}){why}"
        )
    if not story.chapters:
        told = "is known" if story.archived else "was ever made for it"
        lines += ["", f"  No message {told}.", *_why_nothing(story)]
    if story.older:
        lines += ["", f"  and {story.older:,} older, not told here; --json has all of them"]
    if story.archived:
        were = "campaign was" if story.archived == 1 else "campaigns were"
        lines += ["", f"  {story.archived:,} older {were} archived: who got them is not kept"]
    for chapter in story.chapters:
        lines += ["", *_chapter(chapter, now)]
    return lines


#: What keeps a person from every campaign, by status.
NO_CAMPAIGN = {
    "pending": "pending: gets no campaign until confirmed",
    "unsubscribed": "unsubscribed: gets no campaign until confirmed anew",
}


def _why_nothing(story: Story) -> Iterator[str]:
    for block in story.blocks:
        if block.holds:
            yield f"    {_where(block)}: suppressed ({words(block.reason)}): gets no campaign"
    for person in story.people:
        if person.paused_until is not None:
            yield f"    in {person.account}: {_pause(person.paused_until)}"
        if person.status in NO_CAMPAIGN:
            yield f"    in {person.account}: {NO_CAMPAIGN[person.status]}"


def _pause(until: datetime) -> str:
    return f"paused by their own wish: gets no campaign until {until:%Y-%m-%d %H:%M} UTC"


def _where(block: Block) -> str:
    return f"in {block.account}" if block.account else "everywhere"


def _chapter(chapter: Chapter, now: datetime) -> list[str]:
    what = (
        f"campaign {chapter.campaign} ({short(chapter.name, 50)}, {chapter.campaign_status})"
        if chapter.campaign is not None
        else chapter.name
    )
    lines = [f"  {what}: {words(chapter.status).upper()}. {explain(chapter, now)}"]
    return lines + [f"    {_event(event)}" for event in chapter.events]


def explain(chapter: Chapter, now: datetime, zone: tzinfo | None = None) -> str:
    """Why the message is in the status it is in, in a sentence. Times are of ``zone``, which goes
    unsaid, or UTC, which is said."""
    why = words(chapter.reason)
    said = f": {chapter.answer}" if chapter.answer else ""
    if chapter.status in _WHY_AND_SAID and says_why(chapter.reason, chapter.answer):
        why, said = chapter.answer, ""
    match chapter.status:
        case "sent" if chapter.reason == "treated_as_sent":
            return "Nobody knows whether it arrived; somebody decided to treat it as sent."
        case "sent":
            at = f" at {_at(chapter.sent_at, zone)}" if chapter.sent_at else ""
            return f"The relay accepted it{at}{said}"
        case "queued":
            return _queued(chapter)
        case "claimed":
            return "A sender has taken it; it has not been handed over yet."
        case "sending":
            return "It was handed over this moment; the answer is awaited."
        case "retry":
            return f"{_retry(chapter, now)}{said}.{_but_waits(chapter)}"
        case "bounced":
            return f"The address is dead ({why or 'refused'}){said}"
        case "failed":
            return f"Refused ({why or 'no reason kept'}), {_times(chapter.attempts)}{said}"
        case "suppressed":
            return f"Not handed over: {WITHHELD.get(chapter.reason, why or 'suppressed')}."
        case "in_doubt":
            came = f"{_unanswered(chapter)} ({why or 'unknown'}); it may have arrived"
            return f"{came}{said}. {_doubt(chapter, now, zone)}"
        case "canceled":
            return "The campaign was canceled before it was handed over."
    return why


#: Where ``explain`` tells the reason as well as the answer.
_WHY_AND_SAID = ("bounced", "failed", "in_doubt")


def says_why(reason: str, said: str) -> bool:
    """Whether what was said has the reason in it, in our own words: ``connection_lost`` and
    "connection lost: ...". Pure."""
    ours = "timed out" if reason == "timeout" else words(reason)
    return bool(reason) and said.startswith(ours)


def _retry(chapter: Chapter, now: datetime) -> str:
    again = chapter.next_attempt_at
    when = f" {due(again, now)}" if again else ""
    if chapter.replays:
        return f"{_unanswered(chapter)}; its repetition under its key{when or ' is due'}"
    if chapter.reason == "rate_limited":
        limit = f": {chapter.limit}" if chapter.limit else ""
        return f"It waits for its turn, because of a rate limit{limit}; the turn{when or ' is due'}"
    tried = f", tried again{when}" if again else ""
    return f"Refused for now, {_times(chapter.attempts)}{tried}"


def _at(moment: datetime, zone: tzinfo | None) -> str:
    if zone is None:
        return f"{moment:%Y-%m-%d %H:%M:%S} UTC"
    local = moment.astimezone(zone)
    return f"{local.day} {local:%b %Y, %H:%M:%S}"


def _doubt(chapter: Chapter, now: datetime, zone: tzinfo | None) -> str:
    """What settles a doubt."""
    settled, until = chapter.settle_at, chapter.replay_until
    if settled is None:
        return "It is held for evidence or a person."
    if until is not None and until > now:
        return (
            f"It is repeated under its key, which can't deliver it twice, until "
            f"{_at(until, zone)} at the latest.{_but_waits(chapter)}"
        )
    return f"The account's policy settles it: that {due(settled, now)}."


def _queued(chapter: Chapter) -> str:
    if chapter.waits:
        return f"It waits, because {chapter.waits}."
    limit = f": {chapter.limit}" if chapter.limit else ""
    return f"It waits for its turn; senders are at work{limit}."


def _but_waits(chapter: Chapter) -> str:
    return f" It waits, because {chapter.waits}." if chapter.waits else ""


def _unanswered(chapter: Chapter) -> str:
    return f"Handed over and {doubt_words(chapter.reason, chapter.answer_code)}"


def _times(attempts: int) -> str:
    return "once" if attempts == 1 else f"{attempts} times"


def _event(event: Event) -> str:
    parts = [f"{event.at:%Y-%m-%d %H:%M:%S}", kind_words(event.kind, event.stage)]
    answer = said(event.code, event.enhanced, event.text)
    told = event.reason == event.kind or says_why(event.reason, answer)
    why = reason_words("" if told else event.reason, known=event.known)
    if why:
        parts.append(f"({why})")
    if event.attempt:
        parts.append(f"attempt {event.attempt}")
    if event.stage == WEBHOOK and answer:
        parts[-1] += ","
        parts.append("the provider says:")
    elif event.stage and event.stage != WEBHOOK:
        parts.append(f"at {event.stage}:")
    if answer:
        parts.append(answer)
    if event.by:
        parts.append(f"by {event.by}")
    return " ".join(parts)
