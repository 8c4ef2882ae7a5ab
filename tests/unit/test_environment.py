"""What each environment variable becomes, and how a wrong one is refused."""

from __future__ import annotations

import multiprocessing
import stat
from pathlib import Path
from typing import Any

import pytest
from django.core.exceptions import ImproperlyConfigured

from config import environment
from subscribers.conf import SMTP_BACKEND


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        (
            "postgresql://ann:p%40ss@db.example.org:6432/mail",
            {"NAME": "mail", "USER": "ann", "PASSWORD": "p@ss", "HOST": "db.example.org"},
        ),
        ("postgres://db.example.org/mail", {"NAME": "mail", "HOST": "db.example.org"}),
        ("psql://db.example.org/mail", {"ENGINE": "django.db.backends.postgresql"}),
        ("postgresql://ann@/mail?host=/run/pg&port=5433", {"NAME": "mail", "HOST": ""}),
        ("postgresql:///mail", {"NAME": "mail", "HOST": ""}),
    ],
)
def test_a_postgresql_address_is_taken(url: str, expected: dict[str, Any]) -> None:
    entry = environment.database_settings(url)
    assert {name: entry[name] for name in expected} == expected
    assert entry["OPTIONS"]["connect_timeout"] == environment.CONNECT_TIMEOUT_S


def test_a_socket_directory_reaches_the_driver() -> None:
    entry = environment.database_settings("postgresql://ann@/mail?host=%2Frun%2Fpg&port=5433")
    assert entry["OPTIONS"]["host"] == "/run/pg"
    assert entry["OPTIONS"]["port"] == 5433


@pytest.mark.parametrize(
    "url",
    [
        "mysql://ann:secret@db.example.org/mail",
        "sqlite:////tmp/secret.sqlite3",
        "sqlite://:memory:",
        "oracle://ann:secret@db.example.org/mail",
        "db.example.org/secret",
        "secret",
        "postgresql://ann:secret@db.example.org:port/mail",
        "postgresql://ann:secret@db.example.org",
        "postgresql://ann:secret@db.example.org/",
        "postgresqlx://ann:secret@db.example.org/mail",
    ],
)
def test_anything_else_is_refused_in_one_line_without_the_password(url: str) -> None:
    with pytest.raises(ImproperlyConfigured) as refusal:
        environment.database_settings(url)
    message = str(refusal.value)
    assert message.startswith("DATABASE_URL ")
    assert "\n" not in message
    assert "secret" not in message


SMTP = {"host": "mx.example.org"}


@pytest.mark.parametrize(
    ("url", "options"),
    [
        ("smtp://127.0.0.1:2525", {"host": "127.0.0.1", "port": 2525}),
        ("smtp://mx.example.org", {**SMTP, "port": 25}),
        (
            "smtp+tls://ann:p%40ss@mx.example.org:587",
            {**SMTP, "port": 587, "username": "ann", "password": "p@ss", "use_tls": True},
        ),
        ("smtp+ssl://mx.example.org", {**SMTP, "port": 465, "use_ssl": True}),
        ("smtp://mx.example.org?timeout=5", {**SMTP, "port": 25, "timeout": 5}),
        (
            "smtp://mx.example.org?back_to_back=True&chunking=false&connect_timeout=1.5",
            {**SMTP, "port": 25, "back_to_back": True, "chunking": False, "connect_timeout": 1.5},
        ),
        (
            "smtp://mx.example.org?back_to_back=no&local_hostname=nan",
            {**SMTP, "port": 25, "back_to_back": "no", "local_hostname": "nan"},
        ),
        ("smtp:", {"host": "127.0.0.1", "port": 25}),
    ],
)
def test_smtp_goes_through_the_backend_that_knows_the_stage(
    url: str, options: dict[str, Any]
) -> None:
    transport = environment.transport_settings(url)
    assert transport == {"BACKEND": SMTP_BACKEND, "OPTIONS": options}


def test_other_mail_backends_are_djangos() -> None:
    console = environment.transport_settings("consolemail://")
    assert console == {
        "BACKEND": "django.core.mail.backends.console.EmailBackend",
        "OPTIONS": {},
    }
    files = environment.transport_settings("filemail:///var/spool/out")
    assert files["OPTIONS"] == {"file_path": "/var/spool/out"}


