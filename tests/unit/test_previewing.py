"""A message as a preview shows it: rendered, without links, and what is missing."""

from __future__ import annotations

import dataclasses
import time

import pytest

from campaigns import previewing, test_sends
from campaigns.content import CompiledContent
from campaigns.previewing import Reader, header_lines, page_of, without_links
from campaigns.test_sends import Refused, addresses, data_for, marked
from subscribers.models import Account
from subscribers.tokens import read_token

CONTENT = CompiledContent(
    subject="Hello {{ first_name }}",
    preheader="",
    html="<p>{{ city|default:'there' }} {{ account.name }} <a href='{{ unsubscribe_url }}'>x</a>",
    text="{% if shoe.size %}{{ shoe.size }}{% endif %} {{ email }} {{ unsubscribe_url }}",
    from_email="news@example.org",
    from_name="",
    reply_to="",
    account_fields={"name": "Example", "slug": "example", "postal_address": "Street 1"},
)


def account() -> Account:
    return Account(name="Example", slug="example", from_email="news@example.org")


@pytest.mark.parametrize(
    ("attributes", "missing"),
    [
        ({}, ["city: its default is shown", "first_name: nothing is shown there",
              "shoe.size: its default is shown"]),
        ({"first_name": "Ann", "city": "Rome", "shoe": {"size": 41}}, []),
        ({"first_name": "", "city": None, "shoe": "41"},
         ["city: its default is shown", "first_name: nothing is shown there",
          "shoe.size: its default is shown"]),
        ({"first_name": "Ann", "city": 0, "shoe": {"size": False}}, []),
    ],
)  # fmt: skip
def test_what_a_person_lacks(attributes: dict[str, object], missing: list[str]) -> None:
    shown = previewing.of_content(CONTENT, Reader("ann@example.org", attributes, 1))
    assert [str(lack) for lack in shown.missing] == missing


def test_no_link_of_the_system_is_anybodys() -> None:
    shown = previewing.of_content(CONTENT, Reader("ann@example.org", {}, 7))
    assert shown.rendered is not None
    link = shown.rendered.text.split()[-1]
    assert link.endswith("/u/test")
    assert read_token("test") is None
    assert shown.rendered.text.split()[0] == "ann@example.org"


@pytest.mark.parametrize(
    ("html", "expected"),
    [
        ("<!doctype html><html><head><title>x", "<!doctype html><html><head>@<title>x"),
        ("<HTML lang=en><Head class='a'>", "<HTML lang=en><Head class='a'>@"),
        ("<!DOCTYPE html><html lang=x><body>", "<!DOCTYPE html><html lang=x>@<body>"),
        ("  <!doctype html>\n<p>", "  <!doctype html>@\n<p>"),
        ("<p>x</p>", "@<p>x</p>"),
        ("<header>x</header>", "@<header>x</header>"),
        ("", "@"),
        (
            "<a href=x target='_top'>our target = 5</a>",
            "@<a href=x data-target='_top'>our target = 5</a>",
        ),
        ('<a href="x"TARGET = _self>', '@<a href="x"data-target = _self>'),
    ],
)
def test_every_link_goes_nowhere(html: str, expected: str) -> None:
    assert without_links(html) == expected.replace("@", '<base target="_blank">')


def test_the_text_of_a_message_is_text() -> None:
    content = dataclasses.replace(CONTENT, text="<script>{{ first_name }}</script>")
    shown = previewing.of_content(content, Reader(attributes={"first_name": "<b>"}))
    page = page_of(shown, "text")
    assert "&lt;script&gt;&lt;b&gt;&lt;/script&gt;" in page
    assert "<script" not in page


def test_problems_are_told_and_escaped() -> None:
    draft = previewing.typed(
        {"subject": "x\ny", "body": "<p>\r\n{% for x in y %}<script>", "body_format": "html"},
        account(),
        None,
    )
    shown = previewing.preview(draft, previewing.NOBODY)
    assert shown.rendered is None
    told = [str(problem) for problem in shown.problems]
    assert any(line.startswith("Body, line 2, column 1: ") for line in told), told
    assert any(line.startswith("Subject: ") for line in told), told
    assert "<script" not in page_of(shown, "html")


