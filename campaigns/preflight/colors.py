"""Colours as inline styles and old attributes write them; pure."""

from __future__ import annotations

import re

#: Red, green and blue, 0 to 255.
Color = tuple[int, int, int]
#: Something is there, and nobody can tell its colour: an image, a gradient, a merge field.
UNKNOWN: Color = (-1, -1, -1)
#: Nothing is painted.
CLEAR: Color = (-2, -2, -2)
WHITE: Color = (255, 255, 255)
#: Colours that differ by no more than this in each part are taken for one by the eye.
NEAR = 16

_NAMES = {
    "white": WHITE, "black": (0, 0, 0), "silver": (192, 192, 192), "gray": (128, 128, 128),
    "grey": (128, 128, 128), "red": (255, 0, 0), "maroon": (128, 0, 0), "yellow": (255, 255, 0),
    "olive": (128, 128, 0), "lime": (0, 255, 0), "green": (0, 128, 0), "aqua": (0, 255, 255),
    "teal": (0, 128, 128), "blue": (0, 0, 255), "navy": (0, 0, 128), "fuchsia": (255, 0, 255),
    "purple": (128, 0, 128), "whitesmoke": (245, 245, 245), "snow": (255, 250, 250),
    "ivory": (255, 255, 240), "transparent": CLEAR,
}  # fmt: skip
_HEX = re.compile(r"#?([0-9a-f]{3,4}|[0-9a-f]{6}|[0-9a-f]{8})\Z")
_COMMA = r"(?:\s*+,\s*+|\s++)"
_RGB = re.compile(
    rf"rgba?\(\s*+(\d{{1,3}}){_COMMA}(\d{{1,3}}){_COMMA}(\d{{1,3}})"
    r"(?:\s*+[,/]\s*+([\d.]{1,8}%?))?\s*+\)\Z"
)
_WORD = re.compile(r"[^\s(]++(?:\([^)]*+\)?)?+")
_PAINTED = ("url(", "gradient(", "image-set(", "image(")


def color(value: str) -> Color:
    """The colour of a value in lower case; ``CLEAR`` for one that lets everything through."""
    word = value.strip()
    if word in _NAMES:
        return _NAMES[word]
    if found := _HEX.match(word):
        digits = found[1]
        if len(digits) < 6:
            digits = "".join(digit * 2 for digit in digits)
        if digits[6:] == "00":
            return CLEAR
        return int(digits[:2], 16), int(digits[2:4], 16), int(digits[4:6], 16)
    if found := _RGB.match(word):
        if found[4] and not found[4].strip("0.%"):
            return CLEAR
        red, green, blue = (min(int(found[n]), 255) for n in (1, 2, 3))
        return red, green, blue
    return UNKNOWN


def ground(declared: dict[str, str]) -> Color | None:
    """What these declarations paint behind the text; None where they say nothing of it. What is
    behind a colour that lets some of it through is seen, too: nobody can tell."""
    image = declared.get("background-image", "")
    short = declared.get("background", "")
    if any(mark in image or mark in short for mark in _PAINTED):
        return UNKNOWN
    if "background-color" in declared:
        return _painted(declared["background-color"])
    if not short:
        return None
    words = _WORD.findall(short)
    if any(_lets_through(word) for word in words):
        return UNKNOWN
    found = [color(word) for word in words]
    known = [one for one in found if one != UNKNOWN]
    if known:
        return known[0]
    return CLEAR if short in ("none", "0", "initial", "inherit", "unset") else UNKNOWN


def _painted(value: str) -> Color:
    return UNKNOWN if _lets_through(value) else color(value)


def _lets_through(value: str) -> bool:
    """Whether a colour is neither opaque nor clear."""
    word = value.strip()
    if color(word) in (UNKNOWN, CLEAR):
        return False
    if found := _HEX.match(word):
        digits = found[1]
        return len(digits) in (4, 8) and digits[len(digits) // 4 * 3 :].strip("f") != ""
    found = _RGB.match(word)
    if found is None or not found[4]:
        return False
    try:
        number = float(found[4].rstrip("%"))
    except ValueError:
        return True
    return number < (100 if found[4].endswith("%") else 1)


def is_near(one: Color, other: Color) -> bool:
    """Whether two known colours can hardly be told apart."""
    return all(abs(a - b) <= NEAR for a, b in zip(one, other, strict=True))
