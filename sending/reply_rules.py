"""The tables that ``sending.outcomes.classify`` reads; every fact about replies lives here.

Sources: RFC 5321, 3463, 7505 and 7504; the senders' pages of Gmail, Yahoo, Microsoft and Apple;
the public rule sets of KumoMTA and Sisimai. Within a table the first rule that matches wins.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from .answers import Outcome, Reason, Stage, Verdict

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
    (``but``: unless it begins so), whose text matches, at these stages (none: any)."""

    verdict: Verdict
    text: re.Pattern[str] | None = None
    codes: frozenset[int] = frozenset()
    enhanced: tuple[str, ...] = ()
    but: tuple[str, ...] = ()
    stages: frozenset[Stage] = frozenset()

    def matches(self, stage: Stage, code: int, enhanced: str, text: str) -> bool:
        return (
            (not self.codes or code in self.codes)
            and (not self.stages or stage in self.stages)
            and (not self.enhanced or enhanced.startswith(self.enhanced))
            and not (self.but and enhanced.startswith(self.but))
            and (self.text is None or self.text.search(text) is not None)
        )


def _re(*alternatives: str) -> re.Pattern[str]:
    return re.compile("|".join(alternatives), re.IGNORECASE)


def _codes(*codes: int) -> frozenset[int]:
    return frozenset(codes)


AT_RCPT = frozenset({Stage.RCPT})

SENDING_QUOTA = _re(
    r"(?:daily|hourly|user|relay|account)\b.{0,30}\b(?:sending|message|submission) (?:quota|limit)",
    r"(?:sending|submission) (?:quota|limit)\b.{0,20}exceeded",
    r"SubmissionQuotaExceeded|exceeded (?:its|the|your) (?:max\w* )?(?:emails?|messages?) per hour",
)

NO_SUCH_USER = _re(
    r"(?:user|recipient|mailbox|account|address|alias)(?: is| was)? ?(?:unknown|not found)",
    r"(?:user|recipient|mailbox|account|address|alias).{0,60}(?:does not|doesn.t|not) exist",
    r"(?:unknown|invalid|no such|illegal|non-?existent)(?: or \w+)? "
    r"(?:local )?(?:user|recipient|mailbox|account|address|alias|person)",
    r"no (?:mailbox|user|account)(?: here)?(?: by that name| with that name)",
    r"(?:doesn.t|does not) have an? .{0,40}account|unrouteable address|RecipientNotFound",
    r"RecNotFound|not a (?:known|valid) (?:user|recipient|mailbox)",
)

DISABLED = _re(
    r"(?:mailbox|account|user|address|recipient).{0,60}"
    r"(?:disabled|deactivated|inactive|suspended|closed|discontinued|no longer (?:valid|active))",
    r"(?:disabled|deactivated|inactive|suspended) (?:mailbox|account|user|address|recipient)",
)

MAILBOX_FULL = _re(
    r"(?:mailbox|inbox|account|user|recipient).{0,40}(?:\bfull\b|over ?quota|out of storage)",
    r"(?:over|exceed\w*|insufficient) (?:the |its |user |disk |mail(?:box)? |storage )*"
    r"(?:quota|allocation|storage (?:limit|space)|size limit)|quota (?:exceeded|violation)",
    r"mailbox size limit exceeded|overquota|storage quota",
)

BLOCKED = _re(
    r"\bspam\b|spam(?:haus|cop|my| score| content|my)|unsolicited|\bUBE\b|\bUCE\b",
    r"\b(?:block|black|deny)[- ]?list|dns-?bl|\brbl\b|\b(?:zen|sbl|xbl|pbl|bl)\.\w+\.\w+",
    r"\bblocked\b|banned|barracuda|reputation|cloudmark|\bsenderscore\b",
    r"\b(?:dmarc|spf|dkim|arc)\b|unauthenticated (?:mail|email|sender)|reverse dns|\bptr\b|rdns",
    # "your account is suspended" speaks of us
    r"\byour (?:account|ip|server|host|domain|message)\b",
    r"polic(?:y|ies)|administrative prohibition|prohibited|not (?:allowed|permitted|authorized)",
    r"access denied|relay(?:ing)?(?: access)? (?:denied|not permitted|prohibited)|unable to relay",
    r"(?:we do not|does not|cannot) relay|rcpthosts|authentication (?:is )?required",
    r"(?:bad|invalid) helo|\bhelo\b.{0,40}(?:reject|invalid)|refused by local|rejected for",
    r"too many (?:connections|messages|errors)|virus|malware|phish|suspicious|fraud",
)

