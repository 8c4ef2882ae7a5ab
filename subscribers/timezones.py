"""Time zone names, as the IANA database spells them."""

from __future__ import annotations

from functools import cache
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError, available_timezones

from django.core.exceptions import ValidationError

#: What ``ZoneInfo`` raises for a name that is none, be it a path or a directory.
_UNKNOWN = (ZoneInfoNotFoundError, ValueError, OSError)


@cache
def timezone_names() -> tuple[str, ...]:
    """All of them, sorted. Kept: to find them six hundred files are looked for."""
    return tuple(sorted(available_timezones()))


def zone_named(name: str) -> ZoneInfo:
    """The zone of the IANA database of that name; UTC where it is not known. What is stored was
    checked, but the machine's database changes: Debian's packages have lost zones such as
    US/Pacific."""
    try:
        return ZoneInfo(name)
    except _UNKNOWN:
        return ZoneInfo("UTC")


def validate_timezone(name: str) -> None:
    """Raise ``ValidationError`` unless ``name`` is a zone of the IANA database."""
    try:
        ZoneInfo(name)
    except _UNKNOWN as error:
        raise ValidationError(
            "%(name)s is no time zone; use a name such as Europe/Paris.", params={"name": name}
        ) from error
