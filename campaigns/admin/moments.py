"""Moments as staff read them: in the account's zone and in UTC. Pure."""

from __future__ import annotations

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

from django.utils.formats import date_format

from subscribers.admin.shown import moment as shown
from subscribers.admin.shown import zone_name
from subscribers.models import Account
from subscribers.timezones import zone_named

DAY, TIME = "j F Y", "H:i"


def both(moment: datetime, zone: ZoneInfo) -> str:
    """``1 December 2030, 00:30 CET (30 November 2030, 23:30 UTC)``; the day in UTC only where it
    is another one, and UTC once where the zone is no other."""
    local, utc = moment.astimezone(zone), moment.astimezone(UTC)
    shown = f"{date_format(local, DAY)}, {date_format(local, TIME)} {zone_name(local)}"
    if local.utcoffset() == utc.utcoffset():
        return shown
    day = "" if local.date() == utc.date() else f"{date_format(utc, DAY)}, "
    return f"{shown} ({day}{date_format(utc, TIME)} UTC)"


def in_zone(moment: datetime, account: Account) -> str:
    """For a list: ``30 Nov 2026, 20:15 CET``, in the account's time zone."""
    return shown(moment, zone_named(account.timezone))
