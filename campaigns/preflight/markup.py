"""What an HTML message holds that a check may ask about; pure, in linear time.

The document is read with its merge tags hidden (``MergeTags``), so that both ways of an
``{% if %}`` are looked at, by the parser that makes the text part, which never fails on markup.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from lxml import etree

from ..merge_tags import MergeTags
from ..sandbox import SandboxError, tags

#: Characters of visible text that are kept to be searched.
MAX_TEXT = 1_000_000
#: Links and images that are looked at; the rest is one more finding.
MAX_LOOKED_AT = 2_000
#: Elements inside each other, beyond which nothing is looked at: the parser would look through
#: all of them for each end tag that has no start.
MAX_DEPTH = 500
_PIECE = 1 << 15  # bytes

#: Elements that mail programs take out, or don't run.
DROPPED = frozenset(
    {"script", "form", "input", "select", "textarea", "button", "iframe", "frame", "frameset"}
) | frozenset({"object", "embed", "applet", "video", "audio", "svg", "base"})
_SILENT = frozenset({"script", "style", "title", "noscript", "template", "textarea"})
_VOID = frozenset(
    {"area", "base", "br", "col", "embed", "frame", "hr", "img", "input", "link", "meta"}
) | frozenset({"param", "source", "track", "wbr"})
# Not ``font-size:0``: frames of columns have it, and what is in them has a size of its own.
_HIDING = re.compile(
    r"(?:^|[;\s])(?:display\s*:\s*none|visibility\s*:\s*hidden|mso-hide\s*:\s*all"
    r"|opacity\s*:\s*0(?:\.0+)?\s*(?:;|!|$))",
    re.IGNORECASE,
)
# As preheaders are hidden: neither of the two hides anything alone.
_NO_HEIGHT = re.compile(
    r"(?:^|[;\s])(?:max-)?height\s*:\s*0(?:\.0+)?(?:px|em|%|pt)?\s*(?:;|!|$)", re.IGNORECASE
)
_NO_OVERFLOW = re.compile(r"(?:^|[;\s])overflow(?:-y)?\s*:\s*hidden", re.IGNORECASE)


@dataclass(slots=True)
class Link:
    """A link. ``url`` has its merge tags as they were written. ``is_empty``: nothing in it can be
    read, neither text nor an image's alternative text; ``images``: how many images it holds."""

    url: str
    hidden: bool = False
    is_empty: bool = True
    images: int = 0


@dataclass(frozen=True, slots=True)
class Picture:
    """An image; ``alt`` None: it has no such attribute."""

    src: str
    alt: str | None


@dataclass(slots=True)
class Page:
    """``text`` is what people see, merge tags as they were written, ``prose`` the same without
    merge tags and without links of the system, ``hidden`` what is in the document and not shown.
    ``dropped`` counts elements that mail programs take out, ``handlers`` attributes such as
    ``onclick``. ``targets``: what ``#name`` may point to. ``unread``: the parser gave up."""

    links: list[Link] = field(default_factory=list)
    images: list[Picture] = field(default_factory=list)
    targets: set[str] = field(default_factory=set)
    dropped: Counter[str] = field(default_factory=Counter)
    handlers: Counter[str] = field(default_factory=Counter)
    text: str = ""
    prose: str = ""
    hidden: str = ""
    more: int = 0
    unread: bool = False


class _TooDeep(ValueError):
    """There are more than ``MAX_DEPTH`` elements inside each other."""


