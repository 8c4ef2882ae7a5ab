"""The words in which a hand-over's end is told: stage, answer, outcome, reason, verdict."""

from __future__ import annotations

import codecs
import re
import unicodedata
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple

TEXT_LIMIT = 500


class Stage(StrEnum):
    """How far a hand-over had come when its answer (or its loss) arrived."""

    LOCAL = "local"  # refused before the network
    CONNECT = "connect"
    GREETING = "greeting"
    EHLO = "ehlo"
    TLS = "tls"
    AUTH = "auth"
    MAIL = "mail"
    RCPT = "rcpt"
    DATA = "data"
    BODY = "body"  # before the write of the final dot began
    DOT = "dot"  # from the moment the write of the final dot (BDAT: of the last bytes) has begun
    QUIT = "quit"
    HTTP = "http"  # a provider's API; the code is the HTTP status


class Outcome(StrEnum):
    """What becomes of the row. ``relay_down`` gives it back, no attempt spent."""

    SENT = "sent"
    RETRY = "retry"
    BOUNCED = "bounced"
    FAILED = "failed"
    IN_DOUBT = "in_doubt"
    RELAY_DOWN = "relay_down"


class Reason(StrEnum):
    """Why; what staff read beside the outcome and what the brakes count."""

    ACCEPTED = "accepted"
    ADDRESS_DEAD = "address_dead"
    ADDRESS_REFUSED = "address_refused"  # this recipient will not have it; the address lives
    MAILBOX_FULL = "mailbox_full"
    TRANSIENT = "transient"
    GREYLISTED = "greylisted"
    THROTTLED = "throttled"  # slow this provider down
    POLICY = "policy"
    CONTENT = "content"
    QUOTA = "quota"  # the sender's own, at its relay or provider
    RELAY = "relay"
    CREDENTIALS = "credentials"
    SENDER_REFUSED = "sender_refused"
    CONNECTION_LOST = "connection_lost"
    TIMEOUT = "timeout"
    UNREADABLE = "unreadable"  # something came back that is no valid answer
    REFUSED_LOCALLY = "refused_locally"
    UNCLASSIFIED = "unclassified"


_BRAKING = frozenset(
    {
        Reason.POLICY,
        Reason.CONTENT,
        Reason.QUOTA,
        Reason.CREDENTIALS,
        Reason.SENDER_REFUSED,
        Reason.UNCLASSIFIED,
    }
)


@dataclass(frozen=True, slots=True)
class Verdict:
    """An outcome and its reason. ``known`` is False where no rule fitted and a cautious
    fallback decided; staff see such answers as unclassified, so that rules can grow."""

    outcome: Outcome
    reason: Reason
    known: bool = field(default=True, compare=False)

    @property
    def suppress(self) -> bool:
        """Whether the address is suppressed with the outcome."""
        return self.reason is Reason.ADDRESS_DEAD

    @property
    def brakes(self) -> bool:
        """Whether the breaker counts it: a refusal that speaks of us, not of the recipient."""
        refused = self.outcome in (Outcome.FAILED, Outcome.RELAY_DOWN)
        return refused and self.reason in _BRAKING


class Answer(NamedTuple):
    """What came back for one message.

    ``code`` is None when no valid reply came. ``enhanced`` is "" if there was none. ``text`` is
    at most 500 characters and fit for a database. ``message_id`` is the provider's own;
    ``retry_after`` is in seconds. Build it with ``answer`` where the text is foreign.
    """

    stage: Stage
    code: int | None
    enhanced: str = ""
    text: str = ""
    message_id: str = ""
    retry_after: float | None = None


def answer(
    stage: Stage,
    code: int | None,
    text: str | bytes = "",
    *,
    enhanced: str | None = None,
    message_id: str = "",
    retry_after: float | None = None,
) -> Answer:
    """An ``Answer`` from foreign text: cleaned, bounded, its enhanced code read when not given."""
    clean = clean_text(text)
    return Answer(
        stage=stage,
        code=code,
        enhanced=parse_enhanced(clean) if enhanced is None else enhanced,
        text=clean,
        message_id=clean_text(message_id, limit=255) if message_id else "",
        retry_after=retry_after,
    )


def said(code: int | None, enhanced: str, text: str) -> str:
    """The relay's words on one line, each part once: its text often begins with the code."""
    begun = text.startswith(enhanced) if enhanced else True
    return " ".join(filter(None, [str(code or ""), "" if begun else enhanced, text]))


def unnamed(text: str, address: str | None) -> str:
    """``text`` without ``address``, however it is spelt: for what is kept with a campaign or a
    transport, where nobody would look for it when the person is erased."""
    if not address or "@" not in text:
        return text
    return re.sub(re.escape(address), "(address)", text, flags=re.IGNORECASE)


def unnamed_answer(said: Answer, address: str | None) -> Answer:
    """``said`` with its text ``unnamed``."""
    return said._replace(text=unnamed(said.text, address))


def clean_text(text: str | bytes | None, limit: int = TEXT_LIMIT) -> str:
    """``text`` decoded, without control characters, NUL or lone surrogates, on one line."""
    if type(text) is bytes and len(text) <= limit and text.isascii():  # as nearly all replies are
        text = text.decode("ascii")
    if text is None:
        return ""
    if isinstance(text, (bytes, bytearray)):  # a union takes five times as long
        text = _decode(bytes(text[: limit * 8]))
    if type(text) is not str or len(text) > limit * 2:
        text = str(text)[: limit * 2]
    if text.isascii() and text.isprintable():
        # Often it was cleaned before, and there is nothing left to do.
        if len(text) <= limit and "  " not in text and text.strip() == text:
            return text
        return " ".join(text.split())[:limit]
    # Controls become spaces, so that words of different lines do not grow together.
    kept = "".join(
        " " if unicodedata.category(char) in ("Cc", "Cs", "Zl", "Zp") else char for char in text
    )
    return " ".join(kept.split())[:limit]


#: Two or more characters of two high bytes each: Chinese, as UTF-8 and the Latin sets never are.
_GB_WORD = re.compile(rb"(?:[\xb0-\xf7][\xa1-\xfe]){2}")


def _decode(raw: bytes) -> str:
    """``raw`` as UTF-8, else as GB 18030 where it looks like it; what can't be read is replaced.

    Replies are ASCII by RFC 5321, but Chinese servers answer in their own set.
    """
    if raw.isascii():
        return raw.decode("ascii")
    for encoding in ("utf-8", "gb18030"):
        if encoding == "gb18030" and not _GB_WORD.search(raw):
            break
        try:  # not the last word: a character may be cut at the end
            return codecs.getincrementaldecoder(encoding)("strict").decode(raw)
        except UnicodeDecodeError:
            continue
    return raw.decode("utf-8", "replace")


# At the start of the text (RFC 2034), or in qmail's "(#5.7.1)" and "(#5.1.1 - chkuser)". The end
# is checked so that an address such as 5.1.2.3 is not read as a code.
_ENHANCED = re.compile(r"\W{0,3}([245]\.[0-9]{1,3}\.[0-9]{1,3})(?![.\d])")
_QMAIL = re.compile(r"\(#([245]\.[0-9]{1,3}\.[0-9]{1,3})(?![.\d])")


def parse_enhanced(text: str | None) -> str:
    """The enhanced status code (RFC 3463) of a reply's text without its basic code, or ""."""
    text = text or ""
    found = _ENHANCED.match(text) or (_QMAIL.search(text) if "(#" in text else None)
    return found[1] if found else ""
