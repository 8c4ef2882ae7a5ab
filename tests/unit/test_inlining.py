"""Style sheets in style attributes, and every document in which they must not be."""

from __future__ import annotations

import builtins
import re
import subprocess
import sys
import time
from types import SimpleNamespace
from typing import Any

import pytest

from campaigns.body_formats import inlined
from campaigns.content import compile_content
from campaigns.merge_tags import MergeTags

RED = "<style>p{color:red}</style>"


def inline(source: str) -> str:
    tags = MergeTags(source)
    return tags.show(inlined(tags.hide(source), tags))


def draft(body: str, body_format: str = "html", preheader: str = "") -> Any:
    account = SimpleNamespace(
        name="Acme",
        slug="acme",
        from_email="news@example.org",
        from_name="",
        reply_to="",
        postal_address="1 Way",
    )
    return SimpleNamespace(
        subject="Hello",
        preheader=preheader,
        from_email="",
        from_name="",
        reply_to="",
        body_format=body_format,
        body=body,
        text_body="",
        layout=None,
        account=account,
    )


@pytest.mark.parametrize(
    ("body_format", "body"),
    [
        ("html", f"{RED}<p>Hi {{{{ name }}}}</p>"),
        ("html", f"<html><head>{RED}</head><body><p>Hi {{{{ name }}}}</p></body></html>"),
        ("markdown", f"{RED}\n\nHi {{{{ name }}}}\n"),
        (
            "mjml",
            "<mjml><mj-head><mj-style>p{color:red}</mj-style></mj-head><mj-body><mj-section>"
            "<mj-column><mj-text><p>Hi {{ name }}</p></mj-text></mj-column></mj-section>"
            "</mj-body></mjml>",
        ),
    ],
)
def test_every_format_is_inlined(body_format: str, body: str) -> None:
    html = compile_content(draft(body, body_format)).html
    assert re.search(r'<p style="[^"]*color: red;?">Hi {{ name }}</p>', html)
    assert "p{color:red}" in html.replace(" ", "")


def test_mjmls_conditional_comments_and_ifs_stay() -> None:
    html = compile_content(
        draft(
            "<mjml><mj-body><mj-section><mj-column>{% if vip %}<mj-text>Hi {{ name }}</mj-text>"
            "{% endif %}<mj-image src='https://example.org/{{ x }}.png'/></mj-column></mj-section>"
            "</mj-body></mjml>",
            "mjml",
        )
    ).html
    assert "<!--[if mso | IE]>" in html
    assert "@media only screen" in html


def test_the_preheader_and_the_footer_are_not_styled() -> None:
    html = compile_content(
        draft("<style>div,a{color:red}</style><div>x</div>", preheader="Look")
    ).html
    assert html.count("color: red") == 1
    assert "&#847;&zwnj;&nbsp;" in html


@pytest.mark.parametrize(
    "document",
    [
        "<P CLASS=a>x<br/>&nbsp;<table>{% if a %}<tr>{% endif %}",
        "<!-- <style>p{color:red}</style> --><P>x",
        "<!DOCTYPE HTML><p>stylish",
    ],
)
def test_without_a_style_element_nothing_changes(document: str) -> None:
    assert inline(document) == document


def test_what_can_not_be_inlined_stays() -> None:
    css = (
        "p{color:red}a:hover{color:blue}@media (max-width:9px){p{color:blue}}"
        "@font-face{font-family:x;src:url(y)}"
    )
    made = inline(f"<style>{css}</style><p>x <a>y</a></p>")
    assert f"<style>{css}</style>" in made
    assert '<p style="color: red;">x <a>y</a></p>' in made


def test_a_sheet_for_some_media_is_not_for_all() -> None:
    sheet = '<style media="print">p{margin:0}</style>'
    made = inline(f'{sheet}<style media="screen">p{{color:red}}</style><p>x</p>')
    assert sheet in made
    assert '<p style="color: red;">' in made
    assert "data-" not in made
    assert inline(f"{sheet}<p>x</p>") == f"{sheet}<p>x</p>"


