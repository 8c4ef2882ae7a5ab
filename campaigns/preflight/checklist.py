"""Every check, in the order in which the checklist shows them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from . import content_checks, link_checks, people_checks, sender_checks, timing_checks
from .facts import Facts
from .findings import Check, Finding


@dataclass(frozen=True, slots=True)
class _Item:
    code: str
    title: str
    look: Callable[[Facts], tuple[Finding, ...]]
    #: Whether there is nothing to look at while the content does not compile.
    needs_content: bool = True


ITEMS = (
    _Item("content", "Content compiles", content_checks.content, needs_content=False),
    _Item("audience", "Audience", people_checks.audience, needs_content=False),
    _Item("fields", "Merge fields", people_checks.fields),
    _Item("unsubscribe", "Link to unsubscribe", content_checks.unsubscribe),
    _Item("address", "Postal address", content_checks.address, needs_content=False),
    _Item("sender", "Sender address", sender_checks.sender, needs_content=False),
    _Item("subject", "Subject", content_checks.subject),
    _Item("text", "Text to read", content_checks.text),
    _Item("links", "Links", link_checks.links),
    _Item("system_links", "Links to this site", link_checks.system_links, needs_content=False),
    _Item("images", "Images", link_checks.images),
    _Item("markup", "Markup that mail programs show", content_checks.markup),
    _Item("size", "Size", content_checks.size),
    _Item("schedule", "Schedule", timing_checks.schedule, needs_content=False),
    _Item("finish", "Done in time", timing_checks.finish, needs_content=False),
    _Item("duplicate", "Not sent already", timing_checks.duplicate, needs_content=False),
    _Item("transport", "Transport", sender_checks.transport, needs_content=False),
)


def look(facts: Facts) -> tuple[Check, ...]:
    """All checks of these facts."""
    return tuple(
        Check(
            item.code,
            item.title,
            item.look(facts),
            ran=facts.material is not None or not item.needs_content,
        )
        for item in ITEMS
    )
