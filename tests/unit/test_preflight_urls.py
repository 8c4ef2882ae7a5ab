"""Which URLs lead nowhere from a mail."""

from __future__ import annotations

import time

import pytest

from campaigns.preflight.urls import judge

FINE = [
    "https://example.org",
    "HTTPS://EXAMPLE.ORG/a?b=c#d",
    "https://example.org:8443/",
    "https://bücher.example/",
    "https://xn--bcher-kva.example/",
    "https://i\u2764.ws/",
    "https://\U0001f4a9.la/",
    "https://日本。jp/",
    "https://a_b.example.org/",
    "https://example.org./",
    "https://[2606:4700::1111]/",
    "https://1.1.1.1/",
    "https://example.org/\n  more",
    "https://{{ shop }}.example.org/",
    "https://{{ shop }}/x",
    "https://example.org/{% if a %}b{% endif %}",
    "{{ url }}",
    "{{ web_url }}#top",
    "{{ base }}/x",
    "{% if a %}https://a.example.org{% else %}https://b.example.org{% endif %}",
    "http{% if a %}s{% endif %}://example.org",
    "mailto:a@example.org",
    "mailto:a%40example.org?subject=x",
    "mailto:{{ email }}",
    "mailto:?subject=Look&body=here",
    "tel:+123",
    "sms:+123",
    "whatsapp://send?text=x",
    "#below",
    "#bel%6Fw",
    "#top",
    "#{{ place }}",
]
FAULTS = [
    ("", "empty"),
    (" \n", "empty"),
    ("#", "placeholder"),
    ("#nowhere", "target"),
    ("/page", "relative"),
    ("page.html", "relative"),
    ("../x", "relative"),
    ("?a=b", "relative"),
    ("//example.org/x", "relative"),
    ("www.example.org", "relative"),
    ("example.org/x", "relative"),
    ("example.org:8080/x", "relative"),
    ("www.{{ shop }}.org", "relative"),
    ("/{{ page }}", "relative"),
    ("javascript:alert(1)", "scheme"),
    ("java\nscript:alert(1)", "scheme"),
    (" JavaScript:x", "scheme"),
    ("data:text/html,x", "scheme"),
    ("file:///etc/hosts", "scheme"),
    ("{% if a %}javascript:x{% endif %}", "scheme"),
    ("mailto:", "mailto"),
    ("mailto:somebody", "mailto"),
    ("https://", "malformed"),
    ("https:///x", "malformed"),
    ("https:x", "malformed"),
    ("https://exa mple.org", "malformed"),
    ("https://[::1", "malformed"),
    ("https://example.org:port/", "malformed"),
    ("https://example.org:99999/", "malformed"),
    ("https://-a..b/", "malformed"),
    ("https://example.org" + "a" * 64 + ".org/", "malformed"),
    ("https://a b\u2764.org/", "malformed"),
    ("https://" + "\u2764" * 300 + ".org/", "malformed"),
    ("https://a\u0378.org/", "host"),
    ("https://\u2764.localhost/", "local"),
    ("http://localhost", "local"),
    ("https://localhost:8000/x", "local"),
    ("https://a.localhost/", "local"),
    ("https://intranet/", "local"),
    ("https://printer.local/", "local"),
    ("https://nas.home.arpa/", "local"),
    ("https://build.internal/", "local"),
    ("https://127.0.0.1/", "local"),
    ("https://127.1/", "local"),
    ("https://2130706433/", "local"),
    ("https://0x7f.0.0.1/", "local"),
    ("https://0177.0.0.1/", "local"),
    ("https://10.1.2.3/", "local"),
    ("https://172.16.0.1/", "local"),
    ("https://192.168.0.1/", "local"),
    ("https://169.254.169.254/", "local"),
    ("https://0.0.0.0/", "local"),
    ("https://[::1]/", "local"),
    ("https://[fe80::1%25eth0]/", "local"),
    ("https://[fd00::1]/", "local"),
    ("https://[::ffff:10.0.0.1]/", "local"),
    ("https://user:pw@localhost/", "local"),
    ("https:\\\\localhost\\x", "local"),
    ("{% if a %}https://localhost{% else %}https://b.example.org{% endif %}", "local"),
    ("http://example.org/", "http"),
    ("{% if a %}https://a.example.org{% else %}http://b.example.org{% endif %}", "http"),
]


@pytest.mark.parametrize("url", FINE)
def test_nothing_is_wrong_with(url: str) -> None:
    assert judge(url, targets={"below"}) is None


@pytest.mark.parametrize(("url", "fault"), FAULTS)
def test_what_is_wrong_with(url: str, fault: str) -> None:
    verdict = judge(url, targets={"below"})
    assert verdict is not None
    assert verdict.fault == fault


def test_a_place_in_the_page_is_no_address_of_an_image() -> None:
    verdict = judge("#below")
    assert verdict is not None
    assert verdict.fault == "relative"


@pytest.mark.parametrize(
    "url",
    [
        "https://" + "a." * 200_000 + "org",
        "https://" + "9" * 500_000,
        "0x" * 300_000,
        "http://" + "[" * 500_000,
        "a" * 500_000 + ":",
        "{{ a }}" * 5_000,
        "www." * 100_000,
        "-" * 500_000 + ".org",
    ],
    ids=["labels", "digits", "hex", "brackets", "scheme", "tags", "www", "dashes"],
)
def test_hostile_urls_are_judged_at_once(url: str) -> None:
    begun = time.process_time()
    judge(url, targets=set())
    assert time.process_time() - begun < 1.0
