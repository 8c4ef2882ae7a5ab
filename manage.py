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
        if "--traceback" in sys.argv:
            raise
        if _is_unmigrated(error):
            line = "the database has no tables yet: run manage.py migrate"
        elif _is_plain(error):
            line = _first_line(error)
        else:
            raise
        print(f"error: {line}", file=sys.stderr)
        sys.exit(1)


def _is_unmigrated(error: Exception) -> bool:
    """A table is missing, and so is a migration; with all of them applied it is a bug to see."""
    if getattr(error.__cause__, "sqlstate", None) != UNDEFINED_TABLE:
        return False
    try:
        connection.close()  # the transaction that failed, if any
        executor = MigrationExecutor(connection)
        return bool(executor.migration_plan(executor.loader.graph.leaf_nodes()))
    except DatabaseError:
        return False


def _is_plain(error: Exception) -> bool:
    """A connection that failed; an error inside a session (it has an SQLSTATE) is a bug to see."""
    if isinstance(error, ProgrammingError):
        return False
    return isinstance(error, ImproperlyConfigured) or not getattr(error.__cause__, "sqlstate", None)


def _first_line(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    return lines[0] if lines else type(error).__name__


if __name__ == "__main__":
    main()
