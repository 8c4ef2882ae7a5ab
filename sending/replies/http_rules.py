"""What the providers' APIs answer; read by ``sending.outcomes.classify`` at the stage ``http``.

Sources: RFC 9110; the error pages of Resend, Brevo, Mailjet, Postmark, SendGrid, Mailgun,
SparkPost, Amazon SES, Mailtrap, MailerSend, Unisender Go and Scaleway; what anymail makes of them.
"""

from __future__ import annotations

from ..answers import Outcome, Reason, Verdict
from .rules import CONTENT, DEAD, LATER, POLICY, SENDER, SLOWER, UNWANTED
from .words import Words, words

#: Nothing was attempted and nothing of this account would be: the transport pauses and probes.
KEY_REFUSED = Verdict(Outcome.RELAY_DOWN, Reason.CREDENTIALS)
ALLOWANCE_SPENT = Verdict(Outcome.RELAY_DOWN, Reason.QUOTA)
STOPPED = Verdict(Outcome.RELAY_DOWN, Reason.POLICY)
#: Another request under this key may have been accepted, or still be under way.
SAME_KEY = Verdict(Outcome.IN_DOUBT, Reason.UNREADABLE)

#: What a status says when none of the words below does.
HTTP_STATUS: dict[int, Verdict] = {
    401: KEY_REFUSED,
    402: ALLOWANCE_SPENT,
    403: POLICY,
    407: Verdict(Outcome.RELAY_DOWN, Reason.RELAY),  # a proxy on our side wants a login
    408: LATER,
    413: CONTENT,
    420: SLOWER,  # SparkPost: the sending limit
    425: LATER,
    429: SLOWER,
}

#: In a 429 and its like: the allowance of a day or month, not the rate of a second.
SPENT = words(
    r"(?:daily|monthly|hourly)[ _-](?:message |sending |e?mail )?(?:quota|limit)",
    r"quota[ _]exceeded|exceed sending limit|sendingquota|credits? exceeded|plan limit",
)

#: What is said in a 4xx, or by anymail of a recipient, in this order. The key and the account
#: first, then the sender, and only a recipient that is named as such is dead: an "invalid
#: address" may well be our own.
HTTP_REFUSED: tuple[tuple[Words, Verdict], ...] = (
    # Brevo, to a second request under one key. Which of the two was sent only the transport knows.
    (
        words(r"duplicate_parameter|idempoten\w+ (?:key|request).{0,40}(?:already|in progress)"),
        SAME_KEY,
    ),
    # What anymail or ``sending.providers.http_answers`` made out, whatever words follow.
    (words(r"recipient invalid, says the provider"), DEAD),
    (words(r"recipient rejected by the provider"), UNWANTED),
    (
        words(
            r"(?:account|sending)[ _]?(?:has been |is |was )?(?:suspended|paused|disabled|blocked)",
            r"accountsuspended|sendingpaused",
            r"account.{0,40}(?:not (?:yet )?activated|under (?:review|vali))",
            r"account_under_validation|sending suspended|account is inactive|recently disabled",
            r"account (?:is pending|may not send)",
        ),
        STOPPED,
    ),
    (
        words(
            r"credits?\b.{0,20}(?:exceeded|exhaust)|(?:not_enough_|out of |enough )credits",
            r"quotas?_exceeded",
            r"limitexceeded|exceed sending limit|(?:plan|monthly|daily)[ _-](?:message |sending )?"
            r"(?:quota|limit)|quota.{0,20}(?:exceeded|reached)|unique recipients limit",
        ),
        ALLOWANCE_SPENT,
    ),
    (words(r"throttlingexception|maximum sending rate|too many requests"), SLOWER),
    (
        words(
            r"(?:api|server|bearer|access|security|authori[sz]ation)[ _-]?(?:key|token|grant)",
            r"credential|unauthori[sz]ed|unrecognizedclient|invalidclienttoken|signaturedoesnot",
            r"expiredtoken|accessdenied|not authori[sz]ed to perform|denied_authentication",
            r"permissions?[_ ]denied|invalid_(?:api_)?key|key not found|incompletesignature",
        ),
        KEY_REFUSED,
    ),
    (
        words(
            r"address (?:is )?(?:black|block)listed|suppress(?:ed|ion)|inactive ?(?:recipient|addr)"
        ),
        UNWANTED,
    ),
    (
        words(
            r"marked as inactive|(?:permanent|temporary)_unavailable|unsubscribed|complained",
            r"errorcode\W{1,3}406\b|recipients? (?:is|are|was) (?:black|block|deny)listed",
        ),
        UNWANTED,
    ),
    (
        words(
            r"\bsender\b|[`'\"](?:from|reply-?to)(?:email)?\b|from (?:address|parameter|e?mail)",
            r"from\.email",
            r"domain.{0,60}(?:verif|regist|not allowed|authenticat|not found|configured)",
            r"(?:verif\w+|unconfigured|sending|sandbox) (?:your |a |this )?(?:sub)?domains?",
            r"not verified",
            r"verified domain|mailfromdomain|identit(?:y|ies)|authorized (?:sender|address)",
            r"ms42207",
            r"sending from .{0,80}not allowed|domain not (?:checked|found)|email is not allowed",
        ),
        SENDER,
    ),
    (
        words(
            r"invalid (?:recipient|[`'\"]to\b)|(?:recipient|to address|to parameter).{0,40}(?:is )?"
            r"(?:invalid|not (?:a )?valid)|[`'\"]to['\"]? parameter is not a valid",
            r"\bto\.\d+\.email\b.{0,40}valid|\bto\[\d+\]\.email\b.{0,80}(?:format|valid)",
            r"not valid in to",
            r"invalid email address.{0,200}\bto\[\d+\]|\bto\[\d+\].{0,200}invalid email address",
            r"valid address.{0,80}\bto\.\d+\.email|error parsing 'to'",
            r"no valid recipients?\b.{0,80}[`'\"]invalid[`'\"]|invalid_to\b",
            r"[`'\"]to['\"] (?:address )?(?:is )?(?:invalid|not valid)",
        ),
        DEAD,
    ),
    (
        words(r"too large|size limit|attachment|too long|body exceeds|subject\b|html(?:part)?\b"),
        CONTENT,
    ),
    (words(r"spam\b|abus|polic(?:y|ies)|content rejected|message generation rej|security"), POLICY),
)
