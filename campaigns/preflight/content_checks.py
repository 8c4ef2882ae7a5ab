"""The message itself: that it compiles, what it must say, its subject, size and markup; pure."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator, Mapping
from typing import Any

from ..footers import ADDRESS_FIELD, UNSUBSCRIBE_FIELD, address_lines
from ..sandbox import Compiled
from .facts import Facts
from .findings import Finding
from .markup import Page
from .material import Material, says_to_all
from .places import Place, bounded, find, find_tag, finding, people
from .sight import OUTLOOK

#: Gmail shows no more of a message than so many bytes of its HTML.
CLIPPED_AT = 102 * 1024
#: Most mail programs cut a subject at 40 to 70 characters. Beyond the second number it is a text.
SUBJECT_SHOWN = 70
SUBJECT_MOST = 250
#: Letters and digits of prose below which a message has no text worth the name.
LEAST_PROSE = 20
#: Hidden ones, the preheader among them, beyond which it looks as if something were to be hidden.
MOST_HIDDEN = 600

FAINT = (
    "It is moved off the screen or shown on some screens only, or its letters are tiny or nearly "
    "of the colour of what is behind them."
)
_REPLY = re.compile(r"^\s*(?:re|aw|sv|antw|fw|fwd|wg|tr)\s*(?:\[\d+\])?\s*:", re.IGNORECASE)
_PLACEHOLDER = re.compile(r"\*\|\w+\|\*|%%\w+%%|\[\[\w+\]\]|\$\{\w+\}|(?<!\{)\{ ?\w+ ?\}(?!\})")
#: Filters that leave a link what it is, or are meant for a part of another one.
_KEEPING = frozenset({"default", "default_if_none", "escape", "urlencode"})
_PRINTED = re.compile(r"\{\{-?\s*([\w.]+)")


def content(facts: Facts) -> tuple[Finding, ...]:
    """It compiles, and somebody's message can be made of it."""
    error = facts.content_error
    if error is not None:
        title = f"The content does not compile: {error}"
        at = Place(error.field, error.line, error.column)
        return (finding("content.compile", "error", title, at=at),)
    if facts.material is not None and facts.material.refusal:
        title = f"A message can't be made of it: {facts.material.refusal}"
        return (finding("content.render", "error", title, field="body"),)
    return ()


def unsubscribe(facts: Facts) -> tuple[Finding, ...]:
    """Everybody finds the way out, in each part of the message."""
    material = facts.material
    if material is None:
        return ()
    return tuple(_ways_out(material, facts.sources))


def _ways_out(material: Material, sources: Mapping[str, str]) -> Iterator[Finding]:
    for name, part in _named_parts(material):
        if UNSUBSCRIBE_FIELD not in part.always:
            yield finding(
                "unsubscribe.missing",
                "error",
                f"The {name} shows not everybody how to unsubscribe",
                "Print {{ unsubscribe_url }} outside of every {% if %}.",
                field="body",
            )
    for expression in material.expressions():
        if not expression.is_var or list(expression.names[:1]) != [UNSUBSCRIBE_FIELD]:
            continue
        changing = [step[0].__name__ for step in expression.filters]
        changing = [name for name in changing if name not in _KEEPING]
        if changing:
            yield finding(
                "unsubscribe.changed",
                "error",
                f"|{changing[0]} breaks the link to unsubscribe",
                "Print {{ unsubscribe_url }} as it is.",
                field="body",
            )
            break
    page = material.page
    if page is None or page.unread or material.html is None:
        return
    if UNSUBSCRIBE_FIELD not in material.html.always:
        return
    yield from _unseen_way_out(page, find_tag(sources, UNSUBSCRIBE_FIELD, "body", "layout"))


