"""The tables that ``sending.outcomes.classify`` reads; every fact about replies lives here.

Sources: RFC 5321, 3463, 7505, 7504 and 7293; IANA's registry of enhanced codes; the senders'
pages of Gmail, Yahoo, Microsoft, Apple and the houses named in ``words``; the public
rule sets of KumoMTA and Sisimai. Within a table the first rule that matches wins. What a
provider's API says is in ``http_rules``.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..answers import Outcome, Reason, Stage, Verdict
from . import words as say

DEAD = Verdict(Outcome.BOUNCED, Reason.ADDRESS_DEAD)
UNWANTED = Verdict(Outcome.FAILED, Reason.ADDRESS_REFUSED)
POLICY = Verdict(Outcome.FAILED, Reason.POLICY)
CONTENT = Verdict(Outcome.FAILED, Reason.CONTENT)
QUOTA = Verdict(Outcome.FAILED, Reason.QUOTA)
SENDER = Verdict(Outcome.FAILED, Reason.SENDER_REFUSED)
LOGIN = Verdict(Outcome.FAILED, Reason.CREDENTIALS)
PROTOCOL = Verdict(Outcome.FAILED, Reason.UNCLASSIFIED, known=False)
FULL = Verdict(Outcome.RETRY, Reason.MAILBOX_FULL)
LATER = Verdict(Outcome.RETRY, Reason.TRANSIENT)
GREY = Verdict(Outcome.RETRY, Reason.GREYLISTED)
SLOWER = Verdict(Outcome.RETRY, Reason.THROTTLED)


@dataclass(frozen=True, slots=True)
class Rule:
    """``verdict`` for replies of these basic codes (none: any), whose enhanced code begins so
    (``but``: unless it begins so), whose text, as ``reply_words.plain`` makes it, matches, at
    these stages (none: any)."""

    verdict: Verdict
    text: say.Words | None = None
    codes: frozenset[int] = frozenset()
    enhanced: tuple[str, ...] = ()
    but: tuple[str, ...] = ()
    stages: frozenset[Stage] = frozenset()


def first(
    rules: tuple[Rule, ...], stage: Stage, code: int, enhanced: str, text: str
) -> Verdict | None:
    """The verdict of the first rule that fits, or None."""
    for rule in rules:
        if (
            (not rule.codes or code in rule.codes)
            and (not rule.stages or stage in rule.stages)
            and (not rule.enhanced or enhanced.startswith(rule.enhanced))
            and not (rule.but and enhanced.startswith(rule.but))
            and (rule.text is None or rule.text.search(text))
        ):
            return rule.verdict
    return None


def _codes(*codes: int) -> frozenset[int]:
    return frozenset(codes)


AT_RCPT = frozenset({Stage.RCPT})
ANYWHERE_ELSE = frozenset({Stage.DATA, Stage.BODY, Stage.DOT})

_ORANGE = r"\b(?:ofr|lpn|ouk)\w*[_-]"
_ORANGE_NAMES = "ofr|lpn|ouk"
_NETEASE = r"\b(?:hl|rp|mi|dt|wm|eqn?):[a-z]{3}\b"
_NETEASE_NAMES = "hl:|rp:|mi:|dt:|wm:|eq:|eqn:"

#: 2. What a house means by its own words, in a 5xx. Before the enhanced code, because it knows
#: better; only a rule of this table makes a 5.7.x a dead address. Every rule has needles: most
#: replies have none of them, and the table is passed over at once.
HOUSES: tuple[Rule, ...] = (
    # Gmail
    Rule(SLOWER, say.words(r"receiving (?:e?-?mail) (?:at a|too quickly)", needles="receiving")),
    Rule(DEAD, say.words(r"storage and inactive|p=overquotaperm", needles="inactive|quotaperm")),
    # Yahoo, AOL
    Rule(
        DEAD,
        say.words(
            r"\(554\.30\)|mailbox is disabled|user doesn.t have an? \S+ account",
            r"requested mail action aborted, mailbox not found",
            r"delivery error: dd .{0,80}(?:disabled or discontinued|no longer valid)",
            needles="(554.30)|is disabled|user doesn|action aborted, mailbox|delivery error",
        ),
    ),
    Rule(
        POLICY,
        say.words(
            r"\[(?:bl|tss?|ph|gl|ipts|con|urlbl)\d+\]",
            needles="[bl|[ts|[ph|[gl|[ipts|[con|[urlbl",
        ),
    ),
    Rule(CONTENT, say.words(r"headers are not rfc compliant", needles="not rfc compliant")),
    # Yandex says 5.7.1 where others say 5.1.1
    Rule(
        DEAD,
        say.words(r"no such user!", needles="no such user!"),
        enhanced=("5.7.1",),
        stages=AT_RCPT,
    ),
    Rule(UNWANTED, say.words(r"rejection on the target address", needles="rejection on the")),
    # Microsoft
    Rule(
        POLICY,
        say.words(
            r"\(s(?:3140|3150|775|8\d\d)\)|\b(?:sc|ou|dy|co)-\d{3}\b",
            r"content filter agent quarantined",
            needles="(s3|(s7|(s8|sc-|ou-|dy-|co-|quarantined",
        ),
    ),
    Rule(
        UNWANTED,
        say.words(
            r"resolver\.rst\.|rejectmessage|transport\.rules|notauthorized|authrequired",
            r"organi[sz]ation.{0,20}(?:polic|rule)|only accepts (?:e?mail|messages) from",
            r"(?:your|sender).{0,40}(?:permission|allowed) to send (?:to|messages|email)",
            r"blocked by .{0,60}customer block list|- gcdp\b",
            needles="resolver.rst.|rejectmessage|transport.rules|notauthorized|authrequired"
            "|organi|only accepts|to send |customer block list|gcdp",
        ),
        enhanced=("5.7.",),
    ),
    # Apple
    Rule(POLICY, say.words(r"\[(?:cs|hm|hme)\d+\]", needles="[cs|[hm")),
    # Orange, La Poste: the last three digits of "LPN007_510" say what it is
    Rule(FULL, say.words(_ORANGE + r"417\b", needles=_ORANGE_NAMES)),
    Rule(DEAD, say.words(_ORANGE + r"(?:416|420)\b|lpn416\b", needles=_ORANGE_NAMES)),
    Rule(UNWANTED, say.words(_ORANGE + r"426\b", needles=_ORANGE_NAMES)),
    Rule(SENDER, say.words(_ORANGE + r"(?:403|405|415|421)\b", needles=_ORANGE_NAMES)),
    Rule(CONTENT, say.words(_ORANGE + r"514\b", needles=_ORANGE_NAMES)),
    Rule(POLICY, say.words(_ORANGE + r"\d{3}\b", needles=_ORANGE_NAMES)),
    # T-Online: "IP=192.0.2.1 - None/bad reputation", and whatever else is wrong with the host
    Rule(POLICY, say.words(r"ip=[\da-f.:]+ - ", needles="ip=")),
    # NetEase: HL connection, RP recipients, MI sender, DT content
    Rule(POLICY, say.words(_NETEASE, needles=_NETEASE_NAMES)),
)

#: One of these is in every text that a rule of ``HOUSES`` fits.
HOUSE_NEEDLES = tuple(sorted({n for rule in HOUSES if rule.text for n in rule.text.needles}))

#: What anybody's words decide before the enhanced code.
EVERYONE: tuple[Rule, ...] = (
    Rule(UNWANTED, say.UNWANTED, but=("5.2.2",)),
    Rule(LATER, say.TOO_MANY_RECIPIENTS),
    Rule(QUOTA, say.SENDING_QUOTA),
    Rule(GREY, say.words(r"gr[ea]y-?list", needles="greyl|grayl|grey-|gray-"), but=("5.7.",)),
)

#: 3. The enhanced code of a 5xx (RFC 3463 and the IANA registry). Any other 5.7.x is policy.
ENHANCED: dict[str, Verdict] = {
    "5.1.1": DEAD,  # no such mailbox
    "5.1.2": DEAD,  # no such domain
    "5.1.3": DEAD,  # bad address syntax
    "5.1.4": DEAD,  # ambiguous
    "5.1.6": DEAD,  # moved, no forwarding address
    "5.1.7": SENDER,
    "5.1.8": SENDER,
    "5.1.10": DEAD,  # null MX (RFC 7505); Exchange: recipient not found
    "5.1.90": QUOTA,  # Exchange Online: recipients a day
    "5.1.351": DEAD,  # Exchange Online: the remote server knows no such recipient
    "5.2.1": DEAD,  # disabled
    "5.2.2": FULL,
    "5.2.3": CONTENT,  # longer than this mailbox takes
    "5.2.4": UNWANTED,  # mailing-list expansion
    "5.2.14": UNWANTED,  # Exchange: their forwarding is misconfigured
    "5.2.121": SLOWER,  # Exchange Online: this recipient's messages an hour, from us
    "5.2.122": SLOWER,  # ... and from everybody
    "5.2.252": SENDER,  # Exchange Online: send-as denied
    "5.3.1": LATER,  # their disk is full
    "5.3.4": CONTENT,  # longer than their system takes
    "5.4.5": QUOTA,
    "5.4.6": UNWANTED,  # a loop on their side
    "5.4.14": UNWANTED,
    "5.5.3": LATER,  # too many recipients
    "5.6.0": CONTENT,
    "5.6.1": CONTENT,
    "5.6.2": CONTENT,
    "5.6.3": CONTENT,
    "5.6.6": UNWANTED,
    "5.6.7": UNWANTED,  # the address needs SMTPUTF8 and this road has none
    "5.6.9": UNWANTED,
    "5.6.11": CONTENT,  # Exchange Online: bare line feeds
    "5.7.8": LOGIN,
    "5.7.12": UNWANTED,  # Exchange: restricted to senders inside
    "5.7.13": LOGIN,  # our own account at the relay is disabled
    "5.7.17": UNWANTED,  # the mailbox changed its owner (RFC 7293)
    "5.7.18": UNWANTED,  # the domain did
    "5.7.504": UNWANTED,  # Exchange Online: this recipient is banned there
    "5.7.505": UNWANTED,
    "5.7.57": LOGIN,  # Exchange Online: not authenticated
    "5.7.60": SENDER,  # Exchange Online: may not send as this sender
    "5.7.124": UNWANTED,
    "5.7.129": UNWANTED,
    "5.7.133": UNWANTED,
    "5.7.134": UNWANTED,
    "5.7.135": UNWANTED,
    "5.7.136": UNWANTED,
    "5.7.232": QUOTA,  # Exchange Online: the tenant's external limit
    "5.7.233": QUOTA,
}

#: Read before the code of a dead address is believed, and before the basic code: what speaks of us,
#: of our sender address, of a mailbox that is full or locked for a time. Where one of these stands,
#: nobody is suppressed.
DOUBTS: tuple[Rule, ...] = (
    Rule(POLICY, say.ABOUT_US),
    Rule(POLICY, say.ABOUT_IP),
    Rule(SENDER, say.ABOUT_SENDER, but=("5.6.",)),
    Rule(POLICY, say.RELAYING),
    Rule(UNWANTED, say.LOCKED),
    Rule(UNWANTED, say.FOR_NOW, stages=AT_RCPT, but=("5.2.2",)),
    Rule(CONTENT, say.OVERSIZE),
    Rule(FULL, say.MAILBOX_FULL, but=("5.3.", "5.6.")),
)

#: 4. The basic code of a 5xx with the words beside it. What none fits: see ``outcomes._unread``.
BASIC: tuple[Rule, ...] = (
    # Microsoft's and others' words for a dead address under codes that say little
    Rule(DEAD, say.words(r"recipient address rejected: access denied"), enhanced=("5.4.1",)),
    Rule(DEAD, say.words(r"mailbox unavailable"), enhanced=("5.5.0",)),
    Rule(DEAD, say.words(r"exist|not found|no such|unknown"), enhanced=("5.4.4", "5.4.310")),
    Rule(DEAD, codes=_codes(556)),
    Rule(SLOWER, say.THROTTLED),
    Rule(DEAD, say.words(r"mailbox name (?:not allowed|invalid)"), stages=AT_RCPT),
    # A refusal for policy may name a mailbox and the reverse; what would suppress somebody for
    # our own bad name has to lose.
    Rule(POLICY, say.RELAYING),
    Rule(POLICY, say.BLOCKED),
    Rule(DEAD, say.NO_SUCH_USER),
    Rule(DEAD, say.DISABLED),
    Rule(
        DEAD, say.words(r"(?:mailbox|user|account|recipient) (?:is )?unavailable"), stages=AT_RCPT
    ),
    Rule(DEAD, say.words(r"(?:address|recipient)s? (?:address )?rejected"), stages=AT_RCPT),
    Rule(DEAD, say.words(r"user not local"), stages=AT_RCPT, codes=_codes(551)),
    Rule(CONTENT, say.CONTENT, stages=ANYWHERE_ELSE),
    Rule(FULL, codes=_codes(552)),
    Rule(PROTOCOL, say.words(r"syntax error|unrecogni[sz]ed|unimplemented|not implemented")),
    Rule(PROTOCOL, codes=_codes(500, 502, 504, 555)),
)

#: A 4xx: always tried again; the reason says how. What none fits is transient.
DEFERRED: tuple[Rule, ...] = (
    Rule(LATER, enhanced=("4.5.3",)),
    Rule(LATER, say.TOO_MANY_RECIPIENTS),
    Rule(GREY, say.words(r"gr[ea]y-?list|postgrey|灰名单")),
    Rule(FULL, enhanced=("4.2.2",)),
    # Gmail 4.7.23-32, Outlook 4.7.650 and RP-00x, Yahoo TSS04, NetEase "HL:REP"
    Rule(
        SLOWER,
        say.words(
            r"\[tss?\d+\]|\brp-\d{3}\b|\bs775\b|" + _NETEASE,
            needles="[ts|rp-|s775|" + _NETEASE_NAMES,
        ),
    ),
    Rule(SLOWER, say.THROTTLED),
    Rule(GREY, say.GREYLISTED),
    Rule(SLOWER, enhanced=("4.7.",), codes=_codes(421, 450, 451, 452, 550, 554)),
    Rule(FULL, say.MAILBOX_FULL, but=("4.3.",)),
    Rule(FULL, codes=_codes(422)),
    # The server's disk and no mailbox (RFC 5321 4.2.3).
    Rule(LATER, say.words(r"insufficient system (?:storage|resources)|\bdisk\b")),
    Rule(FULL, codes=_codes(452), but=("4.1.", "4.3.", "4.4.", "4.2.1", "4.9.")),
    Rule(
        SLOWER,
        say.words(
            r"complaint|blocked|\brl0\d+|" + _ORANGE + r"\d{3}\b",
            needles="complaint|blocked|rl0|" + _ORANGE_NAMES,
        ),
    ),
    Rule(SLOWER, say.ABOUT_US),
    Rule(SLOWER, say.ABOUT_IP),
)

#: Basic codes of a 4xx that standards define (RFC 5321, 4954, 3207, 1985).
TRANSIENT_CODES = _codes(421, 432, 450, 451, 452, 454, 455, 458, 459)
