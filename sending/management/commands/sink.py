"""``manage.py sink``: a local SMTP server that records what it accepts, with faults on request."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from sending.sink.cli import add_arguments, run


class Command(BaseCommand):
    help = (
        "Run a local SMTP server for demos and tests: it delivers nothing, appends a line to "
        "--record for every message, writes the message itself to --keep, and fails as asked "
        "(--greylist 5 --refuse 3 --drop 1)."
    )
    requires_system_checks: list[str] = []  # it needs no database and no project

    def add_arguments(self, parser: CommandParser) -> None:
        add_arguments(parser)

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            run(options)
        except (OSError, ValueError) as error:
            raise CommandError(f"sink: {error}") from error
