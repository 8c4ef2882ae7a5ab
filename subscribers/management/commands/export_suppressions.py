"""``manage.py export_suppressions [--account SLUG | --all-accounts] [--output FILE]``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandParser
from django.db.models import Q
from django.db.models.functions import Now

from subscribers.audit import record
from subscribers.command_line import account_named, who, write_out, write_private
from subscribers.models import Suppression
from subscribers.suppressing.export import export_chunks, exportable


class Command(BaseCommand):
    help = (
        "Export the suppression list as CSV, in the columns that import_suppressions reads: all of "
        "it, one account's, or the list for all accounts. Erased people are not in it: their "
        "addresses are not known any more. Exit code 0: done, 2: refused, nothing was written."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        scope = parser.add_mutually_exclusive_group()
        scope.add_argument("--account", metavar="SLUG", help="only this account's list")
        scope.add_argument(
            "--all-accounts", action="store_true", help="only the list that holds for all accounts"
        )
        parser.add_argument("--expired", action="store_true", help="with what has expired, too")
        parser.add_argument(
            "--output", metavar="FILE", help="default: standard output; written as a whole"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        account = account_named(options["account"]) if options["account"] else None
        rows = Suppression.objects.all()
        if account is not None:
            rows = rows.filter(account=account)
        elif options["all_accounts"]:
            rows = rows.filter(account__isnull=True)
        if not options["expired"]:
            rows = rows.filter(Q(expires__isnull=True) | Q(expires__gt=Now()))
        count = exportable(rows).count()
        record(
            account,
            "suppression.export",
            by_name=who(),
            subject=str(account) if account else "",
            detail={"entries": count},
        )
        if options["output"] is None:
            write_out(export_chunks(rows))
            return
        write_private(Path(options["output"]), export_chunks(rows))
        self.stdout.write(f"exported {count} to {options['output']}")
