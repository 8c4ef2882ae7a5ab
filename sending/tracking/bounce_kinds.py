"""Which bounces that a provider tells of are hard: the address is dead, and is suppressed for it.

anymail calls every refusal by a mailbox provider "bounced"; what the provider itself thinks of it
stands in the raw event. It is believed when it says "soft". When it says "hard", the reply of the
receiving server is read as well, where there is one: many a provider calls a sender that is
blocked (5.7.1) a hard bounce, and nobody may be suppressed for our own bad name. What is in doubt
is soft.

Sources: the providers' documents of their webhooks, and ``anymail.webhooks``.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Any

from ..answers import Reason, Stage, Verdict, clean_text
from ..outcomes import classify

HARD_BOUNCE = "hard_bounce"
SOFT_BOUNCE = "soft_bounce"
#: The provider did not even try: the address is on its own list.
REJECTED = "rejected"

#: Characters of a reply that are read for its code.
_LOOK_AT = 300
_BASIC_CODE = re.compile(r"(?<![\w.:/-])([2-5]\d\d)(?=[ -]|$)(?![ -]\d{3}\b)")
_ENHANCED_CODE = re.compile(r"(?<![\d.])([245]\.\d{1,3}\.\d{1,3})(?![.\d])")


class Claim(Enum):
    """What the provider says of a bounce."""

    #: The address is dead, unless the reply says otherwise.
    HARD = "hard"
    #: It gave up; only a reply that says so makes the address dead.
    UNSURE = "unsure"
    SOFT = "soft"
    NOT_TRIED = "not_tried"


@dataclass(frozen=True, slots=True)
class Reply:
    """A server's reply as a provider passes it on. ``code`` None, ``enhanced`` "": none found."""

    code: int | None
    enhanced: str
    text: str

    def verdict(self, stage: Stage) -> Verdict:
        """What it means. At ``RCPT`` a bare 550 speaks of the address, at ``DOT`` only a code or
        words that say so do."""
        code = self.code or (450 if self.enhanced.startswith("4") else 550)
        return classify(stage, code, self.enhanced, self.text)

    @property
    def is_coded(self) -> bool:
        return self.code is not None or bool(self.enhanced)


def reply_in(text: object) -> Reply:
    """The codes in a reply such as ``smtp; 550 5.1.1 no such user`` (RFC 3464 2.3.6), or in
    words around one."""
    words = clean_text(text if isinstance(text, str | bytes) else "")
    begin = words[:_LOOK_AT]
    basic, enhanced = _BASIC_CODE.search(begin), _ENHANCED_CODE.search(begin)
    return Reply(int(basic[1]) if basic else None, enhanced[1] if enhanced else "", words)


def kind_of_bounce(esp_name: str, event: Any) -> str:
    """``hard_bounce``, ``soft_bounce`` or ``rejected`` for an anymail event of type ``bounced``."""
    raw = getattr(event, "esp_event", None)
    claim, text = _CLAIMS.get(esp_name, _unsure)(raw, event)
    if claim is Claim.NOT_TRIED:
        return REJECTED
    if claim is Claim.SOFT:
        return SOFT_BOUNCE
    return HARD_BOUNCE if _is_dead(reply_in(text), claim) else SOFT_BOUNCE


def is_dead(event: Any) -> bool:
    """Whether the reply alone proves that the address is dead."""
    return _is_dead(reply_in(_reply_text(event)), Claim.UNSURE)


def _is_dead(reply: Reply, claim: Claim) -> bool:
    verdict = reply.verdict(Stage.RCPT if claim is Claim.HARD else Stage.DOT)
    proven = reply.is_coded or claim is Claim.HARD
    return proven and verdict.known and verdict.reason is Reason.ADDRESS_DEAD


def value_at(raw: object, *path: str) -> Any:
    """``raw[path[0]][path[1]]...`` through dicts, or None where something else is in the way."""
    for name in path:
        raw = raw.get(name) if isinstance(raw, dict) else None
    return raw


def _word(raw: object, *path: str) -> str:
    found = value_at(raw, *path)
    return found.strip().lower() if isinstance(found, str) else ""


def _reply_text(event: Any) -> Any:
    return getattr(event, "mta_response", None)


def _unsure(raw: object, event: Any) -> tuple[Claim, Any]:
    return Claim.UNSURE, _reply_text(event)


def _by_word(hard: frozenset[str], *path: str) -> Callable[[object, Any], tuple[Claim, Any]]:
    """Hard when the word at ``path`` of the raw event is one of these."""

    def claim(raw: object, event: Any) -> tuple[Claim, Any]:
        said = _word(raw, *path)
        return (Claim.HARD if said in hard else Claim.SOFT), _reply_text(event)

    return claim


def _amazon_ses(raw: object, event: Any) -> tuple[Claim, Any]:
    return _ses_types(value_at(raw, "bounce"), "bounceType", "bounceSubType", _reply_text(event))


