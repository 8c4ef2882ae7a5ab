"""Checks of the message itself: a table of drafts and what is found in each."""

from __future__ import annotations

from typing import Any

import pytest

from campaigns.content import ContentError
from campaigns.preflight import content_checks, link_checks
from campaigns.preflight.checklist import ITEMS, look
from campaigns.preflight.facts import Facts, FieldCounts
from campaigns.preflight.findings import Report
from campaigns.preflight.places import MOST

from .preflight_facts import LETTER, NOW, codes, facts

WAY_OUT = '<a href="{{ unsubscribe_url }}">Leave</a>'
WHERE = "{{ account.postal_address }}"
IMAGE = '<img src="https://example.org/a.png" alt="A">'


@pytest.mark.parametrize(
    ("body", "found"),
    [
        (LETTER, {}),
        (LETTER + WAY_OUT + WHERE, {}),
        (LETTER + WAY_OUT + "1 EXAMPLE street, Exampleton", {}),
        (LETTER + "{{ unsubscribe_url }}" + WHERE, {}),
        (LETTER + "<a href=https://example.org>x</a>" * 2100, {}),
        # A footer is added where the way out is not for all ...
        ("{% if vip %}" + WAY_OUT + "{% endif %}" + LETTER, {}),
        (f"{LETTER}{WHERE}{{% if vip %}}{WAY_OUT}{{% else %}}{WAY_OUT}{{% endif %}}", {}),
        # ... but not where it can't be seen.
        (f"{LETTER}{WHERE}<!-- {{{{ unsubscribe_url }}}} -->", {"unsubscribe.hidden": "error"}),
        (f"{LETTER}{WHERE}<p hidden>{WAY_OUT}</p>", {"unsubscribe.hidden": "error"}),
        (f"{LETTER}{WAY_OUT}<!-- {WHERE} -->", {"address.hidden": "error"}),
        (f"{LETTER}{WAY_OUT}{{% if vip %}}{WHERE}{{% endif %}}", {"address.missing": "error"}),
        (f"{LETTER}{WAY_OUT}{{% if account.postal_address %}}{WHERE}{{% endif %}}", {}),
        (f"{LETTER}{WAY_OUT}{{{{ account.postal_address|upper }}}}", {}),
    ],
)
def test_everybody_sees_the_way_out_and_the_address(body: str, found: dict[str, str]) -> None:
    known = facts(body=body)
    both = content_checks.unsubscribe(known) + content_checks.address(known)
    # What no reader sees is not in the text part either, which has its own error then.
    assert {k: v for k, v in codes(both).items() if k != "address.missing" or k in found} == found


def test_an_account_without_an_address_can_not_send() -> None:
    known = facts(known={"postal_address": " \n"})
    assert codes(content_checks.address(known)) == {"address.none": "error"}


@pytest.mark.parametrize(
    ("subject", "known", "found"),
    [
        ("Spring", {}, {}),
        ("x" * 70, {}, {}),
        ("x" * 71, {}, {"subject.long": "warning"}),
        ("x" * 251, {}, {"subject.too_long": "error"}),
        ("SPRING IS HERE", {}, {"subject.capitals": "warning"}),
        ("UNESCO: 春", {}, {}),
        ("Re: Spring", {}, {"subject.reply": "warning"}),
        (" fwd : Spring", {}, {"subject.reply": "warning"}),
        ("AW[2]: Frühling", {}, {"subject.reply": "warning"}),
        ("Reading: a list", {}, {}),
        ("{{ a }}", {"a": 3}, {"subject.empty": "error"}),
        ("{{ a }}{{ b }}", {"a": 3, "b": 2}, {"subject.empty": "error"}),
        ("{{ a }}{{ b }}", {"a": 3}, {}),
        ("{{ a }}", {}, {}),
        ('{{ a|default:"You" }}', {"a": 3}, {}),
        ("For {{ a }}", {"a": 3}, {}),
    ],
)
def test_subjects(subject: str, known: dict[str, int], found: dict[str, str]) -> None:
    counts = FieldCounts(people=100, lacking=known)
    seen = facts({"a": "Ada", "b": "B"}, {"fields": counts}, subject=subject)
    assert codes(content_checks.subject(seen)) == found