class _Reader:
    """An lxml parser target: it is told each element's start, end and text."""

    def __init__(self, hidden: MergeTags) -> None:
        self.page = Page()
        self._tags = hidden
        self._word = re.compile(hidden.word)
        #: Open elements: name, whether what is in it is shown, the link that it is.
        self._open: list[tuple[str, bool, Link | None]] = []
        self._silent = 0
        self._hiding = 0
        self._links: list[Link] = []
        self._text: list[str] = []
        self._prose: list[str] = []
        self._hidden: list[str] = []

    def start(self, tag: str, attributes: Mapping[str, str]) -> None:
        page = self.page
        for name in attributes:
            if name.startswith("on") and len(name) > 2:
                page.handlers[name] += 1
        for name in ("id", "name"):
            if name in attributes:
                page.targets.add(self._tags.show(attributes[name]))
        if tag in DROPPED:
            page.dropped[tag] += 1
        if tag == "link" and "stylesheet" in attributes.get("rel", "").lower().split():
            page.dropped["link"] += 1
        hides = "hidden" in attributes or _hides(attributes.get("style", ""))
        link = None
        if tag in ("a", "area") and "href" in attributes:
            link = self._link(attributes["href"], hides)
        if tag == "img":
            self._image(attributes)
        if tag in _VOID:
            return
        if len(self._open) >= MAX_DEPTH:
            raise _TooDeep
        self._open.append((tag, hides, link))
        self._silent += tag in _SILENT
        self._hiding += hides
        if link is not None:
            self._links.append(link)

    def end(self, tag: str) -> None:
        if not self._open or self._open[-1][0] != tag:
            return  # of a void element, or of nothing
        _, hides, link = self._open.pop()
        self._silent -= tag in _SILENT
        self._hiding -= hides
        if link is not None:
            self._links.remove(link)

    def data(self, text: str) -> None:
        if self._silent:
            return
        if self._hiding:
            self._hidden.append(text)
            return
        self._text.append(text)
        if text.strip():
            for link in self._links:
                link.is_empty = False
        if not any("_url" in link.url and "{{" in link.url for link in self._links):
            self._prose.append(text)

    def comment(self, text: str) -> None:
        """Not shown, and Outlook's conditions in comments say what others say too."""

    def close(self) -> Page:
        page = self.page
        page.text = self._tags.show("".join(self._text)[:MAX_TEXT])
        page.prose = self._word.sub("", "".join(self._prose)[:MAX_TEXT])
        page.hidden = self._word.sub("", "".join(self._hidden)[:MAX_TEXT])
        return page

    def _link(self, href: str, hides: bool) -> Link:
        link = Link(self._tags.show(href), hidden=bool(hides or self._hiding or self._silent))
        # One with a tag may be the way out; there are only so many tags.
        if len(self.page.links) < MAX_LOOKED_AT or "{{" in link.url:
            self.page.links.append(link)
        else:
            self.page.more += 1
        return link

    def _image(self, attributes: Mapping[str, str]) -> None:
        alt = attributes.get("alt")
        for link in self._links:
            link.images += 1
            link.is_empty = link.is_empty and not (alt or "").strip()
        if len(self.page.images) < MAX_LOOKED_AT:
            src = self._tags.show(attributes.get("src", ""))
            shown = None if alt is None else self._tags.show(alt)
            self.page.images.append(Picture(src, shown))
        else:
            self.page.more += 1


def _hides(style: str) -> bool:
    if _HIDING.search(style):
        return True
    return bool(_NO_HEIGHT.search(style) and _NO_OVERFLOW.search(style))


def read(html: str) -> Page:
    """What is in a document with merge tags. Never raises for what an author wrote."""
    hidden = MergeTags(html)
    reader = _Reader(hidden)
    # A declaration of an encoding would be taken at its word; the text is decoded already.
    parser: Any = etree.HTMLParser(target=reader, huge_tree=True, encoding="utf-8")
    try:
        source = hidden.hide(html).encode("utf-8", "replace")
        # In pieces: only after each is an exception of the reader heard.
        for start in range(0, len(source), _PIECE):
            parser.feed(source[start : start + _PIECE])
        parser.close()
    except (etree.LxmlError, ValueError, AssertionError):
        page = reader.close()
        page.unread = True
        return page
    return reader.page


def without_tags(source: str, word: str = "") -> str:
    """A template without its tags, ``word`` in their places; what is no template as it is."""
    parts, upto = [], 0
    try:
        for start, end in tags(source):
            parts += [source[upto:start], word]
            upto = end
    except SandboxError:
        return source
    return "".join([*parts, source[upto:]])
