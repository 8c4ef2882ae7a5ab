"""``manage.py import_subscribers FILE --account SLUG --segment SLUG``."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from subscribers.importing import ImportRefused, ImportReport, Progress, import_csv
from subscribers.models import Account, Segment


class Command(BaseCommand):
    help = (
        "Import subscribers from a CSV file into a segment: all its good rows, or nothing. "
        "Rows that are bad go to a reject file with the reason. Exit code 0: done, 2: refused, "
        "nothing was changed."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("file", metavar="FILE", help="The CSV file; - reads standard input.")
        parser.add_argument("--account", required=True, metavar="SLUG")
        parser.add_argument("--segment", required=True, metavar="SLUG")
        parser.add_argument(
            "--confirmed",
            action="store_true",
            help="You have these people's consent: they get campaigns at once. Without it new "
            "people wait until they confirm.",
        )
        parser.add_argument(
            "--consent-source", default="", metavar="TEXT", help="Where the consent came from."
        )
        parser.add_argument(
            "--keep-existing",
            action="store_true",
            help="Leave what is known of a person as it is; they still join the segment.",
        )
        parser.add_argument(
            "--encoding", help="If it is neither UTF-8 nor has a byte-order mark, as in cp1252."
        )
        parser.add_argument("--delimiter", help="If it is not found by itself.")
        parser.add_argument(
            "--reject-file", metavar="PATH", help="Default: FILE.rejects.csv, beside the file."
        )
        parser.add_argument(
            "--dry-run", action="store_true", help="Report what would happen, change nothing."
        )

    def handle(self, *args: Any, **options: Any) -> None:
        account = Account.objects.filter(slug=options["account"]).first()
        if account is None:
            raise CommandError(f"There is no account {options['account']!r}.", returncode=2)
        segment = Segment.objects.filter(account=account, slug=options["segment"]).first()
        if segment is None:
            raise CommandError(
                f"The account {account.slug} has no segment {options['segment']!r}.", returncode=2
            )
        name = options["file"]
        try:
            with _progress(name) as progress:
                report = import_csv(
                    sys.stdin.buffer if name == "-" else name,
                    account=account,
                    segment=segment,
                    confirmed=options["confirmed"],
                    existing="keep" if options["keep_existing"] else "update",
                    consent_source=options["consent_source"],
                    encoding=options["encoding"],
                    delimiter=options["delimiter"],
                    reject_file=options["reject_file"],
                    dry_run=options["dry_run"],
                    progress=progress,
                )
        except ImportRefused as error:
            raise CommandError(str(error), returncode=2) from error
        for line in describe(report):
            self.stdout.write(line)


def describe(report: ImportReport) -> list[str]:
    """The report as lines for people; the first holds all counts of rows."""
    lines = [
        f"imported {report.imported}, updated {report.updated}, unchanged {report.unchanged}, "
        f"unsubscribed {report.unsubscribed}, duplicates {report.duplicates}, "
        f"rejected {report.rejected}; suppressed {report.suppressed}"
    ]
    if report.pending:
        lines.append(
            f"{report.pending} of the new ones get no campaign until they confirm "
            "(--confirmed: you have their consent)."
        )
    if report.ignored:
        lines.append(f"Columns passed over: {', '.join(report.ignored)}.")
    if report.reject_file is not None:
        lines.append(f"Rejected rows, with the reasons: {report.reject_file}")
    if report.dry_run:
        lines.append("Dry run: nothing was changed.")
    return lines


@contextmanager
def _progress(name: str) -> Iterator[Progress | None]:
    """A bar on a terminal, where rich is installed and the size is known; else nothing."""
    if not sys.stderr.isatty() or not Path(name).is_file():
        yield None
        return
    try:
        from rich.console import Console
        from rich.progress import (
            BarColumn,
            DownloadColumn,
            Progress,
            TextColumn,
            TimeRemainingColumn,
        )
    except ImportError:
        yield None
        return

    class Quiet(Console):
        def on_broken_pipe(self) -> None:
            """rich would end the process in the middle of the import."""
            self.quiet = True

    columns = (TextColumn("{task.fields[rows]} rows"), BarColumn(), DownloadColumn())
    with Progress(
        *columns, TimeRemainingColumn(), console=Quiet(stderr=True), transient=True
    ) as bar:
        task = bar.add_task("import", total=os.stat(name).st_size, rows=0)
        yield lambda read, rows: bar.update(task, completed=read, rows=rows)
