"""From a draft's body and its layout to one text, or one HTML document.

A body in HTML, MJML or plain text is placed in a frame of its own kind as it is written. Markdown
is rendered first, block by block, and placed in an HTML frame.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial
from typing import Any, Protocol

from . import body_formats, layouts
from .layouts import BODY, LAYOUT, Composed, LayoutError, Piece, Source
from .merge_tags import MergeTags
from .mjml_format import from_mjml
from .sandbox import MAX_SOURCE, SandboxError, compile_template, place

HTML, MJML, MARKDOWN, TEXT = "html", "mjml", "markdown", "text"
#: The format of the frame that takes a body of this format.
FRAMES = {HTML: HTML, MARKDOWN: HTML, MJML: MJML, TEXT: TEXT}
_NAMES = {HTML: "HTML", MJML: "MJML", MARKDOWN: "Markdown", TEXT: "plain text"}
_DOCUMENT_TAGS = {
    HTML: re.compile(r"<(html|body)\b", re.IGNORECASE),
    MJML: re.compile(r"<(mjml|mj-head|mj-body)\b", re.IGNORECASE),
}
_PARAGRAPH = re.compile(r"<p>((?:(?!</?p>).)*)</p>", re.DOTALL)


class Frame(Protocol):
    """A ``Layout``, or what a form holds of one."""

    account_id: int
    body_format: str
    body: str


class Framed(Protocol):
    """What this module reads of a draft."""

    body_format: str
    body: str

    @property
    def account(self) -> Any: ...

    @property
    def layout(self) -> Any:
        """A ``Frame`` or None."""


def refusals(draft: Framed) -> Iterator[LayoutError]:
    """What is wrong with the body and the layout as they are written, before any format."""
    if draft.layout is None:
        try:
            at = layouts.first_block_tag(draft.body) if len(draft.body) <= MAX_SOURCE else None
        except LayoutError:
            at = None  # what is wrong with it the sandbox says
        if at is not None:
            yield Source(BODY, draft.body, ()).error(
                at, "{% block %} fills a block of a layout, and no layout is chosen."
            )
        else:
            yield from _in_the_sandbox(Source(BODY, draft.body, ()))
        return
    if draft.layout.account_id != draft.account.pk:
        yield LayoutError(LAYOUT, "This layout is of another account.")
        return
    kind = FRAMES.get(draft.body_format)
    if kind is None:
        return
    if draft.layout.body_format != kind:
        yield LayoutError(
            LAYOUT,
            f"This layout is {_NAMES.get(draft.layout.body_format, 'of no known format')}: a body "
            f"in {_NAMES[draft.body_format]} needs one in {_NAMES[kind]}.",
        )
        return
    try:
        frame = layouts.read_frame(draft.layout.body)
    except LayoutError as error:
        yield error
        return
    yield from _in_the_sandbox(frame)
    try:
        body = layouts.read_body(draft.body, frame)
    except LayoutError as error:
        yield error
        return
    yield from _in_the_sandbox(body)
    whole = kind in _DOCUMENT_TAGS and _DOCUMENT_TAGS[kind].search(draft.body)
    if whole:
        yield body.error(
            whole.start(), f"The layout is the document: leave out <{whole[1].lower()}>."
        )


def written(draft: Framed) -> Composed:
    """The body in its layout, as both are written. Raises ``LayoutError``."""
    if draft.layout is None:
        return Composed([Piece(BODY, 0, draft.body)])
    frame, body = _read(draft)
    return layouts.compose(frame, body)


def document(draft: Framed, tags: MergeTags, title: str) -> str:
    """The HTML document, with its merge tags hidden by ``tags``, whose origins are a field and an
    offset in it. ``title`` is hidden already. Raises ``LayoutError``."""
    if draft.body_format == MARKDOWN and draft.layout is not None:
        return body_formats.from_html(_markdown(draft, tags), title)
    composed = written(draft)
    source = tags.hide(composed.text, composed.origin)
    try:
        if draft.body_format == HTML:
            return body_formats.from_html(source, title)
        if draft.body_format == MARKDOWN:
            return body_formats.from_markdown(source, title, tags.block)
        return from_mjml(source)
    except body_formats.FormatError as error:
        if error.at is None:
            raise LayoutError(BODY, str(error)) from error
        origin = composed.origin(tags.offset_in(composed.text, error.at))
        raise error_at(draft, origin, str(error)) from error


def error_at(draft: Framed, origin: tuple[str, int], message: str) -> LayoutError:
    """An error at an origin: a field, and an offset in it."""
    field, offset = origin
    text = draft.body if field == BODY else draft.layout.body
    return LayoutError(field, message, *place(text, offset))


def _read(draft: Framed) -> tuple[Source, Source]:
    frame = layouts.read_frame(draft.layout.body)
    return frame, layouts.read_body(draft.body, frame)


def _markdown(draft: Framed, tags: MergeTags) -> str:
    frame, body = _read(draft)

    def hidden(piece: Piece) -> str:
        return tags.hide(piece.text, partial(_origin, piece))

    def rendered(source: str) -> str:
        try:
            return body_formats.markdown_fragment(source, tags.block)
        except body_formats.FormatError as error:
            raise LayoutError(BODY, str(error)) from error

    filled = {layouts.CONTENT: rendered("".join(map(hidden, body.between())))}
    for block in body.blocks:
        made = rendered(hidden(body.inside(block)))
        # Written in one line, it goes into a line: a title, the label of a button.
        alone = _PARAGRAPH.fullmatch(made) if body.in_one_line(block) else None
        filled[block.name] = alone[1] if alone else made
    return "".join(layouts.fill(frame, filled, hidden))


def _origin(piece: Piece, start: int) -> tuple[str, int]:
    return piece.field, piece.start + start


def _in_the_sandbox(source: Source) -> Iterator[LayoutError]:
    try:
        compile_template(source.masked(), html=False)
    except SandboxError as error:
        yield LayoutError(source.field, error.message, error.line, error.column)
