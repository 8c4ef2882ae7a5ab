"""What a campaign is written in, turned into the HTML that is sent.

Everything here works on text whose merge tags are hidden words (``MergeTags``).
"""

from __future__ import annotations

import html
import re

DOCUMENT = """<!doctype html>
<html>
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
</head>
<body{attributes}>
{body}
</body>
</html>
"""
_PROSE = (
    ' dir="auto" style="margin:0 auto;padding:16px;max-width:600px;'
    "font-family:-apple-system,Segoe UI,Roboto,Helvetica,Arial,sans-serif;"
    'font-size:16px;line-height:1.5;color:#1f2328"'
)
_BODY_START = re.compile(r"<body\b[^>]*>", re.IGNORECASE)
_BODY_END = re.compile(r"</body\s*>", re.IGNORECASE)
_IS_DOCUMENT = re.compile(r"<(?:html|body)\b", re.IGNORECASE)
_HIDDEN = (
    "display:none;font-size:1px;line-height:1px;max-height:0;max-width:0;opacity:0;"
    "overflow:hidden;mso-hide:all"
)
# Keeps mail programs from filling the line after the preheader with the body's first words.
_FILLER = "&#847;&zwnj;&nbsp;" * 40
#: Elements inside each other. MJML's compiler recurses in native code: a few thousand, or a
#: hundred on a small thread's stack, end the process.
MAX_DEPTH = 40
_TAG = re.compile(r"<(/?)([A-Za-z][\w:-]*)")
_IN_TAG = re.compile(r"[\"'>]|/>")
_VOID = {"area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source"}
_VOID |= {"track", "wbr"}


class FormatError(ValueError):
    """The body is not what its format says; the message says why."""


def from_html(source: str, title: str) -> str:
    """A whole document as it is; a fragment in a plain one."""
    if _IS_DOCUMENT.search(source):
        return source
    return DOCUMENT.format(title=html.escape(title), attributes="", body=source)


def from_markdown(source: str, title: str, block: str) -> str:
    """CommonMark with tables and strikethrough. Raises ``FormatError`` without the extra."""
    try:
        from markdown_it import MarkdownIt
    except ImportError as error:
        raise FormatError("Markdown needs django-sendonce[markdown] to be installed.") from error
    body = MarkdownIt("commonmark").enable(["table", "strikethrough"]).render(source)
    # {% if %} on a line of its own is no paragraph.
    body = re.sub(rf"<p>\s*((?:{block}\s*)+)</p>", r"\1", body)
    return DOCUMENT.format(title=html.escape(title), attributes=_PROSE, body=body.strip())


def from_mjml(source: str) -> str:
    """MJML, without web fonts that the author did not ask for. Raises ``FormatError``."""
    try:
        from mjml import mjml2html
    except ImportError as error:
        raise FormatError("MJML needs django-sendonce[mjml] to be installed.") from error
    if re.search(r"<mj-include\b", source, re.IGNORECASE):
        raise FormatError("mj-include is not available: a campaign is one document.")
    if _depth(source) > MAX_DEPTH:
        raise FormatError(f"More than {MAX_DEPTH} elements inside each other.")
    try:
        return str(mjml2html(source, fonts={}))
    except ValueError as error:
        raise FormatError(f"MJML: {error}.") from error


def with_preheader(document: str, preheader: str) -> str:
    """The document with the preheader hidden at the top of its body."""
    block = f'<div style="{_HIDDEN}">{html.escape(preheader)}{_FILLER}</div>'
    start = _BODY_START.search(document)
    at = start.end() if start else 0
    return document[:at] + block + document[at:]


def with_footer(document: str, footer: str) -> str:
    """The document with the footer as the last thing in its body."""
    ends = list(_BODY_END.finditer(document))
    at = ends[-1].start() if ends else len(document)
    return document[:at] + footer + document[at:]


def _depth(source: str) -> int:
    """The most elements inside each other, never less than a parser would find. Linear."""
    open_: list[str] = []
    deepest = at = 0
    while tag := _TAG.search(source, at):
        closing, name = tag[1], tag[2].lower()
        at, alone = _end_of_tag(source, tag.end())
        if closing:
            if open_ and open_[-1] == name:
                open_.pop()
        elif not alone and name not in _VOID:
            open_.append(name)
            deepest = max(deepest, len(open_))
    return deepest


def _end_of_tag(source: str, at: int) -> tuple[int, bool]:
    """Where the tag's text ends, and whether it ends in ``/>``."""
    while found := _IN_TAG.search(source, at):
        at = found.end()
        if found[0] not in "\"'":
            return at, found[0] == "/>"
        at = source.find(found[0], at) + 1
        if not at:
            raise FormatError("A quotation mark inside a tag is not closed.")
    raise FormatError("A tag is not closed.")
