"""``manage.py export_person --account SLUG EMAIL [--output FILE]``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import transaction

from subscribers.command_line import REFUSED, account_named, who, write_out, write_private
from subscribers.rights.acts import export_person, record_export

#: The verb by which an export is on record.
_ASKED = "person.export"


class Command(BaseCommand):
    help = (
        "Write all that an account knows of one person as JSON, also of somebody who is no "
        "subscriber any more. It goes on record. Exit code 0: done, 2: refused, nothing was "
        "written."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("email", metavar="EMAIL")
        parser.add_argument("--account", required=True, metavar="SLUG")
        parser.add_argument(
            "--output", metavar="FILE", help="default: standard output; readable by its owner alone"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        account = account_named(options["account"])
        try:
            with transaction.atomic():
                data = export_person(account, options["email"])
                record_export(account, options["email"], by_name=who())
        except ValueError as error:
            raise CommandError(str(error), returncode=REFUSED) from error
        if not _is_known(data):
            self.stderr.write(f"Nothing is known of {data['address']} in {account.slug}.")
        pieces = [json.dumps(data, ensure_ascii=False, indent=2), "\n"]
        if options["output"] is None:
            write_out(pieces)
            return
        write_private(Path(options["output"]), pieces)
        self.stdout.write(f"exported to {options['output']}")


def _is_known(data: dict[str, Any]) -> bool:
    """Is anything told of the person? That somebody asked before is not."""
    told = {name: part for name, part in data.items() if name not in ("account", "address", "made")}
    told["acts_of_staff"] = [act for act in told["acts_of_staff"] if act["what"] != _ASKED]
    return any(told.values())
