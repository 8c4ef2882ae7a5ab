"""What an answer means: one pure function from a relay's reply to what becomes of the row.

``classify`` looks at four things in this order, and the first that speaks decides:

1. the **stage** the dialogue had reached (``_by_stage``): the same loss of connection is harmless
   before the final dot and unknowable after it (RFC 1047);
2. a provider's **own pattern** in the text (``PATTERNS`` and ``DEFERRED``);
3. the **enhanced** code of RFC 3463 (``ENHANCED``);
4. the **basic** code of RFC 5321 with the words beside it (``BASIC``).

To teach it a new reply, add a line to one of those tables in ``sending.reply_rules`` and one to
the table in ``tests/unit/test_outcomes.py``.
"""

from __future__ import annotations

import math
import re

from .answers import (
    Answer,
    Outcome,
    Reason,
    Stage,
    Verdict,
    answer,
    clean_text,
    parse_enhanced,
)
from .reply_rules import (
    BASIC,
    DEFERRED,
    ENHANCED,
    HTTP_REFUSED,
    HTTP_STATUS,
    PATTERNS,
    SENDING_QUOTA,
)

__all__ = [
    "MAX_ATTEMPTS",
    "Answer",
    "Outcome",
    "Reason",
    "Stage",
    "Verdict",
    "answer",
    "classify",
    "clean_text",
    "parse_enhanced",
    "retry_delay",
]

#: Seconds before the 2nd, 3rd, ... attempt.
RETRY_DELAYS = (30.0, 120.0, 480.0, 1800.0, 3600.0)
RETRY_AFTER_LIMIT = 86400.0
MAX_ATTEMPTS = 5


def retry_delay(
    attempts: int,
    *,
    retry_after: float | None = None,
    jitter: float,
    limit: int = MAX_ATTEMPTS,
) -> float | None:
    """Seconds until the next attempt after ``attempts`` were spent, or None when no more is due.

    ``jitter`` in [0, 1) spreads the wait over 80 to 120 %. ``retry_after`` (seconds, as the other
    side asked) wins, bounded to a day. With a ``limit`` beyond the table its last wait repeats.
    """
    if attempts >= limit:
        return None
    if retry_after is not None and math.isfinite(retry_after) and retry_after > 0:
        return min(float(retry_after), RETRY_AFTER_LIMIT)
    base = RETRY_DELAYS[min(max(attempts, 1), len(RETRY_DELAYS)) - 1]
    return base * (0.8 + 0.4 * min(max(jitter, 0.0), 1.0))


def classify(
    stage: Stage | str, code: int | str | None, enhanced: str | None, text: str | bytes | None
) -> Verdict:
    """What an answer means; never raises, whatever it is given.

    ``code`` None means that no valid reply came. An unknown stage is taken for doubt, the only
    reading that can neither lose a message nor send it twice.
    """
    try:
        reached = Stage(str(stage).lower())
    except ValueError:
        return Verdict(Outcome.IN_DOUBT, Reason.UNCLASSIFIED, known=False)
    number = _code(code)
    words = clean_text(text)
    status = _enhanced(enhanced) or _enhanced(parse_enhanced(words))
    if (early := _by_stage(reached, number, status, words)) is not None:
        return early
    assert number is not None
    if _is_transient(number, status):
        return _deferred(reached, number, status, words)
    return _refused(reached, number, status, words)


def _code(code: int | str | None) -> int | None:
    try:
        number = int(code) if code is not None else None
    except (TypeError, ValueError, OverflowError):
        return None
    return number if number is not None and 200 <= number <= 599 else None


def _enhanced(enhanced: str | None) -> str:
    found = re.fullmatch(r"([245])\.(\d{1,3})\.(\d{1,3})", str(enhanced or "").strip())
    return f"{found[1]}.{int(found[2])}.{int(found[3])}" if found else ""


def _is_transient(code: int, enhanced: str) -> bool:
    """The enhanced code's class outranks the basic code's (Gmail sends ``421 5.7.32``), but an
    address never dies of a contradiction."""
    if not enhanced or enhanced[0] == "2":
        return code < 500
    if enhanced[0] == "5" and code < 500:
        return not enhanced.startswith("5.7.")
    return enhanced[0] == "4"


_BEFORE_MAIL = frozenset({Stage.CONNECT, Stage.GREETING, Stage.EHLO, Stage.TLS, Stage.AUTH})
_BEFORE_DOT = frozenset({Stage.MAIL, Stage.RCPT, Stage.DATA, Stage.BODY})
_LOGIN_CODES = frozenset({525, 530, 534, 535, 538})


