"""A lane's own way to one transport: a connection that takes one message after another.

Every end of a message that is no acceptance is a ``TransportFailure`` whose answer can be
classified.
"""

from __future__ import annotations

import contextlib
from typing import Any, NamedTuple, Protocol

from . import clock
from .answers import Answer, Outcome, Stage, answer
from .outcomes import classify
from .providers.foreign_errors import (
    Reached,
    answer_of_count,
    answer_of_error,
    answer_of_status,
    shut_down,
)
from .providers.table import UNKNOWN, Provider, Speaks
from .smtp import EmailBackend as SMTPBackend
from .smtp import SMTPFailure, StaleConnection
from .smtp_message import message_bytes
from .smtp_transaction import Transaction, brought_to_an_end

#: Seconds for which an HTTP connection that does nothing is trusted. Servers close theirs after
#: 5 s or more, and a request that crosses with that is lost without anybody knowing whether it
#: was read.
IDLE_HTTP = 4.0


class TransportFailure(Exception):
    """The message was not accepted, or nobody knows: ``answer`` says what came back."""

    def __init__(self, answer: Answer) -> None:
        super().__init__(f"{answer.stage}: {answer.code or ''} {answer.text}".strip())
        self.answer = answer


class NotOpen(TransportFailure):
    """The session had ended before the message began; open it and send the message again."""


class Prepared(NamedTuple):
    """A message that is already bytes (RFC 5322), with its envelope; only our own SMTP backend
    takes it.

    ``stuffed``: ``data`` is what stands between DATA and the final dot (``wire_body``): all lines
    end in CRLF, and those that begin with a dot have a second one; both addresses are bare, as
    ``smtp_envelope.mailbox`` returns them. Nothing of it is looked at again.
    """

    envelope_from: str
    recipient: str
    data: bytes
    stuffed: bool = False


class Session(Protocol):
    """A lane's own way to one transport. Used by one thread, save for ``abort``."""

    takes_bytes: bool

    @property
    def is_open(self) -> bool:
        """Whether the next message can start at once; opening may take minutes."""

    @property
    def seems_open(self) -> bool:
        """The same as far as is known without asking: ``transaction`` looks itself, and
        raises ``NotOpen``."""

    @property
    def announces(self) -> bool:
        """Whether ``transaction`` makes use of ``following``."""

    def fileno(self) -> int:
        """The socket that a transaction waits for when it yields; -1 where there is none."""

    def open(self, patience: float | None = None) -> None:
        """Connect and authenticate, with ``patience`` seconds for each step where its own time-out
        is longer and can be set. Raises ``TransportFailure``."""

    def transaction(self, message: Any, following: Any = None) -> Transaction:
        """Hand one message to its one recipient; the acceptance. Raises ``TransportFailure`` for
        every other end, and nothing else. A generator that yields where it would wait for the
        relay, and again when a second has brought nothing; one at a time, and to its end unless
        the session is aborted.

        ``following``: the message that comes after it. Part of its envelope may be on its way
        then: whatever else is sent next may have to wait for another session."""

    def close(self) -> None:
        """End the session; never raises."""

    def abort(self) -> None:
        """From any thread: end it hard. A waiting ``transaction`` fails as soon as the backend lets
        go."""


