"""Bounds of markup, looked at before any parser sees it.

Parsers of HTML take time that grows with the square of a tag's attributes, and those of Markdown
with the square of what they can't close: a megabyte would hold a web worker for minutes.
"""

from __future__ import annotations

import re

#: Of one tag; a long one of a newsletter has twenty.
MOST_ATTRIBUTES = 300
#: Characters of a body in Markdown: a hundred pages.
MOST_MARKDOWN = 200_000

#: A tag as browsers read it: a ``>`` between quotes does not end it. Each character is of one
#: branch alone, so that no text is read twice.
_TAG = re.compile(r"""<[a-zA-Z](?:[^"'<>]|"[^"]*"|'[^']*')*""")
_QUOTED = re.compile(r""""[^"]*"|'[^']*'""")


def overlong_tag(markup: str) -> int | None:
    """Where a tag begins that has more than ``MOST_ATTRIBUTES``; None: there is none. Linear."""
    for tag in _TAG.finditer(markup):
        text = tag.group()
        if len(text) > 2 * MOST_ATTRIBUTES:
            # What is quoted is a value; it ends an attribute, with or without a space after it.
            words = _QUOTED.sub("- ", text).replace("/", " ").split()
            if len(words) > MOST_ATTRIBUTES:
                return tag.start()
    return None
