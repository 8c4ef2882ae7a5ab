"""One small interface to whatever carries the mail: our SMTP backend or any Django backend.

``SENDONCE["TRANSPORTS"] = {alias: {"BACKEND": dotted path, "OPTIONS": {...}}}``. A lane takes a
session from ``transport(alias).session()``, opens it, and sends one message to one recipient at a
time. Every end that is no acceptance is a ``TransportFailure`` whose answer can be classified.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import django
from django.core.exceptions import ImproperlyConfigured
from django.utils.module_loading import import_string

from subscribers.conf import conf

from .answers import Answer, Outcome, Stage, answer
from .foreign_errors import answer_of_count, answer_of_error, answer_of_status, shut_down
from .outcomes import classify
from .smtp import EmailBackend as SMTPBackend
from .smtp import SMTPFailure, StaleConnection
from .smtp_message import message_bytes

KNOWN_KEYS = frozenset({"BACKEND", "OPTIONS"})


class TransportFailure(Exception):
    """The message was not accepted, or nobody knows: ``answer`` says what came back."""

    def __init__(self, answer: Answer) -> None:
        super().__init__(f"{answer.stage}: {answer.code or ''} {answer.text}".strip())
        self.answer = answer


class NotOpen(TransportFailure):
    """The session had ended before the message began; open it and send the message again."""


class UnknownTransport(ImproperlyConfigured):
    """No such alias in ``SENDONCE["TRANSPORTS"]``, or its entry can't be used."""


@dataclass(frozen=True, slots=True)
class Prepared:
    """A message that is already bytes (RFC 5322), with its envelope; only our own SMTP backend
    takes it."""

    envelope_from: str
    recipient: str
    data: bytes


class Session(Protocol):
    """A lane's own way to one transport. Used by one thread, save for ``abort``."""

    takes_bytes: bool

    @property
    def is_open(self) -> bool:
        """Whether the next message can start at once; opening may take minutes."""

    def open(self) -> None:
        """Connect and authenticate. Raises ``TransportFailure``."""

    def send(self, message: Any) -> Answer:
        """Hand one message to its one recipient; the acceptance. Raises ``TransportFailure`` for
        every other end, and nothing else."""

    def close(self) -> None:
        """End the session; never raises."""

    def abort(self) -> None:
        """From any thread: end it hard. A waiting ``send`` fails as soon as the backend lets go."""


@dataclass(frozen=True)
class Transport:
    """A configured way to send.

    ``takes_bytes``: ``send`` accepts ``Prepared``.
    """

    alias: str
    backend: str
    options: Mapping[str, Any] = field(default_factory=dict)

    @property
    def backend_class(self) -> type:
        """Raises ``UnknownTransport`` when the backend can't be imported."""
        try:
            return import_string(self.backend)
        except (ImportError, ImproperlyConfigured) as error:
            raise UnknownTransport(f"transport {self.alias!r}: {error}") from error

    @property
    def takes_bytes(self) -> bool:
        return issubclass(self.backend_class, SMTPBackend)

    def session(self) -> Session:
        """A new session with a backend instance of its own, not opened yet.

        Raises ``UnknownTransport`` when the options don't fit the backend.
        """
        kind = self.backend_class
        options = dict(self.options)
        if django.VERSION >= (6, 1):  # without an alias Django's own backends say they are misused
            options["alias"] = self.alias
        try:
            backend = kind(**options)
        except (TypeError, ValueError, ImproperlyConfigured) as error:
            raise UnknownTransport(f"transport {self.alias!r}: {error}") from error
        return SMTPSession(backend) if self.takes_bytes else BackendSession(backend)


def transport(alias: str) -> Transport:
    """The transport of this alias. Raises ``UnknownTransport``."""
    configured = conf.TRANSPORTS
    if alias not in configured:
        known = ", ".join(sorted(configured)) or "none"
        raise UnknownTransport(f"no transport {alias!r} in SENDONCE['TRANSPORTS'] ({known})")
    entry = configured[alias]
    if not entry.get("BACKEND"):
        raise UnknownTransport(f"transport {alias!r} names no BACKEND")
    return Transport(alias, entry["BACKEND"], dict(entry.get("OPTIONS") or {}))


class SMTPSession:
    """Our own backend, driven by its primitives."""

    takes_bytes = True

    def __init__(self, backend: SMTPBackend) -> None:
        self._backend = backend

    @property
    def is_open(self) -> bool:
        return self._backend.is_ready

    def open(self) -> None:
        try:
            if self._backend.is_open and not self._backend.is_ready:
                self._backend.close()
            self._backend.open()
        except SMTPFailure as failure:
            raise TransportFailure(failure.answer) from failure

    def send(self, message: Any) -> Answer:
        try:
            if not isinstance(message, Prepared):
                envelope_from, data = message_bytes(message)
                message = Prepared(envelope_from, recipient_of(message), data)
            return self._backend.deliver(
                message.envelope_from, message.recipient, message.data, reconnect=False
            )
        except StaleConnection as failure:
            raise NotOpen(failure.answer) from failure
        except SMTPFailure as failure:
            raise TransportFailure(failure.answer) from failure

    def close(self) -> None:
        self._backend.close()

    def abort(self) -> None:
        self._backend.abort()


class BackendSession:
    """Any other Django backend: one message a call, its exceptions read cautiously."""

    takes_bytes = False

    def __init__(self, backend: Any) -> None:
        self._backend = backend
        self._open = False
        self._aborted = False

    @property
    def is_open(self) -> bool:
        return self._open

    def open(self) -> None:
        if self._open:
            return
        try:
            self._backend.open()
        except Exception as error:
            self._forget()
            raise TransportFailure(answer_of_error(error, sending=False)) from error
        self._open = True

    def send(self, message: Any) -> Answer:
        if self._aborted:
            raise TransportFailure(answer(Stage.CONNECT, None, "aborted"))
        recipient_of(message)
        self.open()
        # A status of an earlier attempt must not speak for this one.
        message.anymail_status = None
        try:
            count = self._backend.send_messages([message])
        except Exception as error:
            # Nobody knows what a foreign backend raises; what can't be read is doubt.
            said = answer_of_status(message) or answer_of_error(error, sending=True)
            if said.code is None or said.code == 421:
                self._forget()
            return self._accepted(said, error)
        return self._accepted(answer_of_status(message) or answer_of_count(self._backend, count))

    @staticmethod
    def _accepted(said: Answer, error: Exception | None = None) -> Answer:
        verdict = classify(said.stage, said.code, said.enhanced, said.text)
        if verdict.outcome is not Outcome.SENT:
            raise TransportFailure(said) from error
        return said

    def close(self) -> None:
        self._forget()
        self._aborted = False

    def abort(self) -> None:
        self._aborted = True
        sock = getattr(getattr(self._backend, "connection", None), "sock", None)
        if sock is not None:
            shut_down(sock)

    def _forget(self) -> None:
        self._open = False
        with contextlib.suppress(Exception):  # what can't say goodbye has still sent its mail
            self._backend.close()


def recipient_of(message: Any) -> str:
    """The one recipient of a Django message. Raises ``TransportFailure`` (stage ``local``)."""
    try:
        recipients = list(message.recipients())
    except Exception as error:
        raise TransportFailure(answer(Stage.LOCAL, None, str(error), enhanced="")) from error
    if len(recipients) != 1:
        words = f"a message needs exactly one recipient, this one has {len(recipients)}"
        raise TransportFailure(answer(Stage.LOCAL, None, words, enhanced=""))
    return str(recipients[0])
