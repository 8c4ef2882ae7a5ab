"""Whether people see an element's text, as far as its own inline style and those around it say;
pure.

What style sheets say is mostly in inline styles too (``body_formats.inlined``). Where one might
still change what was found, or where mail programs differ, the answer is a doubt.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from .colors import CLEAR, UNKNOWN, WHITE, Color, color, ground, is_near
from .css import important_too
from .sheets import Sheets, Shown

Size = Literal["", "none", "tiny"]

NOT_SHOWN = "It stands in an element that is not shown."
NO_SIZE = "Its letters have no size."
SAME_COLOR = "It has the colour of what is behind it."
NEAR_COLOR = "It has nearly the colour of what is behind it."
TINY = "Its letters are too small to be read."
FAINT = "It is all but transparent."
MOVED = "It is moved off the screen or cut off."
SOMETIMES = "For some it stands in an element that is not shown."
SOME_SCREENS = (
    "It is hidden, and only a style sheet shows it again: on some screens (@media), and not in "
    "mail programs that drop style sheets."
)
TOO_WEAK = (
    "It is hidden, and what shows it again in a style sheet (@media) is too weak: each element's "
    "rules are sent as a style of its own, too. Write !important behind what shows it."
)
OUTLOOK = "Outlook does not show it."

#: Pixels of letters that nobody reads, and those beyond which something is off the screen.
_TINY = 3.0
_FAR = 500.0
#: Pixels in a unit, roughly; of a percentage: of a screen that is 600 wide.
_UNITS = {"": 1.0, "px": 1.0, "pt": 1.33, "em": 16.0, "rem": 16.0, "ex": 8.0, "%": 6.0}
_UNITS |= {"vw": 6.0, "vh": 6.0, "in": 96.0, "cm": 38.0, "mm": 3.8, "pc": 16.0}
_LENGTH = re.compile(r"([+-]?(?:\d+(?:\.\d*)?|\.\d+))([a-z%]*)\Z")
# Each digit is of one branch alone: a style may be a million of them.
_FONT_SIZE = re.compile(r"(?:^|\s)((?:\d++(?:\.\d++)?|\.\d++)(?:[a-z]{2,3}|%)?)(?:\s*+/|\s)")
#: A height of these is the least they have; of those in a line it is nothing.
_FLEXIBLE = frozenset({"table", "tbody", "thead", "tfoot", "tr", "td", "th"})
_INLINE = frozenset({"a", "span", "b", "i", "em", "strong", "font", "small", "u", "label"})


@dataclass(frozen=True, slots=True)
class Sight:
    """How an element's content is seen. ``hidden``: why nothing in it is shown. ``invisible``:
    the same, but what is in it may undo it. ``doubt``: why it may not be shown. ``size`` of its
    letters; ``color`` None: that of links, or the reader's own. ``ground`` is the nearest colour
    behind it, None: no one says. The others say what this element's own style says."""

    hidden: str = ""
    invisible: bool = False
    doubt: str = ""
    size: Size = ""
    color: Color | None = None
    ground: Color | None = None
    own_size: bool = False
    own_color: bool = False
    own_ground: bool = False

    def inside(
        self,
        tag: str,
        attributes: Mapping[str, str],
        *,
        varies: bool = False,
        again: Shown | None = None,
    ) -> Sight:
        """That of an element in it. ``varies``: its style depends on an ``{% if %}``. ``again``:
        what style sheets may show of it."""
        found = self.inherited
        style = attributes.get("style", "")
        if "bgcolor" in attributes:
            found = replace(found, ground=color(attributes["bgcolor"].lower()), own_ground=True)
        if attributes.get("background"):
            found = replace(found, ground=UNKNOWN, own_ground=True)
        if tag == "a" and "href" in attributes:
            found = replace(found, color=None, own_color=True)
        elif tag == "font" and "color" in attributes:
            found = replace(found, color=color(attributes["color"].lower()), own_color=True)
        declared, important = important_too(style) if style else ({}, set[str]())
        if varies:
            return _varying(found, tag, declared)
        # The attribute says so below all style sheets.
        under = {"display": "none"} if "hidden" in attributes else {}
        if not declared and not under:
            return found
        seen = _styled(found, tag, under | declared)
        if not again:
            return seen
        beaten = {name: value for name, value in again.important.items() if name not in important}
        other = _styled(found, tag, under | again.plain | declared | beaten)
        if seen != other:
            return _on_some_screens(found, seen, other)
        if seen.hidden != found.hidden and not _styled(found, tag, declared | again.plain).hidden:
            return replace(seen, hidden=TOO_WEAK)
        return seen

    @property
    def inherited(self) -> Sight:
        """That of an element in it of which nothing is said."""
        if not (self.own_size or self.own_color or self.own_ground):
            return self
        return replace(self, own_size=False, own_color=False, own_ground=False)

    def of_image(self) -> tuple[bool, str]:
        """``(it is certainly not seen, why it is not or may not be)``."""
        if self.hidden or self.invisible:
            return True, self.hidden or NOT_SHOWN
        return False, self.doubt

    def of_text(self, sheets: Sheets) -> tuple[bool, str]:
        """As ``of_image``; ``(False, "")`` for what is seen."""
        if self.hidden or self.invisible:
            return True, self.hidden or NOT_SHOWN
        if self.size == "none":
            return self.own_size or not sheets.sizes, NO_SIZE
        certain, why = self._of_color(sheets)
        if certain:
            return True, why
        if self.doubt:
            return False, self.doubt
        if why:
            return False, why
        return False, TINY if self.size == "tiny" else ""

    def _of_color(self, sheets: Sheets) -> tuple[bool, str]:
        if self.color is None or self.color == UNKNOWN or self.ground == UNKNOWN:
            return False, ""
        may_change = (sheets.colors and not self.own_color) or (
            sheets.grounds and not self.own_ground
        )
        if self.color == CLEAR:
            return self.own_color or not sheets.colors, SAME_COLOR
        if self.ground is None:
            # Nobody says what is behind it: white, unless a style sheet does.
            white = self.color == WHITE and not sheets.grounds
            return False, SAME_COLOR if white else ""
        if self.color == self.ground:
            return not may_change, SAME_COLOR
        return False, NEAR_COLOR if is_near(self.color, self.ground) else ""


