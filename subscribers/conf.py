"""The one typed reader of ``settings.SENDONCE``; every key, its type and its default.

A key that is not here is an error of the system check ``sendonce.E001``: a misspelt
setting must not be a silent default.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any, cast

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.core.signals import setting_changed

SMTP_BACKEND = "sending.smtp.EmailBackend"


def _default_transports() -> dict[str, dict[str, Any]]:
    return {"default": {"BACKEND": SMTP_BACKEND, "OPTIONS": {"host": "127.0.0.1", "port": 2525}}}


@dataclass(frozen=True)
class Conf:
    """All settings. Durations are seconds, sizes are rows unless the name says otherwise."""

    #: Where the public pages (unsubscribe, web version) are reached; no trailing slash.
    BASE_URL: str = "http://127.0.0.1:8000"
    #: ``{alias: {"BACKEND": dotted path, "OPTIONS": {...}}}``; an account names its alias.
    TRANSPORTS: dict[str, dict[str, Any]] = field(default_factory=_default_transports)
    #: Keys that sign links and hash erased addresses, newest first; older ones still verify.
    #: Empty: ``SECRET_KEY`` and ``SECRET_KEY_FALLBACKS``.
    SECRET_KEYS: tuple[str, ...] = ()
    #: Overrides the installation's namespace (a UUID) from which Message-IDs derive.
    NAMESPACE: str = ""
    #: True only where no pooler stands between worker and PostgreSQL: session advisory locks
    #: then show a dead worker at once. Never guessed.
    DIRECT_CONNECTION: bool = False
    #: Processes side by side that one ``run_sender`` starts.
    PROCESSES: int = 1
    #: Lanes (threads with mail sessions of their own) of each ``run_sender`` process.
    LANES: int = 8
    #: Mail sessions of each lane to one SMTP relay, used at the same time.
    SESSIONS: int = 1
    #: The most messages a lane hands over at once; it adapts downwards to a slow relay.
    LOT: int = 20
    #: How long a claimed or handed-over row belongs to its worker without renewal.
    LEASE: float = 60.0
    #: A worker stops trusting its lease this much before it ends.
    LEASE_MARGIN: float = 10.0
    #: A message not started this long after its hand-over is given back and checked again.
    HANDOVER_FRESHNESS: float = 5.0
    #: The wait between two looks at the database when nobody notifies; jittered downwards.
    POLL: float = 0.9
    #: Subscribers per chunk of the build.
    BUILD_CHUNK: int = 5000
    #: How long SIGTERM waits for the message on the wire before it is in doubt.
    GRACE: float = 20.0
    #: A mailbox that was full in so many campaigns in a row counts as dead.
    MAILBOX_FULL_CAMPAIGNS: int = 3
    #: The alias by which mail to staff goes; empty: by each account's own transport.
    NOTICES_TRANSPORT: str = ""
    #: ``{domain: group}``: domains whose mailboxes are of one provider, beside those that
    #: ``sending.limits.mailbox_providers`` knows. A group has one limit and slows down as one.
    DOMAIN_GROUPS: dict[str, str] = field(default_factory=dict)
    #: ``{group or domain: messages a second}`` to its mailboxes, by all workers together.
    DOMAIN_RATES: dict[str, float] = field(default_factory=dict)
    #: The header into which a proxy of ours writes the client's address, as in
    #: ``X-Forwarded-For``; its last address counts. Empty: who connects is the client.
    CLIENT_ADDRESS_HEADER: str = ""
    #: How long the link of a confirmation mail confirms, in days from the mail.
    CONFIRM_DAYS: int = 14
    #: Sign-ups from one network (``client_address.network``) in an hour and in a day, whatever
    #: the form: offices and mobile networks share addresses.
    SIGNUP_NETWORK_HOUR: int = 20
    SIGNUP_NETWORK_DAY: int = 60
    #: Confirmation mails of one account in an hour; beyond them it asks people to wait.
    SIGNUP_ACCOUNT_HOUR: int = 1000
    #: Longest time a transport may take to answer; an automatic resend waits at least this long.
    ANSWER_TIMEOUT: float = 600.0

    def signing_keys(self) -> tuple[str, ...]:
        """Signing keys, newest first; never empty.

        Raises ``ImproperlyConfigured`` for a text instead of a sequence: each of its letters would
        be a key, and a web server does not run the system checks.
        """
        keys: Any = self.SECRET_KEYS
        if isinstance(keys, str) or "" in keys:
            raise ImproperlyConfigured(
                "SENDONCE['SECRET_KEYS'] must be a list or tuple of texts that are not empty."
            )
        if self.SECRET_KEYS:
            return tuple(self.SECRET_KEYS)
        given = (settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS)
        return tuple(k.decode("latin-1") if isinstance(k, bytes) else k for k in given)


KNOWN = {f.name for f in fields(Conf)}


class _Reader:
    """Reads lazily and forgets when a test overrides ``SENDONCE``."""

    _loaded: Conf | None = None

    def load(self) -> Conf:
        if self._loaded is None:
            given = getattr(settings, "SENDONCE", {})
            if not isinstance(given, dict):
                raise ImproperlyConfigured("SENDONCE must be a dict.")
            self._loaded = Conf(**{k: v for k, v in given.items() if k in KNOWN})
        return self._loaded

    def forget(self) -> None:
        self._loaded = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self.load(), name)


_reader = _Reader()
conf: Conf = cast(Conf, _reader)


def _forget(*, setting: str, **_: Any) -> None:
    if setting in {"SENDONCE", "SECRET_KEY"}:
        _reader.forget()


setting_changed.connect(_forget)
