"""What an HTML message holds that a check may ask about; pure, in linear time.

The document is read with its merge tags hidden (``MergeTags``), so that both ways of an
``{% if %}`` are looked at, by the parser that makes the text part, which never fails on markup.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from lxml import etree

from ..merge_tags import MergeTags
from ..sandbox import SandboxError, tags
from .addresses import Address, conditional, for_outlook, of_css, of_element
from .sheets import Sheets, Shown
from .sight import OUTLOOK, Sight

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
#: What MJML's compiler makes of accordions, menus and carousels, which work without.
_MADE_BY_MJML = frozenset({"mj-accordion-checkbox", "mj-menu-checkbox", "mj-carousel-radio"})
_THUMBNAIL = "mj-carousel-thumbnail"


@dataclass(slots=True)
class Link:
    """A link. ``url`` has its merge tags as they were written. ``is_empty``: nothing in it can be
    read, neither text nor an image's alternative text; ``images``: how many images it holds.
    ``seen``: whether something in it is seen; ``why`` not, or why it may not be."""

    url: str
    hidden: bool = False
    is_empty: bool = True
    images: int = 0
    seen: Literal["no", "perhaps", "yes"] = "no"
    why: str = ""


@dataclass(frozen=True, slots=True)
class Picture:
    """An image; ``alt`` None: it has no such attribute."""

    src: str
    alt: str | None


@dataclass(slots=True)
class Page:
    """``text`` is what people see, merge tags as they were written, ``clear`` that of it which is
    seen without a doubt, ``prose`` the text without merge tags and without links of the system,
    ``hidden`` what is in the document and not shown. ``addresses`` are those beside links and
    images. ``dropped`` counts elements that mail programs take out, ``handlers`` attributes such as
    ``onclick``. ``targets``: what ``#name`` may point to. ``unread``: the parser gave up."""

    links: list[Link] = field(default_factory=list)
    images: list[Picture] = field(default_factory=list)
    addresses: list[Address] = field(default_factory=list)
    targets: set[str] = field(default_factory=set)
    dropped: Counter[str] = field(default_factory=Counter)
    handlers: Counter[str] = field(default_factory=Counter)
    text: str = ""
    clear: str = ""
    prose: str = ""
    hidden: str = ""
    more: int = 0
    unread: bool = False


class _TooDeep(ValueError):
    """There are more than ``MAX_DEPTH`` elements inside each other."""