def test_typed_is_what_saving_would_make() -> None:
    draft = previewing.typed(
        {"subject": "  Spring ", "body": " a\r\nb\0 ", "body_format": "text", "status": "sent"},
        account(),
        None,
    )
    assert (draft.subject, draft.body, draft.text_body) == ("Spring", " a\nb ", "")
    assert draft.status == "draft"
    assert draft._state.adding


def test_data_that_blows_up_is_a_problem_and_no_error() -> None:
    content = dataclasses.replace(CONTENT, text="{{ big }}")
    shown = previewing.of_content(content, Reader(attributes={"big": "x" * 60_000}))
    assert shown.rendered is None
    assert len(shown.problems) == 1


def test_headers_are_unfolded_and_read() -> None:
    source = b"Subject: =?utf-8?b?w4l0w6k=?=\r\n =?utf-8?b?IDI=?=\r\nTo: a@b.example\r\n\r\nX: y"
    lines = header_lines(source)
    assert [(line.name, line.reads) for line in lines] == [("Subject", "Été 2"), ("To", "")]
    assert lines[0].value == "=?utf-8?b?w4l0w6k=?= =?utf-8?b?IDI=?="


def test_broken_words_in_a_header_are_shown_as_they_are() -> None:
    (line,) = header_lines(b"Subject: =?utf-8?b?%%%?= =?nonsense?q?x?=\r\n\r\n")
    assert line.value.startswith("=?utf-8")


# --- tests -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a@example.org", ["a@example.org"]),
        ("a@example.org, B@Example.ORG;\n c@example.org", ["a@example.org", "B@example.org",
                                                           "c@example.org"]),
        ("a@example.org A@example.org", ["a@example.org"]),
    ],
)  # fmt: skip
def test_addresses_are_read(text: str, expected: list[str]) -> None:
    assert addresses(text) == expected


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "Say to which addresses."),
        (" ,; ", "Say to which addresses."),
        ("nonsense", "nonsense: "),
        (" ".join(f"a{n}@example.org" for n in range(11)), "10 addresses at most."),
        ("x " * 1000, "10 addresses at most."),
        ("a@example.org\r\nBcc:b@example.org", "Bcc:b@example.org"),
    ],
)
def test_bad_addresses_are_told(text: str, said: str) -> None:
    with pytest.raises(Refused, match=said):
        addresses(text)


def test_a_test_is_marked_in_its_subject_alone() -> None:
    tested = marked(CONTENT)
    assert tested.subject == "[Test] Hello {{ first_name }}"
    assert dataclasses.replace(tested, subject=CONTENT.subject) == CONTENT


def test_a_subject_without_room_for_the_mark_is_refused() -> None:
    assert len(marked(dataclasses.replace(CONTENT, subject="x" * 493)).subject) == 500
    with pytest.raises(Refused, match="493 characters"):
        marked(dataclasses.replace(CONTENT, subject="x" * 494))


def test_a_test_takes_along_only_what_the_message_reads() -> None:
    reader = Reader("ann@example.org", {"first_name": "Ann", "salary": 9, "email": "x"}, 7)
    data = data_for(CONTENT, reader)
    assert set(data) == {"first_name", "unsubscribe_url"}
    assert data["unsubscribe_url"].endswith("/u/test")


@pytest.mark.parametrize(
    ("key", "fits"),
    [("0" * 32, True), ("", False), ("0" * 31, False), ("0" * 31 + "\n", False), ("g" * 32, False)],
)
def test_keys(key: str, fits: bool) -> None:
    assert test_sends.is_key(key) is fits


@pytest.mark.parametrize("text", ["<head ", "<html ", "<a target", "<!doctype ", "< "])
def test_a_hostile_document_is_read_once(text: str) -> None:
    begun = time.monotonic()
    without_links(text * 200_000)
    assert time.monotonic() - begun < 5  # one look at each place would take hours
