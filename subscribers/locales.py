"""Names of languages, as browsers and files spell them."""

from __future__ import annotations

import re

from django.core.exceptions import ValidationError

#: Characters, as many as a person's column takes.
LONGEST = 20

_LOCALE = re.compile(r"[A-Za-z]{2,3}(?:[-_][A-Za-z0-9]{1,8})*\Z")


def is_locale(name: str) -> bool:
    """Is it spelt as a locale (``fr``, ``pt-BR``, ``zh_Hant_TW``), whether or not there is one?"""
    return len(name) <= LONGEST and _LOCALE.match(name) is not None


def validate_locale(name: str) -> None:
    """Raise ``ValidationError`` unless ``is_locale``."""
    if not is_locale(name):
        raise ValidationError(
            "%(name)s is no locale; use one such as fr or pt-BR.", params={"name": name}
        )
