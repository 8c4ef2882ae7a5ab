"""Facts of the sending in words: what the admin and ``sender_status`` both tell, told once.

Pure: tokens and numbers in, short plain sentences out.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime

from .answers import Reason, Stage, said
from .sql.pauses import ERRORS

#: Beside an answer that no rule knows; see ``answers.Verdict.known``.
UNCLASSIFIED = "unclassified: a cautious guess"

#: The stage of what a provider told later, by webhook.
WEBHOOK = "webhook"
#: What providers tell; see ``sending.tracking.rules``.
TOLD = {
    "queued": "taken by the provider",
    "sent": "sent on by the provider",
    "delivered": "delivered",
    "deferred": "delayed, the provider goes on trying",
    "hard_bounce": "bounced, for good",
    "soft_bounce": "bounced, for now",
    "rejected": "refused by the provider",
    "failed": "given up by the provider",
    "complained": "called spam by its recipient",
    "unsubscribed": "its recipient unsubscribed at the provider",
    "autoresponded": "answered by a machine",
}
#: What webhooks brought that was out of order; see ``sending.tracking.webhook_counts``.
ODD = {
    "refused": "wrong or missing secret, refused with 403",
    "malformed": "not readable",
    "too_large": "too large",
    "replayed": "told again, counted once",
    "odd_time": "at an impossible time, taken as now",
    "unknown_job": "about messages that are not known here",
    "other_installation": "about messages of another installation",
    "wrong_recipient": "about another recipient than the message's",
    "wrong_provider": "from another provider than the message's",
    "never_handed_over": "about messages that were never handed over",
    "error": "which could not be applied, see the log",
}


def result_words(result: str) -> str:
    """What came of something that a webhook brought, in as many words as it takes."""
    return ODD.get(result) or words(result)


#: Tokens that staff know by another name.
_NAMES = {"worker_lost": "sender stopped"}


def words(token: str) -> str:
    """``in_doubt`` as people write it."""
    return _NAMES.get(token) or token.replace("_", " ")


def kind_words(kind: str, stage: str = "") -> str:
    """What happened to a send: a status that it reached, a decision, or what a provider told."""
    return (TOLD.get(kind) if stage == WEBHOOK else None) or words(kind)


def reason_words(reason: str, *, known: bool = True) -> str:
    """Why, and whether that is a guess; "" for no reason."""
    told = words(reason)
    if known:
        return told
    return UNCLASSIFIED if reason in ("", "unclassified") else f"{told}, {UNCLASSIFIED}"


# --- answers ---------------------------------------------------------------------------------

#: Where in a hand-over an answer came, or its loss was noticed.
_PLACES: dict[str, str] = {
    Stage.LOCAL: "before it left",
    Stage.CONNECT: "on connecting",
    Stage.GREETING: "on connecting",
    Stage.EHLO: "on connecting",
    Stage.TLS: "on encrypting the connection",
    Stage.AUTH: "at the login",
    Stage.MAIL: "at the sender address",
    Stage.RCPT: "at the recipient's address",
    Stage.DATA: "before the message",
    Stage.BODY: "within the message",
    Stage.DOT: "after the whole message",
    Stage.QUIT: "on disconnecting",
    Stage.HTTP: "at the provider",
    WEBHOOK: "told later by the provider",
    ERRORS: "after errors in a row",
}


def stage_words(stage: str) -> str:
    """How far a hand-over had come; "" for nothing said of it."""
    return _PLACES.get(stage) or words(stage)


def quoted(stage: str, code: int | None, enhanced: str, text: str) -> str:
    """What was said, a server's or a provider's words as a quotation; without a code they are our
    own, of what happened in place of an answer."""
    told = said(code, enhanced, text)
    is_theirs = told and (code is not None or stage == WEBHOOK)
    return f"\u201c{told}\u201d" if is_theirs else told


def answer_words(stage: str, code: int | None, enhanced: str, text: str) -> str:
    """Where it came, and what was said; "" for nothing."""
    told = (stage_words(stage), quoted(stage, code, enhanced, text))
    return ": ".join(filter(None, told))


# --- doubt -----------------------------------------------------------------------------------

_NOTHING_CAME = "no answer came"
_SAYS_NOTHING = "the answer does not say whether it was taken"


def doubt_words(reason: str, code: int | None) -> str:
    """Why nobody knows whether a message was taken. An HTTP 500, and words that are no valid
    reply, are answers too."""
    came = code is not None or reason == Reason.UNREADABLE
    return _SAYS_NOTHING if came else _NOTHING_CAME


#: Of many at once.
IN_DOUBT = "handed over, and no answer came, or one that does not say whether it was taken"


# --- pauses ----------------------------------------------------------------------------------

_TROUBLE: dict[str, str] = {
    Stage.CONNECT: "can't be reached",
    Stage.GREETING: "turns every session away",
    Stage.EHLO: "turns every session away",
    Stage.TLS: "offers no encryption that can be used",
    Stage.AUTH: "refuses the login",
    Stage.MAIL: "refuses the sender address",
    Stage.HTTP: "refuses what it is asked",
    ERRORS: "fails one message after another",
}
_LOGIN = frozenset({401, 403, 525, 530, 534, 535, 538})


#: What is raised before anything was tried, because of the settings: our own words, anymail's,
#: botocore's and those of requests and http.client about a URL or a header that can't be.
_SETTINGS = re.compile(
    r"^no transport '|^transport '.*'(: | names no BACKEND)|in your Django settings|OPTIONS must"
    r"|\bANYMAIL|Unable to locate credentials|must specify a region|codec can't encode"
    r"|Invalid URL|No scheme supplied|Invalid header|^Invalid leading whitespace"
)


def is_misconfigured(stage: str, said: str) -> bool:
    """Whether ``said``, the reason of a pause, speaks of the settings and not of the network."""
    return stage == Stage.CONNECT and bool(_SETTINGS.search(said))


def trouble(stage: str, code: int | None, *, whose: str | None = None, said: str = "") -> str:
    """What is wrong with a transport that is paused; ``whose``: for this account alone; ``said``:
    the reason that the pause keeps."""
    if is_misconfigured(stage, said):
        return "is misconfigured"
    if code in _LOGIN:
        return "refuses the login"
    told = _TROUBLE.get(stage, "takes no mail")
    return f"{told} of {whose}" if whose is not None and stage == Stage.MAIL else told


def next_try(probe_at: datetime, now: datetime, *, may_try: bool = False) -> str:
    """When senders try a paused transport again, for ``remedy``."""
    is_due = probe_at <= now
    when = "is due" if is_due else f"is at {probe_at.astimezone(UTC):%H:%M} UTC"
    return f"the next try {when}" + (", or at once by Try now" if may_try and not is_due else "")


def remedy(
    stage: str,
    code: int | None,
    *,
    whose: str | None = None,
    said: str = "",
    then: str = "a new sender tries at the next planned moment",
) -> str:
    """What somebody can do about a pause. It lifts by itself when a try works. ``then``: when
    that is, where it isn't told beside this; see ``next_try``."""
    if is_misconfigured(stage, said):
        if said.startswith("no transport '"):
            return (
                "Add it to SENDONCE['TRANSPORTS'] of the senders and start them again, or have the "
                "account name another."
            )
        return "Correct the settings it names, for the senders and the site, and start them again."
    if code in _LOGIN or stage == Stage.AUTH:
        return f"Correct the login in the settings and start the senders again; {then}."
    if whose is not None:
        return f"Correct the sender address of {whose}, or have the relay allow it."
    if stage == Stage.MAIL:
        return "Have the relay allow the sender address."
    if stage in (Stage.CONNECT, Stage.TLS):
        return "Look at the relay, and at host, port and encryption in the settings."
    return "Look at what it said, and at the relay or the provider."