def test_the_authors_style_attribute_wins_and_the_doctype_stays() -> None:
    doctype = (
        '<!DOCTYPE html PUBLIC "-//W3C//DTD XHTML 1.0 Transitional//EN" '
        '"http://www.w3.org/TR/xhtml1/DTD/xhtml1-transitional.dtd">'
    )
    made = inline(f'{doctype}\n<html>{RED}<p style="color:blue">x</p><!--[if mso]><b><![endif]-->')
    assert made.startswith(doctype)
    assert made.lower().count("<!doctype") == 1
    assert '<p style="color:' in made
    assert "red" not in made.replace(RED, "")
    assert "<!--[if mso]><b><![endif]-->" in made


def test_nothing_is_loaded(tmp_path: Any) -> None:
    sheet = tmp_path / "a.css"
    sheet.write_text("p{margin:7px}")
    link = f'<link rel="stylesheet" href="{sheet.as_uri()}">'
    made = inline(
        f'<html><head>{link}<style>@import "{sheet.as_uri()}";p{{color:red}}</style>'
        '<link rel="stylesheet" href="http://127.0.0.1:9/a.css"></head><p>x</p></html>'
    )
    assert link in made
    assert "7px" not in made
    assert '<p style="color: red;">' in made


def test_merge_tags_are_whole_everywhere() -> None:
    made = inline(
        '<style>p{color:{{ color|default:"red" }}}{{ css }} b{top:0}</style>'
        '{% if vip == "a<b" %}<p title="{{ t }}">A {{ name|default:"<i>" }}</p>{% else %}'
        '<p>B</p>{% endif %}<a href="{{ shop }}?a={{ x }}">y</a><!-- {{ z }} -->'
    )
    assert '<style>p{color:{{ color|default:"red" }}}{{ css }} b{top:0}</style>' in made
    assert '{% if vip == "a<b" %}<p title="{{ t }}" style="color: {{ color|default:"red" }};">' in (
        made
    )
    assert 'A {{ name|default:"<i>" }}</p>{% else %}<p style=' in made
    assert '<a href="{{ shop }}?a={{ x }}">y</a><!-- {{ z }} -->' in made


UNTOUCHED = {
    "between table rows": "<table>{% if a %}<tr><td><p>x</p></td></tr>{% endif %}</table>",
    "a value in a table": "<table><tr>{{ row }}<td><p>x</p></td></tr></table>",
    "lost with its attribute": '<p title="a" title="{{ t }}">x</p>',
    "an attribute's name": "<p {% if a %}hidden{% endif %}>x</p>",
    "half an attribute": "<p {% if a %}title=a{% endif %}>x</p>",
    "unquoted": "<p title={% if a %}x{% else %}y{% endif %}>x</p>",
    "an element's name": "<p>x</p><{{ e }}>x</{{ e }}>",
    "a class": '<p class="a {% if a %}b{% endif %}">x</p>',
    "an id": '<p id="{{ i }}">x</p>',
    "a style attribute": '<p style="top:0;{% if a %}left:0{% endif %}">x</p>',
    "closed in the other branch": "{% if a %}<p>{% else %}<p title=a>{% endif %}x</p>",
    "closed after its if": "{% if a %}<p>{% endif %}<table><tr><td>x</td></tr></table>",
    "another document when written": "<li><table><tr><li>x</li></tr></table></li>",
    "a line end that is lost": "<pre>\n\nx</pre>",
    "a sheet for some": "{% if a %}<style>p{top:0}</style>{% endif %}<p>x</p>",
    "a rule for some": "<style>{% if a %}i{top:0} p{top:0}{% endif %}</style><p>x</p>",
    "a broken style attribute": '<p style="color">x</p>',
    "a comment for one program": "<![if !mso]><p>x</p><![endif]>",
    "a quotation mark astray": '<p title="a"">x</p>',
    "SVG": "<svg><style>p{}</style></svg><p>x</p>",
}


