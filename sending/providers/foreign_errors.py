"""What other people's e-mail backends tell by their exceptions and statuses, as answers.

Read with caution: what may have come after an acceptance, or can't be read, has no code and so is
in doubt. anymail, requests and botocore are recognised by their classes' names, so that none of
them is needed.
"""

from __future__ import annotations

import contextlib
import json
import smtplib
import socket
from collections.abc import Iterator
from enum import StrEnum
from typing import Any

from django.core.exceptions import ImproperlyConfigured

from ..answers import Answer, Stage, answer
from .http_answers import (
    NOT_SENT,
    RECIPIENT_INVALID,
    RECIPIENT_REJECTED,
    UNREADABLE,
    body_of,
    http_answer,
    in_words,
    went_elsewhere,
)
from .table import UNKNOWN, Provider

NEVER_REACHED = frozenset(
    {
        "NewConnectionError",  # urllib3
        "NameResolutionError",
        "ConnectTimeoutError",
        "ConnectTimeout",  # requests
        "InvalidURL",
        "InvalidSchema",
        "MissingSchema",
        "InvalidProxyURL",
        "InvalidHeader",  # such as a line end in an API key
        "EndpointConnectionError",  # botocore
        "NoRegionError",
        "NoCredentialsError",
        "PartialCredentialsError",
        "CredentialRetrievalError",
        "TokenRetrievalError",
        "SSOTokenLoadError",
        "UnauthorizedSSOTokenError",
        "ProfileNotFound",
        "EndpointProviderError",
        "ConnectionRefusedError",
        "gaierror",
    }
)
NEVER_LEFT = frozenset(
    {
        "AnymailInvalidAddress",
        "AnymailUnsupportedFeature",
        "AnymailSerializationError",
        "ParamValidationError",  # botocore
    }
)
#: What ``http.client`` says when a proxy refuses the tunnel, before any request. A ``ProxyError``
#: alone says nothing: urllib3 also calls an answer that is lost behind a proxy so.
_NO_TUNNEL = "Tunnel connection failed"
#: OpenSSL's words for a handshake that failed, before any request.
_NO_HANDSHAKE = (
    "CERTIFICATE_VERIFY_FAILED",
    "WRONG_VERSION_NUMBER",
    "UNSUPPORTED_PROTOCOL",
    "HANDSHAKE_FAILURE",
    "PROTOCOL_VERSION",
)


class Reached(StrEnum):
    """How far a backend had come when it raised, as far as we can see."""

    OPENING = "opening"
    #: The message was being looked at; no request had begun.
    PREPARING = "preparing"
    #: A request may have begun.
    SENDING = "sending"
    #: A response had come, and was being read.
    ANSWERED = "answered"


def answer_of_status(message: Any, provider: Provider = UNKNOWN) -> Answer | None:
    """What anymail found out about the one recipient, or None when it found out nothing.

    Also right when a receiver of ``post_send`` raised: the status was set before.
    """
    status = getattr(message, "anymail_status", None)
    recipients = getattr(status, "recipients", None)
    if not recipients:
        return None
    response = getattr(status, "esp_response", None)
    said = {entry.status for entry in recipients.values()}
    ids = [str(entry.message_id) for entry in recipients.values() if entry.message_id]
    message_id = ids[0] if ids else ""
    if went_elsewhere(response):
        words = f"{UNREADABLE}: redirected to {getattr(response, 'url', 'another page')}"
        return answer(Stage.HTTP, None, words)
    if said <= {"sent", "queued"}:
        return answer(Stage.HTTP, 200, " ".join(sorted(said)), message_id=message_id)
    code, body = getattr(response, "status_code", None), in_words(provider, body_of(response))
    refused = code if isinstance(code, int) and 400 <= code < 500 else 422
    if said == {"invalid"}:
        return answer(Stage.HTTP, 422, f"{RECIPIENT_INVALID}: {body}")
    if said == {"rejected"}:
        return answer(Stage.HTTP, 422, f"{RECIPIENT_REJECTED}: {body}")
    # anymail takes an answer of MailerSend that it can't read for "failed": believed in a 2xx only
    # where the answer names the recipient.
    named = any(str(address).lower() in body.lower() for address in recipients)
    content = isinstance(code, int) and 200 <= code < 300
    if said == {"failed"} and (named or not content):
        return answer(Stage.HTTP, refused, f"{NOT_SENT}: {body}")
    if refused == code and not said & {"sent", "queued"}:
        # Refused as a whole; anymail could not tell whom of the recipients it was about.
        return answer(Stage.HTTP, code, body)
    words = f"the provider's status can't be read: {sorted(map(str, said))}"
    return answer(Stage.HTTP, None, words, message_id=message_id)


def answer_of_count(backend: Any, count: Any) -> Answer:
    """What ``send_messages([message])`` returned, by Django's contract the number delivered."""
    if isinstance(count, int) and count > 0:
        return answer(Stage.DOT, 250, "accepted by the backend", enhanced="")
    if count is None or vars(backend).get("fail_silently"):
        return answer(Stage.DOT, None, f"unreadable answer: the backend returned {count!r}")
    return answer(Stage.LOCAL, None, "the backend sent nothing", enhanced="")


