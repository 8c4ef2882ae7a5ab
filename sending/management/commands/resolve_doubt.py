"""``manage.py resolve_doubt``: decide about a campaign's rows in doubt."""

from __future__ import annotations

import getpass
from collections import Counter
from dataclasses import dataclass
from typing import Any

from django.contrib.auth import get_user_model
from django.core.management.base import BaseCommand, CommandError, CommandParser

from campaigns.models import Campaign
from sending import doubt
from sending.campaign_id import EXIT_USAGE, find_campaign
from sending.models import Send
from subscribers.addresses import canonical, lower

#: Rows per transaction, so that a decision about a hundred thousand holds no gate for long.
BATCH = 5000


@dataclass(frozen=True, slots=True)
class Operator:
    """Whoever typed the command, as ``doubt.resolve`` wants a person."""

    name: str

    def get_username(self) -> str:
        return self.name


def operator() -> Operator:
    """By the operating system's user, who need not be one of the site's."""
    try:
        # The variables that it looks into may hold anything.
        name = getpass.getuser().encode("utf-8", "replace").decode()[:100]
    except (OSError, KeyError, ImportError):  # no such user; before Python 3.13 the last two
        name = ""
    return Operator(f"{name} at the command line" if name else "command line")


class Command(BaseCommand):
    help = (
        "Decide about sends whose fate is unknown. --send-again may reach people twice, "
        "--treat-as-sent may leave them without; look with sender_status first. Exit code 0: "
        "done, 2: bad input, nothing was changed."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--campaign", metavar="ID", help="the campaign; required")
        parser.add_argument("--send-again", action="store_true", help="queue them once more")
        parser.add_argument("--treat-as-sent", action="store_true", help="close them as sent")
        parser.add_argument(
            "--failed", action="store_true", help="with --send-again: failed rows as well"
        )
        parser.add_argument("--address", metavar="X", help="only the row of this address")
        parser.add_argument(
            "--by",
            metavar="USERNAME",
            help="who decided, a user of the site; kept with each row's events "
            "(default: the operating system's user)",
        )
        parser.add_argument("--dry-run", action="store_true", help="count only, change nothing")

    def handle(self, *args: Any, **options: Any) -> None:
        decision = self._decision(options)
        if options["campaign"] is None:
            raise _usage("--campaign is missing: name the campaign to decide about")
        campaign = find_campaign(options["campaign"])
        if decision == doubt.SEND_AGAIN and campaign.status == Campaign.Status.CANCELED:
            raise _usage(f"campaign {campaign.pk} is canceled: nothing of it is sent again")
        by = self._person(options["by"])
        sends = self._sends(campaign, options["address"], failed=options["failed"])
        what = "to be sent again" if decision == doubt.SEND_AGAIN else "treated as sent"
        if options["dry_run"]:
            count = sends.count()
            self.stdout.write(f"{_rows(count)} {what}. Dry run: nothing was changed.")
            return
        done = 0
        left: Counter[str] = Counter()
        ids = list(sends.values_list("pk", flat=True))
        for start in range(0, len(ids), BATCH):
            chosen = Send.objects.filter(pk__in=ids[start : start + BATCH]).only(
                "pk", "campaign_id"
            )
            decided = doubt.resolve(chosen, decision, by=by, failed=options["failed"])
            done += decided
            if decided < len(chosen):
                left += doubt.why_left(chosen, decided)
        self.stdout.write(f"{_rows(done)} {what}.")
        for why, number in left.items():
            self.stdout.write(f"{_rows(number)} left as before: {why}.")

    @staticmethod
    def _decision(options: dict[str, Any]) -> str:
        if options["send_again"] == options["treat_as_sent"]:
            raise _usage("say one of --send-again and --treat-as-sent")
        if options["failed"] and not options["send_again"]:
            raise _usage("--failed goes with --send-again: a refused message can't count as sent")
        return doubt.SEND_AGAIN if options["send_again"] else doubt.TREAT_AS_SENT

    @staticmethod
    def _person(username: str | None) -> Any:
        if username is None:
            return operator()
        model = get_user_model()
        found = model._default_manager.filter(**{model.USERNAME_FIELD: username}).first()
        if found is None:
            raise _usage(f"there is no user {username!r}")
        return found

    @staticmethod
    def _sends(campaign: Campaign, address: str | None, *, failed: bool) -> Any:
        sends = Send.objects.filter(campaign=campaign).order_by("pk")
        if address is not None:
            sends = sends.filter(email_lower=lower(canonical(address)))
            if not sends.exists():
                raise _usage(f"campaign {campaign.pk} has no row for {address}")
        wanted = ["in_doubt", "failed"] if failed else ["in_doubt"]
        return sends.filter(status__in=wanted)


def _rows(count: int) -> str:
    return f"{count:,} row{'' if count == 1 else 's'}"


def _usage(message: str) -> CommandError:
    return CommandError(message, returncode=EXIT_USAGE)
