"""Turns environment values into settings: pure functions, each refusing with one plain line.

Only ``config.settings`` reads the environment; it passes the values here.
"""

from __future__ import annotations

import json
import os
import re
import secrets
import time
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from django.core.exceptions import ImproperlyConfigured
from environ import Env

from subscribers.conf import SMTP_BACKEND, Conf

POSTGRESQL_SCHEMES = frozenset({"postgres", "postgresql", "pgsql", "psql"})
CONNECT_TIMEOUT_S = 10
#: libpq's own names; seconds, but for the last, which is milliseconds.
DEAD_LINK = {
    "keepalives": 1,
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 20_000,
}
#: Django's names for what ``EMAIL_URL`` says, and the options of an e-mail backend.
EMAIL_OPTIONS = {
    "EMAIL_HOST": "host",
    "EMAIL_PORT": "port",
    "EMAIL_HOST_USER": "username",
    "EMAIL_HOST_PASSWORD": "password",
    "EMAIL_USE_TLS": "use_tls",
    "EMAIL_USE_SSL": "use_ssl",
}
DJANGO_SMTP_BACKEND = "django.core.mail.backends.smtp.EmailBackend"
FILE_BACKEND = "django.core.mail.backends.filebased.EmailBackend"
PREFIX = "SENDONCE_"


def database_settings(url: str) -> dict[str, Any]:
    """The ``DATABASES`` entry for ``DATABASE_URL``.

    Raises ``ImproperlyConfigured`` for anything but a PostgreSQL address with a database name.
    The message never repeats the address: it may hold a password.
    """
    scheme = url.partition(":")[0].lower() if "://" in url else ""
    if scheme not in POSTGRESQL_SCHEMES:
        found = f"{scheme}:// is not supported" if scheme else "it has no scheme"
        raise ImproperlyConfigured(
            "DATABASE_URL must be a PostgreSQL address, "
            f"postgresql://user:password@host:port/name; {found}."
        )
    try:
        entry = dict(Env.db_url_config(url))
    except ValueError as error:
        raise ImproperlyConfigured("DATABASE_URL cannot be read: check its port.") from error
    if not entry["NAME"] and "service" not in entry.get("OPTIONS", {}):
        raise ImproperlyConfigured("DATABASE_URL names no database: add /name after the host.")
    options = entry.setdefault("OPTIONS", {})
    options.setdefault("connect_timeout", CONNECT_TIMEOUT_S)
    # A link that dies without a word (a failover, a firewall that forgot us) must become an
    # error within seconds, not hours; libpq ignores these on a unix socket.
    for name, value in DEAD_LINK.items():
        options.setdefault(name, value)
    return entry


def transport_settings(url: str) -> dict[str, Any]:
    """A transport (``BACKEND`` and ``OPTIONS``) for ``EMAIL_URL`` in django-environ's form.

    SMTP goes through Sendonce's own backend, which knows how far a conversation got. Raises
    ``ImproperlyConfigured`` for an unknown scheme or a port that is no number.
    """
    scheme, _, rest = url.partition(":")
    if scheme.lower().startswith("smtp") and rest and not rest.startswith("//"):
        # It would be read as no host at all, and mail would go to port 25 of this machine.
        raise ImproperlyConfigured("EMAIL_URL names no relay: it is smtp://host:port.")
    try:
        parsed = Env.email_url_config(url)
    except (ValueError, ImproperlyConfigured) as error:
        schemes = ", ".join(sorted(Env.EMAIL_SCHEMES))
        raise ImproperlyConfigured(
            f"EMAIL_URL must be an address such as smtp://user:password@host:port ({schemes})."
        ) from error
    backend = parsed["EMAIL_BACKEND"]
    if backend == FILE_BACKEND:
        return {"BACKEND": backend, "OPTIONS": {"file_path": "/" + parsed["EMAIL_FILE_PATH"]}}
    if backend != DJANGO_SMTP_BACKEND:
        return {"BACKEND": backend, "OPTIONS": {}}
    options = {option: parsed[name] for name, option in EMAIL_OPTIONS.items() if parsed.get(name)}
    given = parsed.get("OPTIONS", {}).items()
    options.update({name.lower(): _option(value) for name, value in given})
    options.setdefault("host", "127.0.0.1")
    options.setdefault("port", 465 if options.get("use_ssl") else 25)
    return {"BACKEND": SMTP_BACKEND, "OPTIONS": options}


def _option(value: Any) -> Any:
    """Of an address only whole numbers come as what they are; ``false`` would be true."""
    if not isinstance(value, str):
        return value
    if value.lower() in ("true", "false"):
        return value.lower() == "true"
    return float(value) if re.fullmatch(r"[0-9]+\.[0-9]+", value) else value