SENDER_WORDS = _re(
    r"(?:sender|from)(?: address| domain)?:? .{0,80}"
    r"(?:reject|refus|denied|invalid|unknown|not exist|verif)",
    r"sender verif\w+|(?:invalid|unknown|unverified|bad|unresolvable) sender|callout",
    r"domain of sender|sending domain|return[- ]path",
)

#: 2. A provider's own pattern in a 5xx. Before the enhanced code, because it knows better.
PATTERNS: tuple[Rule, ...] = (
    # Gmail
    Rule(SLOWER, _re(r"receiving mail (?:at a rate|too quickly)")),
    Rule(DEAD, _re(r"out of storage and inactive|p=OverQuotaPerm")),
    # Yahoo, AOL
    Rule(DEAD, _re(r"\(554\.30\)|mailbox is disabled|user doesn.t have an? \S+ account")),
    Rule(DEAD, _re(r"requested mail action aborted, mailbox not found")),
    Rule(POLICY, _re(r"\[(?:BL|TSS?|PH|GL|IPTS|CON)\d+\]")),
    # Microsoft
    Rule(POLICY, _re(r"\(S(?:3140|3150|8\d\d)\)", r"\b(?:SC|OU|DY|CO)-\d{3}\b")),
    Rule(DEAD, _re(r"recipient address rejected: access denied"), enhanced=("5.4.1",)),
    Rule(DEAD, _re(r"mailbox unavailable"), enhanced=("5.5.0",)),
    Rule(
        UNWANTED,
        _re(
            r"RESOLVER\.RST\.|RejectMessage|TRANSPORT\.RULES|NotAuthorized|AuthRequired",
            r"organi[sz]ation.{0,20}(?:polic|rule)|only accepts (?:e?mail|messages) from",
            r"(?:your|sender).{0,40}(?:permission|allowed) to send (?:to|messages|email)",
        ),
        enhanced=("5.7.",),
    ),
    # Apple
    Rule(POLICY, _re(r"\[(?:CS|HM|HME)\d+\]")),
    # everyone
    Rule(QUOTA, SENDING_QUOTA),
    Rule(LATER, _re(r"too many recipients"), codes=_codes(452, 550, 552, 554)),
)

#: 3. The enhanced code of a 5xx (RFC 3463 and the IANA registry). Any other 5.7.x is policy.
ENHANCED: dict[str, Verdict] = {
    "5.1.1": DEAD,  # no such mailbox
    "5.1.2": DEAD,  # no such domain
    "5.1.3": DEAD,  # bad address syntax
    "5.1.6": DEAD,  # moved, no forwarding address
    "5.1.7": SENDER,
    "5.1.8": SENDER,
    "5.1.10": DEAD,  # null MX (RFC 7505); Exchange: recipient not found
    "5.1.351": DEAD,  # Exchange Online: the remote server knows no such recipient
    "5.2.1": DEAD,  # disabled
    "5.2.2": FULL,
    "5.2.3": CONTENT,  # longer than this mailbox takes
    "5.2.4": UNWANTED,  # mailing-list expansion
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
    "5.7.8": LOGIN,
    "5.7.12": UNWANTED,  # Exchange: restricted to senders inside
    "5.7.17": UNWANTED,  # the mailbox changed its owner (RFC 7293)
    "5.7.124": UNWANTED,
    "5.7.129": UNWANTED,
    "5.7.133": UNWANTED,
    "5.7.134": UNWANTED,
    "5.7.135": UNWANTED,
    "5.7.136": UNWANTED,
    "5.7.232": QUOTA,  # Exchange Online: the tenant's external limit
    "5.7.233": QUOTA,
}

