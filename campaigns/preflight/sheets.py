"""What the style sheets of a message say, as far as it may undo what an inline style says; pure,
linear.

Their rules are in inline styles by then (``body_formats.inlined``), save those that hold on some
screens only. Which elements a rule is for is told generously, by the end of its selector: one that
may be for an element is taken to be.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from .css import important_too

_SAID_OF_SIZE = re.compile(r"(?<![\w-])font(?:-size)?\s*:")
_SAID_OF_COLOR = re.compile(r"(?<![\w-])color\s*:")
_SAID_OF_GROUND = re.compile(r"(?<![\w-])background(?:-color|-image)?\s*:")

_COMMENT = re.compile(r"/\*.*?(?:\*/|\Z)|<!--|-->", re.DOTALL)
# Each character is of one branch alone.
_PIECE = re.compile(r""""[^"\n]*+"?|'[^'\n]*+'?|[{};]|[^{};"']++""")
#: Groups whose rules are for no screen, or are no rules of elements.
_NO_RULES = re.compile(r"@(?:font-face|(?:-\w+-)?keyframes|page|property|counter-style)\b")
_ON_PAPER = re.compile(r"\s*+(?:only\s++)?(?:print|speech|aural|braille|embossed|tty)\b")
_MEDIA_OF_STYLE = re.compile(r"""\smedia\s*+=\s*+(?:"([^"]*+)|'([^']*+)|([^\s>"']++))""")
_BY_CLASS = re.compile(r"""\[class\s*+~?=\s*+["']?([\w-]+)["']?\s*+\](?:[.:\#][\w-]++)*+\Z""")
_COMBINATOR = re.compile(r"[\s>+~]+")
_ID, _CLASS = re.compile(r"\#([\w-]+)"), re.compile(r"\.([\w-]+)")
_TAG = re.compile(r"[a-z][\w-]*+")
_ZERO = re.compile(r"(?:0++(?:\.0*+)?|\.0++)(?:[a-z]++|%)?\Z")
#: What is looked at, and which of its values show nothing.
_LOOKED_AT = {
    **dict.fromkeys(("opacity", "font-size", "height", "max-height", "width", "max-width"), _ZERO),
    **dict.fromkeys(("overflow", "overflow-y"), re.compile(r".*(?:hidden|clip)\Z")),
    **dict.fromkeys(
        (
            "color", "background", "background-color", "background-image", "font", "position",
            "left", "top", "right", "bottom", "margin", "margin-left", "margin-top", "text-indent",
            "clip",
        ),
        re.compile(r"\Z"),
    ),
    "display": re.compile(r"none\Z"),
    "visibility": re.compile(r"(?:hidden|collapse)\Z"),
}  # fmt: skip
#: The end of a selector that tells nothing, and what all of them show together.
ANY, ALL = "*", ""


@dataclass(slots=True)
class Shown:
    """Declarations that may show something: those of rules for some screens, by which an inline
    style is not beaten, and ``!important`` ones, by which it is."""

    plain: dict[str, str] = field(default_factory=dict)
    important: dict[str, str] = field(default_factory=dict)

    def add(self, other: Shown) -> None:
        self.plain |= other.plain
        self.important |= other.important

    def __bool__(self) -> bool:
        return bool(self.plain or self.important)


@dataclass(frozen=True, slots=True)
class Sheets:
    """What the style sheets of a message speak of, of anything; ``shown``: what they show, by the
    last part of a selector (``.class``, ``#id``, a tag, ``ANY``)."""

    sizes: bool = False
    colors: bool = False
    grounds: bool = False
    shown: Mapping[str, Shown] = field(default_factory=dict)

    @classmethod
    def of(cls, html: str) -> Sheets:
        """Of everything in style elements, wherever they stand; merge tags are words in it
        (``MergeTags``)."""
        lower, at = html.lower(), 0
        sheets, shown = [], dict[str, Shown]()
        while (start := lower.find("<style", at)) >= 0:
            end = lower.find("</style", start)
            at = len(lower) if end < 0 else end
            sheets.append(lower[start:at])
            head, _, css = lower[start:at].partition(">")
            media = _MEDIA_OF_STYLE.search(head)
            if media is None or not _is_on_paper(media[1] or media[2] or media[3] or ""):
                _gather(shown, css)
        css = " ".join(sheets)
        return cls(
            bool(_SAID_OF_SIZE.search(css)),
            bool(_SAID_OF_COLOR.search(css)),
            bool(_SAID_OF_GROUND.search(css)),
            shown,
        )

    def of_element(self, tag: str, attributes: Mapping[str, str], *, varies: bool = False) -> Shown:
        """What may be for this element; ``varies``: its class or id depends on a merge tag, so
        that it may be of any."""
        if varies:
            return self.shown.get(ALL, Shown())
        found = Shown()
        names = attributes.get("class", "").lower().split() if self.shown else ()
        identity = attributes.get("id", "").strip().lower()
        for key in (ANY, tag, *(f".{name}" for name in names), f"#{identity}"):
            if key in self.shown:
                found.add(self.shown[key])
        return found


def _gather(shown: dict[str, Shown], css: str) -> None:
    for selectors, style, is_grouped in _rules(_COMMENT.sub(" ", css)):
        declared, important = important_too(style)
        of_rule = Shown()
        for name, value in declared.items():
            if name not in _LOOKED_AT or _LOOKED_AT[name].match(value):
                continue
            if name in important:
                of_rule.important[name] = value
            elif is_grouped:
                of_rule.plain[name] = value
        if of_rule:
            # What a comma parts may be one selector, as in :is(a, b): then its end is of any.
            for end in (ALL, *map(_end_of, selectors.split(","))):
                shown.setdefault(end, Shown()).add(of_rule)


def _rules(css: str) -> Iterator[tuple[str, str, bool]]:
    """``(selectors, declarations, it stands in a group)`` of each rule for a screen."""
    text: list[str] = []
    #: Of each open block: what stands before it, and whether its rules are not for us.
    open_: list[tuple[str, bool]] = []
    for match in _PIECE.finditer(css):
        piece = match[0]
        if piece == "{":
            before = "".join(text).rpartition(";")[2].strip()
            passed_over = bool(open_ and open_[-1][1]) or _is_passed_over(before)
            open_.append((before, passed_over))
            text = []
        elif piece == "}":
            before, passed_over = open_.pop() if open_ else ("@", True)
            if not passed_over and not before.startswith("@"):
                yield before, "".join(text), bool(open_)
            text = []
        else:
            text.append(piece)


def _is_passed_over(before: str) -> bool:
    if _NO_RULES.match(before):
        return True
    return before.startswith("@media") and _is_on_paper(before.removeprefix("@media"))


def _is_on_paper(media: str) -> bool:
    return bool(media.strip()) and all(_ON_PAPER.match(one) for one in media.split(","))


def _end_of(selector: str) -> str:
    """What it is certain of an element that the selector is for; ``ANY``: nothing."""
    selector = selector.strip()
    by_class = _BY_CLASS.search(selector)
    if by_class:
        return f".{by_class[1]}"
    if any(sign in selector for sign in "[]()\\"):
        return ANY
    end = _COMBINATOR.split(selector)[-1].partition(":")[0]
    for sign, pattern in (("#", _ID), (".", _CLASS)):
        found = pattern.findall(end)
        if found:
            return f"{sign}{found[-1]}"
    tag = _TAG.match(end)
    return tag[0] if tag else ANY