def _varying(found: Sight, tag: str, declared: dict[str, str]) -> Sight:
    doubt = SOMETIMES if _hides(tag, declared)[0] or _is_invisible(declared) else found.doubt
    return replace(found, doubt=doubt, color=UNKNOWN, ground=UNKNOWN, size="")


def _on_some_screens(found: Sight, seen: Sight, other: Sight) -> Sight:
    """``seen``, where a style sheet makes ``other`` of it on some screens: what hides it there and
    not here, or here and not there, is a doubt."""
    changes: dict[str, Any] = {}
    if seen.hidden and not other.hidden:
        changes |= {"hidden": "", "doubt": SOME_SCREENS}
    if seen.invisible and not other.invisible:
        changes |= {"invisible": False, "doubt": SOME_SCREENS}
    # Of sizes and colours a style sheet has spoken: they are nobody's own.
    if seen.size != other.size:
        changes["own_size"] = False
    if seen.color != other.color:
        changes["own_color"] = False
    if seen.ground != other.ground:
        changes["own_ground"] = False
    return replace(seen, **changes)


def _styled(found: Sight, tag: str, declared: dict[str, str]) -> Sight:
    certain, why = _hides(tag, declared)
    changes: dict[str, Any] = {}
    if certain:
        changes["hidden"] = why
    elif why:
        changes["doubt"] = why
    if "visibility" in declared and declared["visibility"] != "inherit":
        changes["invisible"] = _is_invisible(declared)
    size = _size(declared, found.size)
    if size is not None:
        changes |= {"size": size, "own_size": True}
    if "color" in declared and declared["color"] != "inherit":
        changes |= {"color": color(declared["color"]), "own_color": True}
    elif declared.get("color") == "inherit" and tag == "a":
        changes |= {"color": UNKNOWN}  # the link's own is known, that around it is not any more
    behind = ground(declared)
    if behind is not None and behind != CLEAR:
        changes |= {"ground": behind, "own_ground": True}
    return replace(found, **changes) if changes else found


def _is_invisible(declared: dict[str, str]) -> bool:
    return declared.get("visibility") in ("hidden", "collapse")


def _hides(tag: str, declared: dict[str, str]) -> tuple[bool, str]:
    """``(certain, why)``; ``(False, "")``: what is in it is shown."""
    display = declared.get("display", "")
    opacity = _number(declared.get("opacity", ""))
    if display == "none" or opacity == 0:
        return True, NOT_SHOWN
    if _cuts_off(declared):
        height = [_pixels(declared.get(name, "")) for name in ("height", "max-height")]
        is_block = tag not in _INLINE or "block" in display
        if 0 in height and is_block:
            return (tag not in _FLEXIBLE, NOT_SHOWN if tag not in _FLEXIBLE else MOVED)
        width = [_pixels(declared.get(name, "")) for name in ("width", "max-width")]
        lengths = [*height, *(width if tag not in _FLEXIBLE else ())]
        if is_block and any(one is not None and one <= 1 for one in lengths):
            return False, MOVED
    if opacity is not None and opacity < 0.1:
        return False, FAINT
    if _is_far(declared):
        return False, MOVED
    if declared.get("mso-hide") == "all":
        return False, OUTLOOK
    return False, ""


def _cuts_off(declared: dict[str, str]) -> bool:
    return any(
        declared.get(name, "").split(" ")[-1] in ("hidden", "clip")
        for name in ("overflow", "overflow-y")
    )


def _is_far(declared: dict[str, str]) -> bool:
    placed = declared.get("position") in ("absolute", "fixed")
    sides = ["text-indent", "margin-left", "margin-top"]
    if placed:
        sides += ["left", "top", "right", "bottom"]
    lengths = [_pixels(declared.get(side, "")) for side in sides]
    lengths += [_pixels(part) for part in declared.get("margin", "").split()[:4]]
    if any(length is not None and length <= -_FAR for length in lengths):
        return True
    return placed and "rect(" in declared.get("clip", "") and "auto" not in declared["clip"]


def _size(declared: dict[str, str], around: Size) -> Size | None:
    """That of the letters; None where nothing is said of it."""
    value = declared.get("font-size")
    if value is None:
        short = _FONT_SIZE.search(declared.get("font", ""))
        if short is None:
            return None
        value = short[1]
    if value in ("inherit", "unset"):
        return around
    number = _LENGTH.match(value)
    if number is None:
        return ""
    pixels = _pixels(value)
    if pixels == 0:
        return "none"
    if number[2] in ("em", "%", "ex"):
        return around  # a part of what it is around it
    return "tiny" if pixels is not None and 0 < pixels < _TINY else ""


def _number(value: str) -> float | None:
    found = _LENGTH.match(value)
    return float(found[1]) if found and found[2] in ("", "%") else None


def _pixels(value: str) -> float | None:
    found = _LENGTH.match(value)
    if found is None or found[2] not in _UNITS:
        return None
    return float(found[1]) * _UNITS[found[2]]
