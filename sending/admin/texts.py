"""Texts as the admin's lists have room for them."""

from __future__ import annotations

from datetime import UTC, datetime, tzinfo

from django.utils.html import format_html

from subscribers.admin.shown import moment as shown

from ..plain_table import short

#: Characters of what a server said, in a list; all of it is in the title and on its own page.
LISTED = 80


def shortened(text: str) -> str:
    """``text`` for a list: its beginning, with the whole as its title when there is more."""
    brief = short(text, LISTED)
    return format_html('<span title="{}">{}</span>', text, brief) if brief != text else text


def moment(when: datetime, zone: tzinfo = UTC) -> str:
    """``30 Nov 2026, 04:31:12 UTC``: what the senders do, to the second."""
    return shown(when, zone, seconds=True)