def _by_stage(stage: Stage, code: int | None, enhanced: str, text: str) -> Verdict | None:
    """What the stage alone decides; None leaves a 4xx or 5xx reply to the tables."""
    if stage is Stage.LOCAL:
        reason = {"5.3.4": Reason.CONTENT, "5.6.7": Reason.ADDRESS_REFUSED}
        return Verdict(Outcome.FAILED, reason.get(enhanced, Reason.REFUSED_LOCALLY))
    if stage is Stage.QUIT:  # only ever said after an acceptance
        return Verdict(Outcome.SENT, Reason.ACCEPTED)
    if stage in _BEFORE_MAIL:
        if code in _LOGIN_CODES or (stage is Stage.AUTH and code is not None and code >= 500):
            return Verdict(Outcome.RELAY_DOWN, Reason.CREDENTIALS)
        return Verdict(Outcome.RELAY_DOWN, Reason.RELAY)
    if stage is Stage.HTTP:
        return _by_http_status(code, text)
    if stage in _BEFORE_DOT:
        if code is None:
            return Verdict(Outcome.RETRY, _loss(text))
        if code < 400:  # no answer that this stage allows, and nothing was accepted by it
            return Verdict(Outcome.RETRY, Reason.UNREADABLE, known=False)
        if stage is not Stage.BODY and code in _LOGIN_CODES:
            return Verdict(Outcome.RELAY_DOWN, Reason.CREDENTIALS)
        if stage is not Stage.BODY and code == 503:
            return Verdict(Outcome.RELAY_DOWN, Reason.RELAY)
        return None
    if code is None:
        return Verdict(Outcome.IN_DOUBT, _loss(text))
    if code < 300:
        return Verdict(Outcome.SENT, Reason.ACCEPTED)
    if code < 400:
        return Verdict(Outcome.IN_DOUBT, Reason.UNREADABLE, known=False)
    return None


def _loss(text: str) -> Reason:
    if re.search(r"timed? ?out|time-out", text, re.I):
        return Reason.TIMEOUT
    if re.search(r"unreadable|line too long|garbage", text, re.I):
        return Reason.UNREADABLE
    return Reason.CONNECTION_LOST


def _by_http_status(code: int | None, text: str) -> Verdict:
    """A 5xx may come after acceptance, so may a lost answer; 409 is
    a concurrent request under one key, whose fate is not known by it."""
    if code is None:
        return Verdict(Outcome.IN_DOUBT, _loss(text))
    if code < 300:
        return Verdict(Outcome.SENT, Reason.ACCEPTED)
    if code in HTTP_STATUS:
        return HTTP_STATUS[code]
    if code < 400 or code >= 500:
        return Verdict(Outcome.IN_DOUBT, Reason.UNREADABLE)
    for pattern, verdict in HTTP_REFUSED:
        if pattern.search(text):
            return verdict
    return Verdict(Outcome.FAILED, Reason.UNCLASSIFIED, known=False)


def _deferred(stage: Stage, code: int, enhanced: str, text: str) -> Verdict:
    for rule in DEFERRED:
        if rule.matches(stage, code, enhanced, text):
            return rule.verdict
    return Verdict(Outcome.RETRY, Reason.TRANSIENT)


def _refused(stage: Stage, code: int, enhanced: str, text: str) -> Verdict:
    if stage is Stage.MAIL:
        return _refused_at_mail(code, enhanced, text)
    for rule in PATTERNS:
        if rule.matches(stage, code, enhanced, text):
            return rule.verdict
    if enhanced in ENHANCED:
        return ENHANCED[enhanced]
    if enhanced.startswith("5.7."):
        return Verdict(Outcome.FAILED, Reason.POLICY)
    for rule in BASIC:
        if rule.matches(stage, code, enhanced, text):
            return rule.verdict
    if stage is Stage.RCPT:
        return Verdict(Outcome.BOUNCED, Reason.ADDRESS_DEAD, known=code == 550)
    return Verdict(Outcome.FAILED, Reason.UNCLASSIFIED, known=False)


def _refused_at_mail(code: int, enhanced: str, text: str) -> Verdict:
    """A refused MAIL FROM speaks of the sender or the relay and nothing was attempted, save for
    what its parameters said of this one message: its size or its need of SMTPUTF8."""
    if enhanced == "5.3.4" or (code == 552 and enhanced in ("", "5.2.3")):
        return Verdict(Outcome.FAILED, Reason.CONTENT)
    if enhanced in ("5.6.7", "5.6.9"):
        return Verdict(Outcome.FAILED, Reason.ADDRESS_REFUSED)
    if enhanced == "5.4.5" or SENDING_QUOTA.search(text):
        return Verdict(Outcome.RELAY_DOWN, Reason.QUOTA)
    return Verdict(Outcome.RELAY_DOWN, Reason.SENDER_REFUSED)
