"""The campaign that somebody named on the command line."""

from __future__ import annotations

from django.core.management.base import CommandError

from campaigns.models import Campaign

EXIT_USAGE = 2


def find_campaign(given: str) -> Campaign:
    """The campaign of this id. Raises ``CommandError`` (exit code 2) with one plain line."""
    text = given.strip()
    found = None
    if text.isascii() and text.isdigit() and len(text) < 19:
        found = Campaign.objects.select_related("account").filter(pk=int(text)).first()
    if found is None:
        raise CommandError(f"there is no campaign {given!r}", returncode=EXIT_USAGE)
    return found
