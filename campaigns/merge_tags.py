"""Merge tags carried unharmed through converters that know nothing of them.

Markdown, MJML and HTML parsers escape quotes, split at pipes and drop what they don't know.
So each tag becomes a word of plain letters and digits before, and itself again after.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from .sandbox import tags

_STEM = "mergetag"


class MergeTags:
    """The tags of one source, or of several. ``hide`` first, then any number of ``show``."""

    def __init__(self, *avoid: str) -> None:
        self._stem = _STEM
        while any(self._stem in text for text in avoid):
            self._stem += "q"
        self._tags: list[str] = []
        self._origins: list[Any] = []
        #: A word that stands for any tag.
        self.word = rf"{self._stem}[bv]\d{{5}}z"
        #: A word that stands for ``{% ... %}``.
        self.block = rf"{self._stem}b\d{{5}}z"

    def hide(self, source: str, origin: Callable[[int], Any] = lambda start: None) -> str:
        """The source with a word for each tag; comments (``{# #}``) are gone. ``origin`` says of
        a tag's offset what ``origin_at`` is to tell of the tag."""
        parts, upto = [], 0
        for start, end in tags(source):
            parts.append(source[upto:start])
            tag = source[start:end]
            if not tag.startswith("{#"):
                kind = "b" if tag.startswith("{%") else "v"
                parts.append(f"{self._stem}{kind}{len(self._tags):05d}z")
                self._tags.append(tag)
                self._origins.append(origin(start))
            upto = end
        return "".join([*parts, source[upto:]])

    def show(self, hidden: str) -> str:
        """The tags back in their places."""
        return re.sub(self.word, lambda match: self._tags[int(match[0][-6:-1])], hidden)

    def origin_at(self, hidden: str, shown: int) -> Any:
        """The origin of the tag that stands at offset ``shown`` of ``show(hidden)``; ``None``
        where there is none."""
        moved = 0
        for match in re.finditer(self.word, hidden):
            number = int(match[0][-6:-1])
            start = match.start() + moved
            if shown < start:
                break
            if shown < start + len(self._tags[number]):
                return self._origins[number]
            moved += len(self._tags[number]) - len(match[0])
        return None

    def offset_in(self, source: str, hidden: int) -> int:
        """The offset in ``source`` of what is at offset ``hidden`` of ``hide(source)``."""
        word = len(self._stem) + 7
        at = upto = 0
        for start, end in tags(source):
            if hidden < at + start - upto:
                break
            at += start - upto
            if not source.startswith("{#", start):
                if hidden < at + word:
                    return start
                at += word
            upto = end
        return min(upto + hidden - at, len(source))
