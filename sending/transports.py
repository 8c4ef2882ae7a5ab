"""One small interface to whatever carries the mail: our SMTP backend or any Django backend.

``SENDONCE["TRANSPORTS"] = {alias: {"BACKEND": dotted path, "OPTIONS": {...}, "RATE": messages a
second, "CONNECTIONS": sessions at once}}``. A lane takes a session from
``transport(alias).session()``, opens it, and sends one message to one recipient at a time. Every
end that is no acceptance is a ``TransportFailure`` whose answer can be classified.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any
from uuid import UUID

import django
from django.core.exceptions import ImproperlyConfigured
from django.utils.module_loading import import_string

from subscribers.conf import conf

from . import installation
from .providers.answer_timeouts import answer_timeout, requests_timeout
from .providers.fingerprints import fingerprint, provider_settings
from .providers.keyed_backends import keyed
from .providers.table import (
    KeyTravels,
    Provider,
    Speaks,
    campaign_key,
    deduplication_key,
    installation_tag,
    metadata_job_id,
    provider_of,
)
from .sessions import (
    BackendSession,
    NotOpen,
    Prepared,
    Session,
    SMTPSession,
    TransportFailure,
)
from .smtp import EmailBackend as SMTPBackend

__all__ = [
    "NotOpen",
    "Prepared",
    "SMTPSession",
    "Session",
    "Transport",
    "TransportFailure",
    "UnknownTransport",
    "transport",
]

KNOWN_KEYS = frozenset({"BACKEND", "OPTIONS", "RATE", "CONNECTIONS"})
#: Of ``Transport.via``: the column's length, and a colon with the fingerprint's 16 digits.
VIA_LENGTH, _FINGERPRINT = 80, 17


class UnknownTransport(ImproperlyConfigured):
    """No such alias in ``SENDONCE["TRANSPORTS"]``, or its entry can't be used."""


@dataclass(frozen=True)
class Transport:
    """A configured way to send.

    ``takes_bytes``: ``send`` accepts ``Prepared``. ``rate`` is in messages a second,
    ``connections`` the most sessions at once; None: no limit.
    """

    alias: str
    backend: str
    options: Mapping[str, Any] = field(default_factory=dict)
    rate: float | None = None
    connections: int | None = None

    @cached_property
    def backend_class(self) -> type:
        """The class of the backend. For Resend and Unisender Go it is a subclass of the one that
        is configured, which carries the deduplication key (``providers.keyed_backends``): the
        plain backend of anymail in ``BACKEND`` is enough.

        Raises ``UnknownTransport`` when the backend can't be imported.
        """
        try:
            return keyed(import_string(self.backend))
        except (ImportError, ImproperlyConfigured) as error:
            raise UnknownTransport(f"transport {self.alias!r}: {error}") from error

    @property
    def takes_bytes(self) -> bool:
        return issubclass(self.backend_class, SMTPBackend)

    @cached_property
    def provider(self) -> Provider:
        """Who is behind it. Raises ``UnknownTransport``."""
        return provider_of(self.backend_class)

    @property
    def deduplicates(self) -> bool:
        """Whether the provider takes a message with the same key only once. For such a transport
        the bytes of a replay have to be those of the first attempt."""
        return self.provider.deduplicates

    @property
    def window(self) -> float:
        """Seconds after a hand-over within which a replay is harmless, a margin subtracted; 0.0
        where the transport does not deduplicate."""
        return self.provider.replay_window

    @property
    def answer_timeout(self) -> float:
        """Seconds after which no answer to a message can come any more."""
        return answer_timeout(self.provider, self.options)

    @cached_property
    def via(self) -> str:
        """``<alias>:<fingerprint>``: the same for two hand-overs only if the second can count on
        what the provider remembers of the first, and on having the same bytes. It changes with
        the backend, its options and credentials, the provider's settings, the installation, the
        base URL of links and the key that signs them; it tells none of them.

        Asks the database for the installation's namespace, unless ``SENDONCE["NAMESPACE"]`` is
        set; keep the object. Raises ``UnknownTransport``.
        """
        digits = fingerprint(
            conf.signing_keys()[0],
            self.alias,
            self.backend,
            dict(self.options),
            provider_settings(self.provider.esp_name),
            str(installation.namespace()),
            conf.BASE_URL,
        )
        return f"{self.alias[: VIA_LENGTH - _FINGERPRINT]}:{digits}"

    def prepare(
        self,
        message: Any,
        *,
        job_id: str,
        namespace: UUID,
        send_id: int,
        campaign_id: int | None,
        repeats: int = 0,
    ) -> None:
        """Put onto a Django message, in place, what lets the provider's events find their send
        (metadata) and, where it deduplicates, the key. The same for the same arguments; for
        ``repeats`` see ``providers.deduplication_key``. Nothing happens for a backend that isn't
        anymail's. Raises ``UnknownTransport``.
        """
        provider = self.provider
        if not provider.is_anymail:
            return
        known_as = metadata_job_id(job_id, send_id)
        if provider.has_metadata:
            own = {"job_id": known_as, "installation": installation_tag(namespace)}
            message.metadata = {**getattr(message, "metadata", {}), **own}
        if provider.drops_headers:
            message.extra_headers = {
                name: value
                for name, value in message.extra_headers.items()
                if name.lower() not in provider.drops_headers
            }
        if not provider.deduplicates:
            return
        extra: dict[str, Any] = dict(getattr(message, "esp_extra", {}))
        key = message.deduplication_key = deduplication_key(namespace, job_id, repeats)
        match provider.key_travels:
            case KeyTravels.HTTP_HEADER:
                extra["idempotency_key"] = key
            case KeyTravels.BODY:
                extra["idempotence_key"] = key
            case KeyTravels.CAMPAIGN:
                extra["Globals"] = {
                    **extra.get("Globals", {}),
                    "CustomCampaign": campaign_key(namespace, job_id, campaign_id, repeats),
                    "DeduplicateCampaign": True,
                    "CustomID": known_as,
                }
            case KeyTravels.MAIL_HEADER:
                message.extra_headers["idempotencyKey"] = key
        if extra:
            message.esp_extra = extra

    def session(self) -> Session:
        """A new session with a backend instance of its own, not opened yet.

        Raises ``UnknownTransport`` when the options don't fit the backend.
        """
        kind = self.backend_class
        options = dict(self.options)
        if self.provider.speaks is Speaks.REQUESTS:
            given = requests_timeout(self.options)
            if isinstance(given, list):  # a pair that comes from JSON; requests wants a tuple
                options["timeout"] = tuple(given)
        if django.VERSION >= (6, 1):  # without an alias Django's own backends say they are misused
            options["alias"] = self.alias
        try:
            backend = kind(**options)
        except (TypeError, ValueError, ImproperlyConfigured) as error:
            raise UnknownTransport(f"transport {self.alias!r}: {error}") from error
        return SMTPSession(backend) if self.takes_bytes else BackendSession(backend, self.provider)


def transport(alias: str) -> Transport:
    """The transport of this alias. Raises ``UnknownTransport``."""
    configured = conf.TRANSPORTS
    if alias not in configured:
        known = ", ".join(sorted(configured)) or "none"
        raise UnknownTransport(f"no transport {alias!r} in SENDONCE['TRANSPORTS'] ({known})")
    entry = configured[alias]
    if not entry.get("BACKEND"):
        raise UnknownTransport(f"transport {alias!r} names no BACKEND")
    return Transport(
        alias,
        entry["BACKEND"],
        dict(entry.get("OPTIONS") or {}),
        rate=entry.get("RATE"),
        connections=entry.get("CONNECTIONS"),
    )