@pytest.mark.parametrize(
    ("changes", "found"),
    [
        ({"body": LETTER}, {}),
        ({"body": IMAGE}, {"text.only_images": "warning"}),
        ({"body": "<p>Hi {{ first_name }}</p>"}, {"text.none": "warning"}),
        ({"body": LETTER + "<p hidden>" + "no " * 500 + "</p>"}, {"text.hidden": "warning"}),
        ({"preheader": "What is new " * 30}, {}),
        ({"body": LETTER + "*|FNAME|*"}, {"text.foreign": "warning"}),
        ({"subject": "Dear [[name]]"}, {"text.foreign": "warning"}),
        ({"subject": "Dear { name }"}, {"text.foreign": "warning"}),
        ({"body": LETTER + "<style>p { color }</style>"}, {}),
        ({"body": "Hi", "body_format": "text"}, {}),
    ],
)
def test_there_is_something_to_read(changes: dict[str, Any], found: dict[str, str]) -> None:
    assert codes(content_checks.text(facts(**changes))) == found


@pytest.mark.parametrize(
    ("length", "found"), [(90_000, {}), (105_000, {"size.clipped": "warning"})]
)
def test_gmail_clips_what_is_too_long(length: int, found: dict[str, str]) -> None:
    assert codes(content_checks.size(facts(body=LETTER + "x" * length))) == found


def test_size_is_that_of_a_person_s_message_in_bytes() -> None:
    body = LETTER + "é{{ a }}"
    assert not content_checks.size(facts({"a": "x"}, body=body))
    assert content_checks.size(facts({"a": "é" * 49_000}, body=body + "{{ a }}"))


@pytest.mark.parametrize(
    ("body", "found"),
    [
        (LETTER, {}),
        ("<script></script>", {"markup.script": "warning"}),
        ("<form><input></form>", {"markup.form": "warning", "markup.input": "warning"}),
        ("<p onclick=x>", {"markup.handlers": "warning"}),
        ("<div>" * 600, {"markup.unread": "warning"}),
    ],
)
def test_markup_that_is_taken_out(body: str, found: dict[str, str]) -> None:
    assert codes(content_checks.markup(facts(body=LETTER + body))) == found


@pytest.mark.parametrize(
    ("body", "found"),
    [
        ('<a href="https://example.org">x</a>', {}),
        ('<a href="/x">x</a>', {"link.relative": "error"}),
        ('<a href="">x</a>', {"link.empty": "error"}),
        ('<a href="#">x</a>', {"link.placeholder": "warning"}),
        ('<a href="#x">x</a>', {"link.target": "warning"}),
        ('<a href="#x">x</a><p id=x>', {}),
        ('<a href="http://example.org">x</a>', {"link.http": "warning"}),
        ('<a href="https://localhost/">x</a>', {"link.local": "error"}),
        ('<a href="https://example.org"></a>', {"link.unnamed": "warning"}),
        ('<a href="https://example.org"><img src=x alt="Go"></a>', {}),
        ('<a href="{{ url }}">x</a>', {}),
    ],
)
def test_links(body: str, found: dict[str, str]) -> None:
    assert codes(link_checks.links(facts(body=LETTER + body))) == found


def test_a_finding_says_where_in_what_was_written() -> None:
    body = f'{LETTER}\n<p>\n  <a href="http://example.org/?a=1&amp;b=2">x</a>'
    (found,) = link_checks.links(facts(body=body))
    assert (found.field, found.line, found.column) == ("body", 3, 12)
    assert found.title == "The link http://example.org/?a=1&b=2 is not https"


def test_links_of_a_text_are_looked_at() -> None:
    body = "See http://localhost/x, (https://example.org) and http://example.org/a."
    found = link_checks.links(facts(body=body, body_format="text"))
    assert [(one.code, one.title) for one in found] == [
        ("link.local", "The link http://localhost/x can't be reached by anybody else"),
        ("link.http", "The link http://example.org/a is not https"),
    ]


def test_a_link_of_a_text_does_not_end_inside_a_tag() -> None:
    body = 'Hi https://example.org/?a={{ a }}&b={{ b|default:"c" }}, http://x.example.org/{{ a }}'
    (found,) = link_checks.links(facts(body=body, body_format="text"))
    assert found.title == "The link http://x.example.org/{{ a }} is not https"


