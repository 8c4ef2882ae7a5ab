"""What a provider's HTTP answer tells: its status, its headers, and the words in its body."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

from ..answers import Answer, Stage, answer
from .table import UNKNOWN, Provider

#: Before the provider's words where it refused the recipient's address; the rules of
#: ``sending.replies.http_rules`` know these.
RECIPIENT_INVALID = "recipient invalid, says the provider"
RECIPIENT_REJECTED = "recipient rejected by the provider"
NOT_SENT = "not sent, says the provider"
UNREADABLE = "unreadable answer"

_RESET_HEADERS = (
    "retry-after",
    "ratelimit-reset",
    "x-ratelimit-reset",
    "x-sib-ratelimit-reset",
)
#: Amazon's error codes (SES API v2 and the common errors of its services), as the HTTP status
#: that other providers would give: its own is 400 or 403 for all of them.
_AMAZON = {
    429: {"Throttling", "ThrottlingException", "ThrottledException", "TooManyRequestsException"},
    401: {
        "AccessDenied",
        "AccessDeniedException",
        "ExpiredToken",
        "ExpiredTokenException",
        "IncompleteSignature",
        "InvalidAccessKeyId",
        "InvalidClientTokenId",
        "InvalidSignatureException",
        "MissingAuthenticationToken",
        "MissingAuthenticationTokenException",
        "OptInRequired",
        "SignatureDoesNotMatch",
        "UnrecognizedClientException",
    },
    402: {"LimitExceededException"},
}
#: The whole account may not send: nothing of the message was attempted.
_AMAZON_CLOSED = {"AccountSuspendedException", "SendingPausedException"}
#: Amazon says "throttling" of a rate and of a day's quota.
_DAILY_QUOTA = re.compile(r"daily (?:message|sending) quota", re.I)


def http_answer(error: Any, provider: Provider = UNKNOWN, *, keyed: bool = False) -> Answer:
    """What an exception tells that carries an HTTP response, or should.

    ``keyed``: the message had its deduplication key with it, so that "duplicate" speaks of it.
    """
    response = getattr(error, "response", None)
    if isinstance(response, Mapping):
        return _amazon_answer(error, response)
    code = getattr(error, "status_code", None) or getattr(response, "status_code", None)
    if not isinstance(code, int):
        return answer(Stage.HTTP, None, f"{UNREADABLE}: {error}", enhanced="")
    body = body_of(response)
    if 200 <= code < 300:  # the provider was content, but its answer could not be read
        return answer(Stage.HTTP, None, f"{UNREADABLE}: {_first(error)} {body}", enhanced="")
    if went_elsewhere(response):
        return answer(Stage.HTTP, None, f"{UNREADABLE}: redirected, then {code}", enhanced="")
    if keyed and (code, error_code(body)) in provider.accepted_already:
        return answer(Stage.HTTP, 200, f"accepted before: {body}", enhanced="")
    return answer(
        Stage.HTTP,
        code,
        in_words(provider, body) or str(error),
        enhanced="",
        retry_after=retry_after(getattr(response, "headers", None) or {}),
    )


def in_words(provider: Provider, body: str) -> str:
    """The body of a refusal, after our own words where it speaks of the recipient's address."""
    speaks_of_it = provider.refuses_address is not None and provider.refuses_address.search(body)
    return f"{RECIPIENT_INVALID}: {body}" if speaks_of_it else body


def body_of(response: Any) -> str:
    """The beginning of a response's body; "" when there is none."""
    try:
        return bytes(response.content[:4000]).decode("utf-8", "replace")
    except (AttributeError, TypeError, RuntimeError):
        return ""


def went_elsewhere(response: Any) -> bool:
    """Whether a redirect turned our POST into the GET of another page, as 301, 302 and 303 do: what
    that page says is no answer to the message."""
    method = getattr(getattr(response, "request", None), "method", None)
    return method is not None and method != "POST"


def error_code(body: str) -> str:
    """The ``code`` in a JSON body, or ""."""
    try:
        parsed = json.loads(body)
    except (ValueError, RecursionError):
        return ""
    return str(parsed.get("code", "")) if isinstance(parsed, dict) else ""


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
            except (TypeError, ValueError, OverflowError):
                continue
        if seconds > 1e12:  # milliseconds since 1970 (Mailgun)
            seconds /= 1000
        if seconds > 1e9:  # some providers give the moment, not the wait
            seconds -= now.timestamp()
        if 0 < seconds < 1e7:
            return seconds
    return None


def _amazon_answer(error: Any, response: Mapping[str, Any]) -> Answer:
    """botocore's parsed error: ``{"Error": {"Code", "Message"}, "ResponseMetadata": {...}}``."""
    meta = response.get("ResponseMetadata") or {}
    said = response.get("Error") or {}
    name = str(said.get("Code") or "").split("#")[-1]
    words = " ".join(str(value) for value in said.values()) or str(error)
    if name in _AMAZON_CLOSED:
        return answer(Stage.CONNECT, None, words, enhanced="")
    code = meta.get("HTTPStatusCode")
    if not isinstance(code, int) or not 400 <= code < 500:
        return answer(Stage.HTTP, code if isinstance(code, int) else None, words, enhanced="")
    for status, names in _AMAZON.items():
        if name in names:
            code = status
    if _DAILY_QUOTA.search(words):
        code = 402
    wait = retry_after(meta.get("HTTPHeaders") or {})
    return answer(Stage.HTTP, code, words, enhanced="", retry_after=wait)


def _first(error: Any) -> str:
    return str(error.args[0]) if getattr(error, "args", None) else type(error).__name__