class _Reader:
    """An lxml parser target: it is told each element's start, end and text."""

    def __init__(self, hidden: MergeTags, sheets: Sheets) -> None:
        self.page = Page()
        self._tags = hidden
        self._word = re.compile(hidden.word)
        self._block = re.compile(hidden.block)
        self._sheets = sheets
        #: Open elements: name, how its content is seen, the link that it is.
        self._open: list[tuple[str, Sight, Link | None]] = []
        self._sight = Sight()
        self._silent = 0
        self._links: list[Link] = []
        self._text: list[str] = []
        self._clear: list[str] = []
        self._prose: list[str] = []
        self._hidden: list[str] = []
        self._css: list[str] = []
        self._comments: list[str] = []
        self._is_closed = False
        #: In the order of the document, each once.
        self._addresses: dict[Address, None] = {}

    def start(self, tag: str, attributes: Mapping[str, str]) -> None:
        # Most elements have no attributes, and there may be hundreds of thousands.
        classes = attributes["class"].split() if "class" in attributes else ()
        sight = self._sight.inherited
        if attributes:
            self._attributes(tag, attributes)
            varies = "style" in attributes and bool(self._block.search(attributes["style"]))
            sight = sight.inside(tag, attributes, varies=varies, again=self._again(tag, attributes))
        if tag in DROPPED and not (tag == "input" and _MADE_BY_MJML.intersection(classes)):
            self.page.dropped[tag] += 1
        link = None
        if tag in ("a", "area") and "href" in attributes and _THUMBNAIL not in classes:
            link = self._link(attributes["href"], sight)
        if tag == "img":
            self._image(attributes, sight)
        if tag in _VOID:
            return
        if len(self._open) >= MAX_DEPTH:
            raise _TooDeep
        self._open.append((tag, self._sight, link))
        self._sight = sight
        self._silent += tag in _SILENT
        if link is not None:
            self._links.append(link)

    def _again(self, tag: str, attributes: Mapping[str, str]) -> Shown | None:
        if "style" not in attributes and "hidden" not in attributes:
            return None
        named = f"{attributes.get('class', '')} {attributes.get('id', '')}"
        return self._sheets.of_element(tag, attributes, varies=bool(self._word.search(named)))

    def _attributes(self, tag: str, attributes: Mapping[str, str]) -> None:
        page = self.page
        for name in attributes:
            if name.startswith("on") and len(name) > 2:
                page.handlers[name] += 1
        for name in ("id", "name"):
            if name in attributes:
                page.targets.add(self._tags.show(attributes[name]))
        if tag == "link" and "stylesheet" in attributes.get("rel", "").lower().split():
            page.dropped["link"] += 1
        for address in of_element(tag, attributes):
            self._addresses[address] = None

    def end(self, tag: str) -> None:
        if not self._open or self._open[-1][0] != tag:
            return  # of a void element, or of nothing
        _, self._sight, link = self._open.pop()
        self._silent -= tag in _SILENT
        if link is not None:
            self._links.remove(link)

    def data(self, text: str) -> None:
        if self._silent:
            if self._open[-1][0] == "style":
                self._css.append(text)
            return
        is_unseen, why = self._sight.of_text(self._sheets)
        is_away = bool(self._sight.hidden or self._sight.invisible)
        if text.strip():
            for link in self._links:
                link.is_empty = link.is_empty and is_away
                _see(link, is_unseen, why)
        if is_unseen:
            self._hidden.append(text)
            return
        self._text.append(text)
        if why in ("", OUTLOOK):
            # What Outlook reads in its place stands in a comment, more often than not.
            self._clear.append(text)
        if not any("_url" in link.url and "{{" in link.url for link in self._links):
            self._prose.append(text)

    def comment(self, text: str) -> None:
        """Not shown; what Outlook reads in it says what others say too, but may lead elsewhere."""
        told = conditional(text)
        if told:
            self._comments.append(told)

    def close(self) -> Page:
        page = self.page
        if self._is_closed:  # the parser closes it too, when it gives up
            return page
        self._is_closed = True
        page.text = self._tags.show("".join(self._text)[:MAX_TEXT])
        page.clear = self._tags.show("".join(self._clear)[:MAX_TEXT])
        page.prose = self._word.sub("", "".join(self._prose)[:MAX_TEXT])
        page.hidden = self._word.sub("", "".join(self._hidden)[:MAX_TEXT])
        found = [*self._addresses, *of_css("".join(self._css)), *for_outlook(self._comments)]
        every = list(dict.fromkeys(found))
        page.more += max(0, len(every) - MAX_LOOKED_AT)
        page.addresses = [
            replace(address, url=self._tags.show(address.url)) for address in every[:MAX_LOOKED_AT]
        ]
        return page

    def _link(self, href: str, sight: Sight) -> Link:
        is_hidden = bool(sight.hidden or sight.invisible or self._silent)
        link = Link(self._tags.show(href), hidden=is_hidden)
        # One with a tag may be the way out; there are only so many tags.
        if len(self.page.links) < MAX_LOOKED_AT or "{{" in link.url:
            self.page.links.append(link)
        else:
            self.page.more += 1
        return link

    def _image(self, attributes: Mapping[str, str], sight: Sight) -> None:
        alt = attributes.get("alt")
        is_dot = any(attributes.get(side, "") in ("0", "1") for side in ("width", "height"))
        for link in self._links:
            link.images += 1
            link.is_empty = link.is_empty and not (alt or "").strip()
            if not is_dot and not self._silent:
                _see(link, *sight.of_image())
        if len(self.page.images) < MAX_LOOKED_AT:
            src = self._tags.show(attributes.get("src", ""))
            shown = None if alt is None else self._tags.show(alt)
            self.page.images.append(Picture(src, shown))
        else:
            self.page.more += 1


def _see(link: Link, is_unseen: bool, why: str) -> None:
    """Something more of a link is seen, or not: the best of it counts."""
    if is_unseen:
        link.why = link.why or why
    elif not why:
        link.seen, link.why = "yes", ""
    elif link.seen == "no":
        link.seen, link.why = "perhaps", why


def read(html: str) -> Page:
    """What is in a document with merge tags. Never raises for what an author wrote."""
    hidden = MergeTags(html)
    source = hidden.hide(html)
    reader = _Reader(hidden, Sheets.of(source))
    # A declaration of an encoding would be taken at its word; the text is decoded already.
    parser: Any = etree.HTMLParser(target=reader, huge_tree=True, encoding="utf-8")
    try:
        written = source.encode("utf-8", "replace")
        # In pieces: only after each is an exception of the reader heard.
        for start in range(0, len(written), _PIECE):
            parser.feed(written[start : start + _PIECE])
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
