"""Whether people see an element's text, as inline styles say."""

from __future__ import annotations

import pytest

from campaigns.preflight import content_checks
from campaigns.preflight.colors import CLEAR, UNKNOWN, WHITE, color, ground
from campaigns.preflight.css import declarations
from campaigns.preflight.sheets import Sheets

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


# --- what @media shows again -----------------------------------------------------------------


def sheet(css: str, way_out: str) -> str:
    return f"<style>{css}</style>{way_out}"


HIDDEN = f'<div class="m" style="display:none">{LINK}</div>'
PHONE = "@media (max-width:480px)"


@pytest.mark.parametrize(
    ("css", "found"),
    [
        # An inline style is beaten by what is important alone.
        (PHONE + "{.m{display:block!important}}", DOUBT),
        (PHONE + "{ DIV.M { Display : Block ! Important ; } }", DOUBT),
        (PHONE + "{.m{display:block}}", ERROR),
        (PHONE + "{.m{display:none!important}}", ERROR),
        (PHONE + "{.n{display:block!important}}", ERROR),
        (PHONE + "{.m{color:red!important}}", ERROR),
        (".n{color:red} /* } */ @import 'x'; " + PHONE + "{.m{display:table!important}}", DOUBT),
        ("@media screen,print{.m{display:block!important}}", DOUBT),
        ("@media print{.m{display:block!important}}", ERROR),
        ("@media not print{.m{display:block!important}}", DOUBT),
        ("@supports (display:grid){" + PHONE + "{.m{display:grid!important}}}", DOUBT),
        # Whatever its selector says besides.
        (PHONE + "{body .x > .m{display:block!important}}", DOUBT),
        (PHONE + "{.x, td, .m:first-child{display:block!important}}", DOUBT),
        (PHONE + "{*[class=m]{display:block!important}}", DOUBT),
        (PHONE + '{div[class="n"]{display:block!important}}', ERROR),
        (PHONE + "{[class*=m]{display:block!important}}", DOUBT),
        (PHONE + "{div:is(.a, .b){display:block!important}}", DOUBT),
        (PHONE + "{#m{display:block!important}}", ERROR),
        (PHONE + "{.m a{display:block!important}}", ERROR),
        # What is no rule, or ends in the middle of one.
        (PHONE + "{.m{display:block!important", ERROR),
        ("}}" + PHONE + "{.m{content:'}';display:block!important}}", DOUBT),
        ("@font-face{.m{display:block!important}}", ERROR),
    ],
)  # fmt: skip
def test_what_a_style_sheet_shows_again_is_a_doubt(css: str, found: dict[str, str]) -> None:
    known = facts(body=LETTER + WHERE + sheet(css, HIDDEN))
    told = codes(content_checks.unsubscribe(known))
    told.pop("unsubscribe.missing", None)
    assert told == found


@pytest.mark.parametrize(
    ("style", "css", "found"),
    [
        ("display:none!important", ".m{display:block!important}", ERROR),
        ("display:none;opacity:0", ".m{display:block!important}", ERROR),
        ("display:none;opacity:0", ".m{display:block!important;opacity:1!important}", DOUBT),
        ("visibility:hidden", ".m{visibility:visible!important}", DOUBT),
        ("max-height:0;overflow:hidden", ".m{max-height:none!important}", DOUBT),
        ("max-height:0;overflow:hidden", ".m{overflow:visible!important}", DOUBT),
        ("font-size:0", ".m{font-size:14px!important}", DOUBT),
        ("font-size:0", ".m{font-size:0!important}", DOUBT),  # of sizes a sheet has spoken
        ("color:#fff;background:#fff", ".m{color:#000!important}", DOUBT),
        ("color:#fff;background:#fff", ".n{color:#000!important}", ERROR),
        ("color:#fff;background:#fff", ".m{background:#000!important}", DOUBT),
    ],
)
def test_every_way_of_hiding_may_be_undone(style: str, css: str, found: dict[str, str]) -> None:
    tag = "a" if "color" in style else "div"
    href = f' href="{URL}"' if tag == "a" else ""
    inner = "Leave" if tag == "a" else LINK
    way_out = f'<{tag}{href} class="m" style="{style}">{inner}</{tag}>'
    known = facts(body=LETTER + WHERE + sheet(f"{PHONE}{{{css}}}", way_out))
    told = codes(content_checks.unsubscribe(known))
    told.pop("unsubscribe.missing", None)
    assert told == found


@pytest.mark.parametrize(
    ("element", "found"),
    [
        ('<div hidden class="m">', DOUBT),  # any rule is stronger than the attribute
        ('<div hidden class="m" style="display:none">', ERROR),
        ('<div hidden style="display:block">', {}),
        ("<div hidden>", ERROR),
        ('<div class="{{ look }}" hidden>', DOUBT),
    ],
)
def test_the_attribute_hidden(element: str, found: dict[str, str]) -> None:
    css = PHONE + "{.m{display:block}}"
    known = facts(body=LETTER + WHERE + sheet(css, f"{element}{LINK}</div>"))
    told = codes(content_checks.unsubscribe(known))
    told.pop("unsubscribe.missing", None)
    assert told == found


def test_a_rule_that_is_sent_as_a_style_too_needs_to_be_important() -> None:
    """Inlined, ``.m{display:none}`` is the element's own style: stronger than what @media says."""
    pytest.importorskip("css_inline")
    known = {}
    for word in ("", "!important"):
        css = f".m{{display:none}}{PHONE}{{.m{{display:block{word}}}}}"
        way_out = f'<div class="m">{LINK}</div>'
        found = content_checks.unsubscribe(facts(body=LETTER + WHERE + sheet(css, way_out)))
        known[word] = {one.code: one.detail for one in found}
    assert "Write !important" in known[""]["unsubscribe.hidden"]
    assert "on some screens" in known["!important"]["unsubscribe.faint"]


def test_an_address_that_is_shown_on_some_screens_is_a_doubt() -> None:
    css = PHONE + "{.m{display:block!important}}"
    body = sheet(css, f'<p class="m" style="display:none">{WHERE}</p>')
    told = codes(content_checks.address(facts(body=LETTER + LINK + body)))
    assert told.pop("address.faint") == "warning"
    assert "address.hidden" not in told
