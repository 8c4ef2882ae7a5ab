"""``manage.py run_sender``: drain the queue, under a supervisor, on any number of machines."""

from __future__ import annotations

import argparse
import gc
import sys
from typing import Any

from django.core.management.base import (
    BaseCommand,
    CommandError,
    CommandParser,
    SystemCheckError,
)
from django.db import DatabaseError, InterfaceError

from campaigns.models import Campaign
from sending import checks, cluster, logs, progress
from sending.import_runner import LAST_BATCH
from sending.processes import NotAlone, Supervisor, Tie
from sending.processes_reports import Reporter
from sending.shared import Abandoned
from sending.stopping import EXIT_ABANDONED
from sending.worker import LAST_WORDS, LAST_WRITES, Sender
from subscribers.conf import conf

#: Exit codes; 0 is drained or stopped by a signal with everything accounted for.
EXIT_USAGE = 2
EXIT_REFUSED = 3
EXIT_CLUSTER_CHANGED = 4
#: Seconds for which several processes are waited for, beyond what each takes at the most.
SLACK = 3.0
#: New objects after which the youngest are looked through for circles; Python's own: 700 or 2,000.
GARBAGE = 20_000

EPILOG = """exit codes:
  0    stopped by SIGTERM or SIGINT, or drained: every row is accounted for, also in doubt
  1    an unexpected error
  2    bad options, or settings that a check refuses
  3    the database cannot keep the promise (fsync off, a standby, too old)
  4    another database cluster than before: check, then --confirm-cluster
  5    stopped while the database was away: rows on the wire will be in doubt
  130, 143   a second signal, more than a second later: stopped at once, as by kill -9
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
            "--processes",
            type=_whole(1, 100),
            default=str(conf.PROCESSES),  # a text is checked as one that is typed
            metavar="N",
            help="processes side by side, each with lanes and up to four database connections of "
            f"its own; about one a core (default {conf.PROCESSES})",
        )
        parser.add_argument(
            "--lanes",
            type=_whole(1, 500),
            default=str(conf.LANES),  # a text is checked as one that is typed
            metavar="N",
            help=f"threads with mail sessions of their own, in each process (default {conf.LANES})",
        )
        parser.add_argument(
            "--sessions",
            type=_whole(1, 20),
            default=str(conf.SESSIONS),  # a text is checked as one that is typed
            metavar="N",
            help="mail sessions (SMTP connections) of each lane, 1 to 20, in which messages are "
            "under way at the same time; so up to processes x lanes x sessions connections to the "
            "relay. A crash leaves no more in doubt than with one. A lane has one session where "
            "CONNECTIONS or a rate limit concerns its messages, and for API providers: there take "
            f"lanes instead (default {conf.SESSIONS})",
        )
        parser.add_argument(
            "--lot",
            type=_whole(1, 500),
            default=str(conf.LOT),  # a text is checked as one that is typed
            metavar="N",
            help="the most messages a lane hands over at once; a crash leaves at most "
            f"lanes x lot of each process in doubt (default {conf.LOT})",
        )
        parser.add_argument(
            "--drain",
            action="store_true",
            help="exit 0 when nothing is queued, claimed or sending; a transport that is paused is "
            "waited for, however long",
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

    def check(self, *args: Any, **kwargs: Any) -> None:
        """Wrong settings are no reason for a supervisor to try again."""
        try:
            super().check(*args, **kwargs)
        except SystemCheckError as error:
            error.returncode = EXIT_USAGE
            raise

    def handle(self, **options: Any) -> None:
        if options["patience"] and not options["drain"]:
            said = "--patience is for --drain: without that a sender waits for all retries"
            raise CommandError(said, returncode=EXIT_USAGE)
        display = progress.choose(self.stdout, live=not options["no_progress"])
        logs.configure(display.stream, level=self._level(options["verbosity"]))
        if options["processes"] == 1:
            self._send(display, options)
        elif code := self._supervise(display, options):
            sys.exit(code)  # the process that ended so has said why

    def _send(
        self, display: progress.Display, options: dict[str, Any], tie: Tie | None = None
    ) -> None:
        """Be the sender, or one of several (``tie``)."""
        # Rows, messages and answers come and go by the thousand, and none is in a circle: to look
        # through the youngest at every few hundred takes a fiftieth of the time.
        gc.set_threshold(GARBAGE)
        sender = Sender(
            lanes=options["lanes"],
            lot=options["lot"],
            sessions=options["sessions"],
            drain=options["drain"],
            campaign_id=options["campaign"],
            patience=options["patience"],
        )
        sender.handle_signals(_within())
        if tie is not None:
            tie.hear_signals()
        self._look(options, first=tie is None or tie.first)
        counts = tie is None or tie.number == 0  # one counts for all
        figures = progress.OneSender(
            sender.shared, count_every=display.count_every if counts else None
        )

        def watch(sender: Sender) -> None:
            if tie is not None and tie.is_cut():
                sender.leave()
            display.show(figures)

        try:
            with display:
                sender.run(watch=watch)
        except Abandoned as error:
            raise CommandError(str(error), returncode=EXIT_ABANDONED) from error
        finally:
            sender.signals.over()

    def _look(self, options: dict[str, Any], *, first: bool) -> None:
        """At the database, before anything is sent. Only the ``first`` of several processes tells
        its warnings; and what staff have confirmed is the cluster of this start, not one that is
        met hours later by a process that is started again."""
        campaign_id = options["campaign"]
        if campaign_id is not None and not Campaign.objects.filter(pk=campaign_id).exists():
            raise CommandError(f"there is no campaign {campaign_id}", returncode=EXIT_USAGE)
        try:
            warnings = cluster.check(confirm=options["confirm_cluster"] and first)
        except cluster.ClusterRefused as error:
            raise CommandError(str(error), returncode=EXIT_REFUSED) from error
        except cluster.ClusterChanged as error:
            raise CommandError(str(error), returncode=EXIT_CLUSTER_CHANGED) from error
        if not first:
            return
        for warning in warnings:
            logs.log.warning(warning, extra={"event": "cluster_warning"})
        if dead_links := checks.base_url_warning():
            logs.log.warning(dead_links, extra={"event": "base_url_warning"})

    def _supervise(self, display: progress.Display, options: dict[str, Any]) -> int:
        """Start several and see to their end; the exit code."""

        def work(tie: Tie) -> int:
            reporter = Reporter(self.stdout, tie.tell, count_every=display.count_every)
            logs.configure(reporter.stream, level=self._level(options["verbosity"]))
            try:
                self._send(reporter, options, tie)
            except CommandError as error:
                self.stderr.write(f"CommandError: {error}")
                return error.returncode
            except (DatabaseError, InterfaceError) as error:
                self.stderr.write(f"error: {str(error).strip().splitlines()[0]}")
                return 1
            return 0

        try:
            supervisor = Supervisor(
                options["processes"],
                work,
                drain=options["drain"],
                patience=_within(),
                print_line=display.stream.write if display.draws else None,
            )
        except NotAlone as error:
            raise CommandError(str(error), returncode=EXIT_USAGE) from error
        supervisor.handle_signals()
        try:
            with display:
                return supervisor.run(watch=display.show)
        finally:
            supervisor.signals.over()

    @staticmethod
    def _level(verbosity: int) -> str:
        return {0: "WARNING", 1: "INFO"}.get(verbosity, "DEBUG")


def _within() -> float:
    """Seconds in which a sender that was told to end has ended, whatever it waits for."""
    return conf.GRACE + LAST_WRITES + LAST_WORDS + LAST_BATCH + SLACK


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