def _unseen_way_out(page: Page, at: Place) -> Iterator[Finding]:
    ways = [link for link in page.links if _prints(link.url, UNSUBSCRIBE_FIELD)]
    if _prints(page.clear, UNSUBSCRIBE_FIELD) or any(link.seen == "yes" for link in ways):
        return
    doubtful = [link.why for link in ways if link.seen == "perhaps"]
    if OUTLOOK in doubtful and any(
        other.is_link and _prints(other.url, UNSUBSCRIBE_FIELD) for other in page.addresses
    ):
        return  # Outlook has one of its own
    if doubtful or _prints(page.text, UNSUBSCRIBE_FIELD):
        yield finding(
            "unsubscribe.faint",
            "warning",
            "The link to unsubscribe may not be seen by everybody",
            f"{doubtful[0] if doubtful else FAINT} Filters distrust that, and people who don't "
            "find it report the message as spam.",
            at=at,
            field="body",
        )
        return
    why = next((link.why for link in ways if link.why), "")
    yield finding(
        "unsubscribe.hidden",
        "error",
        "The link to unsubscribe can't be seen",
        why or "It has no words, or stands in a comment or in an element that is not shown.",
        at=at,
        field="body",
    )


def address(facts: Facts) -> tuple[Finding, ...]:
    """The sender's postal address is there, and everybody sees it."""
    lines = address_lines(facts.postal_address)
    if not lines:
        return (
            finding(
                "address.none",
                "error",
                f"The account {facts.account_name} has no postal address",
                "Most countries require one in every campaign. It is set with the account.",
            ),
        )
    material = facts.material
    if material is None:
        return ()
    found = []
    for name, part in _named_parts(material):
        known = {"account": dict(material.compiled.account_fields)}
        if not all(_says_line(part, known, line) for line in lines):
            found.append(
                finding(
                    "address.missing",
                    "error",
                    f"The {name} shows not everybody the postal address",
                    "Print {{ account.postal_address }} outside of every {% if %}.",
                    field="body",
                )
            )
    page = material.page
    if not found and page is not None and not page.unread:
        found += _unseen_address(page, lines)
    return tuple(found)


def _unseen_address(page: Page, lines: list[str]) -> list[Finding]:
    if _shows_lines(page.clear, lines):
        return []
    if _shows_lines(page.text, lines):
        title = "The postal address may not be seen by everybody"
        return [finding("address.faint", "warning", title, FAINT, field="body")]
    return [
        finding(
            "address.hidden",
            "error",
            "The postal address can't be seen",
            "It stands in a comment or in an element that is not shown, its letters have no size, "
            "or they have the colour of what is behind them.",
            field="body",
        )
    ]


def _shows_lines(shown: str, lines: list[str]) -> bool:
    folded = shown.casefold()
    return _prints(shown, ADDRESS_FIELD) or all(line.casefold() in folded for line in lines)


def _says_line(part: Compiled, known: dict[str, Any], line: str) -> bool:
    forms = (html.escape(line), line) if part.html else (line,)
    return any(says_to_all(part, known, form) for form in forms)


def subject(facts: Facts) -> tuple[Finding, ...]:
    """There is one for everybody, it can be read, and it does not look like spam."""
    material = facts.material
    if material is None:
        return ()
    found = []
    printed = material.blank.subject if material.blank is not None else ""
    if not printed and material.blank is not None and facts.audience.reached:
        lacking = _who_lack_all(facts, material.subject)
        if lacking:
            found.append(
                finding(
                    "subject.empty",
                    "error",
                    f"The subject is empty for {'up to ' * (lacking[1] > 1)}{people(lacking[0])}",
                    "They have nothing in the fields that it is made of. Give a default.",
                    field="subject",
                    count=lacking[0],
                )
            )
    typical = material.typical.subject if material.typical is not None else printed
    if len(typical) > SUBJECT_MOST:
        title = f"The subject has {len(typical):,} characters; more than {SUBJECT_MOST} are a text"
        found.append(finding("subject.too_long", "error", title, field="subject"))
    elif len(typical) > SUBJECT_SHOWN:
        title = f"The subject has {len(typical):,} characters"
        detail = f"Most mail programs show no more than {SUBJECT_SHOWN}, on a phone about 40."
        found.append(finding("subject.long", "warning", title, detail, field="subject"))
    letters = [letter for letter in typical if letter.isupper() or letter.islower()]
    if len(letters) >= 8 and all(letter.isupper() for letter in letters):
        title = "The subject is written in capitals alone"
        found.append(
            finding("subject.capitals", "warning", title, "Filters count it.", field="subject")
        )
    if _REPLY.match(typical):
        title = "The subject looks like that of an answer or of something forwarded"
        detail = "Filters and people take it for a trick."
        found.append(finding("subject.reply", "warning", title, detail, field="subject"))
    return tuple(found)


