"""So much of CSS as a message needs: what a style declares, and the addresses in it; pure, linear.

The text may have hidden merge tags (``MergeTags``), which are words like others.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

#: A declaration ends at a semicolon that is in neither quotes nor parentheses.
_DECLARATION = re.compile(r"""(?:[^;"'()]++|"[^"]*+"?|'[^']*+'?|\([^)]*+\)?|\))++""")
_COMMENT = re.compile(r"/\*.*?(?:\*/|\Z)", re.DOTALL)
_IMPORTANT = re.compile(r"\s*+!\s*+important\s*+\Z")
#: What the first of them says, the others say no more.
_SHORT_FOR = {"background": ("background-color", "background-image"), "font": ("font-size",)}
_QUOTED = r""""(?:[^"\\\n]|\\.)*+"?|'(?:[^'\\\n]|\\.)*+'?"""
# Each character is of one branch alone; none of them looks for an end that may not be there.
_TOKEN = re.compile(
    rf"""/\*.*?(?:\*/|\Z)
    |(?P<font>@font-face\s*+\{{[^}}]*+)
    |@import\s++(?P<sheet>url\(\s*+(?:{_QUOTED}|[^)]*+)|{_QUOTED})
    |\burl\(\s*+(?P<url>{_QUOTED}|[^)]*+)
    |{_QUOTED}""",
    re.DOTALL | re.IGNORECASE | re.VERBOSE,
)
_IN_FONT = re.compile(rf"\burl\(\s*+({_QUOTED}|[^)]*+)", re.DOTALL | re.IGNORECASE)
_URL_START = re.compile(r"url\(\s*+", re.IGNORECASE)
_CANDIDATE = re.compile(r"[\s,]*+(\S++)")


def declarations(style: str) -> dict[str, str]:
    """The declarations of a style attribute that count, in lower case: of two alike the later,
    or the important one; a shorthand takes back what it sets."""
    return important_too(style)[0]


def important_too(style: str) -> tuple[dict[str, str], set[str]]:
    """``declarations``, and the names of those that are ``!important``."""
    found: dict[str, str] = {}
    important: set[str] = set()
    for match in _DECLARATION.finditer(_COMMENT.sub("", style.lower())):
        name, colon, value = match[0].partition(":")
        name, value = name.strip(), value.strip()
        if not colon or not value:
            continue
        plain = _IMPORTANT.sub("", value)
        if plain != value:
            important.add(name)
        elif name in important:
            continue
        for part in _SHORT_FOR.get(name, ()):
            if part not in important:
                found.pop(part, None)
        found[name] = plain
    return found, important


def urls(css: str) -> Iterator[tuple[str, bool]]:
    """``(address, is a font or a style sheet)`` of a style sheet or a style attribute. Those that
    point into the document itself (``url(#x)``) and empty ones load nothing and are left out."""
    for match in _TOKEN.finditer(css):
        if match["font"] is not None:
            found = [(url[1], True) for url in _IN_FONT.finditer(match["font"])]
        elif match["sheet"] is not None:
            found = [(_URL_START.sub("", match["sheet"], count=1), True)]
        else:
            found = [(match["url"] or "", False)]
        for raw, is_extra in found:
            url = raw.strip().strip("\"'").strip()
            if url and not url.startswith("#"):
                yield url, is_extra


def srcset(value: str) -> Iterator[str]:
    """The addresses of a ``srcset``, as browsers split it (WHATWG HTML, 4.8.4.3.10)."""
    at = 0
    while match := _CANDIDATE.match(value, at):
        url, at = match[1], match.end()
        if not url.endswith(","):
            comma = value.find(",", at)
            at = len(value) if comma < 0 else comma + 1
        if url.strip(","):
            yield url.rstrip(",")
