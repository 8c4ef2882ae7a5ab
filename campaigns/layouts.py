"""Layouts: a frame with blocks, and a body that fills them. Text in, text out; pure.

A frame holds ``{% block content %}{% endblock %}`` once, and any number of other blocks with what
stands there where a body says nothing else. In a body, ``{% block name %}...{% endblock %}`` fills
a block of that name; all the rest of it is the content. Blocks stand neither inside each other nor
inside ``{% if %}``, so a frame and a body are composed before the sandbox sees anything, and it
never learns what a block is.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, chain
from typing import TypeVar

from .sandbox import MAX_SOURCE, MAX_TAGS, SandboxError, place, tags

T = TypeVar("T")

CONTENT = "content"
#: The campaign's fields that an error can be in.
BODY, LAYOUT = "body", "layout"

_TAG = re.compile(r"\{%\s*([^\s%]+)\s*(.*?)\s*%\}")
_NAME = re.compile(r"[A-Za-z]\w{0,49}", re.ASCII)
#: Names that a message lists.
_SHOWN = 20


class LayoutError(ValueError):
    """A frame or a body that can't be read. ``field`` is ``body`` or ``layout``; ``line`` and
    ``column`` count from 1 in it, and are ``None`` when the error has no place."""

    def __init__(
        self, field: str, message: str, line: int | None = None, column: int | None = None
    ) -> None:
        super().__init__(message)
        self.field = field
        self.message = message
        self.line = line
        self.column = column


@dataclass(frozen=True, slots=True)
class Block:
    """One block of a source, as offsets in it: of its two tags, and of what is between them."""

    name: str
    opens: int
    start: int
    end: int
    closes: int


@dataclass(frozen=True, slots=True)
class Piece:
    """A run of characters that stand so in one source: ``field`` says in which, ``start`` where."""

    field: str
    start: int
    text: str


@dataclass(frozen=True)
class Source:
    """A frame or a body with its blocks, in order."""

    field: str
    text: str
    blocks: tuple[Block, ...]

    @property
    def names(self) -> list[str]:
        return [block.name for block in self.blocks]

    def masked(self) -> str:
        """The text with spaces for the tags of blocks: every other tag is where it was, for the
        sandbox to check."""
        parts, upto = [], 0
        for block in self.blocks:
            for start, end in ((block.opens, block.start), (block.end, block.closes)):
                parts += [self.text[upto:start], " " * (end - start)]
                upto = end
        return "".join([*parts, self.text[upto:]])

    def error(self, offset: int, message: str) -> LayoutError:
        return LayoutError(self.field, message, *place(self.text, offset))

    def between(self) -> list[Piece]:
        """What is outside of all blocks. A block that has its lines to itself takes them along."""
        pieces, upto = [], 0
        for block in self.blocks:
            pieces.append(self._piece(upto, block.opens))
            upto = block.closes
            alone = block.opens == 0 or self.text[block.opens - 1] == "\n"
            if alone and self.text.startswith("\n", upto):
                upto += 1
        return [*pieces, self._piece(upto, len(self.text))]

    def inside(self, block: Block) -> Piece:
        """What a block holds, without the line ends next to its tags."""
        start, end = block.start, block.end
        if self.text.startswith("\n", start, end):
            start += 1
        if self.text.endswith("\n", start, end):
            end -= 1
        return self._piece(start, end)

    def in_one_line(self, block: Block) -> bool:
        return "\n" not in self.text[block.start : block.end]

    def _piece(self, start: int, end: int) -> Piece:
        return Piece(self.field, start, self.text[start:end])


class Composed:
    """Pieces one after the other; knows where each character was written."""

    def __init__(self, pieces: Iterable[Piece]) -> None:
        self.pieces = [piece for piece in pieces if piece.text]

    @cached_property
    def text(self) -> str:
        return "".join(piece.text for piece in self.pieces)

    @cached_property
    def _starts(self) -> list[int]:
        return list(accumulate((len(piece.text) for piece in self.pieces), initial=0))

    def origin(self, offset: int) -> tuple[str, int]:
        """The field, and the offset in it, of the character at ``offset``."""
        if not self.pieces:
            return BODY, 0
        number = min(max(bisect_right(self._starts, offset) - 1, 0), len(self.pieces) - 1)
        piece = self.pieces[number]
        return piece.field, piece.start + min(offset - self._starts[number], len(piece.text))


def first_block_tag(text: str) -> int | None:
    """Where the first ``{% block %}`` or ``{% endblock %}`` is. Raises ``LayoutError`` where a tag
    is not closed."""
    for start, end in _tags(BODY, text):
        found = _TAG.fullmatch(text, start, end)
        if found and found[1] in ("block", "endblock"):
            return start
    return None


def read_frame(text: str) -> Source:
    """A layout's source. Raises ``LayoutError``."""
    frame = _read(LAYOUT, text, None)
    if CONTENT not in frame.names:
        raise LayoutError(
            LAYOUT, "There is no {% block content %}{% endblock %}, where a campaign's body goes."
        )
    return frame


