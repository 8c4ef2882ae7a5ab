"""``manage.py run_sender``: drain the queue, under a supervisor, on any number of machines."""

from __future__ import annotations

import argparse
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from campaigns.models import Campaign
from sending import checks, cluster, logs, progress
from sending.shared import Abandoned
from sending.worker import EXIT_ABANDONED, Sender
from subscribers.conf import conf

#: Exit codes; 0 is drained or stopped by a signal with everything accounted for.
EXIT_USAGE = 2
EXIT_REFUSED = 3
EXIT_CLUSTER_CHANGED = 4

EPILOG = """exit codes:
  0    stopped by SIGTERM or SIGINT, or drained: every row is accounted for
  1    an unexpected error
  2    bad options
  3    the database cannot keep the promise (fsync off, a standby, too old)
  4    another database cluster than before: check, then --confirm-cluster
  5    stopped while the database was away: rows on the wire will be in doubt
  130, 143   a second signal: stopped at once, as by kill -9
"""


class Command(BaseCommand):
    help = "Send approved campaigns. Run it under a supervisor; run as many as you like."
    requires_migrations_checks = False

    def create_parser(self, prog_name: str, subcommand: str, **kwargs: Any) -> CommandParser:
        return super().create_parser(
            prog_name,
            subcommand,
            epilog=EPILOG,
            formatter_class=argparse.RawDescriptionHelpFormatter,
            **kwargs,
        )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--lanes",
            type=_whole(1, 500),
            default=conf.LANES,
            metavar="N",
            help=f"mail connections (threads) of this process (default {conf.LANES})",
        )
        parser.add_argument(
            "--lot",
            type=_whole(1, 500),
            default=conf.LOT,
            metavar="N",
            help="the most messages a lane hands over at once; a crash leaves at most "
            f"lanes x lot in doubt (default {conf.LOT})",
        )
        parser.add_argument(
            "--drain",
            action="store_true",
            help="exit 0 when nothing is queued, claimed or sending",
        )
        parser.add_argument("--campaign", type=_whole(1), metavar="ID", help="only this campaign")
        parser.add_argument(
            "--patience",
            type=_seconds,
            default=0.0,
            metavar="S",
            help="with --drain: wait for retries that fall due within so many seconds (default 0)",
        )
        parser.add_argument(
            "--confirm-cluster",
            action="store_true",
            help="staff have checked the ledger after a failover or a restore: go on",
        )
        parser.add_argument(
            "--no-progress", action="store_true", help="log lines even on a terminal"
        )

    def handle(self, **options: Any) -> None:
        campaign_id = options["campaign"]
        if campaign_id is not None and not Campaign.objects.filter(pk=campaign_id).exists():
            raise CommandError(f"there is no campaign {campaign_id}", returncode=EXIT_USAGE)
        display = progress.choose(self.stdout, live=not options["no_progress"])
        logs.configure(display.stream, level=self._level(options["verbosity"]))
        sender = Sender(
            lanes=options["lanes"],
            lot=options["lot"],
            drain=options["drain"],
            campaign_id=campaign_id,
            patience=options["patience"],
        )
        sender.handle_signals()
        try:
            warnings = cluster.check(confirm=options["confirm_cluster"])
        except cluster.ClusterRefused as error:
            raise CommandError(str(error), returncode=EXIT_REFUSED) from error
        except cluster.ClusterChanged as error:
            raise CommandError(str(error), returncode=EXIT_CLUSTER_CHANGED) from error
        for warning in warnings:
            logs.log.warning(warning, extra={"event": "cluster_warning"})
        if dead_links := checks.base_url_warning():
            logs.log.warning(dead_links, extra={"event": "base_url_warning"})
        try:
            with display:
                sender.run(watch=display.show)
        except Abandoned as error:
            raise CommandError(str(error), returncode=EXIT_ABANDONED) from error

    @staticmethod
    def _level(verbosity: int) -> str:
        return {0: "WARNING", 1: "INFO"}.get(verbosity, "DEBUG")


def _whole(least: int, most: int | None = None) -> Any:
    def parse(text: str) -> int:
        try:
            value = int(text)
        except ValueError:
            raise argparse.ArgumentTypeError(f"{text!r} is not a whole number") from None
        if value < least or (most is not None and value > most):
            limits = f"{least} to {most}" if most is not None else f"{least} or more"
            raise argparse.ArgumentTypeError(f"must be {limits}, not {value}")
        return value

    return parse


def _seconds(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds") from None
    if not 0 <= value <= 7 * 86400:
        raise argparse.ArgumentTypeError("must be 0 to 604800 seconds")
    return value
