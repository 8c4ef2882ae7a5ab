"""Time zone names, as the IANA database spells them."""

from __future__ import annotations

import contextlib
from functools import cache
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError, available_timezones

from django.core.exceptions import ValidationError

#: What ``ZoneInfo`` raises for a name that is none, be it a path or a directory.
_UNKNOWN = (ZoneInfoNotFoundError, ValueError, OSError)


@cache
def timezone_names() -> tuple[str, ...]:
    """All of them, sorted. Kept: to find them six hundred files are looked for."""
    return tuple(sorted(available_timezones()))


def zone_named(*names: str) -> ZoneInfo:
    """The first zone of these names that the IANA database knows; UTC where it knows none. What is
    stored was checked, but the machine's database changes: Debian's packages have lost zones such
    as US/Pacific."""
    for name in names:
        with contextlib.suppress(*_UNKNOWN):
            return ZoneInfo(name)
    return ZoneInfo("UTC")


def validate_timezone(name: str) -> None:
    """Raise ``ValidationError`` unless ``name`` is a zone of the IANA database."""
    try:
        ZoneInfo(name)
    except _UNKNOWN as error:
        raise ValidationError(
            "%(name)s is no time zone; use a name such as Europe/Paris.", params={"name": name}
        ) from error