class SMTPSession:
    """Our own backend, driven by its primitives."""

    takes_bytes = True

    def __init__(self, backend: SMTPBackend) -> None:
        self._backend = backend

    @property
    def is_open(self) -> bool:
        return self._backend.is_ready

    @property
    def seems_open(self) -> bool:
        return self._backend.is_open and not self._backend.is_used_up

    @property
    def announces(self) -> bool:
        return self._backend.announces

    def fileno(self) -> int:
        return self._backend.fileno()

    def open(self, patience: float | None = None) -> None:
        try:
            if self._backend.is_open and not self._backend.is_ready:
                self._backend.close()
            self._backend.patience = patience  # no argument: subclasses have an ``open`` of theirs
            self._backend.open()
        except SMTPFailure as failure:
            raise TransportFailure(failure.answer) from failure

    def transaction(self, message: Any, following: Any = None) -> Transaction:
        try:
            if not isinstance(message, Prepared):
                envelope_from, data = message_bytes(message)
                message = Prepared(envelope_from, recipient_of(message), data)
            is_stuffed = isinstance(following, Prepared) and following.stuffed
            return (
                yield from self._backend.transaction(
                    message.envelope_from,
                    message.recipient,
                    message.data,
                    is_stuffed=message.stuffed,
                    reconnect=False,
                    following=following[:3] if is_stuffed else None,
                )
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
    announces = False

    def __init__(self, backend: Any, provider: Provider = UNKNOWN) -> None:
        self._backend = backend
        self._provider = provider
        self._open = False
        self._aborted = False
        self._last_used = 0.0
        self._began = False
        #: A response has come, if only one that leads elsewhere.
        self._answered = False
        self._is_watched = self._watch()

    @property
    def is_open(self) -> bool:
        return self._open

    @property
    def seems_open(self) -> bool:
        return self._open

    def open(self, patience: float | None = None) -> None:
        if self._open:
            return
        try:
            self._backend.open()
        except Exception as error:
            self._forget()
            raise TransportFailure(answer_of_error(error, Reached.OPENING)) from error
        self._open = True
        hooks = getattr(getattr(self._backend, "session", None), "hooks", None)
        if isinstance(hooks, dict) and self._note_answer not in hooks.setdefault("response", []):
            hooks["response"].append(self._note_answer)

    def _note_answer(self, *_: Any, **__: Any) -> None:
        self._answered = True

    def transaction(self, message: Any, following: Any = None) -> Transaction:
        yield from ()  # its backend waits by itself
        return self._sent(message)

    def fileno(self) -> int:
        return -1

    def _sent(self, message: Any) -> Answer:
        if self._aborted:
            raise TransportFailure(answer(Stage.CONNECT, None, "aborted"))
        recipient_of(message)
        if self._provider.speaks is Speaks.REQUESTS and self._has_idled():
            self._forget()  # to open it again is no traffic yet
        self.open()
        # A status of an earlier attempt must not speak for this one.
        message.anymail_status = None
        self._began = self._answered = False
        try:
            count = self._backend.send_messages([message])
        except Exception as error:
            self._last_used = clock.now()
            # Nobody knows what a foreign backend raises; what can't be read is doubt.
            try:
                said = self._told(message, error)
            except Exception as fault:  # an answer that breaks its reader
                words = f"unreadable answer: {type(fault).__name__}"
                said = answer(Stage.DOT, None, words, enhanced="")
            if said.code is None or said.code == 421:
                self._forget()
            return self._accepted(said, error)
        self._last_used = clock.now()
        found = answer_of_status(message, self._provider)
        return self._accepted(found or answer_of_count(self._backend, count))

    def _has_idled(self) -> bool:
        return clock.now() - self._last_used > IDLE_HTTP

    def _told(self, message: Any, error: Exception) -> Answer:
        """What an exception tells about ``message``."""
        said = answer_of_status(message, self._provider)
        if said is not None:
            return said
        if self._answered or getattr(message.anymail_status, "esp_response", None) is not None:
            reached = Reached.ANSWERED
        elif self._is_watched and not self._began:
            reached = Reached.PREPARING
        else:
            reached = Reached.SENDING
        keyed = carries_key(message, self._provider)
        return answer_of_error(error, reached, self._provider, keyed=keyed)

    def _watch(self) -> bool:
        """Note when a request begins: what an anymail backend raises before is harmless. False
        where that can't be seen, as with a backend that has its own way to send."""
        send = getattr(type(self._backend), "_send", None)
        post = getattr(self._backend, "post_to_esp", None)
        if not callable(post) or not str(getattr(send, "__module__", "")).startswith("anymail."):
            return False

        def noting(*args: Any, **kwargs: Any) -> Any:
            self._began = True
            return post(*args, **kwargs)

        self._backend.post_to_esp = noting
        return True

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


def carries_key(message: Any, provider: Provider) -> bool:
    """Whether ``Transport.prepare`` put the provider's deduplication key onto the message."""
    return provider.deduplicates and bool(getattr(message, "deduplication_key", ""))


def sent(session: Session, message: Any, following: Any = None) -> Answer:
    """The acceptance of one message, with all the waits for it. Raises ``TransportFailure``."""
    return brought_to_an_end(session.transaction(message, following))


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
