#!/usr/bin/env python
"""Django's command line for the runnable project."""

from __future__ import annotations

import os
import sys

import django
from django.core.exceptions import ImproperlyConfigured
from django.core.management import execute_from_command_line
from django.db import connection
from django.db.migrations.executor import MigrationExecutor
from django.db.utils import DatabaseError, OperationalError, ProgrammingError

UNDEFINED_TABLE = "42P01"  # the SQLSTATE
#: As of options that a command does not know.
EXIT_SETTINGS = 2


def main() -> None:
    """Run the command; settings or a database that cannot be used end it with one plain line.

    ``--traceback`` shows where such an error came from, as it does for Django's own.
    """
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
    try:
        if sys.argv[1:2] == ["runserver"]:
            # Its reloader would show a traceback, and wait for an edit that mends the database.
            django.setup()
            connection.ensure_connection()
            connection.close()
        execute_from_command_line(sys.argv)
    except (ImproperlyConfigured, OperationalError, ProgrammingError) as error:
        line = None if "--traceback" in sys.argv else _plain_line(error)
        if line is None:
            raise
        print(f"error: {line}", file=sys.stderr)
        # A supervisor that starts it again would not mend the settings.
        sys.exit(EXIT_SETTINGS if isinstance(error, ImproperlyConfigured) else 1)


def _plain_line(error: Exception) -> str | None:
    """What to do about it. ``None``: an error inside a session (it has an SQLSTATE) is a bug to
    see, save for a missing table where a migration is missing too."""
    sqlstate = getattr(error.__cause__, "sqlstate", None)
    if sqlstate == UNDEFINED_TABLE and _lacks_migrations():
        return "the database has no tables yet: run manage.py migrate"
    if isinstance(error, ImproperlyConfigured):
        return _first_line(error)
    return _first_line(error) if isinstance(error, OperationalError) and not sqlstate else None


def _lacks_migrations() -> bool:
    try:
        connection.close()  # with the transaction that failed, if any
        executor = MigrationExecutor(connection)
        return bool(executor.migration_plan(executor.loader.graph.leaf_nodes()))
    except DatabaseError:
        return False


def _first_line(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    return lines[0] if lines else type(error).__name__


if __name__ == "__main__":
    main()
