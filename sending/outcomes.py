"""What an answer means: one pure function from a relay's reply to what becomes of the row.

``classify`` looks at four things in this order, and the first that speaks decides:

1. the **stage** the dialogue had reached (``_by_stage``): the same loss of connection is harmless
   before the final dot and unknowable after it (RFC 1047);
2. a provider's **own pattern** in the text (``HOUSES`` and ``DEFERRED``);
3. the **enhanced** code of RFC 3463 (``ENHANCED``);
4. the **basic** code of RFC 5321 with the words beside it (``BASIC``).

No code calls an address dead against words that speak of us (``DOUBTS``): a sender whose machine
is on a block list would otherwise suppress everybody.

An answer of a provider's API goes by its words and its status (``sending.replies.http_rules``).
To teach it a new reply, add a line to one of the tables in ``sending.replies``, and one to
``tests/unit/replies/``.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

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
from .replies.http_rules import HTTP_REFUSED, HTTP_STATUS, SPENT
from .replies.rules import (
    BASIC,
    DEFERRED,
    DOUBTS,
    ENHANCED,
    EVERYONE,
    HOUSE_NEEDLES,
    HOUSES,
    POLICY,
    TRANSIENT_CODES,
    first,
)
from .replies.words import (
    ABOUT_SENDER,
    BLOCKED,
    DISABLED,
    LATER,
    NO_SUCH_USER,
    OVERSIZE,
    SENDING_QUOTA,
    about_us,
    mentions,
    plain,
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

ACCEPTED = Verdict(Outcome.SENT, Reason.ACCEPTED)


def retry_delay(
    attempts: int,
    *,
    retry_after: float | None = None,
    jitter: float,
    waits: Sequence[float] = (),
    limit: int = MAX_ATTEMPTS,
) -> float | None:
    """Seconds until the next attempt after ``attempts`` were spent, or None when no more is due.

    ``jitter`` in [0, 1) spreads the wait over 80 to 120 %. ``retry_after`` (seconds, as the other
    side asked) wins, bounded to a day. ``waits`` (seconds) replaces the usual ones; with a
    ``limit`` beyond them the last one repeats.
    """
    if attempts >= limit:
        return None
    if retry_after is not None and math.isfinite(retry_after) and retry_after > 0:
        return min(float(retry_after), RETRY_AFTER_LIMIT)
    table = waits or RETRY_DELAYS
    base = table[min(max(attempts, 1), len(table)) - 1]
    return base * (0.8 + 0.4 * min(max(jitter, 0.0), 1.0))


def classify(
    stage: Stage | str, code: int | str | None, enhanced: str | None, text: str | bytes | None
) -> Verdict:
    """What an answer means; never raises, whatever it is given.

    ``code`` None means that no valid reply came. An unknown stage is taken for doubt, the only
    reading that can neither lose a message nor send it twice.
    """
    if stage is Stage.DOT and type(code) is int and 200 <= code < 300:
        return ACCEPTED  # most messages, most of the time: not a word has to be read
    if isinstance(stage, Stage):
        reached = stage
    else:
        try:
            reached = Stage(str(stage).lower())
        except ValueError:
            return Verdict(Outcome.IN_DOUBT, Reason.UNCLASSIFIED, known=False)
    number = _code(code)
    if number is not None and number < 300 and reached in _LAST:
        return ACCEPTED
    said = clean_text(text)
    status = _enhanced(enhanced) or _enhanced(parse_enhanced(said))
    if (early := _by_stage(reached, number, status, said)) is not None:
        return early
    assert number is not None
    words = plain(said, status)
    if reached is Stage.HTTP:
        return _by_http_words(number, words)
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
    found = _STATUS.fullmatch(str(enhanced or "").strip())
    return f"{found[1]}.{int(found[2])}.{int(found[3])}" if found else ""


_STATUS = re.compile(r"([245])\.([0-9]{1,3})\.([0-9]{1,3})")


def _is_transient(code: int, enhanced: str) -> bool:
    """The enhanced code's class outranks the basic code's (Gmail sends ``421 5.7.32``), but an
    address never dies of a contradiction."""
    if not enhanced or enhanced[0] == "2":
        return code < 500
    if enhanced[0] == "5" and code < 500:
        return not enhanced.startswith("5.7.")
    return enhanced[0] == "4"


#: What says 2xx here has the message.
_LAST = frozenset({Stage.DOT, Stage.QUIT, Stage.HTTP})
_BEFORE_MAIL = frozenset({Stage.CONNECT, Stage.GREETING, Stage.EHLO, Stage.TLS, Stage.AUTH})
_BEFORE_DOT = frozenset({Stage.MAIL, Stage.RCPT, Stage.DATA, Stage.BODY})
_LOGIN_CODES = frozenset({525, 530, 534, 535, 538})
#: Out of step, or no mail for anybody (RFC 7504).
_RELAY_CODES = frozenset({503, 521})


def _by_stage(stage: Stage, code: int | None, enhanced: str, text: str) -> Verdict | None:
    """What the stage alone decides; None leaves a 4xx or 5xx reply to the tables."""
    if stage is Stage.LOCAL:
        reason = {"5.3.4": Reason.CONTENT, "5.6.7": Reason.ADDRESS_REFUSED}
        return Verdict(Outcome.FAILED, reason.get(enhanced, Reason.REFUSED_LOCALLY))
    if stage is Stage.QUIT:  # only ever said after an acceptance
        return ACCEPTED
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
        if stage is not Stage.BODY and code in _RELAY_CODES:
            return Verdict(Outcome.RELAY_DOWN, Reason.RELAY)
        return None
    if code is None:
        return Verdict(Outcome.IN_DOUBT, _loss(text))
    if code < 400:
        return Verdict(Outcome.IN_DOUBT, Reason.UNREADABLE, known=False)
    return None


def _loss(text: str) -> Reason:
    if re.search(r"timed? ?out|time-out", text, re.I):
        return Reason.TIMEOUT
    if re.search(r"unreadable|line too long|garbage", text, re.I):
        return Reason.UNREADABLE
    return Reason.CONNECTION_LOST


def _by_http_status(code: int | None, text: str) -> Verdict | None:
    """A 5xx may come after acceptance, so may a lost answer; a 409 is a concurrent request under
    one key, or other content under it: its fate is not known by that. None: a refusal."""
    if code is None:
        return Verdict(Outcome.IN_DOUBT, _loss(text))
    if code < 400 or code >= 500 or code == 409:
        return Verdict(Outcome.IN_DOUBT, Reason.UNREADABLE)
    return None


def _by_http_words(code: int, words: str) -> Verdict:
    """A refusal by an API: its words, then its status. What asks for patience gets it, whatever
    else it says."""
    by_status = HTTP_STATUS.get(code)
    if by_status is not None and by_status.outcome is Outcome.RETRY:
        return Verdict(Outcome.RETRY, Reason.QUOTA) if SPENT.search(words) else by_status
    for pattern, verdict in HTTP_REFUSED:
        if pattern.search(words):
            return verdict
    return by_status or Verdict(Outcome.FAILED, Reason.UNCLASSIFIED, known=False)


def _deferred(stage: Stage, code: int, enhanced: str, words: str) -> Verdict:
    """A 4xx is tried again whatever it says; known when its code or its words are."""
    if (fits := first(DEFERRED, stage, code, enhanced, words)) is not None:
        return fits
    understood = bool(enhanced) or (
        code in TRANSIENT_CODES and (not words.strip() or LATER.search(words) is not None)
    )
    return Verdict(Outcome.RETRY, Reason.TRANSIENT, known=understood)


def _refused(stage: Stage, code: int, enhanced: str, words: str) -> Verdict:
    if stage is Stage.MAIL:
        return _refused_at_mail(code, enhanced, words)
    if mentions(words, HOUSE_NEEDLES):
        fits = first(HOUSES, stage, code, enhanced, words)
        if fits is not None:
            return POLICY if fits.suppress and about_us(words) else fits
    if (fits := first(EVERYONE, stage, code, enhanced, words)) is not None:
        return fits
    by_enhanced = ENHANCED.get(enhanced)
    if by_enhanced is None and enhanced.startswith("5.7."):
        return POLICY
    if by_enhanced is not None and not by_enhanced.suppress:
        return by_enhanced
    if (fits := first(DOUBTS, stage, code, enhanced, words)) is not None:
        return fits
    if by_enhanced is not None:
        return POLICY if _contradicts(words) else by_enhanced
    fits = first(BASIC, stage, code, enhanced, words)
    return fits if fits is not None else _unread(stage, code, enhanced, words)


def _contradicts(words: str) -> bool:
    """Whether words speak of a block or a policy and none of an address that is gone: who writes
    "5.1.1 Message blocked" has chosen the wrong code, and nobody dies of that."""
    return bool(
        BLOCKED.search(words) and not NO_SUCH_USER.search(words) and not DISABLED.search(words)
    )


_NOT_ABOUT_ADDRESS = ("5.3.", "5.4.", "5.5.", "5.6.")
_IPV4 = re.compile(r"(?<![\d.])(?:\d{1,3}\.){3}\d{1,3}(?![\d.])")


def _unread(stage: Stage, code: int, enhanced: str, words: str) -> Verdict:
    """A 5xx that nothing knows. At RCPT it is about the address, unless its enhanced code names
    the system, the network, the protocol or the content; elsewhere it is about anything.

    A bare 550 at RCPT says "no such mailbox" by RFC 5321. With a sentence that nobody could read
    it is taken for that too, but shown to staff: it may have been about us.
    """
    named = _IPV4.search(words)  # a machine, and more often than not it is ours
    if stage is Stage.RCPT and not named and not enhanced.startswith(_NOT_ABOUT_ADDRESS):
        known = code == 550 and words.strip().removeprefix(enhanced) == ""
        return Verdict(Outcome.BOUNCED, Reason.ADDRESS_DEAD, known=known)
    return Verdict(Outcome.FAILED, Reason.UNCLASSIFIED, known=False)


def _refused_at_mail(code: int, enhanced: str, words: str) -> Verdict:
    """A refused MAIL FROM speaks of the sender or the relay and nothing was attempted, save for
    what its parameters said of this one message: its size or its need of SMTPUTF8.

    One sender address alone is held up where it is the address that is refused; where our machine
    is, or our allowance, everybody's mail over this relay is.
    """
    if enhanced in ("5.4.5", "5.1.90") or SENDING_QUOTA.search(words):
        return Verdict(Outcome.RELAY_DOWN, Reason.QUOTA)
    if enhanced in ("5.3.4", "5.2.3") or (code == 552 and (not enhanced or OVERSIZE.search(words))):
        return Verdict(Outcome.FAILED, Reason.CONTENT)
    if enhanced in ("5.6.7", "5.6.9"):
        return Verdict(Outcome.FAILED, Reason.ADDRESS_REFUSED)
    if about_us(words) and not ABOUT_SENDER.search(words):
        return Verdict(Outcome.RELAY_DOWN, Reason.POLICY)
    return Verdict(Outcome.RELAY_DOWN, Reason.SENDER_REFUSED)
