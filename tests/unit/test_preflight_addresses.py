"""Addresses in ``srcset``, in CSS and for Outlook alone."""

from __future__ import annotations

import time

import pytest

from campaigns.preflight import css, link_checks
from campaigns.preflight.addresses import Address
from campaigns.preflight.markup import read

from .preflight_facts import LETTER, codes, facts

LOCAL, HTTP, RELATIVE = "https://localhost/a.png", "http://example.org/a.png", "img/a.png"


def found_in(body: str) -> dict[str, str]:
    known = facts(body=LETTER + body)
    return codes(link_checks.links(known) + link_checks.images(known))


@pytest.mark.parametrize(
    "written",
    [
        '<img src="https://example.org/b.png" alt="" srcset="https://example.org/c.png 1x, {} 2x">',
        "<picture><source srcset='{}'></picture>",
        "<p style=\"background:url('{}')\">x</p>",
        "<p style='background-image:URL( {} )'>x</p>",
        "<style>/* url(x) */ .a{{background:#fff url(\"{}\") no-repeat}}</style>",
        '<table background="{}"><tr><td>x</td></tr></table>',
        '<!--[if gte mso 9]><v:rect><v:fill type="tile" src="{}" /><![endif]-->',
        "<!--[if mso]><td style=\"background:url('{}')\"><![endif]-->",
        '<!--[if mso]><img src="{}" alt=""><![endif]-->',
        "<!--[if mso]><style>td{{background:url({})}}</style><![endif]-->",
    ],
)  # fmt: skip
@pytest.mark.parametrize(
    ("url", "expected"),
    [
        (LOCAL, {"image.local": "error"}),
        (RELATIVE, {"image.relative": "error"}),
        (HTTP, {"image.http": "warning"}),
        ("https://a..b/x.png", {"image.malformed": "error"}),
        ("https://example.org/d.png", {}),
        ("{{ photo }}", {}),
    ],
)
def test_images_elsewhere(written: str, url: str, expected: dict[str, str]) -> None:
    body = written.format(url)
    assert found_in(body) == expected
    if expected:
        (found,) = link_checks.images(facts(body=f"{LETTER}\n{body}"))
        assert (found.field, found.line, found.column) == ("body", 2, body.index(url) + 1)


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ('<!--[if mso]><v:roundrect href="http://example.org/x"><![endif]-->',
         {"link.http": "warning"}),
        ('<!--[if mso]><a href="/x">x</a><![endif]-->', {"link.relative": "error"}),
        ('<!--[if mso]><a href="#">x</a><![endif]-->', {"link.placeholder": "warning"}),
        ('<!--[if !mso]><!--><a href="https://example.org">x</a><!--<![endif]-->', {}),
        ('<!-- <a href="/x">x</a> <img src="x"> -->', {}),
        # Loads nothing, or does so inside the document.
        ("<style>v\\:* {behavior:url(#default#VML)}</style>", {}),
        ('<td background=""></td><p style="background:url()">x</p>', {}),
        ("<style>a{content:'url(x)'}</style>", {}),
        # Without its fonts and style sheets a message is the same.
        ("<style>@import url(//fonts.example.org/a.css);</style>", {"image.relative": "warning"}),
        ("<style>@import 'https://fonts.example.org/a.css';</style>", {}),
        ("<style>@font-face{font-family:A;src:url('a.woff'), url(data:font/x)}</style>",
         {"image.relative": "warning"}),
        ('<p style="background:url(data:image/png;base64,AA)">x</p>', {"image.data": "warning"}),
        # Once, wherever it stands.
        (f'<img src="{RELATIVE}" srcset="{RELATIVE} 2x" alt=""><p style="a:url({RELATIVE})">',
         {"image.relative": "error"}),
    ],
)  # fmt: skip
def test_what_is_said_and_what_is_not(body: str, expected: dict[str, str]) -> None:
    assert found_in(body) == expected
    known = facts(body=LETTER + body)
    assert len(link_checks.links(known) + link_checks.images(known)) == len(expected)


def test_a_finding_says_where_it_is() -> None:
    body = f"{LETTER}<!--[if mso]><p style='background:url({LOCAL})'></p><![endif]-->"
    (found,) = link_checks.images(facts(body=body))
    assert found.title == f"The image {LOCAL} in CSS for Outlook can't be reached by anybody else"


def test_what_one_comment_opens_another_closes() -> None:
    page = read(
        "<!--[if mso]><table><tr><td><v:rect><v:fill src=a /><![endif]-->x"
        "<!--[if mso]></v:rect></td></tr></table><a href='{{ b }}'><![endif]-->"
    )
    assert page.addresses == [
        Address("a", "for Outlook"),
        Address("{{ b }}", "for Outlook", is_link=True),
    ]


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("a.png, b.png 2x", ["a.png", "b.png"]),
        ("a.png 100w,b.png 200w", ["a.png", "b.png"]),
        (" ,a,b.png 2x", ["a,b.png"]),
        ("a.png,", ["a.png"]),
        ("data:image/png;base64,AA 1x, b", ["data:image/png;base64,AA", "b"]),
        (" , ,", []),
    ],
)
def test_a_srcset_is_split_as_browsers_do(value: str, expected: list[str]) -> None:
    assert list(css.srcset(value)) == expected


@pytest.mark.parametrize(
    "piece",
    ["url(", "url('", 'url("', "@import ", "@import url(", "@font-face{url(", "@font-face", "/*",
     "'", '"', "\\", "a:", ";", "(", "url( ", "/* */", "rgb("],
)  # fmt: skip
def test_hostile_css_is_read_at_once(piece: str) -> None:
    many = piece * (300_000 // len(piece))
    begun = time.process_time()
    list(css.urls(many))
    css.declarations(many)
    list(css.srcset(many))
    read(f"<style>{many}</style><!--[if mso]>{many}<![endif]-->")
    assert time.process_time() - begun < 2.0
