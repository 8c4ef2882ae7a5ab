"""How long a relay asks us to wait, read from its words.

Greylisting servers and throttles say it in their text, for want of a field: "please come back in
00:04:59", "try again in 300 seconds". For deferred messages only (an outcome ``retry``); an HTTP
answer has a header for it (RFC 9110 10.2.3).
"""

from __future__ import annotations

import re

from ..answers import clean_text

#: Bounds of a hint, in seconds.
SHORTEST = 1.0
LONGEST = 86400.0

_UNITS: tuple[tuple[float, str], ...] = (
    (1.0, r"seconds?|secs?|s|sekunden?|sek|secondes?|segundos?|сек[а-я]*|秒钟?"),
    (60.0, r"minutes?|mins?|m|minuten?|minutos?|мин[а-я]*|分钟?|分鐘"),
    (3600.0, r"hours?|hrs?|h|stunden?|heures?|horas?|час[а-я]*|小时|小時"),
    (86400.0, r"days?|d|tage?n?|jours?|d[ií]as?|дн[а-я]*|день|天"),
)
_NUMBER = r"[0-9]{1,9}(?:\.[0-9]{1,6})?"
_UNIT = "|".join(pattern for _, pattern in _UNITS)
_PART = rf"{_NUMBER}[ -]?(?:{_UNIT})(?![a-zа-я0-9])"
_TIME = re.compile(
    rf"(?<![0-9.:-])(?:(?P<clock>[0-9]{{1,3}}(?::[0-5][0-9]){{1,2}})(?![0-9:])"
    rf"|(?P<amount>{_PART}(?:(?:,| and| und| et| y| и)* {_PART})*)"
    rf"|(?<=retry[- ]after )(?P<bare>[0-9]{{1,9}})\b|(?<=retry-after: )(?P<field>[0-9]{{1,9}})\b)"
)
_PARTS = re.compile(rf"({_NUMBER})[ -]?({_UNIT})(?![a-zа-я0-9])")

#: Words that ask for patience. A time without one near it is only a limit: "100 in 60 minutes".
_ASKS = re.compile(
    r"again|retr(?:y|ies)|\bback\b|wait|resen[dt]|reconnect|attempt|gr[ea]y-?list|deferred|delayed"
    r"|erneut|wieder|warten|r.?essay|attend|intent|espere|повтор|попыт|подожд|重试|重試|再试|再試|稍后"
)
_NEAR = 48


def wait_hint(text: str | bytes | None) -> float | None:
    """Seconds to wait before the next try, between 1 and 86 400, or None when none is named.

    A clock counts as hours, minutes and seconds, or as minutes and seconds. Of several times the
    first one that is asked for wins. Never raises.
    """
    words = clean_text(text).lower()
    for found in _TIME.finditer(words):
        before = words[max(0, found.start() - _NEAR) : found.start()]
        after = words[found.end() : found.end() + _NEAR]
        # Up to the next number, and no sentence further: each time has its own words. A clock
        # with the words behind it is the hour of a log.
        asked = _ASKS.search(re.split(r"[0-9]|[.;!] ", before)[-1])
        if not asked and not found["clock"]:
            asked = _ASKS.search(re.split(r"[0-9]|[.;!,] ", after)[0])
        if asked:
            return min(max(_seconds(found), SHORTEST), LONGEST)
    return None


def _seconds(found: re.Match[str]) -> float:
    if clock := found["clock"]:
        total = 0.0
        for part in clock.split(":"):
            total = total * 60 + int(part)
        return total
    if amount := found["amount"]:
        return sum(float(number) * _scale(unit) for number, unit in _PARTS.findall(amount))
    return float(found["bare"] or found["field"])


def _scale(unit: str) -> float:
    return next(scale for scale, pattern in _UNITS if re.fullmatch(pattern, unit))
