"""Which domains share a limit."""

from __future__ import annotations

import pytest
from django.test import override_settings

from sending.limits.mailbox_providers import BY_DOMAIN, group


@pytest.mark.parametrize(
    ("domain", "provider"),
    [
        ("gmail.com", "google"),
        ("googlemail.com", "google"),
        ("GMail.COM", "google"),
        ("gmail.com.", "google"),
        (" gmail.com ", "google"),
        ("yahoo.com", "yahoo"),
        ("yahoo.co.uk", "yahoo"),
        ("yahoo.com.br", "yahoo"),
        ("yahoo.de", "yahoo"),
        ("ymail.com", "yahoo"),
        ("rocketmail.com", "yahoo"),
        ("aol.com", "yahoo"),
        ("att.net", "yahoo"),
        ("sbcglobal.net", "yahoo"),
        ("yahoo.co.jp", "yahoo-japan"),
        ("outlook.com", "microsoft"),
        ("hotmail.com", "microsoft"),
        ("hotmail.co.uk", "microsoft"),
        ("live.nl", "microsoft"),
        ("msn.com", "microsoft"),
        ("icloud.com", "apple"),
        ("me.com", "apple"),
        ("mac.com", "apple"),
        ("gmx.de", "gmx"),
        ("gmx.at", "gmx"),
        ("web.de", "gmx"),
        ("mail.com", "gmx"),
        ("t-online.de", "t-online"),
        ("orange.fr", "orange"),
        ("wanadoo.fr", "orange"),
        ("laposte.net", "laposte"),
        ("free.fr", "free"),
        ("libero.it", "libero"),
        ("mail.ru", "mail.ru"),
        ("bk.ru", "mail.ru"),
        ("yandex.ru", "yandex"),
        ("ya.ru", "yandex"),
        ("qq.com", "tencent"),
        ("foxmail.com", "tencent"),
        ("163.com", "netease"),
        ("126.com", "netease"),
        ("yeah.net", "netease"),
        ("comcast.net", "comcast"),
        ("proton.me", "proton"),
        ("protonmail.com", "proton"),
        ("zoho.com", "zoho"),
        ("example.org", "example.org"),
        ("Example.ORG.", "example.org"),
        ("mail.gmail.com", "mail.gmail.com"),
        ("notgmail.com", "notgmail.com"),
        ("bücher.example", "xn--bcher-kva.example"),
        ("BÜCHER.example。", "xn--bcher-kva.example"),
        ("例え.テスト", "xn--r8jz45g.xn--zckzah"),
        ("", ""),
        ("not a domain", "not a domain"),
        ("a..b", "a..b"),
        ("\udcff.example", "\udcff.example"),
    ],
)
def test_group(domain: str, provider: str) -> None:
    assert group(domain) == provider


def test_no_domain_is_of_two_providers_or_written_wrongly() -> None:
    assert all(domain == domain.strip().lower() and "." in domain for domain in BY_DOMAIN)
    assert len(BY_DOMAIN) > 250


def test_the_settings_come_first_and_are_read_anew() -> None:
    assert group("shop.example") == "shop.example"
    ours = {"Shop.Example.": "Ours", "bücher.example": "ours", "gmail.com": "gmail-apart"}
    with override_settings(SENDONCE={"DOMAIN_GROUPS": ours}):
        assert group("shop.example") == "ours"
        assert group("xn--bcher-kva.example") == "ours"
        assert group("gmail.com") == "gmail-apart"
        assert group("googlemail.com") == "google"
    assert group("shop.example") == "shop.example"
    assert group("gmail.com") == "google"
