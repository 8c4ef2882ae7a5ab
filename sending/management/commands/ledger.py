"""``manage.py ledger``: is every recipient of every campaign accounted for, and are the counters
that pages show right?"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from django.core.management.base import CommandError, CommandParser

from campaigns.models import Campaign
from sending.campaign_id import find_campaign
from sending.counters_text import drift_block, mended
from sending.ledger import OPEN, STATUSES, Balance, balance
from sending.management.looking import LookingCommand
from sending.models import Counted, Send
from sending.plain_table import short, table
from sending.recount import Drift, event_drift, rebuild

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


class Command(LookingCommand):
    help = (
        "Count the recipients of one or all campaigns that ever started, and compare the counters "
        "that pages show with the rows. Exit code 0: all are accounted for and counted, 1: some "
        "campaign's count does not add up or its counters are wrong, 2: there is no such campaign."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--campaign", metavar="ID", help="only this one, status by status")
        parser.add_argument("--json", action="store_true", help="for programs")
        parser.add_argument(
            "--rebuild",
            action="store_true",
            help="first mend the counters that pages show, from the rows; may be run while senders "
            "work, and changes nothing else",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        if options["campaign"] is not None:
            chosen = [find_campaign(options["campaign"])]
        else:
            chosen = list(
                Campaign.objects.filter(started_at__isnull=False)
                .defer("body", "text_body")
                .order_by("id")
            )
        if options["rebuild"]:
            for campaign in chosen:
                # To stderr: what is printed for programs stays as it is.
                self._note(mended(campaign.pk, rebuild(campaign.pk)))
        counted: list[tuple[Campaign, Balance]] = []
        drifts: dict[int, list[Drift]] = {}
        for campaign in chosen:
            try:
                found = balance(campaign.pk)
            except Campaign.DoesNotExist:
                continue  # deleted since it was listed
            counted.append((campaign, found))
            if drift := [*found.drift, *event_drift(campaign.pk)]:
                drifts[campaign.pk] = drift
        broken = [campaign.pk for campaign, found in counted if not found.holds]
        if options["json"]:
            data = [as_data(*pair, drifts.get(pair[0].pk, [])) for pair in counted]
            self.show([json.dumps(data, indent=2)])
        else:
            if options["campaign"] is not None:
                self.show(block(*counted[0]) if counted else [])
            else:
                self._overview(counted)
            for campaign_id, drift in drifts.items():
                self.show(["", *drift_block(campaign_id, drift)])
        wrong = []
        if broken:
            wrong.append(f"the ledger does not add up for campaign {_ids(broken)}")
        if drifts:
            wrong.append(f"the counters are wrong of campaign {_ids(drifts)}: ledger --rebuild")
        if wrong:
            raise CommandError("; ".join(wrong), returncode=EXIT_BROKEN)

    def _overview(self, counted: list[tuple[Campaign, Balance]]) -> None:
        if not counted:
            self.show(["No campaign has started yet."])
            return
        self.show(overview(counted))
        for campaign, found in counted:
            if not found.holds:
                self.show(["", *block(campaign, found)])
        if all(found.holds for _, found in counted):
            self.show(["", "Every recipient is accounted for."])

    def _note(self, line: str) -> None:
        if line:
            self.stderr.write(line)


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


def as_data(campaign: Campaign, found: Balance, drift: list[Drift]) -> dict[str, Any]:
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
        "counters": [
            {
                "of": Counted(d.what).label,
                "status": d.status,
                "reason": d.reason,
                "there": d.there,
                "counted": d.counted,
            }
            for d in drift
        ],
    }


def _archived(number: int) -> str:
    return f"; {number:,} archived by prune" if number else ""


def _ids(campaigns: Iterable[int]) -> str:
    return ", ".join(map(str, campaigns))


def _word(status: str) -> str:
    return str(Send.Status(status).label)


def _state(campaign: Campaign, found: Balance) -> str:
    if campaign.status in (Campaign.Status.SENDING, Campaign.Status.PAUSED) and not found.built:
        return f"{campaign.status}, being built"
    return campaign.status
