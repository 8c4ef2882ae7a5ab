"""Where in what the editor wrote something stands, and how lists of findings stay short; pure."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from ..sandbox import SandboxError, place, tags
from .findings import Finding, Level

#: Findings of one check that are shown; beyond them it says how many more there are.
MOST = 10
_LONGEST = 100


@dataclass(frozen=True, slots=True)
class Place:
    """``field`` "" where it stands in nothing that was written here, such as a layout."""

    field: str = ""
    line: int | None = None
    column: int | None = None


def find(sources: Mapping[str, str], needle: str, *fields: str) -> Place:
    """The first place of ``needle`` in these fields; as it is or escaped for HTML."""
    for field in fields:
        source = sources.get(field, "")
        for form in dict.fromkeys((needle, html.escape(needle), html.escape(needle, quote=False))):
            at = source.find(form) if form else -1
            if at >= 0:
                return _place(field, source, at)
    return Place()


def find_tag(sources: Mapping[str, str], name: str, *fields: str) -> Place:
    """The first tag that names a merge field, in these fields; not the word in a sentence."""
    word = re.compile(rf"(?<![\w.]){re.escape(name)}(?![\w.])")
    for field in fields:
        source = sources.get(field, "")
        try:
            spans = list(tags(source))
        except SandboxError:
            continue
        for start, end in spans:
            if not source.startswith("{#", start) and word.search(source, start, end):
                return _place(field, source, start)
    return Place()


def find_url(sources: Mapping[str, str], url: str, *fields: str) -> Place:
    """The first place where a URL stands alone: as an attribute's value, in a ``srcset``, in CSS,
    in a Markdown link or as a word. Where it does not, the first place of its characters."""
    forms = [form for form in (url, html.escape(url), html.escape(url, quote=False)) if form]
    for field in fields:
        source = sources.get(field, "")
        found = [_alone(source, form) for form in dict.fromkeys(forms)]
        ends = [at for at in found if at >= 0]
        if ends:
            return _place(field, source, min(ends))
    return find(sources, url, *fields)


def _alone(source: str, words: str) -> int:
    """Where these words stand with nothing of a URL around them; -1: nowhere."""
    at = source.find(words)
    while at >= 0:
        end = at + len(words)
        begins = source[max(at - 1, 0) : at] in _BEFORE or source.endswith(_QUOTE, 0, at)
        if begins and (source[end : end + 1] in _AFTER or source.startswith(_QUOTE, end)):
            return at
        at = source.find(words, at + 1)
    return -1


#: What a URL begins behind, and what it ends before; "" at the ends of a text.
_BEFORE = frozenset(["", *"\"'(<, \t\n"])
_AFTER = frozenset(["", *"\"')>, \t\n"])
_QUOTE = "&quot;"


def _place(field: str, source: str, at: int) -> Place:
    return Place(field, *place(source, at))


#: Nowhere in particular.
NOWHERE = Place()


def finding(
    code: str,
    level: Level,
    title: str,
    detail: str = "",
    *,
    at: Place = NOWHERE,
    field: str = "",
    count: int | None = None,
) -> Finding:
    """A finding at a place; ``field`` is the one to mend where the place is in none."""
    return Finding(code, level, title, detail, at.field or field, count, at.line, at.column)


def tag(name: str) -> str:
    """A field as it is written."""
    return "{{ " + name + " }}"


def short(text: str, longest: int = _LONGEST) -> str:
    """A text for a line of a list: on one line, its middle left out where it is long."""
    line = " ".join(text.split())
    if len(line) <= longest:
        return line
    half = (longest - 1) // 2
    return f"{line[:half]}…{line[-half:]}"


def bounded(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """At most ``MOST``, errors first, and one more that counts the rest."""
    every = sorted(findings, key=lambda finding: finding.level)
    shown, rest = every[:MOST], every[MOST:]
    if rest:
        first = rest[0]
        kind = first.code.partition(".")[0]
        title = f"{len(rest):,} more like these"
        shown.append(Finding(f"{kind}.more", first.level, title, field=first.field))
    return tuple(shown)


def people(count: int) -> str:
    """``1 person``, ``2,000 people``."""
    return "1 person" if count == 1 else f"{count:,} people"
