"""Whether people see an element's text, as inline styles say."""

from __future__ import annotations

import pytest

from campaigns.preflight import content_checks
from campaigns.preflight.colors import CLEAR, UNKNOWN, WHITE, color, ground
from campaigns.preflight.css import declarations
from campaigns.preflight.sight import Sheets

from .preflight_facts import LETTER, codes, facts

URL = "{{ unsubscribe_url }}"
LINK = f'<a href="{URL}">Leave</a>'
WHERE = "{{ account.postal_address }}"
ERROR, DOUBT = {"unsubscribe.hidden": "error"}, {"unsubscribe.faint": "warning"}
SIZES = "<style>.a{font-size:12px}</style>"
COLORS = "<style>.a{color:red;background:#000}</style>"


def styled(style: str, tag: str = "div") -> str:
    return f'<{tag} style="{style}">{LINK}</{tag}>'


def link(style: str) -> str:
    return f'<p><a style="{style}" href="{URL}">Leave</a></p>'


@pytest.mark.parametrize(
    ("way_out", "found"),
    [
        # What hides an element hides all that is in it.
        (styled("DISPLAY : None !important"), ERROR),
        (styled("opacity:0.0"), ERROR),
        (styled("opacity:.05"), DOUBT),
        (styled("opacity:0.5"), {}),
        (styled("height:0;overflow:hidden"), ERROR),
        (f"<table><tr>{styled('height:0;overflow:hidden', 'td')}</tr></table>", DOUBT),
        (f"<table><tr>{styled('max-width:0;overflow:hidden', 'td')}</tr></table>", {}),
        (styled("max-height:0"), {}),
        (link("height:0;overflow:hidden"), {}),  # a line has no height of its own
        (link("height:0;overflow:hidden;display:block"), ERROR),
        (styled("width:1px;height:1px;overflow:hidden"), DOUBT),
        # What is inherited, a child may undo.
        (styled("visibility:hidden"), ERROR),
        (f'<div style="visibility:hidden">{styled("visibility:visible")}</div>', {}),
        (styled("font-size:0px"), ERROR),
        (styled("font:0/0 a"), ERROR),
        (styled("font:bold 14px/20px Arial"), {}),
        (f'<div style="font-size:0">{styled("font-size:14px")}</div>', {}),
        (f'<div style="font-size:0">{styled("font:14px Arial")}</div>', {}),
        (f'<div style="font-size:0">{styled("font-size:120%")}</div>', ERROR),
        (SIZES + styled("font-size:0"), DOUBT),
        (SIZES + link("font-size:0"), ERROR),
        (link("font-size:1px"), DOUBT),
        (link("font-size:0") + LINK, {}),
        (f'<a style="font-size:0;color:#fff" href="{URL}"><img src="x" alt="Leave"></a>', {}),
        (f'<a href="{URL}"><img src="x" alt="Leave" width="1" height="1"></a>', ERROR),
        # Colours: a link has its own, unless it is given another.
        (link("color:#fff;background:#FFFFFF"), ERROR),
        (link("color:white;background:rgb(255, 255, 255)"), ERROR),
        (link("color:transparent"), ERROR),
        (link("color:#fff"), DOUBT),
        (link("color:#f4f4f4;background:#fff"), DOUBT),
        (link("color:#999;background:#fff"), {}),
        (styled("color:#fff;background:#fff"), {}),
        (f'<table bgcolor="#ffffff"><tr><td>{link("color:#fff")}</td></tr></table>', ERROR),
        (f'<table bgcolor="000000"><tr><td>{link("color:#fff")}</td></tr></table>', {}),
        (f'<div style="background:#000">{link("color:#fff;background:none")}</div>', {}),
        (f"<table background='x'><tr><td>{link('color:#fff')}</td></tr></table>", {}),
        (link("color:#fff;background:#fff url(y)"), {}),
        # A veil over what is behind it.
        (f'<div style="background:#111">{link("color:#fff;background:#ffffff1a")}</div>', {}),
        (link("color:#000;background-color:rgba(0,0,0,.04)"), {}),
        (link("color:#fff;background:rgb(255 255 255 / 100%)"), ERROR),
        (link("color:#fff;background:#ffffffff"), ERROR),
        (f'<a href="{URL}" style="color:#fff"><span style="color:#333">x</span></a>', {}),
        (COLORS + f'<div style="background:#fff">{link("color:#fff")}</div>', DOUBT),
        (COLORS + link("color:#fff"), {}),
        # Off the screen.
        (styled("position:absolute;left:-9999px"), DOUBT),
        (styled("left:-9999px"), {}),
        (styled("text-indent:-100em"), DOUBT),
        (styled("margin:0 0 0 -5000px"), DOUBT),
        (styled("margin-left:-10px"), {}),
        # For some readers.
        (styled("mso-hide:all"), DOUBT),
        (styled("mso-hide:all") + f"<!--[if mso]>{LINK}<![endif]-->", {}),
        (styled("{% if vip %};display:none;{% endif %}"), DOUBT),
        (styled("color:{{ tint }};background:#fff"), {}),
    ],
)
def test_ways_out(way_out: str, found: dict[str, str]) -> None:
    known = facts(body=LETTER + WHERE + way_out)
    told = codes(content_checks.unsubscribe(known))
    # What a reader does not see is in no text part either, which has an error of its own.
    told.pop("unsubscribe.missing", None)
    assert told == found


