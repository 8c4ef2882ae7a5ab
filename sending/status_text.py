"""The facts of ``sending.status`` and ``sending.story`` as lines of plain text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime

from .answers import said
from .handover import WITHHELD
from .plain_table import ago, duration, short, table
from .status import EVENTS, RECENT, CampaignFact, PauseFact, Status
from .story import Block, Chapter, Event, Story

#: The most rows of one kind; a status that scrolls is none.
MOST = 50


def status_lines(status: Status) -> list[str]:
    """The whole status, worst news first within each section."""
    sections = [
        _workers(status),
        _campaigns(status),
        _transactional(status),
        _pauses(status),
        _doubts(status),
        _retries(status),
        _failures(status),
    ]
    lines: list[str] = []
    for section in sections:
        found = list(section)
        if found:
            lines += ["", *found] if lines else found
    return lines


def _listed(header: Sequence[str], rows: Sequence[Sequence[object]]) -> Iterator[str]:
    """A table of the first ``MOST`` rows, and how many more there are."""
    yield from table(header, rows[:MOST], indent="  ")
    if len(rows) > MOST:
        yield f"  and {len(rows) - MOST:,} more; --json has all of them"


def _workers(status: Status) -> Iterator[str]:
    alive = sum(worker.state == "alive" for worker in status.workers)
    yield f"SENDERS: {alive} alive" if alive else "SENDERS: none alive; start one with run_sender"
    order = {"lost": 0, "alive": 1, "ended": 2}
    rows = [
        [
            f"{worker.host}:{worker.pid}",
            worker.state,
            worker.lanes,
            worker.holds,
            ago(worker.seen, status.now),
            short(worker.note, 60),
        ]
        for worker in sorted(status.workers, key=lambda w: (order[w.state], w.id))
    ]
    if rows:
        yield from _listed(["sender", "is", "lanes", "rows held", "seen", "note"], rows)
    shown = sum(worker.state == "ended" for worker in status.workers)
    if status.ended_workers > shown:
        yield f"  and {status.ended_workers - shown} more that ended within a day"


def _campaigns(status: Status) -> Iterator[str]:
    if not status.campaigns:
        yield "CAMPAIGNS: none scheduled, running or finished within a day"
        return
    yield "CAMPAIGNS"
    # What is over goes first where there are too many, then what is older.
    ranked = sorted(status.campaigns, key=lambda c: (c.status in ("sent", "canceled"), -c.id))
    kept = sorted(ranked[:MOST], key=lambda c: c.id) + ranked[MOST:]
    yield from _listed(
        ["id", "campaign", "is", "people", "done", "open", "in doubt", "rate", "what next"],
        [
            [
                str(c.id),
                short(c.name, 30),
                c.status,
                c.audience if c.started_at else None,
                c.done,
                c.open,
                c.in_doubt,
                "-" if c.rate is None else f"{c.rate:,.0f}/s",
                short(next_step(c, status), 70),
            ]
            for c in kept
        ],
    )


def next_step(campaign: CampaignFact, status: Status) -> str:
    """What a campaign waits for, in words."""
    now = status.now
    said = f" ({campaign.reason})" if campaign.reason else ""
    if campaign.status == "approved":
        due = campaign.scheduled_for
        if due is None or due <= now:
            return "due: waits for a sender"
        return f"starts {ago(due, now)}"
    if campaign.status == "sending":
        return _going_on(campaign, status) + said if _is_open(campaign) else campaign.reason
    if campaign.status == "sent" and campaign.finished_at:
        return f"finished {ago(campaign.finished_at, now)}" + said
    return campaign.reason


def _is_open(campaign: CampaignFact) -> bool:
    return bool(campaign.building or campaign.open)


def _going_on(campaign: CampaignFact, status: Status) -> str:
    """What keeps a campaign that is being sent, or how long it will take."""
    alive = any(worker.state == "alive" for worker in status.workers)
    pause = next((p for p in status.pauses if _holds(p, campaign)), None)
    if pause is not None:
        whose = f" for {pause.account}" if pause.account else ""
        waits = f"waits: transport {pause.transport} is paused{whose}"
        return waits if alive else f"{waits}, and no sender is alive"
    retries_only = campaign.open == campaign.retry and not campaign.building
    retry = ""
    if retries_only and campaign.next_retry:
        retry = f"next retry {_when_due(campaign.next_retry, status.now)}"
    if not alive:
        return f"waits for a sender; {retry}" if retry else "waits for a sender"
    if campaign.building:
        return "the audience is being counted"
    if campaign.rate and campaign.open:
        return f"about {duration(campaign.open / campaign.rate)} left"
    if retry:
        return retry
    if campaign.rate is None:
        return "being sent"
    return "waits for the relay's answers" if campaign.in_flight else "waits for a sender"


def _holds(pause: PauseFact, campaign: CampaignFact) -> bool:
    return pause.transport == campaign.transport and pause.account in (None, campaign.account)


def _when_due(at: datetime, now: datetime) -> str:
    return "is due" if at <= now else ago(at, now)


def _transactional(status: Status) -> Iterator[str]:
    waiting = status.transactional
    if waiting.queued or waiting.in_flight or waiting.retry:
        yield (
            f"TRANSACTIONAL: {waiting.queued:,} queued, {waiting.in_flight:,} in flight, "
            f"{waiting.retry:,} to retry"
        )


def _pauses(status: Status) -> Iterator[str]:
    if not status.pauses:
        return
    yield "TRANSPORTS PAUSED: no mail leaves through these until a probe works"
    yield from _listed(
        ["transport", "for", "since", "failures", "next probe", "at", "reason"],
        [
            [
                pause.transport,
                pause.account or "everybody",
                ago(pause.since, status.now),
                pause.failures,
                "due" if pause.probe_at <= status.now else ago(pause.probe_at, status.now),
                pause.stage,
                short(pause.reason, 80),
            ]
            for pause in status.pauses
        ],
    )


def _doubts(status: Status) -> Iterator[str]:
    if not status.doubts:
        return
    yield "IN DOUBT: handed over, no answer came; resolve_doubt decides"
    yield from _listed(
        ["campaign", "", "rows", "why", "then"],
        [
            [
                "-" if doubt.campaign is None else str(doubt.campaign),
                short(doubt.name, 30),
                doubt.rows,
                words(doubt.reason) or "unknown",
                "held for evidence or a person"
                if doubt.settles_at is None
                else f"settled by policy from {ago(doubt.settles_at, status.now)}",
            ]
            for doubt in status.doubts
        ],
    )


def _retries(status: Status) -> Iterator[str]:
    rows = [
        [str(c.id), short(c.name, 30), c.retry, _when_due(c.next_retry, status.now)]
        for c in status.campaigns
        if c.retry and c.next_retry
    ]
    waiting = status.transactional
    if waiting.retry and waiting.next_retry:
        rows.append(
            ["-", "transactional", waiting.retry, _when_due(waiting.next_retry, status.now)]
        )
    if rows:
        yield "TO RETRY"
        yield from _listed(["campaign", "", "rows", "the next"], rows)


def _failures(status: Status) -> Iterator[str]:
    if not status.failures:
        return
    span = duration((status.now - status.failures_since).total_seconds())
    whole = status.failures_since <= status.now - RECENT
    yield "LATEST FAILURES " + (
        "(within a day)"
        if whole
        else f"(of the last {span}; the latest {EVENTS:,} events go no further back)"
    )
    yield from _listed(
        ["became", "why", "times", "last", "said last"],
        [
            [
                words(fact.kind),
                words(fact.reason) or "-",
                fact.events,
                ago(fact.last, status.now),
                short(fact.latest, 80),
            ]
            for fact in status.failures
        ],
    )


def words(token: str) -> str:
    """``in_doubt`` as people write it."""
    return token.replace("_", " ")


# --- one address -----------------------------------------------------------------------------


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
    if not story.people:
        lines.append("  is nobody's subscriber (any more)")
    for block in story.blocks:
        state = "suppressed" if block.holds else "was suppressed"
        until = f" until {block.expires:%Y-%m-%d}" if block.expires else ""
        why = f": {short(block.evidence, 100)}" if block.evidence else ""
        lines.append(
            f"  {state} {_where(block)} since {block.created:%Y-%m-%d %H:%M} UTC{until} "
            f"({words(block.reason)}){why}"
        )
    if not story.chapters:
        lines += ["", "  No message was ever made for it.", *_why_nothing(story)]
    if story.older:
        lines += ["", f"  and {story.older:,} older, not told here; --json has all of them"]
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
        if person.status in NO_CAMPAIGN:
            yield f"    in {person.account}: {NO_CAMPAIGN[person.status]}"


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


def explain(chapter: Chapter, now: datetime) -> str:
    """Why the message is in the status it is in, in a sentence."""
    why = words(chapter.reason)
    said = f": {short(chapter.answer, 120)}" if chapter.answer else ""
    match chapter.status:
        case "sent" if chapter.reason == "treated_as_sent":
            return "Nobody knows whether it arrived; somebody decided to treat it as sent."
        case "sent":
            at = f" at {chapter.sent_at:%Y-%m-%d %H:%M:%S} UTC" if chapter.sent_at else ""
            return f"The relay accepted it{at}{said}"
        case "queued":
            return _queued(chapter)
        case "claimed":
            return "A sender has taken it; it has not been handed over yet."
        case "sending":
            return "It was handed over this moment; the answer is awaited."
        case "retry":
            due = chapter.next_attempt_at
            when = f", tried again {_when_due(due, now)}" if due else ""
            return f"Refused for now, {_times(chapter.attempts)}{when}{said}"
        case "bounced":
            return f"The address is dead ({why or 'refused'}){said}"
        case "failed":
            return f"Refused ({why or 'no reason kept'}), {_times(chapter.attempts)}{said}"
        case "suppressed":
            return f"Not handed over: {WITHHELD.get(chapter.reason, why or 'suppressed')}."
        case "in_doubt":
            return f"Handed over and no answer came ({why or 'unknown'}); it may have arrived{said}"
        case "canceled":
            return "The campaign was canceled before it was handed over."
    return why


def _queued(chapter: Chapter) -> str:
    if chapter.campaign_status in ("", "sending"):
        return "It waits for a sender."
    return f"It waits, because the campaign is {chapter.campaign_status}."


def _times(attempts: int) -> str:
    return "once" if attempts == 1 else f"{attempts} times"


def _event(event: Event) -> str:
    parts = [f"{event.at:%Y-%m-%d %H:%M:%S}", words(event.kind)]
    if event.reason and event.reason != event.kind:
        parts.append(f"({words(event.reason)})")
    if event.attempt:
        parts.append(f"attempt {event.attempt}")
    if event.stage:
        parts.append(f"at {event.stage}:")
    if answer := short(said(event.code, event.enhanced, event.text), 110):
        parts.append(answer)
    if event.by:
        parts.append(f"by {event.by}")
    return " ".join(parts)
