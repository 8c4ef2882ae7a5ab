"""``manage.py resolve_doubt``: decide about a campaign's rows in doubt."""

from __future__ import annotations

from typing import Any

from django.contrib.auth import get_user_model
from django.core.management.base import BaseCommand, CommandError, CommandParser

from campaigns.models import Campaign
from sending import doubt
from sending.campaign_id import EXIT_USAGE, find_campaign
from sending.doubt_decisions import BATCH, Decided, Decider, decide
from sending.models import Send
from subscribers.addresses import canonical, lower
from subscribers.command_line import who


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
            help="who decided, a user of the site; kept in the audit trail and with each row's "
            "events (default: the operating system's user)",
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
        typed_by = who()
        decider = Decider(by_name=typed_by) if by is None else Decider(by=by, via=typed_by)
        every = Send.objects.filter(campaign=campaign)
        done = Decided()
        ids = list(sends.values_list("pk", flat=True))
        for start in range(0, len(ids), BATCH):
            batch = ids[start : start + BATCH]
            done.add(decide(every, batch, decision, who=decider, failed=options["failed"]))
        self.stdout.write(f"{_rows(done.decided)} {what}.")
        for why, number in done.left.items():
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
            return None
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