@pytest.mark.parametrize(
    ("body", "found"),
    [
        (f'<p style="font-size:0">{WHERE}</p>', {"address.hidden": "error"}),
        (f'<p style="color:#eee;background:#eee">{WHERE}</p>', {"address.hidden": "error"}),
        (f'<p style="color:#fff">{WHERE}</p>', {"address.faint": "warning"}),
        (f'<p style="color:#fff">{WHERE}</p><p>{WHERE}</p>', {}),
        (f'<p style="mso-hide:all">{WHERE}</p>', {}),
        ('<p>1 Example Street</p><p style="font-size:1px">12345 Exampleton</p>',
         {"address.faint": "warning"}),
    ],
)  # fmt: skip
def test_postal_addresses(body: str, found: dict[str, str]) -> None:
    assert codes(content_checks.address(facts(body=LETTER + LINK + body))) == found


@pytest.mark.parametrize(
    "hiding",
    [
        "display:none;font-size:1px;color:#ffffff;line-height:1px;max-height:0;overflow:hidden",
        "font-size:0;line-height:0;color:#fff;background:#fff",
        "display:none!important;visibility:hidden;mso-hide:all;opacity:0;height:0;width:0",
        "position:absolute;left:-9999px;opacity:0",
    ],
)
def test_a_hidden_preheader_is_nothing_to_speak_of(hiding: str) -> None:
    line = f'<span style="{hiding}">What is new this month {"&nbsp;&zwnj;" * 80}</span>'
    known = facts(body=line + LETTER + LINK + WHERE)
    assert not content_checks.unsubscribe(known) + content_checks.address(known)
    assert not content_checks.text(known)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("#FFF", WHITE), ("ffffff", WHITE), ("#ffffffff", WHITE), ("#fff0", CLEAR),
        ("rgb(255 255 255)", WHITE), ("rgba(1,2,3,0.0)", CLEAR), ("rgba(1, 2, 3, .5)", (1, 2, 3)),
        ("rgb(300,0,0)", (255, 0, 0)), ("black", (0, 0, 0)), ("var(--x)", UNKNOWN), ("", UNKNOWN),
    ],
)  # fmt: skip
def test_colors(value: str, expected: object) -> None:
    assert color(value.lower()) == expected


@pytest.mark.parametrize(
    ("style", "expected"),
    [
        ("background:#fff", WHITE),
        ("background:no-repeat #fff center", WHITE),
        ("background:#fff url(x) center", UNKNOWN),
        ("background-image:linear-gradient(#000,#fff);background-color:#fff", UNKNOWN),
        ("background-image:url(x);background:#fff", WHITE),  # the shorthand takes it back
        ("background:#000;background-color:#fff", WHITE),
        ("background-color:#fff!important;background:#000", WHITE),
        ("background:none", CLEAR),
        ("color:red", None),
    ],
)
def test_what_is_behind_a_text(style: str, expected: object) -> None:
    assert ground(declarations(style)) == expected


def test_declarations_end_at_a_semicolon_that_is_one() -> None:
    assert declarations(
        "a:url(data:image/png;base64,x);b:';' ; /* c:d; */ e : F!important;e:g; h"
    ) == {"a": "url(data:image/png;base64,x)", "b": "';'", "e": "f"}


def test_sheets_are_read_wherever_they_are() -> None:
    assert Sheets.of("<p style='font-size:1px'>font-size:2px</p>") == Sheets()
    assert Sheets.of("<STYLE>a{font:1px x}</STYLE>").sizes
    assert Sheets.of("<style>a{background-color:red}") == Sheets(grounds=True)