def _resend(raw: object, event: Any) -> tuple[Claim, Any]:
    # Its "message" is advice in Resend's own words; it speaks of reputation whatever happened.
    bounce = value_at(raw, "data", "bounce")
    codes = value_at(bounce, "diagnosticCode")
    text = " ".join(c for c in codes if isinstance(c, str)) if isinstance(codes, list) else codes
    return _ses_types(bounce, "type", "subType", text)


def _ses_types(bounce: object, kind: str, subkind: str, text: Any) -> tuple[Claim, Any]:
    if "suppress" in _word(bounce, subkind):  # Suppressed, OnAccountSuppressionList
        return Claim.NOT_TRIED, text
    return (Claim.HARD if _word(bounce, kind) == "permanent" else Claim.SOFT), text


def _mailersend(raw: object, event: Any) -> tuple[Claim, Any]:
    said = _word(raw, "data", "type").removeprefix("activity.")
    claim = Claim.HARD if said == "hard_bounced" else Claim.SOFT
    return claim, getattr(event, "description", None)


def _mailgun(raw: object, event: Any) -> tuple[Claim, Any]:
    data = value_at(raw, "event-data")
    if not isinstance(data, dict):  # the webhooks from before 2018 tell of final failures only
        code = value_at(raw, "code")
        return Claim.UNSURE, f"{code or ''} {_reply_text(event) or ''}"
    reason = _word(data, "reason")
    if reason.startswith("suppress"):
        return Claim.NOT_TRIED, None
    if _word(data, "severity") != "permanent" or reason == "old":
        return Claim.SOFT, None
    status = value_at(data, "delivery-status")
    text = f"{value_at(status, 'code') or ''} {_reply_text(event) or ''}"
    return (Claim.HARD if reason == "bounce" else Claim.UNSURE), text


def _mailjet(raw: object, event: Any) -> tuple[Claim, Any]:
    hard = str(value_at(raw, "hard_bounce")).lower() in ("true", "1")
    dead = ("user unknown", "mailbox inactive", "invalid domain", "no mail host")
    claim = Claim.HARD if hard and _word(raw, "error") in dead else Claim.SOFT
    return claim, value_at(raw, "comment")


def _mailtrap(raw: object, event: Any) -> tuple[Claim, Any]:
    category = re.sub(r"[^a-z]", "", _word(raw, "bounce_category"))
    text = f"{value_at(raw, 'response_code') or ''} {_reply_text(event) or ''}"
    if category in ("badmailbox", "inactivemailbox", "baddomain"):
        return Claim.HARD, text
    return Claim.UNSURE, text


def _postmark(raw: object, event: Any) -> tuple[Claim, Any]:
    said = _word(raw, "Type") or _word(raw, "SuppressionReason")
    return (Claim.HARD if said == "hardbounce" else Claim.SOFT), _reply_text(event)


def _sendgrid(raw: object, event: Any) -> tuple[Claim, Any]:
    if _word(raw, "type") != "bounce":  # "blocked": it was refused, the address lives
        return Claim.SOFT, None
    about = _word(raw, "bounce_classification")
    claim = Claim.HARD if about in ("", "invalid address") else Claim.UNSURE
    return claim, f"{_reply_text(event) or ''} {_word(raw, 'status')}"


def _sparkpost(raw: object, event: Any) -> tuple[Claim, Any]:
    classes = value_at(raw, "msys")
    inner = next(iter(classes.values()), None) if isinstance(classes, dict) else None
    # 10: invalid recipient; 30: no such recipient. 20 to 25, 40 and 70 pass or may pass, the 50s
    # are blocks.
    hard = str(value_at(inner, "bounce_class")) in ("10", "30")
    return (Claim.HARD if hard else Claim.SOFT), _reply_text(event)


def _unisender_go(raw: object, event: Any) -> tuple[Claim, Any]:
    said = _word(raw, "delivery_info", "delivery_status")
    if said in ("err_unsubscribed", "err_skip_letter", "err_spam_skipped"):
        return Claim.NOT_TRIED, None
    dead = ("err_user_unknown", "err_user_inactive", "err_domain_inactive", "err_mailbox_discarded")
    return (Claim.HARD if said in dead else Claim.SOFT), _reply_text(event)


_CLAIMS: dict[str, Callable[[object, Any], tuple[Claim, Any]]] = {
    "Amazon SES": _amazon_ses,
    "Brevo": _by_word(frozenset({"hard_bounce", "invalid_email"}), "event"),
    "MailerSend": _mailersend,
    "Mailgun": _mailgun,
    "Mailjet": _mailjet,
    "Mailtrap": _mailtrap,
    "Mandrill": _by_word(frozenset({"hard_bounce"}), "event"),
    # A message of bounce that came back; what it says is not told.
    "Postal": _unsure,
    "Postmark": _postmark,
    "Resend": _resend,
    "SendGrid": _sendgrid,
    "SparkPost": _sparkpost,
    "Unisender Go": _unisender_go,
}
