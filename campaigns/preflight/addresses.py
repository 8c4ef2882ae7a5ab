"""Addresses elsewhere than in a link or in an image's ``src``: in ``srcset``, in CSS, as a
background, and in comments that Outlook alone reads; pure, in linear time.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from lxml import etree

from . import css

#: What Outlook reads of a comment, whatever the condition.
_CONDITION = re.compile(r"\s*\[if\b[^\]]*+\]>", re.IGNORECASE)
_END = re.compile(r"<!\[endif\]\s*\Z", re.IGNORECASE)
_PIECE = 1 << 15  # bytes
#: Elements inside each other, as in ``markup``.
_MAX_DEPTH = 500


@dataclass(frozen=True, slots=True)
class Address:
    """``where`` in words that follow the URL: "in CSS". ``is_link``: one to follow;
    ``is_extra``: of a font or a style sheet, without which a message is the same."""

    url: str
    where: str
    is_link: bool = False
    is_extra: bool = False


def of_element(tag: str, attributes: Mapping[str, str]) -> Iterator[Address]:
    """Of an element's attributes; ``v:`` elements are Outlook's shapes (VML)."""
    if "srcset" in attributes:
        for url in css.srcset(attributes["srcset"]):
            yield Address(url, "in srcset")
    if attributes.get("background", "").strip():
        yield Address(attributes["background"], "as a background")
    if tag.startswith("v:"):
        if attributes.get("src", "").strip():
            yield Address(attributes["src"], "for Outlook")
        if "href" in attributes:
            yield Address(attributes["href"], "for Outlook", is_link=True)
    if "url(" in attributes.get("style", "").lower():
        yield from of_css(attributes["style"])


def of_css(text: str) -> Iterator[Address]:
    for url, is_extra in css.urls(text):
        yield Address(url, "in CSS", is_extra=is_extra)


class _Outlook:
    """An lxml parser target: what of a comment is an address."""

    def __init__(self) -> None:
        self.found: list[Address] = []
        self._depth = 0
        self._in_style = False
        self._css: list[str] = []

    def start(self, tag: str, attributes: Mapping[str, str]) -> None:
        self._depth += 1
        if self._depth > _MAX_DEPTH:
            raise ValueError("too deep")
        self._in_style = tag == "style"
        if tag == "a" and "href" in attributes:
            self.found.append(Address(attributes["href"], "for Outlook", is_link=True))
        if tag == "img" and attributes.get("src", "").strip():
            self.found.append(Address(attributes["src"], "for Outlook"))
        for address in of_element(tag, attributes):
            self.found.append(_for_outlook(address))

    def end(self, tag: str) -> None:
        self._depth -= 1
        if tag == "style":
            self._in_style = False
            self.found += map(_for_outlook, of_css("".join(self._css)))
            self._css.clear()

    def data(self, text: str) -> None:
        if self._in_style:
            self._css.append(text)

    def comment(self, text: str) -> None:
        """Not read by Outlook either."""

    def close(self) -> list[Address]:
        return self.found


def _for_outlook(address: Address) -> Address:
    if address.where.endswith("for Outlook"):
        return address
    return replace(address, where=f"{address.where} for Outlook")


def conditional(comment: str) -> str:
    """What Outlook reads in a comment; "" for one that is a comment to it, too."""
    start = _CONDITION.match(comment)
    return _END.sub("", comment[start.end() :]) if start else ""


def for_outlook(pieces: list[str]) -> list[Address]:
    """The addresses in what Outlook reads in all comments of a message, which open in one what
    they close in another. As many as could be read."""
    target = _Outlook()
    parser: Any = etree.HTMLParser(target=target, huge_tree=True, encoding="utf-8")
    source = "\n".join(pieces).encode("utf-8", "replace")
    try:
        for start in range(0, len(source), _PIECE):
            parser.feed(source[start : start + _PIECE])
        if source:
            parser.close()
    except (etree.LxmlError, ValueError, AssertionError):
        return target.found
    return target.found
