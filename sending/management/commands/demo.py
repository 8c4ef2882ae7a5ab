"""``manage.py demo``: see it work, and fail to lose anybody."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser

from sending.demo.children import ChildFailed
from sending.demo.scenario import DemoRefused, Options, run
from sending.demo.screen import open_screen

EXIT_FAILED = 1
EXIT_USAGE = 2
EXIT_INTERRUPTED = 130


class Command(BaseCommand):
    help = (
        "Send a campaign to invented people through a local mail server that misbehaves, kill a "
        "sender on the way, and count. Exit code 0: nobody got two and everybody is accounted "
        "for, 1: not so, 2: it can't run here."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--people", type=int, default=1000, metavar="N", help="(default 1000)")
        parser.add_argument("--seed", type=int, default=1, metavar="N", help="other people")
        parser.add_argument(
            "--serve",
            action=argparse.BooleanOptionalAction,
            help="run the site on port 8000 afterwards (default: on a terminal)",
        )
        parser.add_argument("--keep", action="store_true", help="keep the record and the logs")

    def handle(self, *args: Any, **options: Any) -> None:
        serve = options["serve"]
        if serve is None:
            serve = getattr(settings, "DEMO_SERVE", None)
        chosen = Options(
            people=options["people"],
            seed=options["seed"],
            serve=self.stdout.isatty() if serve is None else serve,
            keep=options["keep"],
        )
        try:
            code = run(chosen, open_screen(self.stdout))
        except DemoRefused as error:
            raise CommandError(str(error), returncode=EXIT_USAGE) from error
        except ChildFailed as error:
            raise CommandError(str(error), returncode=EXIT_FAILED) from error
        except KeyboardInterrupt:
            self.stderr.write("stopped")
            sys.exit(EXIT_INTERRUPTED)
        if code:
            sys.exit(code)
