"""Time zone names, as the IANA database spells them."""

from __future__ import annotations

from functools import cache
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError, available_timezones

from django.core.exceptions import ValidationError


@cache
def timezone_names() -> tuple[str, ...]:
    """All of them, sorted. Kept: to find them six hundred files are looked for."""
    return tuple(sorted(available_timezones()))


def validate_timezone(name: str) -> None:
    """Raise ``ValidationError`` unless ``name`` is a zone of the IANA database."""
    try:
        ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise ValidationError(
            "%(name)s is no time zone; use a name such as Europe/Paris.", params={"name": name}
        ) from error
