"""Whose mailboxes a domain's are: domains that share mail servers share a limit.

Pure but for ``SENDONCE["DOMAIN_GROUPS"]``, which comes before the map here. By name and not by
MX record: a look-up per recipient would cost more than it brings, and companies that host their
domain with one of these do not share the limits of its private mailboxes.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

import idna

from subscribers.conf import conf


def _brand(name: str, *endings: str) -> set[str]:
    return {f"{name}.{ending}" for ending in " ".join(endings).split()}


#: Provider -> its domains. From the providers' own sign-up and help pages.
PROVIDERS: dict[str, set[str]] = {
    "google": {"gmail.com", "googlemail.com"},
    "yahoo": {
        "aol.com aol.co.uk aol.de aol.fr aol.it aol.es aim.com love.com wow.com games.com "
        "netscape.net netscape.com cs.com compuserve.com verizon.net ymail.com rocketmail.com "
        "myyahoo.com y7mail.com sky.com frontier.com frontiernet.net rogers.com "
        # AT&T's are mailboxes at Yahoo.
        "att.net ameritech.net bellsouth.net currently.com flash.net nvbell.net pacbell.net "
        "prodigy.net sbcglobal.net snet.net swbell.net wans.net"
    },
    "yahoo-japan": {"yahoo.co.jp ymail.ne.jp ybb.ne.jp"},
    "microsoft": {"msn.com passport.com windowslive.com"},
    "apple": {"icloud.com me.com mac.com"},
    "gmx": {"web.de mail.com email.com usa.com post.com europe.com caramail.com"},
    "t-online": {"t-online.de magenta.de"},
    "freenet": {"freenet.de freenetmail.de"},
    "orange": {"orange.fr wanadoo.fr voila.fr"},
    "sfr": {"sfr.fr neuf.fr cegetel.net club-internet.fr 9online.fr numericable.fr noos.fr"},
    "bouygues": {"bbox.fr"},
    "free": {"free.fr aliceadsl.fr libertysurf.fr"},
    "laposte": {"laposte.net"},
    "libero": {"libero.it iol.it inwind.it blu.it giallo.it virgilio.it"},
    "telecom-italia": {"tim.it alice.it tin.it"},
    "mail.ru": {"mail.ru bk.ru inbox.ru list.ru internet.ru xmail.ru vk.com mail.ua"},
    "yandex": {"ya.ru narod.ru"},
    "rambler": {"rambler.ru lenta.ru autorambler.ru myrambler.ru ro.ru r0.ru"},
    "tencent": {"qq.com foxmail.com vip.qq.com"},
    "netease": {"163.com 126.com yeah.net vip.163.com vip.126.com 188.com"},
    "sina": {"sina.com sina.cn vip.sina.com"},
    "naver": {"naver.com"},
    "daum": {"daum.net hanmail.net kakao.com"},
    "comcast": {"comcast.net xfinity.com"},
    "spectrum": {
        "charter.net rr.com twc.com brighthouse.com bresnan.net roadrunner.com spectrum.net"
    },
    "cox": {"cox.net"},
    "bt": {"btinternet.com btopenworld.com talk21.com"},
    "virgin": {"virginmedia.com virgin.net ntlworld.com blueyonder.co.uk"},
    "proton": {"proton.me protonmail.com protonmail.ch pm.me"},
    "zoho": {"zoho.com zohomail.com zoho.eu zohomail.eu zoho.in zohomail.in"},
    "fastmail": {"fastmail.com fastmail.fm fastmail.net sent.com messagingengine.com"},
    "tutanota": {"tutanota.com tutanota.de tutamail.com tuta.com tuta.io keemail.me"},
    "seznam": {"seznam.cz email.cz post.cz spoluzaci.cz"},
    "wp": {"wp.pl o2.pl tlen.pl go2.pl"},
    "onet": {"onet.pl op.pl poczta.onet.pl onet.eu vp.pl autograf.pl buziaczek.pl"},
    "interia": {"interia.pl interia.eu poczta.fm intmail.pl"},
    "uol": {"uol.com.br bol.com.br"},
    "terra": {"terra.com.br"},
    "telenet": {"telenet.be pandora.be"},
    "ziggo": {"ziggo.nl home.nl upcmail.nl chello.nl casema.nl quicknet.nl zinders.nl"},
    "kpn": {"kpnmail.nl planet.nl hetnet.nl kpnplanet.nl xs4all.nl telfort.nl"},
    "bluewin": {"bluewin.ch"},
}

_BRANDS: dict[str, set[str]] = {
    "yahoo": _brand(
        "yahoo",
        "com at be ca ch cl cz de dk es fi fr gr hu ie in it nl no pl pt ro se sk",
        "co.id co.il co.in co.kr co.nz co.th co.uk co.za",
        "com.ar com.au com.br com.co com.cn com.hk com.mx com.my com.ph com.pe com.sg com.tr",
        "com.tw com.ve com.vn",
    ),
    "microsoft": _brand(
        "hotmail",
        "com at be ca ch cl cz de dk es fi fr gr hu ie it jp nl no ph pl pt rs ru se sg sk",
        "co.id co.il co.in co.jp co.kr co.nz co.th co.uk co.za",
        "com.ar com.au com.br com.hk com.mx com.my com.tr com.tw com.vn",
    )
    | _brand(
        "live",
        "com at be ca ch cl cn de dk fi fr hk ie in it jp nl no ph pt ru se",
        "co.kr co.uk co.za com.ar com.au com.mx com.my com.ph com.pt com.sg",
    )
    | _brand(
        "outlook",
        "com at be cl cz de dk es fr hu ie in it jp kr lv my ph pt sa sg sk",
        "co.id co.il co.nz co.th com.ar com.au com.br com.gr com.pe com.tr com.vn",
    ),
    "gmx": _brand("gmx", "de net at ch com org info eu biz us fr es it co.uk ie pt li"),
    "yandex": _brand("yandex", "ru com ua by kz com.tr"),
}


def _by_domain() -> dict[str, str]:
    found: dict[str, str] = {}
    for source in (PROVIDERS, _BRANDS):
        for provider, lists in source.items():
            found.update((domain, provider) for words in lists for domain in words.split())
    return found


BY_DOMAIN: dict[str, str] = _by_domain()


def group(domain: str) -> str:
    """The provider of a domain's mailboxes, or the domain itself in its ASCII form.

    ``domain`` in any case, script and with or without a dot at its end; text that is no domain
    comes back lowered. ``SENDONCE["DOMAIN_GROUPS"]`` (``{domain: group}``) comes first.
    """
    return _group(domain, _own(conf.DOMAIN_GROUPS))


class _Own(dict[str, str]):
    """``DOMAIN_GROUPS`` with its domains as they are compared; hashed by identity."""

    __hash__ = object.__hash__  # type: ignore[assignment]


_last: tuple[Mapping[str, str] | None, _Own] = (None, _Own())


def _own(given: Mapping[str, str]) -> _Own:
    global _last
    if _last[0] is not given:
        _last = (given, _Own({ascii_domain(d): name.strip().lower() for d, name in given.items()}))
    return _last[1]


@lru_cache(maxsize=20_000)
def _group(domain: str, own: _Own) -> str:
    plain = ascii_domain(domain)
    return own.get(plain) or BY_DOMAIN.get(plain, plain)


def ascii_domain(domain: str) -> str:
    """A domain as domains are compared: lower case, A-labels (IDNA 2008), no dot at its end."""
    plain = domain.strip().rstrip(".。．").lower()
    if plain.isascii():
        return plain
    try:
        return idna.encode(plain, uts46=True).decode("ascii").rstrip(".")
    except (idna.IDNAError, UnicodeError):
        return plain
