"""Commands against a database, or with settings, that somebody forgot to prepare."""

from __future__ import annotations

import subprocess
from collections.abc import Callable

import psycopg
import pytest

from tests.forks import Forks

Manage = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def unmigrated(bare_environ: dict[str, str], empty_database_url: str) -> dict[str, str]:
    return {**bare_environ, "SECRET_KEY": "x" * 50, "DATABASE_URL": empty_database_url}


@pytest.mark.parametrize(
    "arguments",
    [
        ["ledger"],
        ["ledger", "--campaign", "1"],
        ["run_sender", "--drain"],
        ["run_sender", "--campaign", "1"],
        ["sender_status"],
        ["sender_status", "--address", "a@example.org"],
        ["import_subscribers", "-", "--account", "a", "--segment", "s"],
        ["resolve_doubt", "--campaign", "1", "--send-again"],
    ],
    ids=" ".join,
)
def test_a_database_without_tables_is_one_plain_line(
    unmigrated: dict[str, str], arguments: list[str], forks: Forks
) -> None:
    done = forks.manage(*arguments, env=unmigrated)
    assert done.returncode == 1
    assert done.stderr == "error: the database has no tables yet: run manage.py migrate\n"
    assert done.stdout == ""


def test_the_traceback_is_there_for_who_asks(unmigrated: dict[str, str], forks: Forks) -> None:
    done = forks.manage("ledger", "--traceback", env=unmigrated)
    assert done.returncode == 1
    assert "UndefinedTable" in done.stderr


def test_a_table_that_is_lost_is_no_missing_migration(manage: Manage, database_url: str) -> None:
    with psycopg.connect(database_url) as connection:
        connection.execute("DROP TABLE sendonce_campaigns_campaign CASCADE")
    done = manage("ledger")
    assert done.returncode == 1
    assert "UndefinedTable" in done.stderr
    assert "migrate" not in done.stderr


@pytest.mark.parametrize(
    ("relay", "warned"), [("smtp://relay.example.org:25", True), ("smtp://127.0.0.1:2525", False)]
)
@pytest.mark.parametrize("debug", ["true", "false"])
def test_a_sender_logs_that_links_would_be_dead(
    manage: Manage, relay: str, warned: bool, debug: str
) -> None:
    done = manage("run_sender", "--drain", extra={"EMAIL_URL": relay, "DEBUG": debug})
    assert done.returncode == 0, done.stderr
    lines = [
        line for line in (done.stdout + done.stderr).splitlines() if "base_url_warning" in line
    ]
    assert len(lines) == int(warned)
    assert all("WARNING" in line and "http://127.0.0.1:8000" in line for line in lines)


#: Each in the environment, and what is said of it.
WRONG = [
    ("EMAIL_URL", "smtp://127.0.0.1:2525?back_to_bak=true", "unknown options back_to_bak"),
    ("EMAIL_URL", "smtp://127.0.0.1:2525?back_to_back=maybe", "is true or false, not 'maybe'"),
    ("EMAIL_URL", "smtp://127.0.0.1:2525?reply_timeout=1m", "number of seconds above 0, not '1m'"),
    ("EMAIL_URL", "smtp:127.0.0.1", "EMAIL_URL names no relay"),
    ("SENDONCE_LANES", "many", "SENDONCE_LANES"),
]


@pytest.mark.parametrize(("name", "value", "said"), WRONG)
def test_a_sender_ends_as_with_bad_options(
    manage: Manage, name: str, value: str, said: str
) -> None:
    done = manage("run_sender", "--drain", extra={name: value})
    assert done.returncode == 2, done.stderr
    assert said in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("command", ["sender_status", "ledger"])
def test_who_only_looks_is_told_and_sees(manage: Manage, command: str) -> None:
    name, value, said = WRONG[0]
    done = manage(command, extra={name: value})
    assert done.returncode == 0, done.stderr
    assert said in done.stderr
    assert done.stdout