def django_mail_settings(transport: Mapping[str, Any], *, mailers: bool) -> dict[str, Any]:
    """Django's own mail settings (password resets, error mails) for the same relay.

    ``mailers``: Django 6.1 and newer have one dict for them, and deprecate the ``EMAIL_*`` names.
    """
    options = dict(transport["OPTIONS"])
    backend = transport["BACKEND"]
    if backend == SMTP_BACKEND:
        backend = DJANGO_SMTP_BACKEND
        known = {*EMAIL_OPTIONS.values(), "timeout", "ssl_keyfile", "ssl_certfile"}
        options = {name: value for name, value in options.items() if name in known}
    if mailers:
        return {"MAILERS": {"default": {"BACKEND": backend, "OPTIONS": options}}}
    names = {option: name for name, option in EMAIL_OPTIONS.items()}
    names |= {
        "timeout": "EMAIL_TIMEOUT",
        "file_path": "EMAIL_FILE_PATH",
        "ssl_keyfile": "EMAIL_SSL_KEYFILE",
        "ssl_certfile": "EMAIL_SSL_CERTFILE",
    }
    return {"EMAIL_BACKEND": backend} | {names[name]: value for name, value in options.items()}


def anymail_settings(given: str, webhook_secret: str) -> dict[str, Any]:
    """``ANYMAIL`` from a JSON object; ``webhook_secret`` (``name:password``), where there is one,
    is the ``WEBHOOK_SECRET`` in it.

    Raises ``ImproperlyConfigured`` for anything else; the message never repeats the value: it
    holds keys.
    """
    try:
        found = json.loads(given) if given.strip() else {}
    except ValueError as error:
        raise ImproperlyConfigured(f"ANYMAIL must be a JSON object: {error}.") from None
    if not isinstance(found, dict):
        raise ImproperlyConfigured("ANYMAIL must be a JSON object, {...}.")
    if webhook_secret and ":" not in webhook_secret:
        raise ImproperlyConfigured("ANYMAIL_WEBHOOK_SECRET must be of the form name:password.")
    return {**found, "WEBHOOK_SECRET": webhook_secret} if webhook_secret else found


def sendonce_settings(environment: Mapping[str, str]) -> dict[str, Any]:
    """Every ``SENDONCE_<KEY>`` as ``{KEY: value}``: text and numbers plain, the rest as JSON.

    An unknown key is kept as text, so that the system check for unknown keys names it. Raises
    ``ImproperlyConfigured`` for a value that is not of its key's type.
    """
    types = {field.name: str(field.type) for field in fields(Conf)}
    return {
        name.removeprefix(PREFIX): _typed(name, value, types.get(name.removeprefix(PREFIX), "str"))
        for name, value in environment.items()
        if name.startswith(PREFIX)
    }


def _typed(name: str, value: str, type_name: str) -> Any:
    wanted = {"bool": "true or false", "int": "a whole number", "float": "a number of seconds"}
    try:
        match type_name:
            case "str":
                return value
            case "bool":
                return {"true": True, "1": True, "false": False, "0": False}[value.lower()]
            case "int":
                return int(value)
            case "float":
                return float(value)
        parsed = json.loads(value)
        if not isinstance(parsed, dict if type_name.startswith("dict") else list):
            raise ValueError(f"{type_name} expected")
    except (ValueError, KeyError) as error:
        raise ImproperlyConfigured(
            f"{name} must be {wanted.get(type_name, f'JSON, {type_name}')}; it is {value!r}."
        ) from error
    return tuple(parsed) if type_name.startswith("tuple") else parsed


def base_url_host(url: str) -> str:
    """The host name of ``SENDONCE_BASE_URL``; raises ``ImproperlyConfigured`` without one."""
    parts = urlsplit(url)
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise ImproperlyConfigured(
            f"SENDONCE_BASE_URL must be an address such as https://mail.example.org, not {url!r}."
        )
    return parts.hostname


def required_secret_key(key: str) -> str:
    """``key``; raises ``ImproperlyConfigured`` when it is empty."""
    if not key:
        raise ImproperlyConfigured(
            "SECRET_KEY is not set: set it, or DEBUG=true on a machine for development."
        )
    return key


def kept_secret_key(file: Path) -> str:
    """The key in ``file``, made (mode 0600) by whoever comes first, for development only.

    Links signed by one command must verify in another, also when both start at once: the file
    appears complete under its name or not at all, and the first one stays.
    """
    for _ in range(100):
        try:
            key = file.read_text().strip()
        except FileNotFoundError:
            key = ""
        if key:
            return key
        file.parent.mkdir(parents=True, exist_ok=True)
        draft = file.with_name(f"{file.name}.{os.getpid()}.{secrets.token_hex(4)}")
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w") as stream:
            stream.write(secrets.token_urlsafe(50) + "\n")
        try:
            os.link(draft, file)
        except FileExistsError:
            if not file.read_text().strip():
                draft.replace(file)
        finally:
            draft.unlink(missing_ok=True)
        time.sleep(0.01)
    raise ImproperlyConfigured(f"{file} cannot be made: set SECRET_KEY.")