def _who_lack_all(facts: Facts, part: Compiled) -> tuple[int, int] | None:
    """``(people, fields)``: at most so many have none of the fields that ``part`` reads."""
    names = {name for name in part.fields if not name.startswith("account.")}
    counts = facts.fields
    if not names or counts is None or not counts.in_time:
        return None
    least = min(counts.lacking.get(name, 0) for name in names)
    return (least, len(names)) if least else None


def size(facts: Facts) -> tuple[Finding, ...]:
    """Gmail shows all of it."""
    material = facts.material
    if material is None or material.typical is None:
        return ()
    length = len(material.typical.html.encode())
    if length <= CLIPPED_AT:
        return ()
    return (
        finding(
            "size.clipped",
            "warning",
            f"The HTML is {length / 1024:,.0f} kB for one person; Gmail cuts it at 102 kB",
            "What is at its end, the link to unsubscribe perhaps, is behind a link there.",
            field="body",
        ),
    )


def text(facts: Facts) -> tuple[Finding, ...]:
    """There is something to read: filters distrust messages that are an image or nothing."""
    material = facts.material
    if material is None:
        return ()
    found = []
    page = material.page
    if page is not None and not page.unread:
        prose = _letters(page.prose)
        if prose < LEAST_PROSE:
            if page.images:
                title = "The message is images, with hardly a word of text"
                found.append(finding("text.only_images", "warning", title, field="body"))
            else:
                title = "The message has hardly a word of text"
                found.append(finding("text.none", "warning", title, field="body"))
        hidden = _letters(page.hidden)
        if hidden > MOST_HIDDEN and hidden > prose:
            title = "More text is hidden in the HTML than is shown"
            found.append(
                finding("text.hidden", "warning", title, "Filters count it.", field="body")
            )
    foreign = _foreign_tag(facts)
    if foreign is not None:
        found.append(foreign)
    return tuple(found)


def _foreign_tag(facts: Facts) -> Finding | None:
    for name in ("subject", "preheader", "body", "text_body"):
        source = facts.sources.get(name, "")
        # Braces are CSS and MJML's too; in HTML only the marks of other programs are certain.
        pattern = _PLACEHOLDER if name in ("subject", "preheader") else _CERTAIN
        match = pattern.search(source)
        if match is not None:
            where = find({name: source}, match[0], name)
            title = f"{match[0]} looks like a merge field of another program"
            detail = "It is sent as it stands. Here fields are written {{ field }}."
            return finding("text.foreign", "warning", title, detail, at=where)
    return None


_CERTAIN = re.compile(r"\*\|\w+\|\*|%%\w+%%")


def markup(facts: Facts) -> tuple[Finding, ...]:
    """Nothing in it is taken out by mail programs."""
    page = facts.material.page if facts.material is not None else None
    if page is None:
        return ()
    found = []
    if page.unread:
        title = "The HTML could not be read to its end"
        detail = "Elements are nested too deeply; links and images were not all looked at."
        found.append(finding("markup.unread", "warning", title, detail, field="body"))
    for element, times in sorted(page.dropped.items()):
        named = f"<{element}>" if element != "link" else "a linked style sheet"
        again = f", {times:,} times" if times > 1 else ""
        found.append(
            finding(
                f"markup.{element}",
                "warning",
                f"It holds {named}{again}",
                "Many mail programs take it out.",
                at=find(facts.sources, f"<{element}", "body", "layout"),
                field="body",
            )
        )
    if page.handlers:
        names = ", ".join(sorted(page.handlers)[:5])
        title = f"It holds scripts in attributes ({names})"
        found.append(
            finding(
                "markup.handlers", "warning", title, "Mail programs take them out.", field="body"
            )
        )
    return bounded(found)


def _named_parts(material: Material) -> Iterator[tuple[str, Compiled]]:
    if material.html is not None:
        yield "HTML", material.html
    yield "text" if material.html is None else "text part", material.text


def _prints(written: str, name: str) -> bool:
    return name in _PRINTED.findall(written)


def _letters(shown: str) -> int:
    return sum(map(str.isalnum, shown))
