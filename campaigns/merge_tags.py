"""Merge tags carried unharmed through converters that know nothing of them.

Markdown, MJML and HTML parsers escape quotes, split at pipes and drop what they don't know.
So each tag becomes a word of plain letters and digits before, and itself again after.
"""

from __future__ import annotations

import re

from .sandbox import tags

_STEM = "mergetag"


class MergeTags:
    """The tags of one source. ``hide`` first, then any number of ``show``."""

    def __init__(self, *avoid: str) -> None:
        self._stem = _STEM
        while any(self._stem in text for text in avoid):
            self._stem += "q"
        self._tags: list[str] = []
        #: A word that stands for any tag.
        self.word = rf"{self._stem}[bv]\d{{5}}z"
        #: A word that stands for ``{% ... %}``.
        self.block = rf"{self._stem}b\d{{5}}z"

    def hide(self, source: str) -> str:
        """The source with a word for each tag; comments (``{# #}``) are gone."""
        parts, upto = [], 0
        for start, end in tags(source):
            parts.append(source[upto:start])
            tag = source[start:end]
            if not tag.startswith("{#"):
                kind = "b" if tag.startswith("{%") else "v"
                parts.append(f"{self._stem}{kind}{len(self._tags):05d}z")
                self._tags.append(tag)
            upto = end
        return "".join([*parts, source[upto:]])

    def show(self, hidden: str) -> str:
        """The tags back in their places."""
        return re.sub(self.word, lambda match: self._tags[int(match[0][-6:-1])], hidden)
