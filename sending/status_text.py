"""The facts of ``sending.status`` as lines of plain text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from . import plain_table
from .alive import serves
from .limits_text import brakes, slowed, unclassified, waiting_events, webhooks
from .plain_table import ago, due, duration, listed, short
from .status import EVENTS, CampaignFact, DoubtFact, PauseFact, Status, WorkerFact
from .status_limits import RECENT, PaceFact, pace_words
from .waits import limited_words, pause_of
from .wording import IN_DOUBT, rate_words, reason_words, remedy, trouble, words


def status_lines(status: Status) -> list[str]:
    """The whole status: what is wrong now, then what goes on, then what was."""
    sections = [
        _workers(status),
        _pauses(status),
        brakes(status),
        slowed(status),
        waiting_events(status),
        _doubts(status),
        _campaigns(status),
        _transactional(status),
        _retries(status),
        webhooks(status),
        _failures(status),
        unclassified(status),
    ]
    lines: list[str] = []
    for section in sections:
        found = list(section)
        if found:
            lines += ["", *found] if lines else found
    return lines


def _workers(status: Status) -> Iterator[str]:
    alive = sum(worker.state == "alive" for worker in status.workers)
    yield f"SENDERS: {alive} alive" if alive else "SENDERS: none alive; start one with run_sender"
    order = {"lost": 0, "alive": 1, "ended": 2}
    abreast = any(worker.sessions_a_lane > 1 for worker in status.workers)
    rows = [
        [
            f"{worker.host}:{worker.pid}",
            worker.state,
            f"{worker.lanes} x {worker.sessions_a_lane}" if abreast else worker.lanes,
            worker.holds,
            ago(worker.seen, status.now),
            short("; ".join(filter(None, (_only(worker), worker.note))), 60),
        ]
        for worker in sorted(status.workers, key=lambda w: (order[w.state], w.id))
    ]
    if rows:
        lanes = "lanes x sessions" if abreast else "lanes"
        yield from listed(["sender", "is", lanes, "rows held", "seen", "note"], rows)
    shown = sum(worker.state == "ended" for worker in status.workers)
    if status.ended_workers > shown:
        yield f"  and {status.ended_workers - shown} more that ended within a day"


def _only(worker: WorkerFact) -> str:
    return "" if worker.campaign is None else f"only campaign {worker.campaign}"


def _has_sender(status: Status, campaign: CampaignFact) -> bool:
    alive = {worker.campaign for worker in status.workers if worker.state == "alive"}
    return serves(alive, campaign.id)


def _campaigns(status: Status) -> Iterator[str]:
    if not status.campaigns:
        yield "CAMPAIGNS: none scheduled, running or finished within a day"
        return
    yield "CAMPAIGNS"
    # What is over goes first where there are too many, then what is older.
    ranked = sorted(status.campaigns, key=lambda c: (c.status in ("sent", "canceled"), -c.id))
    kept = sorted(ranked[: plain_table.MOST], key=lambda c: c.id) + ranked[plain_table.MOST :]
    yield from listed(
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
                "-" if c.rate is None else _per_second(c.rate),
                short(next_step(c, status), 70),
            ]
            for c in kept
        ],
    )


def _per_second(rate: float) -> str:
    return f"{rate:,.0f}/s" if rate >= 10 or rate == 0 else f"{rate:.1f}/s"


def next_step(campaign: CampaignFact, status: Status) -> str:
    """What a campaign waits for, in words."""
    now = status.now
    said = f" ({campaign.reason})" if campaign.reason else ""
    if campaign.status == "approved":
        starts = campaign.scheduled_for
        if starts is None or starts <= now:
            return "due: waits for a sender"
        return f"starts {ago(starts, now)}"
    if campaign.status == "sending":
        if _is_open(campaign):
            return _going_on(campaign, status) + said
        alive = _has_sender(status, campaign)
        return campaign.reason if alive else f"finishes when a sender runs{said}"
    if campaign.status == "sent" and campaign.finished_at:
        return f"finished {ago(campaign.finished_at, now)}" + said
    return campaign.reason


def _is_open(campaign: CampaignFact) -> bool:
    return bool(campaign.building or campaign.open)


def _going_on(campaign: CampaignFact, status: Status) -> str:
    """What keeps a campaign that is being sent, or how long it will take."""
    alive = _has_sender(status, campaign)
    pause = pause_of(status.pauses, campaign.account, campaign.transport)
    if pause is not None:
        whose = f" for {pause.account}" if pause.account else ""
        waits = f"waits: transport {pause.transport} is paused{whose}"
        return waits if alive else f"{waits}, and no sender is alive"
    retries_only = campaign.open == campaign.retry and not campaign.building
    retry = ""
    limited = next((fact for fact in status.limited if fact.campaign == campaign.id), None)
    if limited is not None and alive and retries_only:
        return limited_words(limited, status.now)
    if retries_only and campaign.next_retry:
        retry = f"next retry {due(campaign.next_retry, status.now)}"
    if not alive:
        return f"waits for a sender; {retry}" if retry else "waits for a sender"
    if campaign.building:
        return "the audience is being counted"
    if campaign.rate and campaign.open:
        return f"about {duration(campaign.open / campaign.rate)} left"
    if retry:
        return retry
    if campaign.pace is not None:
        return _at_its_pace(campaign.pace, campaign.open or 0)
    if campaign.rate is None:
        return "being sent"
    return "waits for the relay's answers" if campaign.in_flight else "waits for a sender"


def _at_its_pace(pace: PaceFact, left: int) -> str:
    """Of a campaign that did not move between two looks, or was looked at once."""
    if pace.nothing_before is not None:
        return f"waits: {pace_words(pace)}"
    at_best = duration(left / pace.rate)
    return f"limited to {rate_words(pace.rate)}: {at_best} left, or more"


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
    yield (
        "TRANSPORTS PAUSED: no mail leaves through these, and none is lost; "
        "senders try by themselves, and the first try that works lifts the pause"
    )
    yield from listed(
        ["transport", "for", "trouble", "since", "tries", "next", "said"],
        [
            [
                pause.transport,
                pause.account or "everybody",
                trouble(pause.stage, pause.code, said=pause.reason),
                ago(pause.since, status.now),
                pause.failures,
                due(pause.probe_at, status.now),
                short(pause.reason, 80),
            ]
            for pause in status.pauses
        ],
    )
    yield from (f"  {advice}" for advice in _advice(status.pauses))


def _advice(pauses: Sequence[PauseFact]) -> Iterator[str]:
    """What can be done about these pauses, each once."""
    by_advice: dict[str, list[str]] = {}
    for pause in pauses:
        advice = remedy(pause.stage, pause.code, whose=pause.account, said=pause.reason)
        names = by_advice.setdefault(advice, [])
        if pause.transport not in names:
            names.append(pause.transport)
    for advice, names in list(by_advice.items())[: plain_table.MOST]:
        yield f"{', '.join(names)}: {advice}"


def _doubts(status: Status) -> Iterator[str]:
    if not status.doubts:
        return
    yield f"IN DOUBT: {IN_DOUBT}; resolve_doubt decides about what is held"
    yield from listed(
        ["campaign", "", "rows", "why", "then"],
        [
            [
                "-" if doubt.campaign is None else str(doubt.campaign),
                short(doubt.name, 30),
                doubt.rows,
                words(doubt.reason) or "unknown",
                _what_settles(doubt, status),
            ]
            for doubt in status.doubts
        ],
    )


def _what_settles(doubt: DoubtFact, status: Status) -> str:
    if doubt.settles_at is None:
        return "held for evidence or a person"
    if doubt.replayed_until is None:
        return f"settled by policy from {ago(doubt.settles_at, status.now)}"
    until = f"at the latest until {doubt.replayed_until:%Y-%m-%d %H:%M:%S} UTC"
    if any(c.id == doubt.campaign and c.status == "paused" for c in status.campaigns):
        return f"replayed once the campaign is resumed, {until}"
    return f"being replayed, {until}"


def _retries(status: Status) -> Iterator[str]:
    rows = [
        [
            str(c.id),
            short(c.name, 30),
            c.retry,
            due(c.next_retry, status.now),
            _for_limits(c, status),
        ]
        for c in status.campaigns
        if c.retry and c.next_retry
    ]
    waiting = status.transactional
    if waiting.retry and waiting.next_retry:
        rows.append(["-", "transactional", waiting.retry, due(waiting.next_retry, status.now), "-"])
    if rows:
        yield "TO RETRY"
        yield from listed(["campaign", "", "rows", "the next", "of them for a limit"], rows)


def _for_limits(campaign: CampaignFact, status: Status) -> str:
    """``53 for mailboxes at google, 4 for transport bulk``."""
    facts = [fact for fact in status.limited if fact.campaign == campaign.id][:3]
    told = [f"{f.rows:,}{' or more' * f.at_least} for {f.of}" for f in facts]
    return ", ".join(told) or "-"


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
    yield from listed(
        ["became", "why", "times", "last", "said last"],
        [
            [
                words(fact.kind),
                reason_words(fact.reason) or "-",
                fact.events,
                ago(fact.last, status.now),
                short(fact.latest, 80),
            ]
            for fact in status.failures
        ],
    )
