"""Doubt in words that somebody who writes newsletters understands, and which decision is likely
right. Pure: what a row shows in, sentences out.

Nobody knows whether a message in doubt arrived (RFC 1047). The advice says what usually was, and
why; it never decides.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from campaigns.models import Campaign
from subscribers.models import Account

from .answers import Reason
from .withheld import WITHHELD

#: The reason of rows whose sender died; see ``sending.rescue``.
WORKER_LOST = "worker_lost"
CANCELED = "canceled"

#: What each reason is called in a list, and what it means. Sentences.
_REASONS: dict[str, tuple[str, str]] = {
    Reason.CONNECTION_LOST: (
        "Connection lost",
        "The message was handed over to its end, and the connection broke before the mail server "
        "said whether it took it.",
    ),
    Reason.TIMEOUT: (
        "No answer in time",
        "The message was handed over to its end, and the mail server did not answer in time.",
    ),
    Reason.UNREADABLE: (
        "Answer not readable",
        "An answer came that does not say whether the message was taken.",
    ),
    Reason.UNCLASSIFIED: (
        "Answer not known",
        "An answer came that no rule knows: it does not say for sure whether the message was "
        "taken.",
    ),
    WORKER_LOST: (
        "Sender stopped",
        "The sender was stopped or lost while it worked on this message: it may have left just "
        "before, or not at all.",
    ),
    CANCELED: (
        "Canceled while in doubt",
        "The campaign was canceled while it was not known whether an earlier try had arrived.",
    ),
    "held": (
        "Too late to repeat",
        "It could be repeated without risk for a while; that is over, and nothing came of it.",
    ),
}
#: What the last look before another hand-over found: the earlier one is still in doubt.
_STOPPED = frozenset(WITHHELD) - {"canceled", "not_sending", "held"}
_OTHER = (
    "Not known",
    "The message was handed over, and it is not known whether it was taken.",
)


def reason_name(reason: str) -> str:
    """What a reason of doubt is called, in a few words."""
    if reason in _STOPPED:
        return "Not to be repeated"
    return _REASONS.get(reason, _OTHER)[0]


def reason_meaning(reason: str) -> str:
    """What happened, in a sentence."""
    if reason in _STOPPED:
        return (
            f"It is not known whether an earlier try arrived, and there is no other: "
            f"{WITHHELD[reason]}."
        )
    return _REASONS.get(reason, _OTHER)[1]


@dataclass(frozen=True, slots=True)
class Advice:
    """``likely``: the decision that is likely right, as ``doubt.DECISIONS`` name it, or "" where
    nothing speaks for one. ``why`` is a sentence or a few."""

    likely: str
    why: str


def advice(reason: str, code: int | None, *, harmless: bool, canceled: bool) -> Advice:
    """Which decision is likely right. ``code`` is the answer's, if one came; ``harmless``: the
    provider still recognises the message by its key, so it can't arrive twice; ``canceled``: the
    campaign is, and nothing of it is sent again."""
    if canceled:
        return Advice(
            "treat_as_sent",
            "The campaign is canceled, so nothing of it is sent again. Treating them as sent "
            "closes them.",
        )
    if reason in _STOPPED:
        return Advice(
            "treat_as_sent",
            f"Sending again would not reach them: {WITHHELD[reason]}. Treating them as sent closes "
            f"them.",
        )
    if harmless:
        return Advice(
            "send_again",
            "The provider recognises a message that it has by its key, and does not deliver it "
            "twice. To send again is safe for now.",
        )
    match reason:
        case Reason.CONNECTION_LOST | Reason.TIMEOUT:
            return Advice(
                "treat_as_sent",
                "Mail servers that fall silent at this point mostly have the message: they were "
                "slow to confirm it. Look into the mail server's log if you can; what is in it "
                "arrived.",
            )
        case Reason.UNREADABLE | Reason.UNCLASSIFIED if code is not None and code >= 500:
            return Advice(
                "",
                "The other side had trouble of its own. It often takes nothing then, but not "
                "always: look into its log or its web page before you send again.",
            )
        case "worker_lost":
            return Advice(
                "",
                "A sender that stops has handed over some of its messages and not yet begun with "
                "others; which, only the mail server's log tells. Choose what is worse here: that "
                "some get it twice, or that some don't get it.",
            )
    return Advice(
        "",
        "Nothing speaks for one or the other. Choose what is worse here: that some get it twice, "
        "or that some don't get it.",
    )


# --- what happens by itself -------------------------------------------------------------------


def fate(
    *,
    settle_at: datetime | None,
    replay_until: datetime | None,
    policy: str,
    campaign_status: str,
    now: datetime,
) -> tuple[str, datetime | None]:
    """What settles rows without anybody: a key of ``FATES`` and the moment it speaks of.
    ``campaign_status`` "": of no campaign."""
    if campaign_status == Campaign.Status.CANCELED:
        return "closed", None
    if settle_at is None:
        return "held", None
    if replay_until is not None and replay_until > now:
        waits = campaign_status == Campaign.Status.PAUSED
        return ("replay_paused" if waits else "replay"), replay_until
    match policy:
        case Account.DoubtPolicy.RESEND:
            return "resend", settle_at
        case Account.DoubtPolicy.ASSUME_SENT:
            return "assume_sent", settle_at
    return "held", None


#: The parts before and behind the moment.
FATES: dict[str, tuple[str, str]] = {
    "closed": (
        "Nothing is sent any more, as the campaign is canceled. Evidence that still comes settles "
        "it.",
        "",
    ),
    "held": ("Held: it waits for evidence, or for your decision.", ""),
    "replay": (
        "Repeated by itself under its key, which can't deliver it twice, until",
        "at the latest.",
    ),
    "replay_paused": (
        "Repeated by itself under its key once the campaign is resumed, until",
        "at the latest.",
    ),
    "resend": ("Sent again by itself, as the account wants it, from", "on."),
    "assume_sent": ("Treated as sent by itself, as the account wants it, from", "on."),
}

#: The same in a table's cell; a moment may follow.
BRIEF_FATES = {
    "closed": "Nothing, it is canceled",
    "held": "Nothing, it is held",
    "replay": "Repeated under its key, until",
    "replay_paused": "Repeated under its key once resumed, until",
    "resend": "Sent again, from",
    "assume_sent": "Treated as sent, from",
}

#: By whether a provider tells later what became of its messages.
EVIDENCE = {
    True: "The provider may still tell by webhook what became of it; that settles it by itself.",
    False: "This mail server tells nothing later: only an answer that still comes, or you, settle "
    "it.",
}


def fate_words(what: str, may_resolve: bool) -> tuple[str, str]:
    """Of ``FATES``; somebody who may not decide is told that somebody does."""
    if what == "held" and not may_resolve:
        return "Held: it waits for evidence, or for somebody's decision.", ""
    return FATES[what]


def evidence_words(tells: bool, may_resolve: bool) -> str:
    """Of ``EVIDENCE``, likewise."""
    if tells or may_resolve:
        return EVIDENCE[tells]
    return (
        "This mail server tells nothing later: only an answer that still comes, or somebody's "
        "decision, settles it."
    )


# --- before a decision -----------------------------------------------------------------------


def consequences(
    decision: str, *, harmless: int = 0, rows: int = 0, reopens: bool = False
) -> list[str]:
    """What a decision about so many rows may do, as sentences. ``harmless`` of them can't arrive
    twice; ``reopens``: they are of a campaign that was sent."""
    if decision == "treat_as_sent":
        return [
            "They count as sent. Whoever did not get the message does not get it.",
            "This can't be taken back.",
        ]
    told = []
    if harmless < rows:
        told.append("Whoever got the message already gets it twice.")
    if harmless:
        whom = "them" if harmless >= rows else f"{harmless:,} of them"
        told.append(
            f"The provider still recognises {whom} by key and does not deliver twice what it has."
        )
    if reopens:
        told.append("The campaign was sent; it is sending again until these are done.")
    return told