@pytest.mark.parametrize("rest", UNTOUCHED.values(), ids=UNTOUCHED)
def test_a_document_that_inlining_could_harm_is_left_as_it_is(rest: str) -> None:
    assert inline(f"{RED}<p>x</p>{rest}") == f"{RED}<p>x</p>{rest}"
    assert "{%" not in RED  # and it is the rest that keeps it from being inlined:
    assert inline(f"{RED}<p>x</p>") != f"{RED}<p>x</p>"


def test_without_the_extra_a_document_is_left_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def without(name: str, *args: Any, **kwargs: Any) -> Any:
        if name == "css_inline":
            raise ImportError(name)
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without)
    assert inline(f"{RED}<p>x") == f"{RED}<p>x"


def test_a_document_that_would_grow_too_long_goes_out_as_it_was_written() -> None:
    body = f"<style>p{{color:red;font:{'x' * 900}}}</style>" + "<p>y</p>\n" * 2000
    assert f"\n{body}" in compile_content(draft(body)).html


HOSTILE = {
    "nested": '"<div>" * 100_000',
    "hidden from a reader of quotes": """'<!-- <a " -->' + "<div>" * 100_000 + '" >'""",
    "hidden in text": '"<title><div></title><textarea></div></textarea>" + "<p><b>" * 100_000',
    "tables": '"<table><tr><td>" * 60_000',
    "opened again": "'<p><b title=\"' + 'x' * 400_000 + '\"></p>' + '<p>x</p>' * 60_000",
    "opened again, well nested": (
        "'<p>' + ''.join(f'<b id=i{n}>' for n in range(90)) + '<div>x</div>' * 80_000"
    ),
    "unclosed tags": '"<a " * 300_000',
    "unclosed quotes": "'<a b=\"' * 150_000",
    "unclosed comments": '"<!--" * 200_000',
    "attributes": '"<p" + " a=b" * 200_000',
    "spaces": '"<p" + " " * 900_000',
    "styles": '"<style>" * 120_000',
    "rules": '"<style>" + "p{top:0}" * 50_000 + "</style>" + "<p>x</p>" * 50_000',
    "siblings": '"<style>b~p:has(~b){top:0}</style><b></b>" + "<p>x</p>" * 100_000',
    "declarations": (
        "'<style>p{' + ''.join(f'a{n}:b;' for n in range(50_000)) + '}</style>' + '<p></p>' * 50000"
    ),
    "few declarations": (
        "'<style>p{' + ''.join(f'a{n}:b;' for n in range(6000)) + '}</style>' + '<p></p>' * 900"
    ),
    "sheets for print": '"<style media=print></style>" * 35_000',
    "a long value": "'<style>p{top:' + 'x' * 400_000 + '}</style>' + '<p></p>' * 50_000",
}


@pytest.mark.parametrize("rest", HOSTILE.values(), ids=HOSTILE)
def test_a_hostile_document_takes_seconds_at_most(rest: str) -> None:
    # In a process of its own, on a small thread's stack: what goes wrong here ends the process.
    code = f"""
import resource, threading
from campaigns.body_formats import inlined
from campaigns.merge_tags import MergeTags
resource.setrlimit(resource.RLIMIT_AS, (2 << 30, 2 << 30))
threading.stack_size(512 * 1024)
body = {RED!r} + {rest}
worker = threading.Thread(target=inlined, args=(body[:1_000_000], MergeTags()))
worker.start()
worker.join()
print("survived")
"""
    began = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.stdout == "survived\n", (done.returncode, done.stderr)
    assert done.stderr == ""
    assert time.monotonic() - began < 20


def test_real_nesting_is_inlined() -> None:
    deep = "<table><tr><td>" * 25 + "<p>x</p>" + "</td></tr></table>" * 25
    assert '<p style="color: red;">' in inline(RED + deep)
    assert '<li style="top: 0;">' in inline("<style>li{top:0}</style><ul>" + "<li>x" * 500)
