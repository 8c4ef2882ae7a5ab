"""Who would get it, and what their data makes of the message; pure."""

from __future__ import annotations

from collections.abc import Iterator
from difflib import get_close_matches
from statistics import median

from subscribers.models import AttributeDefinition

from .facts import Facts
from .findings import Finding
from .places import MOST, NOWHERE, bounded, find, find_tag, finding, people, tag

Kind = AttributeDefinition.Kind

#: Filled by the system for everybody.
SYSTEM = frozenset({"email", "preferences_url", "unsubscribe_url", "web_url"})
ACCOUNT = frozenset({"account.name", "account.postal_address", "account.slug"})
#: Campaigns that are needed to say what is usual, and how much more than that is odd.
LEAST_USUAL = 3
TIMES_USUAL = 10
#: Attributes with which an unknown field is compared, for the nearest.
MOST_COMPARED = 1_000
#: Filters that print nothing, or the same, for what is of another kind.
_FITS: dict[str, frozenset[str]] = {
    "date": frozenset({Kind.DATE}),
    "floatformat": frozenset({Kind.NUMBER}),
}
_WRITTEN_IN = ("subject", "preheader", "body", "text_body", "layout")


def fields(facts: Facts) -> tuple[Finding, ...]:
    """Merge fields exist, everybody has those without a default, and filters fit their kinds."""
    if facts.material is None:
        return ()
    return bounded([*_unknown(facts), *_lacking(facts), *_unfit(facts), *_uncounted(facts)])


def _unknown(facts: Facts) -> Iterator[Finding]:
    assert facts.material is not None
    bare = facts.material.bare
    names = [name for name in facts.material.fields if _is_unknown(facts, name)]
    names.sort(key=lambda name: (name not in bare, name))
    for number, name in enumerate(names):
        # There may be thousands, of which so many are shown: what costs a look through all
        # attributes or all that was written is found for these alone.
        is_shown = number < MOST
        yield finding(
            "fields.unknown",
            "error" if name in bare else "warning",
            f"Nobody has a field {tag(name)}",
            _hint(facts, name, is_bare=name in bare) if is_shown else "",
            at=find_tag(facts.sources, name, *_WRITTEN_IN) if is_shown else NOWHERE,
        )


def _hint(facts: Facts, name: str, *, is_bare: bool) -> str:
    known = sorted({*facts.definitions, *SYSTEM, *ACCOUNT})
    # As close as is asked for below, they are about as long; others need not be compared.
    alike = [one for one in known if 2 * abs(len(one) - len(name)) <= len(name)]
    near = get_close_matches(name, alike[:MOST_COMPARED], n=1, cutoff=0.7)
    hint = f"Did you mean {tag(near[0])}?" if near else "Look for a slip in its name."
    return hint + (" It prints nothing." if is_bare else "")


def _is_unknown(facts: Facts, name: str) -> bool:
    """Whether a field is no attribute that the account defined, and nobody here has it."""
    if name in SYSTEM or name in ACCOUNT:
        return False
    head = name.partition(".")[0]
    if head in SYSTEM or head == "account":
        return True
    if head in facts.definitions:
        return False
    counts = facts.fields
    return counts is not None and counts.people > 0 and counts.lacking.get(name, 0) == counts.people


def _lacking(facts: Facts) -> Iterator[Finding]:
    assert facts.material is not None
    counts = facts.fields
    if counts is None:
        return
    lacking = {
        name: counts.lacking[name]
        for name in facts.material.bare
        if counts.lacking.get(name) and not _is_unknown(facts, name)
    }
    ordered = sorted(lacking.items(), key=lambda pair: (-pair[1], pair[0]))
    for number, (name, count) in enumerate(ordered):
        where = find_tag(facts.sources, name, *_WRITTEN_IN) if number < MOST else NOWHERE
        lack = "lacks" if count == 1 else "lack"
        yield finding(
            "fields.missing",
            "warning",
            f"{people(count)} of {counts.people:,} {lack} {tag(name)}",
            f'They get nothing in its place. Give a default, {{{{ {name}|default:"..." }}}}, or '
            f"ask for it, {{% if {name} %}}.",
            at=where,
            count=count,
        )


def _unfit(facts: Facts) -> Iterator[Finding]:
    assert facts.material is not None
    told = set()
    for expression in facts.material.expressions():
        if not expression.is_var or not expression.names:
            continue
        name = expression.names[0]
        kind = facts.definitions.get(name)
        first = expression.filters[0][0].__name__ if expression.filters else ""
        # A text that looks like a number or a date is read as one.
        fits = _FITS.get(first)
        if kind is None or fits is None or kind in fits or kind in (Kind.TEXT, Kind.CHOICE):
            continue
        if (name, first) in told:
            continue
        told.add((name, first))
        is_shown = len(told) <= MOST
        where = find(facts.sources, f"{name}|{first}", *_WRITTEN_IN) if is_shown else NOWHERE
        yield finding(
            "fields.kind",
            "warning",
            f"|{first} prints nothing for {tag(name)}, which is a {Kind(kind).label}",
            at=where,
        )


def _uncounted(facts: Facts) -> Iterator[Finding]:
    counts = facts.fields
    if counts is None:
        return
    if not counts.in_time:
        yield finding(
            "fields.uncounted",
            "warning",
            "It took too long to count who lacks which field",
            "Look at the preview of a few people.",
        )
    if counts.left_out:
        title = f"{counts.left_out:,} more fields were not looked at"
        yield finding("fields.left_out", "warning", title)


def audience(facts: Facts) -> tuple[Finding, ...]:
    """Somebody gets it, and not ten times as many as usual."""
    if not facts.has_segments:
        title = "No segment is chosen: nobody would get it"
        return (finding("audience.no_segment", "error", title, field="segments"),)
    reached = facts.audience.reached
    if not reached:
        return (
            finding(
                "audience.empty",
                "error",
                "Nobody would get it",
                _why_nobody(facts),
                field="segments",
                count=0,
            ),
        )
    if len(facts.usual) < LEAST_USUAL:
        return ()
    usual = median(facts.usual)
    if reached <= TIMES_USUAL * max(usual, 1):
        return ()
    return (
        finding(
            "audience.unusual",
            "warning",
            f"{people(reached)} would get it, {reached / max(usual, 1):,.0f} times as many as "
            "usual",
            f"The last {len(facts.usual)} campaigns of this account went to {usual:,.0f} people "
            "as a rule.",
            field="segments",
            count=reached,
        ),
    )


def _why_nobody(facts: Facts) -> str:
    counted = facts.audience
    if counted.addressed:
        parts = []
        if counted.suppressed:
            parts.append(f"{counted.suppressed:,} suppressed")
        if counted.paused:
            parts.append(f"{counted.paused:,} paused")
        return f"Of {people(counted.addressed)} in its segments: {', '.join(parts)}."
    if any(share.people for share in counted.included):
        return "The excluded segments take everybody away."
    return "Nobody who has confirmed is in its segments."
