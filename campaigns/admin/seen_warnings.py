"""Which warnings an approver saw: how a page carries them, and whether those found now are they.

**The rule.** A warning was seen if one of its kind was on the page that says the same, word for
word, but for its numbers, and none of these is another one. People join and leave while somebody
reads, so that a number is the same until it has doubled or halved (differences of three or less
don't count), a span of time likewise (five minutes), and a moment until it has moved by more than
an hour. That 3 people lack a field was seen is no answer to that 3,000 do.

A page carries of each warning its code, a digest of its words, and its numbers.
"""

from __future__ import annotations

import hashlib
import re
from collections import defaultdict
from collections.abc import Iterable
from datetime import datetime
from math import isfinite

from ..preflight import Finding

#: By so much numbers may differ, whatever they are; spans and moments in minutes.
FEW, MINUTES, AN_HOUR = 3.0, 5.0, 60.0
#: Beyond that, the greater is less than so many times the smaller.
TIMES = 2.0

_MOMENT_FORMAT = "%d %B %Y, %H:%M"
_UNITS = {"minute": 1.0, "hour": 60.0, "day": 1440.0}
_NUMBER = r"\d[\d,]*(?:\.\d+)?"
#: Names of campaigns and merge fields are words, whatever is in them. A number stands alone.
_PARTS = re.compile(
    rf"(?P<name>\u201c[^\u201d]*\u201d|\{{\{{.*?\}}\}})"
    r"|(?P<moment>\d{1,2} [^\W\d]+ \d{4}, \d\d:\d\d)"
    rf"|(?P<span>less than a minute|about (?P<length>{_NUMBER}) (?P<unit>minute|hour|day)s?)"
    rf"|(?<!\S)(?P<number>{_NUMBER})(?=[\s.,;:)]|$)",
    re.IGNORECASE,
)
_PLURAL = re.compile(r"(?<=\w)s\b")


def carried(warnings: Iterable[Finding]) -> str:
    """What the page's hidden field says of the warnings that it shows."""
    return " ".join(sorted({token(warning) for warning in warnings}))


def all_seen(warnings: Iterable[Finding], carried: str) -> bool:
    """Was each of these warnings among those that a page carried? Pure."""
    shown: dict[str, list[str]] = defaultdict(list)
    for one in carried.split():
        words, _, numbers = one.rpartition("~")
        shown[words].append(numbers)
    for warning in warnings:
        words, _, now = token(warning).rpartition("~")
        if not any(_alike(seen, now) for seen in shown[words]):
            return False
    return True


def token(warning: Finding) -> str:
    """``code~digest of its words~numbers``; a number has its kind before it: ``n3``, ``n2000``."""
    numbers: list[str] = []

    def stand_in(match: re.Match[str]) -> str:
        if match["name"] is not None:
            return match[0]
        kind, number = _read(match)
        numbers.append(f"{kind}{number:g}" if number < 1e5 else f"{kind}{number:.0f}")
        return f"<{kind}>"

    words = _PARTS.sub(stand_in, f"{warning.title}. {warning.detail}")
    # One person lacks it, two people lack it: the number says that already.
    words = _PLURAL.sub("", words.replace("people", "person"))
    hashed = hashlib.sha256(words.encode()).hexdigest()[:16]
    return f"{warning.code}~{hashed}~{','.join(numbers)}"


def is_another(kind: str, seen: float, now: float) -> bool:
    """Is a number not the one that was seen any more? ``kind``: ``n`` a number, ``s`` a span and
    ``m`` a moment, both in minutes."""
    change = abs(now - seen)
    if not isfinite(change):
        return True
    if kind == "m":
        return change > AN_HOUR
    if change <= (MINUTES if kind == "s" else FEW):
        return False
    return max(seen, now) >= TIMES * min(seen, now)


def _read(match: re.Match[str]) -> tuple[str, float]:
    if match["moment"] is not None:
        try:
            moment = datetime.strptime(match["moment"], _MOMENT_FORMAT)
        except ValueError:
            return "m", 0.0
        return "m", float((moment - datetime(2000, 1, 1)).total_seconds() // 60)
    if match["span"] is not None:
        if match["length"] is None:
            return "s", 1.0
        return "s", _float(match["length"]) * _UNITS[match["unit"].lower()]
    return "n", _float(match["number"])


def _float(digits: str) -> float:
    return float(digits.replace(",", ""))


def _alike(seen: str, now: str) -> bool:
    """Are all numbers the same as ``is_another`` goes? What a browser made up is not."""
    ours, theirs = now.split(","), seen.split(",")
    if len(ours) != len(theirs):
        return False
    try:
        return not any(
            new[:1] != old[:1] or is_another(new[:1], float(old[1:]), float(new[1:]))
            for old, new in zip(theirs, ours, strict=True)
            if old or new
        )
    except ValueError:
        return False
