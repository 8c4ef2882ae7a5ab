"""What the page shows that somebody approves from: who, what, when, and what was found."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from django.db.models import Q
from django.db.models.functions import Now

from subscribers.models import Membership, Subscriber
from subscribers.suppression import suppressed_among
from subscribers.timezones import zone_named

from .. import audience
from ..content import CompiledContent
from ..models import Campaign
from ..preflight import Check, Finding, Report
from ..rendering import Rendered, RenderError, build_context, render
from .moments import both

#: People that the page names.
SAMPLE = 5
#: Segments, and members of each, that are looked at for them: the suppressed are passed over.
_SEGMENTS, _MEMBERS = 10, 20

_OWN_LINK = "(each person's own link)"


def sample(campaign: Campaign) -> list[Subscriber]:
    """A few of the people who get it, by id. Looked for among the first members of its segments,
    so that as few rows are read of ten million people as of ten; none, should all of these be
    excluded or suppressed."""
    members = Membership.objects.filter(left_at__isnull=True).order_by("subscriber_id")
    firsts = [
        members.filter(segment=segment).values_list("subscriber_id", flat=True)[:_MEMBERS]
        for segment in campaign.segments.order_by("name", "pk")[:_SEGMENTS]
    ]
    if not firsts:
        return []
    reachable = audience.addressed(campaign).filter(
        Q(paused_until__isnull=True) | Q(paused_until__lte=Now()),
        pk__in=list(firsts[0].union(*firsts[1:])),
    )
    people = list(reachable.order_by("pk"))
    barred = suppressed_among(campaign.account_id, [person.email for person in people])
    return [person for person in people if person.email not in barred][:SAMPLE]


def masked(email: str) -> str:
    """An address as somebody sees it who may not see people: ``a…@example.org``. Pure."""
    local, at, domain = email.rpartition("@")
    return f"{local[:1]}…{at}{domain}"


@dataclass(frozen=True, slots=True)
class Preview:
    """The message as one person gets it; ``problem``: why it can't be shown."""

    subject: str = ""
    preheader: str = ""
    text: str = ""
    problem: str = ""


def preview(compiled: CompiledContent, person: Subscriber | None) -> Preview:
    """As ``person``, or as somebody without any fields. Pure."""
    context = build_context(
        email=person.email if person else "person@example.org",
        attributes=person.attributes if person else {},
        account_fields=compiled.account_fields,
        unsubscribe_url=_OWN_LINK,
        preferences_url=_OWN_LINK,
        web_url=_OWN_LINK,
    )
    try:
        shown: Rendered = render(replace(compiled, html=""), context)
        line = render(replace(compiled, subject=compiled.preheader, html="", text=""), context)
    except RenderError as error:
        return Preview(problem=str(error))
    return Preview(shown.subject, line.subject, shown.text)


@dataclass(frozen=True, slots=True)
class Timing:
    """When it starts and ends, each in the account's zone and in UTC. ``ends`` is reckoned at
    the limits as they are now, "" where nobody can tell; ``late``: later than it should."""

    now: str
    starts: str
    at_once: bool
    takes: str = ""
    ends: str = ""
    finish_by: str = ""
    late: bool = False


def timing(campaign: Campaign, report: Report, moment: datetime | None, now: datetime) -> Timing:
    """``moment`` None: at once. Pure, but for the campaign's account."""
    zone = zone_named(campaign.account.timezone)
    duration = report.duration
    starts = moment or now
    ends = None
    if duration is not None and duration.seconds is not None and duration.seconds < _TOO_LONG:
        ends = starts + timedelta(seconds=duration.seconds)
    by = campaign.finish_by
    return Timing(
        now=both(now, zone),
        starts=both(starts, zone),
        at_once=moment is None,
        takes=duration.words if duration else "",
        ends=both(ends, zone) if ends else "",
        finish_by=both(by, zone) if by else "",
        late=bool(by and ends and ends > by),
    )


#: Seconds (a thousand years) behind which a date says nothing and soon can't be written.
_TOO_LONG = 1000 * 365 * 86_400


@dataclass(frozen=True, slots=True)
class Line:
    """A finding as the page shows it: ``place`` in its field, and where to mend it."""

    finding: Finding
    title: str
    place: str = ""
    label: str = ""
    url: str = ""


def line(finding: Finding, change_url: str) -> Line:
    """``change_url``: the campaign's edit page, "" for whoever may not edit. Pure."""
    title = finding.title.rstrip(".")
    place = f"line {finding.line}" if finding.line else ""
    if place and finding.column:
        place += f", column {finding.column}"
    label = field_label(finding.field) if finding.field else ""
    url = f"{change_url}{_query(finding)}#id_{finding.field}" if label and change_url else ""
    return Line(finding, title, place, label, url)


def _query(finding: Finding) -> str:
    """For the script of the edit page, which puts the cursor there."""
    if finding.line is None or finding.column is None:
        return ""
    return f"?line={finding.line}&column={finding.column}"


def field_label(name: str) -> str:
    """``from_email`` as the edit page calls it."""
    names = {field.name: str(field.verbose_name) for field in Campaign._meta.fields}
    names |= {field.name: str(field.verbose_name) for field in Campaign._meta.many_to_many}
    return names.get(name, name.replace("_", " "))


def checklist(report: Report, change_url: str) -> dict[str, Any]:
    """The report as the page lists it: errors, warnings, and the checks that found nothing."""
    return {
        "errors": [line(finding, change_url) for finding in report.errors],
        "warnings": [line(finding, change_url) for finding in report.warnings],
        "passed": _titles(report.checks, "passed"),
        "skipped": _titles(report.checks, "skipped"),
    }


def _titles(checks: tuple[Check, ...], level: str) -> list[str]:
    return [check.title for check in checks if check.level == level]


def moment_at_first(campaign: Campaign, now: datetime) -> tuple[str, datetime | None, bool]:
    """(what the page chooses at first, the planned moment, has that passed?); pure. Where a planned
    moment has passed nothing is chosen: nobody should send at once what was to go last week."""
    planned = campaign.scheduled_for
    if planned is None:
        return "now", None, False
    if planned > now:
        return "at", planned, False
    return "", None, True