#: 4. The basic code of a 5xx with the words beside it. What none fits: dead at RCPT, else failed.
BASIC: tuple[Rule, ...] = (
    Rule(DEAD, codes=_codes(556)),
    Rule(CONTENT, _re(r"(?:message|mail|size).{0,40}(?:size|too (?:large|big|long)|exceeds)")),
    # A message that is refused as spam may name a mailbox and the reverse; what would suppress
    # somebody for our own bad name has to lose.
    Rule(DEAD, _re(r"mailbox name (?:not allowed|invalid)"), stages=AT_RCPT),
    Rule(SENDER, SENDER_WORDS),
    Rule(POLICY, BLOCKED),
    Rule(DEAD, NO_SUCH_USER),
    Rule(DEAD, DISABLED),
    Rule(FULL, MAILBOX_FULL),
    Rule(CONTENT, _re(r"\b(?:headers?|content|mime|attachments?)\b|line too long|bare (?:lf|cr)")),
    Rule(FULL, codes=_codes(552)),
    Rule(PROTOCOL, codes=_codes(500, 502, 504, 555)),
)

#: A 4xx: always tried again; the reason says how. What none fits is transient.
DEFERRED: tuple[Rule, ...] = (
    Rule(LATER, enhanced=("4.5.3",)),
    Rule(LATER, _re(r"too many recipients")),
    Rule(GREY, _re(r"gr[ea]y-?list|try again (?:in|after) \d+ ?(?:s|m|sec|min)|first-time sender")),
    Rule(FULL, enhanced=("4.2.2",)),
    Rule(FULL, MAILBOX_FULL, but=("4.7.", "4.3.")),
    Rule(FULL, codes=_codes(452), but=("4.1.", "4.3.", "4.4.", "4.7.", "4.2.1")),
    # Gmail 4.7.23-32, Outlook 4.7.650 and RP-00x, Yahoo TSS04
    Rule(SLOWER, enhanced=("4.7.",), codes=_codes(421, 450, 451, 452)),
    Rule(SLOWER, _re(r"\[TSS?\d+\]|\bRP-\d{3}\b|\bS775\b", r"unusual rate|temporarily deferred")),
    Rule(SLOWER, _re(r"rate[- ]limit|throttl|too many (?:conn|mess)")),
    Rule(SLOWER, _re(r"receiving mail (?:at a rate|too quickly)")),
)

#: HTTP statuses that speak for themselves (RFC 9110 and the providers' documents).
HTTP_STATUS: dict[int, Verdict] = {
    401: Verdict(Outcome.RELAY_DOWN, Reason.CREDENTIALS),
    402: QUOTA,
    403: POLICY,
    408: LATER,
    # A concurrent request under one key, or other content under it: not known to be refused.
    409: Verdict(Outcome.IN_DOUBT, Reason.UNREADABLE),
    413: CONTENT,
    425: LATER,
    429: SLOWER,
}

#: What a provider says in any other 4xx, or anymail of a recipient. The sender first, and only a
#: recipient that is named as such is dead: an "invalid address" may well be our own.
HTTP_REFUSED: tuple[tuple[re.Pattern[str], Verdict], ...] = (
    (_re(r"recipient invalid"), DEAD),
    (_re(r"recipient rejected|suppress(?:ed|ion)|inactive ?recipient"), UNWANTED),
    (_re(r"(?:api|auth)\w*[ _-]?(?:key|token)|credential|unauthori[sz]ed"), LOGIN),
    (_re(r"\bsender\b|[`'\"]from\b|from address|domain.{0,30}(?:verif|regist)"), SENDER),
    (_re(r"invalid (?:recipient|[`'\"]to\b)|(?:recipient|to address).{0,40}(?:is )?invalid"), DEAD),
    (_re(r"quota|credits?\b|plan limit|monthly limit"), QUOTA),
    (_re(r"too large|size limit|attachment"), CONTENT),
)
