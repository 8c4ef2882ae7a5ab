"""``manage.py ledger``: is every recipient of every campaign accounted for?"""

from __future__ import annotations

import json
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from campaigns.models import Campaign
from sending.campaign_id import find_campaign
from sending.ledger import OPEN, STATUSES, Balance, balance
from sending.models import Send
from sending.plain_table import short, table

EXIT_BROKEN = 1

MEANING = {
    "queued": "waiting for a sender",
    "claimed": "taken by a sender, not handed over yet",
    "sending": "handed over, the answer is awaited",
    "retry": "refused for now, tried again by itself",
    "sent": "accepted by the relay",
    "bounced": "the address is dead; suppressed",
    "failed": "refused; resolve_doubt --failed --send-again tries again, with those in doubt",
    "suppressed": "must not get it: opted out, complained, or dead",
    "in_doubt": "handed over, nobody knows whether it arrived; resolve_doubt decides",
    "canceled": "the campaign was canceled first",
}
CLOSED = [status for status in STATUSES if status not in OPEN]


class Command(BaseCommand):
    help = (
        "Count the recipients of one or all campaigns that ever started. Exit code 0: all are "
        "accounted for, 1: some campaign's count does not add up, 2: there is no such campaign."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--campaign", metavar="ID", help="only this one, status by status")
        parser.add_argument("--json", action="store_true", help="for programs")

    def handle(self, *args: Any, **options: Any) -> None:
        if options["campaign"] is not None:
            chosen = [find_campaign(options["campaign"])]
        else:
            chosen = list(
                Campaign.objects.filter(started_at__isnull=False)
                .defer("body", "text_body")
                .order_by("id")
            )
        counted = []
        for campaign in chosen:
            try:
                counted.append((campaign, balance(campaign.pk)))
            except Campaign.DoesNotExist:
                continue  # deleted since it was listed
        broken = [campaign.pk for campaign, found in counted if not found.holds]
        if options["json"]:
            self.stdout.write(json.dumps([as_data(*pair) for pair in counted], indent=2))
        elif options["campaign"] is not None:
            self._lines(block(*counted[0]) if counted else [])
        else:
            self._overview(counted)
        if broken:
            which = ", ".join(map(str, broken))
            raise CommandError(
                f"the ledger does not add up for campaign {which}", returncode=EXIT_BROKEN
            )

    def _overview(self, counted: list[tuple[Campaign, Balance]]) -> None:
        if not counted:
            self._lines(["No campaign has started yet."])
            return
        self._lines(overview(counted))
        for campaign, found in counted:
            if not found.holds:
                self._lines(["", *block(campaign, found)])
        if all(found.holds for _, found in counted):
            self._lines(["", "Every recipient is accounted for."])

    def _lines(self, lines: list[str]) -> None:
        for line in lines:
            self.stdout.write(line)


def overview(counted: list[tuple[Campaign, Balance]]) -> list[str]:
    """One line per campaign; ``open`` is queued, claimed, sending and retry together."""
    header = ["id", "campaign", "is", "people", "open", *map(_word, CLOSED), "difference"]
    # Of most installations nothing is archived: no column of zeros then.
    pruned = any(found.archived for _, found in counted)
    return table(
        header + ["archived"] * pruned,
        [
            [
                f"{campaign.pk}",
                short(campaign.name, 24),
                _state(campaign, found),
                found.audience,
                sum(found.counts[status] for status in OPEN),
                *(found.counts[status] for status in CLOSED),
                found.difference,
                *[sum(found.archived.values())] * pruned,
            ]
            for campaign, found in counted
        ],
    )


def block(campaign: Campaign, found: Balance) -> list[str]:
    """One campaign, a line per status, and what the sum says."""
    rows = sum(found.counts.values())
    archived = sum(found.archived.values())
    shown = [
        (_word(s), found.counts[s], MEANING[s] + _archived(found.archived.get(s, 0)))
        for s in STATUSES
    ]
    total = [
        ("rows", rows, "the sum of the above" + _archived(archived)),
        ("people", found.audience, "counted from the people, not from the rows"),
        ("difference", found.difference, verdict(found)),
    ]
    lines = table(["", "", ""], [*shown, *total], indent="  ")[1:]
    rule = "  " + "-" * max(len(line) - 2 for line in lines)
    title = f"campaign {campaign.pk} ({short(campaign.name, 60)}), {_state(campaign, found)}"
    return [title, "", *lines[: len(shown)], rule, *lines[len(shown) :]]


def verdict(found: Balance) -> str:
    """What the difference means, in words."""
    if found.holds:
        return "every recipient is accounted for"
    if found.difference > 0:
        return "people have no row: DO NOT SEND ON, report it"
    return "rows have no person: DO NOT SEND ON, report it"


def as_data(campaign: Campaign, found: Balance) -> dict[str, Any]:
    """The balance as plain data for JSON."""
    return {
        "campaign": campaign.pk,
        "name": campaign.name,
        "status": campaign.status,
        "built": found.built,
        **found.counts,
        "archived": found.archived,
        "audience": found.audience,
        "difference": found.difference,
        "holds": found.holds,
    }


def _archived(number: int) -> str:
    return f"; {number:,} archived by prune" if number else ""


def _word(status: str) -> str:
    return str(Send.Status(status).label)


def _state(campaign: Campaign, found: Balance) -> str:
    if campaign.status in (Campaign.Status.SENDING, Campaign.Status.PAUSED) and not found.built:
        return f"{campaign.status}, being built"
    return campaign.status
