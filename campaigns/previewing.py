"""A campaign as one person will get it: rendered, with what is missing, and what a browser may be
shown of it. Pure: no database, no request.

A preview holds no working link of anybody: the links of the system are ``INERT``, and every link
of a shown message leads nowhere.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from email import message_from_bytes
from email.errors import HeaderParseError
from email.header import decode_header, make_header
from typing import Any

from django.utils.html import format_html, format_html_join

from subscribers.models import Account
from subscribers.tokens import nobodys_link

from .content import TEXTS, CompiledContent, ContentError, compile_content, problems
from .models import Campaign, Layout
from .rendering import Renderable, Rendered, Renderer, RenderError, build_context

#: What templates see that is nobody's attribute.
SYSTEM = frozenset({"email", "unsubscribe_url", "preferences_url", "web_url", "account"})
#: Characters of a message's source that a page shows.
MOST_SOURCE = 200_000

# None of them looks at anything twice: the document may be hostile.
_HEAD = re.compile(r"<head\b[^<>]*+>", re.IGNORECASE)
_HTML = re.compile(r"<html\b[^<>]*+>", re.IGNORECASE)
_DOCTYPE = re.compile(r"\s*+<!doctype\b[^<>]*+>", re.IGNORECASE)
# Links open in another window, and the sandbox opens none: to click one does nothing. Without it,
# the page behind the link would take the message's place.
_NOWHERE = '<base target="_blank">'
_TAG = re.compile(r"<[A-Za-z][^<>]*+>")
_TARGET = re.compile(r"""(?<=[\s/"'])target(?=\s*=)""", re.IGNORECASE)
_BREAK = re.compile(r"\r?\n(?=[ \t])")
_PAGE = (
    '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{}</title><style>'
    "body{{margin:0;padding:16px;background:#fff;color:#1f2328;font:14px/1.5 {}}}"
    "pre{{margin:0;font:inherit;white-space:pre-wrap;overflow-wrap:anywhere}}"
    "</style></head><body>{}</body></html>"
)
#: Bodies for a layout's page, by format.
_EXAMPLES = {
    "html": "<h1>A headline</h1>\n<p>Dear reader, here stands what a campaign says.</p>\n"
    '<p>A second paragraph with <a href="https://example.org/">a link</a>.</p>\n',
    "mjml": "<mj-section><mj-column><mj-text>A headline</mj-text>"
    "<mj-text>Dear reader, here stands what a campaign says.</mj-text>"
    '<mj-button href="https://example.org/">A button</mj-button></mj-column></mj-section>\n',
    "text": "A headline\n\nDear reader, here stands what a campaign says.\n",
}
_MONOSPACE = "ui-monospace,Menlo,Consolas,monospace"
_SANS = "system-ui,sans-serif"


@dataclass(frozen=True)
class Reader:
    """Whose message it is. ``pk`` is 0 for nobody in particular, of whom nothing is known."""

    email: str = "person@example.org"
    attributes: Mapping[str, Any] = field(default_factory=dict)
    pk: int = 0


NOBODY = Reader()


@dataclass(frozen=True)
class Problem:
    """What keeps a message from being made. ``line`` and ``column`` count from 1 in ``field``, and
    are ``None`` when the error has no place."""

    field: str
    message: str
    line: int | None = None
    column: int | None = None

    def __str__(self) -> str:
        name = self.field.replace("_", " ").capitalize()
        place = "" if self.line is None else f", line {self.line}, column {self.column}"
        return f"{name}{place}: {self.message}"


@dataclass(frozen=True)
class Missing:
    """A field that the message reads and this person has not. ``bare``: nothing stands there."""

    name: str
    bare: bool

    def __str__(self) -> str:
        shown = "nothing is shown there" if self.bare else "its default is shown"
        return f"{self.name}: {shown}"


@dataclass(frozen=True)
class Preview:
    """One person's message, or why there is none (``rendered`` is then ``None``)."""

    reader: Reader
    content: Renderable | None = None
    rendered: Rendered | None = None
    context: Mapping[str, Any] = field(default_factory=dict)
    missing: tuple[Missing, ...] = ()
    problems: tuple[Problem, ...] = ()


def typed(values: Mapping[str, Any], account: Account, layout: Layout | None) -> Campaign:
    """The campaign that a form's values would make, unsaved; checked by nothing yet."""
    texts = {name: _text(values.get(name, "")) for name in TEXTS}
    for name in set(TEXTS) - {"body", "text_body"}:
        texts[name] = texts[name].strip()
    return Campaign(account=account, layout=layout, **texts)


def example_of(layout: Layout) -> Campaign:
    """A campaign with this layout and a few words, unsaved: what the frame looks like."""
    return Campaign(
        account=layout.account,
        layout=layout,
        subject="An example",
        body_format=layout.body_format,
        body=_EXAMPLES.get(layout.body_format, _EXAMPLES["text"]),
    )


def preview(draft: Campaign, reader: Reader) -> Preview:
    """What ``reader`` will get of ``draft``: of its frozen content where it is approved."""
    content, found = content_of(draft)
    if content is None:
        return Preview(reader, problems=found)
    return of_content(content, reader)


def content_of(draft: Campaign) -> tuple[CompiledContent | None, tuple[Problem, ...]]:
    """What is sent of a campaign, or everything that keeps it from being compiled."""
    if draft.content_id is not None and draft.content is not None:
        return frozen(draft.content), ()
    try:
        return compile_content(draft), ()
    except ContentError as error:
        found = problems(draft) or [error]
        return None, tuple(Problem(e.field, e.message, e.line, e.column) for e in found)


def frozen(content: Any) -> CompiledContent:
    """A saved ``Content`` as it was compiled."""
    return CompiledContent(
        **{name: getattr(content, name) for name in CompiledContent.__dataclass_fields__}
    )


def of_content(content: CompiledContent, reader: Reader) -> Preview:
    """What ``reader`` gets of a content."""
    context = context_of(content, reader)
    try:
        renderer = Renderer(content)
        rendered = renderer.render(context)
    except RenderError as error:
        return Preview(reader, content, problems=(Problem("message", str(error)),))
    return Preview(reader, content, rendered, context, tuple(missing(renderer, reader.attributes)))


def context_of(content: CompiledContent, reader: Reader) -> dict[str, Any]:
    """What the templates see of ``reader``; the links of the system are inert."""
    inert = nobodys_link()
    return build_context(
        email=reader.email,
        attributes=reader.attributes,
        account_fields=content.account_fields,
        unsubscribe_url=inert,
        preferences_url=inert,
        web_url=inert,
    )


def missing(renderer: Renderer, attributes: Mapping[str, Any]) -> Iterable[Missing]:
    """The fields that the message reads and ``attributes`` lack, by name."""
    parts = [renderer.subject, renderer.text, *([renderer.html] if renderer.html else [])]
    read = set[str]().union(*(part.fields for part in parts))
    bare = set[str]().union(*(part.bare for part in parts))
    for name in sorted(read):
        if name.partition(".")[0] not in SYSTEM and _look_up(attributes, name) in (None, ""):
            yield Missing(name, name in bare)


def _look_up(attributes: Any, name: str) -> Any:
    for part in name.split("."):
        if not isinstance(attributes, Mapping):
            return None
        attributes = attributes.get(part)
    return attributes


def _text(value: Any) -> str:
    """Browsers post line ends as CR LF; NUL is in no text that the database could hold."""
    return str(value).replace("\r\n", "\n").replace("\r", "\n").replace("\0", "")


# --- what a frame shows ------------------------------------------------------------------------


def page_of(shown: Preview, part: str) -> str:
    """The document of a frame: the message's HTML, its text (``part`` is ``text``, or there is no
    HTML), or why there is none."""
    if shown.rendered is None:
        listed = format_html_join("", "<p>{}</p>", ((str(p),) for p in shown.problems))
        return format_html(_PAGE, "No preview", _SANS, listed)
    if part == "text" or not shown.rendered.html:
        words = format_html("<pre>{}</pre>", shown.rendered.text)
        return format_html(_PAGE, shown.rendered.subject, _MONOSPACE, words)
    return without_links(shown.rendered.html)


def without_links(html: str) -> str:
    """The document, of which no link leads anywhere inside a frame's sandbox, whatever window it
    names itself."""
    html = _TAG.sub(lambda tag: _TARGET.sub("data-target", tag[0]), html)
    for place in (_HEAD, _HTML, _DOCTYPE):
        found = place.search(html) if place is not _DOCTYPE else place.match(html)
        if found:
            return f"{html[: found.end()]}{_NOWHERE}{html[found.end() :]}"
    return f"{_NOWHERE}{html}"


# --- the message as it leaves ------------------------------------------------------------------


@dataclass(frozen=True)
class HeaderLine:
    """A header as it is written, unfolded; ``reads`` is what people see of it, where encoded."""

    name: str
    value: str
    reads: str = ""


def header_lines(source: bytes) -> list[HeaderLine]:
    """The headers of a message (RFC 5322), in order."""
    found = []
    for name, raw in message_from_bytes(source).items():
        value = _BREAK.sub("", str(raw))
        found.append(HeaderLine(name, value, _readable(value)))
    return found


def source_text(source: bytes) -> tuple[str, bool]:
    """A message as text, and whether that is its beginning only."""
    text = source.decode("utf-8", "replace").replace("\r\n", "\n")
    return text[:MOST_SOURCE], len(text) > MOST_SOURCE


def _readable(value: str) -> str:
    if "=?" not in value:
        return ""
    try:
        return str(make_header(decode_header(value)))
    except (HeaderParseError, LookupError, ValueError):
        return ""
