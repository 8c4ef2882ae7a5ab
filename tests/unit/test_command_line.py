"""A setting that cannot be used ends every command with one plain line."""

from __future__ import annotations

import pytest

from tests.forks import Forks

MYSQL = "mysql://ann:secret@127.0.0.1/mail"
#: Port 1 (tcpmux) is privileged and unused: refused at once.
UNREACHABLE = "postgresql://ann:secret@127.0.0.1:1/mail"


@pytest.mark.parametrize(
    ("arguments", "settings", "says"),
    [
        (["check"], {"DATABASE_URL": MYSQL}, "DATABASE_URL must be a PostgreSQL address"),
        (["migrate"], {"DATABASE_URL": "sqlite:///x.db"}, "sqlite:// is not supported"),
        (["run_sender"], {"DATABASE_URL": MYSQL}, "DATABASE_URL must be a PostgreSQL address"),
        (["migrate"], {"DATABASE_URL": UNREACHABLE}, "Connection refused"),
        (["runserver", "127.0.0.1:0"], {"DATABASE_URL": UNREACHABLE}, "Connection refused"),
        (["createcachetable"], {"DATABASE_URL": UNREACHABLE, "SENDONCE_LANES": "x"}, "LANES"),
        (["check"], {"EMAIL_URL": "pigeon://coop"}, "EMAIL_URL must be"),
        (["check"], {"SECRET_KEY": ""}, "SECRET_KEY"),
    ],
)
def test_one_plain_line(
    bare_environ: dict[str, str],
    arguments: list[str],
    settings: dict[str, str],
    says: str,
    forks: Forks,
) -> None:
    done = forks.manage(*arguments, env={**bare_environ, "SECRET_KEY": "x" * 50, **settings})
    assert done.returncode != 0
    assert done.stdout == ""
    assert done.stderr.count("\n") == 1, done.stderr
    assert says in done.stderr
    assert "secret@" not in done.stderr


def test_the_traceback_is_there_for_who_asks(bare_environ: dict[str, str], forks: Forks) -> None:
    env = {**bare_environ, "SECRET_KEY": "x" * 50, "DATABASE_URL": UNREACHABLE}
    done = forks.manage("migrate", "--traceback", env=env)
    assert done.returncode != 0
    assert "Traceback" in done.stderr