def test_a_document_that_mjml_made_passes() -> None:
    pytest.importorskip("mjml")
    body = (
        "<mjml><mj-body><mj-section><mj-column>"
        '<mj-image src="https://example.org/a.png" alt="A" href="https://example.org" />'
        "<mj-text>Hello, this is a letter as they are written every day.</mj-text>"
        '<mj-button href="https://example.org/x">Go</mj-button></mj-column></mj-section>'
        "</mj-body></mjml>"
    )
    written = facts(body_format="mjml", body=body, preheader="What is new")
    assert not [one for check in look(written) for one in check.findings]


@pytest.mark.parametrize(
    "inside",
    [
        "<mj-accordion><mj-accordion-element><mj-accordion-title>T</mj-accordion-title>"
        "<mj-accordion-text>Text</mj-accordion-text></mj-accordion-element></mj-accordion>",
        '<mj-navbar hamburger="hamburger"><mj-navbar-link href="https://example.org/a">A'
        "</mj-navbar-link></mj-navbar>",
        '<mj-carousel><mj-carousel-image src="https://example.org/a.png" alt="A" />'
        '<mj-carousel-image src="https://example.org/b.png" alt="B" /></mj-carousel>',
    ],
    ids=["accordion", "navbar", "carousel"],
)
def test_what_mjml_makes_by_itself_is_not_the_author_s_to_mend(inside: str) -> None:
    pytest.importorskip("mjml")
    column = f"<mj-column>{inside}<mj-text>Hello to all who read this letter.</mj-text></mj-column>"
    section = f'<mj-section background-url="https://example.org/b.png">{column}</mj-section>'
    written = facts(body_format="mjml", body=f"<mjml><mj-body>{section}</mj-body></mjml>")
    assert not [one for check in look(written) for one in check.findings]
    own = section.replace("<mj-text>", "<mj-text><input>")
    written = facts(body_format="mjml", body=f"<mjml><mj-body>{own}</mj-body></mjml>")
    assert codes(content_checks.markup(written)) == {"markup.input": "warning"}


def test_of_many_findings_the_worst_are_shown_and_the_rest_counted() -> None:
    many = "".join(f'<a href="http://{n}.example.org">x</a>' for n in range(30))
    found = link_checks.links(facts(body=LETTER + many + '<a href="/last">x</a>'))
    assert len(found) == MOST + 1
    assert found[0].code == "link.relative"
    assert (found[-1].code, found[-1].title) == ("link.more", "21 more like these")


@pytest.mark.parametrize(
    ("image", "found"),
    [
        (IMAGE, {}),
        ('<img src="https://example.org/a.png" alt="">', {}),
        ('<img src="https://example.org/a.png">', {"image.alt": "warning"}),
        ('<img src="a.png" alt="">', {"image.relative": "error"}),
        ('<img src="/a.png" alt="">', {"image.relative": "error"}),
        ('<img src="cid:a" alt="">', {"image.scheme": "error"}),
        ('<img src="data:image/png;base64,AAAA" alt="">', {"image.data": "warning"}),
        ('<img alt="">', {"image.empty": "error"}),
        ('<img src="{{ photo }}" alt="">', {}),
        ('<img src="http://example.org/a.png" alt="">', {"image.http": "warning"}),
    ],
)
def test_images(image: str, found: dict[str, str]) -> None:
    assert codes(link_checks.images(facts(body=LETTER + image))) == found


def test_what_does_not_compile_is_the_one_thing_said_of_the_content() -> None:
    error = ContentError("body", "There is no tag.", 3, 7)
    known = Facts(now=NOW, start=NOW, content_error=error, postal_address="1 Way")
    report = Report(look(known))
    (first, *_) = report.errors
    assert (first.code, first.field, first.line, first.column) == ("content.compile", "body", 3, 7)
    assert first.title == "The content does not compile: body, line 3, column 7: There is no tag."
    skipped = {check.code for check in report.checks if check.level == "skipped"}
    assert {"links", "images", "unsubscribe", "subject", "fields"} <= skipped
    assert len({item.code for item in ITEMS}) == len(ITEMS) == len(report.checks)


def test_somebody_s_message_that_can_t_be_made_is_an_error() -> None:
    known = facts({"first_name": "x" * 60_000}, body=LETTER + "{{ first_name }}")
    assert codes(content_checks.content(known)) == {"content.render": "error"}
