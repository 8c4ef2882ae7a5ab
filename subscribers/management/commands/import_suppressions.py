"""``manage.py import_suppressions FILE (--account SLUG | --all-accounts)``."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from subscribers.command_line import REFUSED, account_named, who, write_private
from subscribers.forms.suppressions import BY_HAND
from subscribers.importing.files import refuse_reject_file
from subscribers.suppressing.files import FileReport, Reject, import_file
from subscribers.tabular import ImportRefused
from subscribers.tabular.guarding import guard

#: Rejected rows that are told on the terminal.
TOLD = 20


class Command(BaseCommand):
    help = (
        "Suppress the addresses of a CSV or .xlsx file: columns email and, if there, reason, "
        "evidence and expires. It only adds: a stronger reason stays. Exit code 0: done, 2: "
        "refused, nothing was changed."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("file", metavar="FILE")
        scope = parser.add_mutually_exclusive_group(required=True)
        scope.add_argument("--account", metavar="SLUG", help="suppress for this account")
        scope.add_argument(
            "--all-accounts", action="store_true", help="suppress for all, also those to come"
        )
        parser.add_argument(
            "--reason",
            default="manual",
            choices=[reason.value for reason in BY_HAND],
            help="of rows that name none (default: manual)",
        )
        parser.add_argument(
            "--reject-file", metavar="PATH", help="write the rows that were not taken to it"
        )
        parser.add_argument(
            "--dry-run", action="store_true", help="report what would happen, change nothing"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        account = None if options["all_accounts"] else account_named(options["account"])
        path = Path(options["file"])
        rejects: list[Reject] = []
        keep = rejects.append if options["reject_file"] else None
        try:
            if options["reject_file"]:
                refuse_reject_file(Path(options["reject_file"]), path)
            with path.open("rb") as binary:
                report = import_file(
                    binary,
                    account=account,
                    file_name=path.name,
                    reason=options["reason"],
                    by_name=who(),
                    dry_run=options["dry_run"],
                    on_reject=keep,
                )
        except ImportRefused as error:
            raise CommandError(str(error), returncode=REFUSED) from error
        except OSError as error:
            raise CommandError(
                f"{path} can't be read: {error.strerror}.", returncode=REFUSED
            ) from error
        for line in described(report):
            self.stdout.write(line)
        if options["reject_file"] and rejects:
            write_private(Path(options["reject_file"]), _csv(rejects))
            self.stdout.write(f"Rejected rows, with the reasons: {options['reject_file']}")


def described(report: FileReport) -> list[str]:
    """The report as lines for people; the first holds all counts of rows."""
    lines = [
        f"added {report.added}, strengthened {report.strengthened}, known {report.known}, "
        f"duplicates {report.duplicates}, erased people {report.erased}, "
        f"rejected {report.rejected}",
        *report.notes,
    ]
    if report.passed_over:
        lines.append(f"Columns passed over: {', '.join(report.passed_over)}.")
    lines += [f"line {row.line}: {row.reason}" for row in report.rejects[:TOLD]]
    if report.rejected > TOLD:
        lines.append(f"... and {report.rejected - TOLD} more; --reject-file PATH has them all.")
    if report.dry_run:
        lines.append("Dry run: nothing was changed.")
    return lines


def _csv(rejects: list[Reject]) -> Iterator[str]:
    target = io.StringIO(newline="")
    writer = csv.writer(target)
    writer.writerow(["line", "reason", "row"])
    writer.writerows([row.line, row.reason, guard(row.text)] for row in rejects)
    yield target.getvalue()
