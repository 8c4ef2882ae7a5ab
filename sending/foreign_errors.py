"""What other people's e-mail backends tell by their exceptions and statuses, as answers.

Read with caution: what may have come after an acceptance, or can't be read, has no code and so is
in doubt. anymail and requests are recognised by their classes' names, so that neither is needed.
"""

from __future__ import annotations

import contextlib
import json
import smtplib
import socket
from collections.abc import Iterator
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

from django.core.exceptions import ImproperlyConfigured

from .answers import Answer, Stage, answer

NEVER_REACHED = frozenset(
    {
        "NewConnectionError",
        "NameResolutionError",
        "ConnectTimeout",
        "ConnectTimeoutError",
        "EndpointConnectionError",  # botocore
        "NoCredentialsError",
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
_RESET_HEADERS = ("retry-after", "ratelimit-reset", "x-ratelimit-reset")


def answer_of_status(message: Any) -> Answer | None:
    """What anymail found out about the one recipient, or None when it found out nothing.

    Also right when a receiver of ``post_send`` raised: the status was set before.
    """
    status = getattr(message, "anymail_status", None)
    recipients = getattr(status, "recipients", None)
    if not recipients:
        return None
    said = {entry.status for entry in recipients.values()}
    ids = [str(entry.message_id) for entry in recipients.values() if entry.message_id]
    message_id = ids[0] if ids else ""
    if said <= {"sent", "queued"}:
        return answer(Stage.HTTP, 200, " ".join(sorted(said)), message_id=message_id)
    if said == {"invalid"}:
        return answer(Stage.HTTP, 422, "recipient invalid, says the provider")
    if said == {"rejected"}:
        return answer(Stage.HTTP, 422, "recipient rejected by the provider")
    if said == {"failed"}:
        return answer(Stage.HTTP, 422, "not sent, says the provider")
    words = f"the provider's status can't be read: {sorted(map(str, said))}"
    return answer(Stage.HTTP, None, words, message_id=message_id)


def answer_of_count(backend: Any, count: Any) -> Answer:
    """What ``send_messages([message])`` returned, by Django's contract the number delivered."""
    if isinstance(count, int) and count > 0:
        return answer(Stage.DOT, 250, "accepted by the backend", enhanced="")
    if count is None or vars(backend).get("fail_silently"):
        return answer(Stage.DOT, None, f"unreadable answer: the backend returned {count!r}")
    return answer(Stage.LOCAL, None, "the backend sent nothing", enhanced="")


def answer_of_error(error: BaseException, *, sending: bool) -> Answer:
    """What an exception of a foreign backend tells; ``sending`` is False while opening."""
    carried = getattr(error, "answer", None)
    if isinstance(carried, Answer):
        return carried
    if isinstance(error, smtplib.SMTPException):
        return _smtplib_answer(error, sending)
    names = {kind.__name__ for kind in type(error).__mro__}
    if names & NEVER_LEFT or any(type(e).__name__ in NEVER_LEFT for e in _chain(error)):
        return answer(Stage.LOCAL, None, str(error), enhanced="")
    if "AnymailRecipientsRefused" in names:
        return answer(Stage.HTTP, 422, "recipient rejected by the provider")
    if isinstance(error, ImproperlyConfigured) or any(
        type(e).__name__ in NEVER_REACHED for e in _chain(error)
    ):
        return answer(Stage.CONNECT, None, str(error), enhanced="")
    if any("CERTIFICATE_VERIFY_FAILED" in str(e) for e in _chain(error)):
        return answer(Stage.TLS, None, str(error), enhanced="")
    if not sending:
        return answer(Stage.CONNECT, None, str(error), enhanced="")
    if "AnymailError" in names or "HTTPError" in names:
        return _http_answer(error)
    if isinstance(error, ValueError) and not isinstance(
        error,
        json.JSONDecodeError | UnicodeDecodeError,  # these come from reading an answer
    ):
        return answer(Stage.LOCAL, None, str(error), enhanced="")
    return answer(Stage.DOT, None, _loss(error), enhanced="")


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


def _http_answer(error: Any) -> Answer:
    response = getattr(error, "response", None)
    code = getattr(error, "status_code", None) or getattr(response, "status_code", None)
    if isinstance(response, dict):  # botocore's parsed answer
        meta = response.get("ResponseMetadata") or {}
        code = code or meta.get("HTTPStatusCode")
        headers = meta.get("HTTPHeaders") or {}
        body = " ".join(str(v) for v in (response.get("Error") or {}).values())
    else:
        headers = getattr(response, "headers", None) or {}
        body = _body(response)
    if not isinstance(code, int):
        return answer(Stage.HTTP, None, _loss(error), enhanced="")
    if 200 <= code < 300:  # the provider was content, but its answer could not be read
        return answer(Stage.HTTP, None, f"unreadable answer: {error.args}", enhanced="")
    return answer(
        Stage.HTTP, code, body or str(error), enhanced="", retry_after=retry_after(headers)
    )


def _body(response: Any) -> str:
    try:
        return bytes(response.content[:4000]).decode("utf-8", "replace")
    except (AttributeError, TypeError, RuntimeError):
        return ""


def retry_after(headers: Any, now: datetime | None = None) -> float | None:
    """Seconds to wait as an answer's headers ask (RFC 9110 10.2.3: seconds or a date), or None."""
    lowered = {str(name).lower(): str(value).strip() for name, value in dict(headers).items()}
    now = now or datetime.now(UTC)
    for name in _RESET_HEADERS:
        value = lowered.get(name)
        if not value:
            continue
        try:
            seconds = float(value)
        except ValueError:
            try:
                seconds = (parsedate_to_datetime(value) - now).total_seconds()
            except (TypeError, ValueError):
                continue
        if seconds > 1e9:  # some providers give the moment, not the wait
            seconds -= now.timestamp()
        if 0 < seconds < 1e7:
            return seconds
    return None


def _loss(error: BaseException) -> str:
    late = any(isinstance(e, TimeoutError) or "Timeout" in type(e).__name__ for e in _chain(error))
    return f"{'timed out' if late else 'connection lost'}: {error}"


def _chain(error: BaseException) -> Iterator[BaseException]:
    """The error and all it wraps, by cause, context, argument or urllib3's ``reason``."""
    seen: set[int] = set()
    queue: list[Any] = [error]
    while queue and len(seen) < 20:
        current = queue.pop()
        if not isinstance(current, BaseException) or id(current) in seen:
            continue
        seen.add(id(current))
        yield current
        queue += [current.__cause__, current.__context__, getattr(current, "reason", None)]
        queue += list(current.args)


def shut_down(sock: Any) -> None:
    """Shut a foreign connection down hard; never raises."""
    with contextlib.suppress(OSError, TypeError):
        socket.socket.shutdown(sock, socket.SHUT_RDWR)