def read_body(text: str, frame: Source) -> Source:
    """A body that fills the blocks of a frame. Raises ``LayoutError``."""
    return _read(BODY, text, frame)


def compose(frame: Source, body: Source) -> Composed:
    """The frame with its blocks filled."""
    filled: dict[str, Iterable[Piece]] = {block.name: [body.inside(block)] for block in body.blocks}
    filled[CONTENT] = body.between()
    return Composed(chain.from_iterable(fill(frame, filled, lambda own: [own])))


def fill(frame: Source, filled: Mapping[str, T], own: Callable[[Piece], T]) -> list[T]:
    """The frame's parts in order: what fills a block, and ``own`` of the frame's text around and
    in the others."""
    parts, upto = [], 0
    for block in frame.blocks:
        parts.append(own(Piece(LAYOUT, upto, frame.text[upto : block.opens])))
        parts.append(filled[block.name] if block.name in filled else own(frame.inside(block)))
        upto = block.closes
    return [*parts, own(Piece(LAYOUT, upto, frame.text[upto:]))]


def _read(field: str, text: str, frame: Source | None) -> Source:
    """A source's blocks. One look at each tag, whatever the source is."""
    if len(text) > MAX_SOURCE:
        raise LayoutError(field, f"The template is longer than {MAX_SOURCE} characters.")
    known = None if frame is None else set(frame.names)
    source = Source(field, text, ())
    blocks: list[Block] = []
    seen: set[str] = set()
    ifs: list[int] = []
    open_: tuple[str, int, int] | None = None
    for number, (start, end) in enumerate(_tags(field, text)):
        if number >= MAX_TAGS:
            raise source.error(start, f"More than {MAX_TAGS} tags.")
        found = _TAG.fullmatch(text, start, end)
        if not found:
            continue
        command, words = found[1], found[2]
        if command == "if":
            ifs.append(start)
        elif command == "endif" and ifs:
            ifs.pop()
        elif command == "block":
            name = _checked_name(source, start, words, known)
            if open_ is not None:
                raise source.error(
                    start, f"{{% block {name} %}} stands inside of {{% block {open_[0]} %}}."
                )
            if ifs:
                raise source.error(start, f"{{% block {name} %}} stands inside of {{% if %}}.")
            if name in seen:
                raise source.error(start, f"There is a second {{% block {name} %}}.")
            seen.add(name)
            open_ = name, start, end
        elif command == "endblock":
            if open_ is None:
                raise source.error(start, "{% endblock %} without its {% block %}.")
            name, opens, opened = open_
            if words and words != name:
                raise source.error(start, f"{{% block {name} %}} ends in {{% endblock {words} %}}.")
            if ifs:
                raise source.error(
                    ifs[-1], f"{{% if %}} has no {{% endif %}} inside of {{% block {name} %}}."
                )
            blocks.append(Block(name, opens, opened, start, end))
            open_ = None
    if open_ is not None:
        raise source.error(open_[1], f"{{% block {open_[0]} %}} has no {{% endblock %}}.")
    return Source(field, text, tuple(blocks))


def _tags(field: str, text: str) -> Iterable[tuple[int, int]]:
    try:
        return list(tags(text))
    except SandboxError as error:
        raise LayoutError(field, error.message, error.line, error.column) from error


def _checked_name(source: Source, at: int, words: str, known: set[str] | None) -> str:
    if not _NAME.fullmatch(words):
        raise source.error(
            at, "A block has one name: letters, digits and _, beginning with a letter."
        )
    if known is None:
        return words
    if words == CONTENT:
        raise source.error(
            at, "What stands outside of blocks is the content: leave out {% block content %}."
        )
    if words not in known:
        others = sorted(known - {CONTENT})
        there_are = f"there are {', '.join(others[:_SHOWN])}" if others else "it has no other"
        raise source.error(at, f"The layout has no block {words}; {there_are}.")
    return words