@pytest.mark.parametrize(
    "url", ["pigeon://coop", "mx.example.org", "smtp://mx.example.org:mail", "smtp:mx.example.org"]
)
def test_an_unknown_mail_address_is_refused_in_one_line(url: str) -> None:
    with pytest.raises(ImproperlyConfigured, match=r"^EMAIL_URL [^\n]*$"):
        environment.transport_settings(url)


def test_djangos_own_mail_uses_the_same_relay_under_the_names_of_its_version() -> None:
    transport = environment.transport_settings("smtp+tls://ann:pw@mx.example.org:587?lot=3")
    old = environment.django_mail_settings(transport, mailers=False)
    assert old == {
        "EMAIL_BACKEND": "django.core.mail.backends.smtp.EmailBackend",
        "EMAIL_HOST": "mx.example.org",
        "EMAIL_PORT": 587,
        "EMAIL_HOST_USER": "ann",
        "EMAIL_HOST_PASSWORD": "pw",
        "EMAIL_USE_TLS": True,
    }
    new = environment.django_mail_settings(transport, mailers=True)
    assert new["MAILERS"]["default"]["OPTIONS"]["host"] == "mx.example.org"
    assert not any(name.startswith("EMAIL_") for name in new)


def test_every_sendonce_key_has_a_variable_of_its_own_type() -> None:
    given = {
        "SENDONCE_BASE_URL": "https://mail.example.org",
        "SENDONCE_LANES": "3",
        "SENDONCE_LEASE": "12.5",
        "SENDONCE_DIRECT_CONNECTION": "true",
        "SENDONCE_SECRET_KEYS": '["new", "old"]',
        "SENDONCE_TRANSPORTS": '{"bulk": {"BACKEND": "x.Y"}}',
        "SENDONCE_LAINS": "3",
        "PATH": "/bin",
    }
    assert environment.sendonce_settings(given) == {
        "BASE_URL": "https://mail.example.org",
        "LANES": 3,
        "LEASE": 12.5,
        "DIRECT_CONNECTION": True,
        "SECRET_KEYS": ("new", "old"),
        "TRANSPORTS": {"bulk": {"BACKEND": "x.Y"}},
        # Kept: the system check for unknown keys names it.
        "LAINS": "3",
    }


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("SENDONCE_LANES", "many"),
        ("SENDONCE_LANES", "1.5"),
        ("SENDONCE_LEASE", "long"),
        ("SENDONCE_DIRECT_CONNECTION", "perhaps"),
        ("SENDONCE_TRANSPORTS", "{default}"),
        ("SENDONCE_TRANSPORTS", "[]"),
        ("SENDONCE_SECRET_KEYS", '"abc"'),
    ],
)
def test_a_value_of_another_type_is_refused_by_its_name(name: str, value: str) -> None:
    with pytest.raises(ImproperlyConfigured, match=rf"^{name} must be [^\n]*$"):
        environment.sendonce_settings({name: value})


@pytest.mark.parametrize("url", ["", "mail.example.org", "ftp://mail.example.org", "https://"])
def test_a_base_url_that_no_link_can_start_with_is_refused(url: str) -> None:
    with pytest.raises(ImproperlyConfigured, match="SENDONCE_BASE_URL"):
        environment.base_url_host(url)


def test_the_development_key_is_kept_and_private(tmp_path: Path) -> None:
    file = tmp_path / "var" / "secret_key"
    key = environment.kept_secret_key(file)
    assert len(key) >= 50
    assert environment.kept_secret_key(file) == key
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert list(file.parent.iterdir()) == [file]


def test_an_empty_key_file_is_filled(tmp_path: Path) -> None:
    (tmp_path / "secret_key").touch()
    assert environment.kept_secret_key(tmp_path / "secret_key")


def test_processes_that_start_together_keep_one_key(tmp_path: Path) -> None:
    with multiprocessing.get_context("spawn").Pool(4) as pool:
        keys = set(pool.map(environment.kept_secret_key, [tmp_path / "secret_key"] * 16))
    assert len(keys) == 1
