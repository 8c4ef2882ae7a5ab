"""``manage.py export_subscribers --account SLUG [--segment SLUG] [--output FILE]``."""

from __future__ import annotations

import io
import os
import secrets
import sys
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from subscribers.exporting import Writable, export_csv
from subscribers.models import Account, Segment
from subscribers.standard_output import while_it_is_read


class Command(BaseCommand):
    help = (
        "Export an account's subscribers as CSV, in the columns that import_subscribers reads. "
        "Exit code 0: done, 2: refused, nothing was written."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--account", required=True, metavar="SLUG")
        parser.add_argument("--segment", metavar="SLUG", help="Only its present members.")
        parser.add_argument(
            "--output", metavar="FILE", help="Default: standard output. Written as a whole."
        )

    def handle(self, *args: Any, **options: Any) -> None:
        account = Account.objects.filter(slug=options["account"]).first()
        if account is None:
            raise CommandError(f"There is no account {options['account']!r}.", returncode=2)
        segment = None
        if options["segment"] is not None:
            segment = Segment.objects.filter(account=account, slug=options["segment"]).first()
            if segment is None:
                raise CommandError(
                    f"The account {account.slug} has no segment {options['segment']!r}.",
                    returncode=2,
                )
        if options["output"] is None:
            _to_standard_output(self.stdout, account, segment)
            return
        count = _to_file(Path(options["output"]), account, segment)
        self.stdout.write(f"exported {count} to {options['output']}")


def _to_file(path: Path, account: Account, segment: Segment | None) -> int:
    draft = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    try:
        # Readable by its owner alone: it holds addresses.
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            with open(descriptor, "w", encoding="utf-8", newline="") as target:
                count = export_csv(target, account=account, segment=segment)
            draft.replace(path)
        except BaseException:
            draft.unlink(missing_ok=True)
            raise
    except OSError as error:
        raise CommandError(f"{path} can't be written: {error.strerror}.", returncode=2) from error
    return count


def _to_standard_output(target: Writable, account: Account, segment: Segment | None) -> None:
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(encoding="utf-8", newline="")
    with while_it_is_read(target):
        export_csv(target, account=account, segment=segment)
