"""Texts as the admin's lists have room for them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, tzinfo

from django.utils.html import format_html

from subscribers.admin.shown import moment as shown

from ..plain_table import ago, short

#: Characters of what a server said, in a list; all of it is in the title and on its own page.
LISTED = 80
#: What is younger is told by its age: nobody has to subtract to see that something lives.
LATELY = timedelta(hours=1)


def shortened(text: str) -> str:
    """``text`` for a list: its beginning, with the whole as its title when there is more."""
    brief = short(text, LISTED)
    return format_html('<span title="{}">{}</span>', text, brief) if brief != text else text


def moment(when: datetime, zone: tzinfo = UTC) -> str:
    """``30 Nov 2026, 04:31:12 UTC``: what the senders do, to the second."""
    return shown(when, zone, seconds=True)


def parted(when: datetime) -> str:
    """The moment in two parts, each of which stays on one line: a narrow column has two lines."""
    day, _, time = moment(when).rpartition(", ")
    part = '<span class="sendonce-part">{}</span>'
    return format_html(f"{part} {part}", f"{day},", time)


def lately(when: datetime, now: datetime) -> str:
    """``2 s ago``, with the moment as its title; the moment itself when it is long ago."""
    if now - when >= LATELY:
        return parted(when)
    words = '<span class="sendonce-part" title="{}">{}</span>'
    return format_html(words, moment(when), ago(when, now))
