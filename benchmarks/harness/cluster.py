"""A PostgreSQL of its own for one benchmark, removed with it, and the project on it."""

from __future__ import annotations

import contextlib
import logging
import os
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

from psycopg import sql

from config.embedded.cluster import Cluster


@contextlib.contextmanager
def server(settings: Mapping[str, str] | None = None) -> Iterator[Cluster]:
    """A fresh embedded cluster; ``settings`` are its server's, over the project's defaults."""
    with tempfile.TemporaryDirectory(prefix="sendonce-bench-") as folder:
        # An unprivileged server must reach its data when root runs this.
        os.chmod(folder, 0o755)
        cluster = Cluster(Path(folder) / "postgres", settings or {})
        try:
            cluster.ensure()
            yield cluster
        finally:
            cluster.destroy()


def environ(database_url: str, email_url: str = "smtp://127.0.0.1:9") -> dict[str, str]:
    """The environment in which ``manage.py`` uses that database and that relay."""
    return {
        **os.environ,
        "DATABASE_URL": database_url,
        "EMAIL_URL": email_url,
        "SECRET_KEY": "for-the-benchmark-only",
        "DEBUG": "false",
        "SENDONCE_DIRECT_CONNECTION": "true",
        "DJANGO_SETTINGS_MODULE": "config.settings",
    }


def set_up(database_url: str) -> None:
    """Django in this process, and the project's tables. Once for a process."""
    os.environ.update(environ(database_url))
    import django

    django.setup()
    # What a sender would log of what is prepared stands in the way of the figures.
    logging.getLogger("sendonce").setLevel(logging.WARNING)
    from django.core.management import call_command

    call_command("migrate", verbosity=0)


def copy(cluster: Cluster, template: str, name: str) -> str:
    """A database like ``template``, to which nobody may be connected; returns its URL."""
    with cluster.connect() as connection:
        connection.execute(
            sql.SQL("CREATE DATABASE {} TEMPLATE {}").format(
                sql.Identifier(name), sql.Identifier(template)
            )
        )
    checkpoint(cluster)
    return cluster.url(name)


def checkpoint(cluster: Cluster) -> None:
    """What was prepared is written now, not during what is measured."""
    with cluster.connect() as connection:
        connection.execute("CHECKPOINT")


def create(cluster: Cluster, name: str) -> str:
    return copy(cluster, "template0", name)


def drop(cluster: Cluster, name: str) -> None:
    with cluster.connect() as connection:
        connection.execute(
            sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(sql.Identifier(name))
        )
