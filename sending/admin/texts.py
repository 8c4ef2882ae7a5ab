"""Texts as the admin's lists have room for them."""

from __future__ import annotations

from datetime import datetime

from django.utils import timezone
from django.utils.html import format_html

from ..plain_table import short

#: Characters of what a server said, in a list; all of it is in the title and on its own page.
LISTED = 80


def shortened(text: str) -> str:
    """``text`` for a list: its beginning, with the whole as its title when there is more."""
    brief = short(text, LISTED)
    return format_html('<span title="{}">{}</span>', text, brief) if brief != text else text


def moment(when: datetime) -> str:
    """``30 Nov 04:31:12``; with its year when that is another one."""
    local = timezone.localtime(when)
    year = "" if local.year == timezone.localtime().year else f" {local.year}"
    return f"{local.day} {local:%b}{year} {local:%H:%M:%S}"
