"""Time zone names, as the IANA database spells them."""

from __future__ import annotations

from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from django.core.exceptions import ValidationError


def validate_timezone(name: str) -> None:
    """Raise ``ValidationError`` unless ``name`` is a zone of the IANA database."""
    try:
        ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise ValidationError(
            "%(name)s is no time zone; use a name such as Europe/Paris.", params={"name": name}
        ) from error
