"""``manage.py import_subscribers FILE --account SLUG --segment SLUG``."""

from __future__ import annotations

import argparse
import sys
from datetime import datetime
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.utils import timezone

from subscribers.command_line import terminable, who
from subscribers.importing import (
    ImportRefused,
    ImportReport,
    ImportStopped,
    Options,
    import_file,
)
from subscribers.importing.showing import shown
from subscribers.models import Account, Segment

EPILOG = """exit codes:
  0    done
  1    an unexpected error
  2    refused: nothing was changed, or the line says what was; or stopped halfway
       (SIGTERM: after what is being written)
  130  stopped by ctrl-c

Killed or stopped halfway, the same command goes on where the last chunk ended: the same file
with the same options into the same segment.
"""


class Command(BaseCommand):
    help = (
        "Import subscribers from a CSV or Excel file into a segment. Rows that are bad go to a "
        "reject file with the reason, the others go in, 10,000 people in a transaction."
    )

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
            "file", metavar="FILE", help="CSV, TSV or .xlsx; - reads standard input"
        )
        parser.add_argument("--account", required=True, metavar="SLUG")
        parser.add_argument("--segment", required=True, metavar="SLUG")
        people = parser.add_argument_group("people")
        people.add_argument(
            "--confirmed",
            action="store_true",
            help="you have these people's consent: they get campaigns at once; without it new "
            "people wait until they confirm",
        )
        people.add_argument(
            "--consent-source", default="", metavar="TEXT", help="where the consent came from"
        )
        people.add_argument(
            "--keep-existing",
            action="store_true",
            help="leave what is known of a person as it is; they still join the segment",
        )
        reading = parser.add_argument_group(
            "how the file is read, where that is not found by itself"
        )
        reading.add_argument("--encoding", default="", help="as in cp1252 or utf-16-le")
        reading.add_argument(
            "--delimiter", default="", type=_delimiter, help="one character, or tab"
        )
        reading.add_argument("--sheet", default="", help="of a workbook; default: the first")
        reading.add_argument(
            "--no-header",
            action="store_true",
            help="the first row is a person; columns are called 'column 1', 'column 2', ...",
        )
        reading.add_argument(
            "--map",
            action="append",
            default=[],
            type=_mapping,
            metavar="COLUMN=TARGET",
            help="what a column means: email, status, locale, timezone, consent_source, "
            "suppressed, attribute:KEY, or nothing to pass it over; may be repeated",
        )
        reading.add_argument(
            "--decimal", default=".", choices=[".", ","], help="before a number's fraction"
        )
        reading.add_argument(
            "--date-order",
            default="ymd",
            choices=["ymd", "dmy", "mdy"],
            help="of days that are not written 2026-11-30 (default: such are refused)",
        )
        running = parser.add_argument_group("how it is done")
        running.add_argument(
            "--atomic", action="store_true", help="one transaction: the whole file or nothing"
        )
        running.add_argument(
            "--dry-run", action="store_true", help="report what would happen, change nothing"
        )
        running.add_argument(
            "--reject-file",
            metavar="PATH",
            help="default: FILE.rejects.csv, beside the file (FILE.rejects-dry-run.csv)",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        account = Account.objects.filter(slug=options["account"]).first()
        if account is None:
            raise CommandError(f"There is no account {options['account']!r}.", returncode=2)
        segment = Segment.objects.filter(account=account, slug=options["segment"]).first()
        if segment is None:
            raise CommandError(
                f"The account {account.slug} has no segment {options['segment']!r}. "
                f"{_segments_of(account)}",
                returncode=2,
            )
        name = options["file"]
        try:
            with terminable() as stopping, shown(sys.stderr) as progress:
                import_file(
                    sys.stdin.buffer if name == "-" else name,
                    account=account,
                    segment=segment,
                    options=_options(options),
                    columns=dict(options["map"]),
                    reject_file=options["reject_file"],
                    dry_run=options["dry_run"],
                    by_name=who(),
                    progress=progress,
                    stopping=stopping,
                    waiting=self._wait,
                    tell=self._tell,
                )
        except (ImportRefused, ImportStopped) as error:
            cure = " The option is --encoding." if "encoding" in str(error) else ""
            raise CommandError(f"{error}{cure}", returncode=2) from error
        except KeyboardInterrupt:
            raise CommandError(
                "Stopped. The same command goes on where it stopped.", returncode=130
            ) from None

    def _wait(self, until: datetime) -> None:
        at = timezone.localtime(until).strftime("%H:%M:%S")
        self.stderr.write(
            f"Another run of this import is at work, or died a moment ago: waiting for its end, "
            f"or for {at} to go on in its place."
        )

    def _tell(self, report: ImportReport) -> None:
        for line in describe(report):
            self.stdout.write(line)
        self.stdout.flush()


def describe(report: ImportReport) -> list[str]:
    """The report as lines for people; the first holds all counts of rows."""
    lines = [
        f"imported {report.imported}, updated {report.updated}, unchanged {report.unchanged}, "
        f"unsubscribed {report.unsubscribed}, duplicates {report.duplicates}, "
        f"rejected {report.rejected}; suppressed {report.suppressed}"
    ]
    lines += [f"{number} x {reason}{_cure(reason)}" for reason, number in report.reasons]
    if report.pending:
        lines.append(
            f"{report.pending} of the new ones get no campaign until they confirm "
            "(--confirmed: you have their consent)."
        )
    lines += report.notes
    if report.ignored:
        lines.append(f"Columns passed over: {', '.join(report.ignored)}.")
    if report.reject_file is not None:
        lines.append(f"Rejected rows, with the reasons: {report.reject_file}")
    if report.dry_run:
        lines.append("Dry run: nothing was changed.")
    return lines


def _cure(reason: str) -> str:
    """The option that may be the cure of rejects for this reason; blank: none is."""
    if "number with a decimal" in reason or "could be two numbers" in reason:
        return " (--decimal)"
    if "could be two days" in reason or "There is no day" in reason:
        return " (--date-order)"
    return ""


def _segments_of(account: Account) -> str:
    slugs = list(account.segments.order_by("slug").values_list("slug", flat=True)[:11])
    if not slugs:
        return "It has none yet."
    return f"It has {', '.join(slugs[:10])}{', ...' if len(slugs) > 10 else ''}."


def _options(given: dict[str, Any]) -> Options:
    return Options(
        encoding=given["encoding"],
        delimiter=given["delimiter"],
        sheet=given["sheet"],
        header=not given["no_header"],
        decimal=given["decimal"],
        date_order=given["date_order"],
        existing="keep" if given["keep_existing"] else "update",
        confirmed=given["confirmed"],
        consent_source=given["consent_source"],
        atomic=given["atomic"],
    )


def _delimiter(text: str) -> str:
    return "\t" if text.lower() in {"tab", "\\t"} else text


def _mapping(text: str) -> tuple[str, str]:
    column, equals, target = text.rpartition("=")
    if not equals or not column.strip():
        raise argparse.ArgumentTypeError(f"{text!r} is not of the form COLUMN=TARGET")
    return column, target.strip()
