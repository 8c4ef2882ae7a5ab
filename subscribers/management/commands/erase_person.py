"""``manage.py erase_person --account SLUG EMAIL --reason TEXT [--yes]``."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from subscribers.addresses import canonical, lower
from subscribers.command_line import REFUSED, account_named, who
from subscribers.rights.acts import erase_person


class Command(BaseCommand):
    help = (
        "Erase one person from an account, for good. A keyed hash of the address stays and goes on "
        "suppressing it. It goes on record. Exit code 0: done, 2: refused, nothing was changed."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("email", metavar="EMAIL")
        parser.add_argument("--account", required=True, metavar="SLUG")
        parser.add_argument("--reason", required=True, metavar="TEXT", help="goes on record")
        parser.add_argument("--yes", action="store_true", help="do not ask")

    def handle(self, *args: Any, **options: Any) -> None:
        account = account_named(options["account"])
        email = canonical(options["email"])
        if not options["yes"] and email:
            self._ask(f"This can't be taken back. Type {email} to erase it: ", email)
        try:
            done = erase_person(account, email, reason=options["reason"], by_name=who())
        except ValueError as error:
            raise CommandError(f"Nothing was changed: {error}", returncode=REFUSED) from error
        told = ", ".join(f"{kind} {number}" for kind, number in done.forgotten.items())
        self.stdout.write(f"erased; {told or 'nothing was left'}")
        if done.uploads:
            self.stdout.write(
                f"Files that were uploaded and not imported yet: {done.uploads}. If they name the "
                "person, the row is refused when they are imported."
            )
        if done.elsewhere:
            self.stdout.write(
                "The list of suppressions for all accounts has this address, too, and keeps it."
            )

    def _ask(self, question: str, wanted: str) -> None:
        try:
            typed = input(question)
        except EOFError:
            typed = ""
        if lower(canonical(typed)) != lower(wanted):
            raise CommandError("Nothing was changed: it was not confirmed.", returncode=REFUSED)
