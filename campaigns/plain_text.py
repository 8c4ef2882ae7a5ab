"""A text part from an HTML body: readable, with the targets of its links."""

from __future__ import annotations

import re
from typing import Any

import lxml.html
from inscriptis.css_profiles import CSS_PROFILES
from inscriptis.html_engine import Inscriptis
from inscriptis.model.config import ParserConfig
from lxml.etree import LxmlError

_XML_DECLARATION = re.compile(r"^\s*<\?xml[^>]*\?>")
_OWN_LINE = re.compile(r"(?:^|;)\s*display\s*:\s*block\b", re.IGNORECASE)
_SILENT_TARGETS = ("#", "javascript:", "data:")


class NoText(ValueError):
    """The HTML can't be read as text."""


def text_from_html(html: str, block: str) -> str:
    """The text of an HTML document; ``block`` is a pattern of words that stand for ``{% %}``.

    A link is followed by its target in angle brackets (RFC 3986, appendix C), an image is its
    alternative text, a table made for layout is its cells one after the other. Raises ``NoText``.
    """
    try:
        tree = lxml.html.document_fromstring(_XML_DECLARATION.sub("", html))
        for element in list(tree.iter("img")):
            _replace(element, element.get("alt", "").strip())
        for element in list(tree.iter("hr")):
            element.tag, element.text = "div", "-" * 20
        for element in list(tree.iter("a")):
            _show_target(element)
        # Inner tables first, so that a frame around a table of figures is still a frame.
        for table in reversed(list(tree.iter("table"))):
            if _is_layout(table, block):
                _flatten(table)
        config = ParserConfig(css=dict(CSS_PROFILES["strict"]))
        text = Inscriptis(tree, config).get_text()
    except RecursionError as error:
        raise NoText("its elements are nested too deeply") from error
    except (LxmlError, ValueError, AssertionError) as error:
        raise NoText(str(error) or "it is no HTML") from error
    return _tidy(text, block)


def _replace(element: Any, text: str) -> None:
    """Put text in an element's place and keep what follows it; it is a line of its own where the
    element was, as the pictures that we offer are."""
    own_line = _OWN_LINE.search(element.get("style", ""))
    element.tag, element.text = ("div" if own_line else "span"), text
    for name in list(element.attrib):
        del element.attrib[name]


def _show_target(link: Any) -> None:
    target = " ".join(link.get("href", "").split())
    shown = " ".join(link.text_content().split())
    if not target or target.lower().startswith(_SILENT_TARGETS):
        return
    bare = re.sub(r"^(?:mailto|tel):", "", target, flags=re.IGNORECASE)
    if target != bare:
        bare = bare.partition("?")[0]
    if bare in shown:
        return
    suffix = f" <{bare}>" if shown else f"<{bare}>"
    if len(link):
        link[-1].tail = (link[-1].tail or "").rstrip() + suffix
    else:
        link.text = (link.text or "").rstrip() + suffix


def _is_layout(table: Any, block: str) -> bool:
    if table.get("role") in ("presentation", "none") or table.find(".//table") is not None:
        return True
    if all(len(row.findall("td") + row.findall("th")) < 2 for row in table.iter("tr")):
        return True
    # A row that some people get and others don't has no columns to line up.
    return bool(re.search(block, table.text_content()))


def _flatten(table: Any) -> None:
    for element in [table, *table.iter("thead", "tbody", "tfoot", "tr", "td", "th", "caption")]:
        if element.tag in ("table", "thead", "tbody", "tfoot", "tr", "td", "th", "caption"):
            element.tag = "div"


def _tidy(text: str, block: str) -> str:
    text = "\n".join(line.rstrip() for line in text.replace("\xa0", " ").splitlines())
    text = re.sub(r"\n{3,}", "\n\n", text).strip()
    # A tag alone on its line would leave its empty lines behind for those it prints nothing for.
    return re.sub(rf"(?m)^[ ]*((?:{block}[ ]*)+)\n+", lambda match: match[1].rstrip(), text)