def answer_of_error(
    error: BaseException,
    reached: Reached,
    provider: Provider = UNKNOWN,
    *,
    keyed: bool = False,
) -> Answer:
    """What an exception of a foreign backend tells.

    ``keyed``: the message had its deduplication key with it.
    """
    carried = getattr(error, "answer", None)
    if isinstance(carried, Answer):
        return carried
    names = {kind.__name__ for kind in type(error).__mro__}
    if reached is Reached.ANSWERED:
        # A fault in reading an answer may look like one that kept the message here.
        return http_answer(error, provider, keyed=keyed)
    if isinstance(error, smtplib.SMTPException):
        return _smtplib_answer(error, reached is Reached.SENDING)
    if any(type(e).__name__ in NEVER_LEFT for e in _chain(error)):
        return answer(Stage.LOCAL, None, str(error), enhanced="")
    if "AnymailRecipientsRefused" in names:
        return answer(Stage.HTTP, 422, RECIPIENT_REJECTED)
    if getattr(error, "response", None) is not None:
        # Before any look at words: those of a response may be anybody's.
        return http_answer(error, provider, keyed=keyed)
    if isinstance(error, ImproperlyConfigured) or any(
        type(e).__name__ in NEVER_REACHED or _NO_TUNNEL in _words_of(e) for e in _chain(error)
    ):
        return answer(Stage.CONNECT, None, str(error), enhanced="")
    if any(words in _words_of(e) for e in _chain(error) for words in _NO_HANDSHAKE):
        return answer(Stage.TLS, None, _words_of(error), enhanced="")
    if reached is Reached.OPENING:
        return answer(Stage.CONNECT, None, str(error), enhanced="")
    if reached is Reached.PREPARING:
        return answer(Stage.LOCAL, None, f"{type(error).__name__}: {error}", enhanced="")
    if "AnymailError" in names and "AnymailAPIError" not in names:
        return answer(Stage.LOCAL, None, str(error), enhanced="")
    if isinstance(error, UnicodeEncodeError) and error.encoding.lower() in ("latin-1", "latin1"):
        # What http.client says of a header: a key or a password with a letter that can't be.
        return answer(Stage.CONNECT, None, str(error), enhanced="")
    if (
        isinstance(error, ValueError)
        and "AnymailError" not in names
        and not isinstance(error, json.JSONDecodeError | UnicodeDecodeError)  # of an answer
    ):
        return answer(Stage.LOCAL, None, str(error), enhanced="")
    stage = Stage.HTTP if names & {"AnymailError", "HTTPError"} else Stage.DOT
    return answer(stage, None, _loss(error), enhanced="")


def _smtplib_answer(error: smtplib.SMTPException, sending: bool) -> Answer:
    """``smtplib`` tells refusals apart but not losses: those are doubt once it is sending."""
    if isinstance(error, smtplib.SMTPRecipientsRefused):
        for code, said in error.recipients.values():
            return answer(Stage.RCPT, code, said)
    if isinstance(error, smtplib.SMTPSenderRefused):
        return answer(Stage.MAIL, error.smtp_code, error.smtp_error)
    if isinstance(error, smtplib.SMTPDataError):
        valid = 200 <= error.smtp_code <= 599
        return answer(Stage.DOT, error.smtp_code if valid else None, error.smtp_error)
    if isinstance(error, smtplib.SMTPAuthenticationError):
        return answer(Stage.AUTH, error.smtp_code, error.smtp_error)
    if isinstance(error, smtplib.SMTPHeloError):
        return answer(Stage.EHLO, error.smtp_code, error.smtp_error)
    if isinstance(error, smtplib.SMTPConnectError):
        return answer(Stage.GREETING, error.smtp_code, error.smtp_error)
    if isinstance(error, smtplib.SMTPNotSupportedError):
        stage = Stage.LOCAL if sending else Stage.TLS
        return answer(stage, None, str(error), enhanced="5.6.7" if sending else "")
    return answer(Stage.DOT if sending else Stage.CONNECT, None, _loss(error), enhanced="")


def _words_of(error: BaseException) -> str:
    """``str(error)``; anymail's reads the response for it, and may fail on that again."""
    try:
        return str(error)
    except Exception:
        return type(error).__name__


def _loss(error: BaseException) -> str:
    late = any(isinstance(e, TimeoutError) or "Timeout" in type(e).__name__ for e in _chain(error))
    return f"{'timed out' if late else 'connection lost'}: {error}"


def _chain(error: BaseException) -> Iterator[BaseException]:
    """The error and all it wraps, by cause, argument or urllib3's ``reason``.

    Not by context: that may be an error which somebody further up is handling, and which says
    nothing about this message.
    """
    seen: set[int] = set()
    queue: list[Any] = [error]
    while queue and len(seen) < 20:
        current = queue.pop()
        if not isinstance(current, BaseException) or id(current) in seen:
            continue
        seen.add(id(current))
        yield current
        queue += [current.__cause__, getattr(current, "reason", None)]
        queue += getattr(current, "kwargs", {}).values()  # botocore keeps the cause there
        queue += list(current.args)


def shut_down(sock: Any) -> None:
    """Shut a foreign connection down hard; never raises."""
    with contextlib.suppress(OSError, TypeError):
        socket.socket.shutdown(sock, socket.SHUT_RDWR)
