"""From whom it comes, and by what it is sent; pure."""

from __future__ import annotations

from .facts import Facts
from .findings import Finding
from .places import finding
from .urls import ascii_host

#: Domains of mailbox providers that have others refuse or junk what comes from elsewhere in
#: their name (DMARC policies ``reject`` and ``quarantine``), or filter it themselves.
_NAMES = """
    gmail.com googlemail.com ymail.com rocketmail.com myyahoo.com aim.com msn.com windowslive.com
    icloud.com me.com mac.com web.de mail.com email.com t-online.de freenet.de orange.fr
    wanadoo.fr sfr.fr free.fr laposte.net libero.it virgilio.it alice.it tin.it mail.ru bk.ru
    inbox.ru list.ru ya.ru rambler.ru qq.com foxmail.com 163.com 126.com naver.com daum.net
    hanmail.net comcast.net xfinity.com cox.net charter.net verizon.net att.net sbcglobal.net
    bellsouth.net btinternet.com virginmedia.com sky.com proton.me protonmail.com pm.me zoho.com
    fastmail.com fastmail.fm tutanota.com tutanota.de tuta.com hey.com seznam.cz wp.pl o2.pl
    onet.pl op.pl interia.pl uol.com.br bol.com.br terra.com.br bluewin.ch
"""
FREEMAIL = frozenset(_NAMES.split())
#: Of these any country: yahoo.fr, hotmail.co.uk.
_BRANDS = frozenset({"aol", "gmx", "hotmail", "live", "outlook", "yahoo", "yandex"})
_SECOND_LEVEL = frozenset({"co", "com", "ne", "net", "org"})


def sender(facts: Facts) -> tuple[Finding, ...]:
    """The From address is the account's to use."""
    material = facts.material
    address = material.compiled.from_email if material is not None else facts.account_from
    domain = domain_of(address)
    found = []
    own = {domain_of(facts.account_from), *map(ascii_domain, facts.other_domains)}
    if domain and domain not in own:
        found.append(
            finding(
                "sender.domain",
                "error",
                f"It is from {address}, and {domain} is not a domain of this account",
                f"It sends from {', '.join(sorted(filter(None, own)))}. More domains are added to "
                "the account, when SPF and DKIM are set up for them.",
                field="from_email",
            )
        )
    if is_freemail(domain):
        found.append(
            finding(
                "sender.freemail",
                "warning",
                f"It is from an address at {domain}, whose owner sends from there alone",
                "Mailbox providers refuse or junk what others send in its name (DMARC). Send from "
                "a domain of your own.",
                field="from_email",
            )
        )
    return tuple(found)


def transport(facts: Facts) -> tuple[Finding, ...]:
    """Its transport is there and takes mail."""
    state = facts.transport_state
    if not state.is_known:
        return (
            finding(
                "transport.unknown",
                "warning",
                f"No transport {facts.transport} is configured here; the mail waits until it is",
                "Add it to SENDONCE['TRANSPORTS'], or have the account name another.",
            ),
        )
    if state.problem:
        title = f"Transport {facts.transport} takes no mail now; the mail waits until it does"
        return (finding("transport.paused", "warning", title, state.problem),)
    return ()


def domain_of(address: str) -> str:
    return ascii_domain(address.rpartition("@")[2]) if "@" in address else ""


def ascii_domain(domain: str) -> str:
    """As domains are compared: lower case, A-labels, no dot at its end."""
    plain = domain.strip().rstrip(".").lower()
    return ascii_host(plain) or plain


def is_freemail(domain: str) -> bool:
    """Whether people, not senders of campaigns, have their mailboxes at a domain."""
    if domain in FREEMAIL:
        return True
    brand, *rest = domain.split(".")
    return brand in _BRANDS and (
        len(rest) == 1 or (len(rest) == 2 and rest[0] in _SECOND_LEVEL and len(rest[1]) == 2)
    )
