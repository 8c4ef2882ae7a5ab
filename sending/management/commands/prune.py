"""``manage.py prune``: rows of campaigns that ended long ago become counts."""

from __future__ import annotations

from time import monotonic
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from campaigns.models import Campaign
from sending import pruning
from sending.campaign_id import EXIT_USAGE, find_campaign
from sending.plain_table import short

#: Seconds between two lines of progress.
EVERY = 5.0
EXIT_INTERRUPTED = 130


class Command(BaseCommand):
    help = (
        "Turn the rows of campaigns that ended long ago into counts per campaign, status and "
        "reason. Who got them is forgotten; how many is not. Rows in doubt stay. May be stopped at "
        "any moment and run beside senders. Exit code 0: done, 2: bad input, nothing was changed, "
        "130: stopped by Ctrl-C."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--older-than",
            metavar="DAYS",
            default=str(pruning.DAYS),
            help=f"only what nothing happened to for so many days (default: {pruning.DAYS})",
        )
        parser.add_argument("--campaign", metavar="ID", help="only this one")
        parser.add_argument(
            "--batch",
            metavar="N",
            default=str(pruning.BATCH),
            help=f"rows per transaction (default: {pruning.BATCH})",
        )
        parser.add_argument("--dry-run", action="store_true", help="count only, change nothing")

    def handle(self, *args: Any, **options: Any) -> None:
        days = _number("--older-than", options["older_than"], pruning.FEWEST_DAYS, 36_500)
        batch = _number("--batch", options["batch"], 1, pruning.LARGEST_BATCH)
        only = None
        if options["campaign"] is not None:
            only = find_campaign(options["campaign"])
            if only.status not in (Campaign.Status.SENT, Campaign.Status.CANCELED):
                raise _usage(f"campaign {only.pk} is {only.status}: only what is over is pruned")
        chosen = pruning.old_campaigns(days=days, campaign_id=only.pk if only else None)
        if not chosen:
            ago = f"{days} day{'' if days == 1 else 's'} ago or earlier"
            if only is not None:
                self.stdout.write(f"Campaign {only.pk} did not end {ago}, or has no rows left.")
            else:
                self.stdout.write(f"No campaign that ended {ago} has rows left.")
            return
        self._archived = total = 0
        try:
            for old in chosen:
                title = f"campaign {old.id} ({short(old.name, 40)})"
                if options["dry_run"]:
                    total += self._count(old, title, days)
                else:
                    total += self._prune(old, title, days, batch)
        except KeyboardInterrupt:
            # What was committed stays; the batch under way is as if it had not begun.
            raise CommandError(
                f"stopped; {_rows(self._archived)} archived", returncode=EXIT_INTERRUPTED
            ) from None
        end = (
            " would be archived. Dry run: nothing was changed."
            if options["dry_run"]
            else (" archived.")
        )
        self.stdout.write(f"{_rows(total)}{end}")

    def _count(self, old: pruning.Old, title: str, days: int) -> int:
        going, rows = pruning.prunable(old.id, days=days)
        self.stdout.write(f"{title}: {_rows(going)} of {rows:,}{_stay(rows - going)}")
        return going

    def _prune(self, old: pruning.Old, title: str, days: int, batch: int) -> int:
        step, told = pruning.Step(), monotonic()
        before = self._archived
        for step in pruning.prune(old.id, days=days, batch=batch):
            self._archived = before + step.pruned
            if monotonic() - told >= EVERY:
                self.stdout.write(f"{title}: {_rows(step.pruned)} so far")
                self.stdout.flush()
                told = monotonic()
        line = f"{title}: {_rows(step.pruned)}{_stay(step.looked - step.pruned)}"
        if step.busy:
            line += "; somebody else is at it, run prune again for the rest"
        self.stdout.write(line)
        return step.pruned


def _number(option: str, given: str, least: int, most: int) -> int:
    text = str(given).strip()
    if not (text.isascii() and text.isdigit() and len(text) < 10 and least <= int(text) <= most):
        raise _usage(f"{option} is a whole number from {least} to {most}, not {given!r}")
    return int(text)


def _stay(count: int) -> str:
    return f", {count:,} stay (in doubt, open, or with an event newer than that)" if count else ""


def _rows(count: int) -> str:
    return f"{count:,} row{'' if count == 1 else 's'}"


def _usage(message: str) -> CommandError:
    return CommandError(message, returncode=EXIT_USAGE)
