"""System checks of the transports: can each be used, and do links in the mail it carries work?"""

from __future__ import annotations

import ipaddress
import math
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

from django.apps import AppConfig
from django.conf import settings
from django.core.checks import CheckMessage, Error, Tags, Warning, register
from django.db import DEFAULT_DB_ALIAS, DatabaseError

from subscribers.conf import Conf
from subscribers.models import Account

from .providers.answer_timeouts import botocore_config, is_requests_timeout, requests_timeout
from .providers.table import Speaks
from .transports import KNOWN_KEYS, Transport, UnknownTransport

#: Django's backends whose mail stays on the machine.
KEPT_AT_HOME = frozenset(
    f"django.core.mail.backends.{name}.EmailBackend"
    for name in ("console", "dummy", "filebased", "locmem")
)
#: Backends that read Django's own settings where no host is given.
SPEAK_SMTP = frozenset({"sending.smtp.EmailBackend", "django.core.mail.backends.smtp.EmailBackend"})


@register()
def check_transports(app_configs: Sequence[AppConfig] | None, **_: Any) -> list[CheckMessage]:
    """Every entry of ``SENDONCE["TRANSPORTS"]`` has known keys and a backend that can be made."""
    found: list[CheckMessage] = []
    for alias, entry in _entries().items():
        where = f"SENDONCE['TRANSPORTS'][{alias!r}]"
        found += [
            Error(
                f"{where} has an unknown key {key!r}.",
                hint=f"Known keys: {', '.join(sorted(KNOWN_KEYS))}.",
                id="sendonce.E001",
            )
            for key in sorted(set(entry) - KNOWN_KEYS, key=str)
        ]
        backend, options = entry.get("BACKEND"), entry.get("OPTIONS")
        options = {} if options is None else options
        if not isinstance(backend, str) or not backend:
            found.append(Error(f"{where} needs a BACKEND, a dotted path.", id="sendonce.E002"))
        elif not isinstance(options, dict) or not all(isinstance(name, str) for name in options):
            found.append(Error(f"{where}: OPTIONS must be a dict.", id="sendonce.E002"))
        elif why := _unusable(Transport(str(alias), backend, options)):
            found.append(Error(f"{where} can't be used: {why}", id="sendonce.E005"))
        elif not _has_timeouts(Transport(str(alias), backend, options)):
            found.append(
                Error(
                    f"{where}: the time-out of its requests must be seconds above 0, a pair of "
                    "them (to connect, to read), or None.",
                    hint='It is "timeout" in OPTIONS, or ANYMAIL["REQUESTS_TIMEOUT"].',
                    id="sendonce.E002",
                )
            )
        elif _repeats_itself(Transport(str(alias), backend, options)):
            found.append(
                Error(
                    f"{where}: Amazon's library sends a message again by itself after a time-out "
                    "or a server error, and a recipient would get it twice.",
                    hint='Set ANYMAIL["AMAZON_SES_CLIENT_PARAMS"] = {"config": {"retries": '
                    '{"total_max_attempts": 1}}}, besides what else is in it.',
                    id="sendonce.E006",
                )
            )
        elif why := _lacks(Transport(str(alias), backend, options)):
            found.append(Error(f"{where} can't be used: {why}", id="sendonce.E005"))
        found += _wrong_limits(where, entry)
    return found


def _wrong_limits(where: str, entry: Mapping[str, Any]) -> list[CheckMessage]:
    """``RATE`` (messages a second) and ``CONNECTIONS`` (sessions at once), where they are given."""
    rate, connections = entry.get("RATE"), entry.get("CONNECTIONS")
    found: list[CheckMessage] = []
    if rate is not None and not (_is_number(rate) and 0 < rate < math.inf):
        words = f"{where}: RATE must be a number of messages a second above 0, or None."
        found.append(Error(words, id="sendonce.E002"))
    whole = isinstance(connections, int) and _is_number(connections)
    if connections is not None and not (whole and connections > 0):
        words = f"{where}: CONNECTIONS must be a whole number of sessions above 0, or None."
        found.append(Error(words, id="sendonce.E002"))
    return found


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _has_timeouts(transport: Transport) -> bool:
    """Whether the time-outs can be used; requests would refuse each message for a wrong one."""
    if transport.provider.speaks is not Speaks.REQUESTS:
        return True
    return is_requests_timeout(requests_timeout(transport.options))


def _repeats_itself(transport: Transport) -> bool:
    """Whether it is Amazon SES with botocore's own retries: on by default (botocore's "Retries"
    guide: five attempts in its legacy mode), also after a read time-out, when the message may
    have been accepted."""
    if transport.provider.speaks is not Speaks.BOTOCORE:
        return False
    retries = botocore_config(transport.options).get("retries")
    attempts = retries.get("total_max_attempts") if isinstance(retries, Mapping) else None
    return attempts != 1