# --- limits and brakes -----------------------------------------------------------------------


def limit_words(key: str, account: str = "") -> str:
    """What a limit is of: ``transport default``, ``account Example``, ``mailboxes at google``.

    ``account`` is the name behind an ``account:<id>``, where there still is one.
    """
    kind, _, name = key.partition(":")
    match kind:
        case "account":
            return f"account {account or name}"
        case "domain":
            return f"mailboxes at {name}"
        case "transport":
            return f"transport {name}"
    return key


def rate_words(per_second: float, *, hourly: bool = False) -> str:
    """A rate in messages a second, or an hour where that reads better: ``5 a second``,
    ``1,000 an hour``. ``hourly``: it was given so (an account's)."""
    an_hour = per_second * 3600
    is_round_hour = abs(an_hour - round(an_hour)) < 0.01
    is_round_second = abs(per_second * 10 - round(per_second * 10)) < 0.001
    if hourly or per_second < 1 or (is_round_hour and not is_round_second):
        return f"{_number(an_hour)} an hour"
    return f"{_number(per_second)} a second"


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 10 or value == int(value) else f"{value:,.1f}"


#: Between a number and its percent sign, so that no line ends there.
_NARROW = "\u00a0"


def share_words(count: int, rate: float | None, most: float) -> str:
    """Bounces or complaints beside the account's limit (percent): ``21 (5.2 %, limit 5 %)``."""
    of = f"limit {most:g}{_NARROW}%"
    told = of if rate is None else f"{rate:.2f}{_NARROW}%, {of}"
    return f"{count:,} ({told})"


#: What to do about a campaign that a brake has paused, beside the reason.
AFTER_BRAKE = "Mend the cause, then resume it: what came before is not counted again."


def refusal_words(in_a_row: int, in_all: int, most: int) -> str:
    """Refusals that speak of the sender, beside the account's limit: ``2 (limit 20, 9 in all)``."""
    return f"{in_a_row:,} (limit {most:,}" + (f", {in_all:,} in all)" if in_all else ")")


def percent(part: int, whole: int) -> float | None:
    """``part`` of ``whole`` in percent; None of nothing. A part is never more than all."""
    return 100 * part / max(part, whole) if whole > 0 else None
