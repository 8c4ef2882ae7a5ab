"""When it starts, when it will be done, and whether it went out already; pure."""

from __future__ import annotations

from datetime import datetime, timedelta

from subscribers.timezones import zone_named

from .facts import Facts
from .findings import Finding
from .places import finding

#: Somebody who chose "at once" a moment ago is not late.
LATE = timedelta(minutes=1)
#: A campaign that started so long ago is recent.
RECENT = timedelta(days=7)


def schedule(facts: Facts) -> tuple[Finding, ...]:
    """Its time is still to come."""
    if facts.start >= facts.now - LATE:
        return ()
    return (
        finding(
            "schedule.past",
            "error",
            f"It is scheduled for {moment(facts.start, facts.zone)}, which is past",
            "Choose another time, or send it at once.",
            field="scheduled_for",
        ),
    )


def finish(facts: Facts) -> tuple[Finding, ...]:
    """The limits let it be done by the time that was asked for."""
    by = facts.finish_by
    if by is None:
        return ()
    start = max(facts.start, facts.now)
    if by <= start:
        return (
            finding(
                "finish.before_start",
                "error",
                f"It would have to be done by {moment(by, facts.zone)}, before it starts",
                field="finish_by",
            ),
        )
    length = facts.duration
    if length is None or length.seconds is None:
        return (
            finding(
                "finish.unknown",
                "warning",
                f"Nobody can tell whether it will be done by {moment(by, facts.zone)}",
                length.words if length is not None else "",
                field="finish_by",
            ),
        )
    end = later(start, length.seconds)
    if end is not None and end <= by:
        return ()
    when = f"about {moment(end, facts.zone)}" if end is not None else "in many years"
    return (
        finding(
            "finish.late",
            "warning",
            f"It will be done {when}, not by {moment(by, facts.zone)}",
            length.words,
            field="finish_by",
        ),
    )


def duplicate(facts: Facts) -> tuple[Finding, ...]:
    """The same did not go out within a week."""
    alike = [one for one in facts.alike if one.same_subject or one.shares_segments]
    if not alike:
        return ()
    one = max(alike, key=lambda found: found.sent)
    # Approved for a moment that has passed, it still waits for a sender: it did not go out.
    if one.started:
        verb, got = "went out on", "got"
    else:
        verb = "is approved, to start on" if one.sent > facts.now else "is approved, due since"
        got = "get"
    what = "same subject and body" if one.same_subject else f"same body, to people who {got} it too"
    return (
        finding(
            "duplicate.recent",
            "warning",
            f"\u201c{one.name}\u201d {verb} {moment(one.sent, facts.zone)}, with the {what}",
            "Whoever is in both gets it twice.",
        ),
    )


def later(start: datetime, seconds: float) -> datetime | None:
    """``start`` and so many seconds; None beyond the calendar."""
    try:
        return start + timedelta(seconds=seconds)
    except OverflowError:
        return None


def moment(when: datetime, zone: str) -> str:
    """``2 July 2026, 10:00 (Europe/Paris)``."""
    known = zone_named(zone)
    local = when.astimezone(known)
    return f"{local.day} {local:%B %Y, %H:%M} ({known.key})"