@register(Tags.database)
def check_aliases(
    app_configs: Sequence[AppConfig] | None, databases: Sequence[str] | None = None, **_: Any
) -> list[CheckMessage]:
    """Every account's transport is configured. Asked of the database, and so only with ``manage.py
    check --database default`` and before ``migrate``."""
    if DEFAULT_DB_ALIAS not in (databases or ()):
        return []
    known = {str(alias) for alias in _entries()}
    try:
        used = list(
            Account.objects.exclude(transport__in=known).values_list("slug", "transport")[:20]
        )
    except DatabaseError:  # before the first migration
        return []
    return [
        Warning(
            f"The account {slug} sends by transport {alias!r}, which is not in "
            "SENDONCE['TRANSPORTS'].",
            hint=f"Known: {', '.join(sorted(known)) or 'none'}. Its mail waits until then.",
            id="sendonce.W003",
        )
        for slug, alias in used
    ]


@register()
def check_base_url(app_configs: Sequence[AppConfig] | None, **_: Any) -> list[CheckMessage]:
    """Links in mail that leaves the machine can be followed from elsewhere, over https."""
    text = base_url_warning()
    hint = "Set SENDONCE['BASE_URL'] to the https address of the site."
    return [Warning(text, hint=hint, id="sendonce.W002")] if text else []


def base_url_warning() -> str | None:
    """Why links in real mail would be dead; ``None``: they work, or all mail stays here.

    One-click unsubscribe needs https (RFC 8058 section 3.1), whatever ``DEBUG`` is.
    """
    given = getattr(settings, "SENDONCE", {})
    url = given.get("BASE_URL", Conf.BASE_URL) if isinstance(given, dict) else ""
    fault = dead_link(url)
    away = [str(alias) for alias, entry in _entries().items() if leaves_the_machine(entry)]
    if fault is None or not away:
        return None
    return (
        f"SENDONCE['BASE_URL'] is {url}, {fault}: unsubscribe links in the mail of transport "
        f"{', '.join(sorted(away))} would not work."
    )


def dead_link(url: object) -> str | None:
    """What a recipient's mail program can't follow about a base URL, in words.

    ``None`` also for what is no URL at all: that is E002.
    """
    try:
        parts = urlsplit(url) if isinstance(url, str) else None
    except ValueError:
        return None
    if parts is None or not parts.hostname:
        return None
    if is_loopback(parts.hostname):
        return "an address of this machine only"
    return None if parts.scheme == "https" else "not https"


def leaves_the_machine(entry: Mapping[str, Any]) -> bool:
    """Whether a transport's mail goes anywhere but to a relay on this machine."""
    backend = entry.get("BACKEND")
    options = entry.get("OPTIONS")
    host = options.get("host") if isinstance(options, dict) else None
    if backend in KEPT_AT_HOME or not isinstance(backend, str):
        return False
    if not host and backend in SPEAK_SMTP:
        host = _djangos_host()
    return not (isinstance(host, str) and is_loopback(host))


def is_loopback(host: str) -> bool:
    """Whether a host name or address means this machine (RFC 6761 6.3, RFC 1122 3.2.1.3)."""
    name = host.strip("[]").rstrip(".").lower()
    if name == "localhost" or name.endswith(".localhost"):
        return True
    try:
        address = ipaddress.ip_address(name)
    except ValueError:
        return False
    mapped = getattr(address, "ipv4_mapped", None)
    return (mapped or address).is_loopback or address.is_unspecified


def _entries() -> dict[Any, dict[Any, Any]]:
    """The entries that are dicts; anything else is E002 of ``subscribers.checks``."""
    given = getattr(settings, "SENDONCE", {})
    transports = given.get("TRANSPORTS", Conf().TRANSPORTS) if isinstance(given, dict) else {}
    if not isinstance(transports, dict):
        return {}
    return {alias: entry for alias, entry in transports.items() if isinstance(entry, dict)}


def _djangos_host() -> str:
    """``EMAIL_HOST`` where a project sets it. Its default is not read: on 6.1 that warns."""
    is_overridden = getattr(settings, "is_overridden")  # noqa: B009  # unknown to the stubs
    return str(settings.EMAIL_HOST) if is_overridden("EMAIL_HOST") else "localhost"


def _unusable(transport: Transport) -> str | None:
    """Why no session can be made. Only our own backend is made, which does nothing until it is
    opened, and here anymail's are left for last (``_lacks``); a stranger's may create directories
    or reach for the network."""
    try:
        if transport.takes_bytes:
            transport.session()
    except UnknownTransport as error:
        return str(error.__cause__)
    except Exception as error:  # a module may raise anything at import
        return f"{type(error).__name__}: {error}"
    return None


def _lacks(transport: Transport) -> str | None:
    """What settings an anymail backend misses, such as an API key. It reads them when it is made,
    and opens nothing."""
    if not transport.provider.is_anymail:
        return None
    try:
        transport.session()
    except UnknownTransport as error:
        return str(error.__cause__)
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return None
