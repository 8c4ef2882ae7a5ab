"""From what an editor wrote to templates, and from templates to one person's message."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from django.utils import translation

from campaigns.content import CompiledContent, ContentError, compile_content, problems
from campaigns.rendering import Renderer, RenderError, build_context, one_line, render


@dataclass
class Account:
    name: str = "Acme"
    slug: str = "acme"
    from_email: str = "news@example.org"
    from_name: str = "Acme News"
    reply_to: str = "office@example.org"
    postal_address: str = "1 Way <b>\nTown"


@dataclass
class Draft:
    body: str = "<p>Hi {{ name }}</p>"
    body_format: str = "html"
    subject: str = "Hello"
    preheader: str = ""
    from_email: str = ""
    from_name: str = ""
    reply_to: str = ""
    text_body: str = ""
    layout: Any = None
    account: Account = field(default_factory=Account)


LEAVE = "https://example.org/u/T"
LINK = '<a href="{{ unsubscribe_url }}">Leave</a>'


def sent(content: CompiledContent, **attributes: Any) -> Any:
    context = build_context(
        email="a@example.org",
        attributes=attributes,
        account_fields=content.account_fields,
        unsubscribe_url=LEAVE,
        preferences_url="",
        web_url="",
    )
    return render(content, context)


def test_blanks_are_the_accounts() -> None:
    content = compile_content(Draft())
    assert (content.from_email, content.from_name, content.reply_to) == (
        "news@example.org",
        "Acme News",
        "office@example.org",
    )
    own = compile_content(
        Draft(from_email="a@example.com", from_name="A", reply_to="b@example.com")
    )
    assert (own.from_email, own.from_name, own.reply_to) == (
        "a@example.com",
        "A",
        "b@example.com",
    )
    assert content.account_fields == {
        "name": "Acme",
        "slug": "acme",
        "postal_address": "1 Way <b>\nTown",
    }


@pytest.mark.parametrize(
    ("change", "where", "words"),
    [
        ({"subject": " "}, ("subject", None, None), "empty"),
        ({"body": "\n"}, ("body", None, None), "empty"),
        ({"body_format": "pdf"}, ("body_format", None, None), "no format"),
        ({"subject": "a\nBcc: x@example.org"}, ("subject", None, None), "line ends"),
        ({"from_name": "a\r\nBcc: x@example.org"}, ("from_name", None, None), "line ends"),
        ({"from_email": "nobody"}, ("from_email", None, None), "not an e-mail"),
        ({"from_email": "a@example.org\nx"}, ("from_email", None, None), "not an e-mail"),
        ({"reply_to": "a@"}, ("reply_to", None, None), "not an e-mail"),
        ({"subject": "Hi {{ name|safe }}"}, ("subject", 1, 4), "no filter"),
        ({"preheader": "{% now 'Y' %}"}, ("preheader", 1, 1), "no tag"),
        ({"body": "<p>\n  {{ name"}, ("body", 2, 3), "not closed"),
        ({"body": "# A\n\n{% for a in b %}", "body_format": "markdown"}, ("body", 3, 1), "no tag"),
        ({"text_body": "a\nb {% if %}"}, ("text_body", 2, 3), "if"),
        ({"body": "<mjml>", "body_format": "mjml"}, ("body", None, None), "MJML"),
        ({"body": "no MJML", "body_format": "mjml"}, ("body", None, None), "MJML"),
        (
            {"body": "<mjml>\n<mj-body>" + "<mj-wrapper>" * 20000, "body_format": "mjml"},
            ("body", 2, 10 + 39 * 12 - 12),
            "inside each other",
        ),
        (
            {"body": "<mjml><mj-body>" + "<a b='/>'></c>" * 20000, "body_format": "mjml"},
            ("body", 1, 16 + 38 * 14),
            "inside each other",
        ),
        (
            {"body": "<mjml a='" + "<a" * 100_000, "body_format": "mjml"},
            ("body", 1, 1),
            "not closed",
        ),
        (
            {"body": '<mjml><mj-include path="/etc/passwd"/></mjml>', "body_format": "mjml"},
            ("body", 1, 7),
            "mj-include",
        ),
        (
            {
                "body": "<mjml>{# a #}\n<mj-body>{{ name }}<!-- <mj-x> --><mj-nope/></mj-body>",
                "body_format": "mjml",
            },
            ("body", 2, 35),
            "no element mj-nope",
        ),
        (
            {
                "body": "<mjml><mj-body>{{ é|upper }}\n{{ b }}</mj-column></mj-body></mjml>",
                "body_format": "mjml",
            },
            ("body", 2, 20),
            "unexpected",
        ),
        ({"body": "<p>\n\ud800</p>"}, ("body", 2, 1), "no text can hold"),
        ({"preheader": "a\x00"}, ("preheader", 1, 2), "no text can hold"),
        ({"body": "a\n{% block x %}{% endblock %}"}, ("body", 2, 1), "no layout is chosen"),
        ({"body": "a\n{% endblock %}"}, ("body", 2, 1), "no layout is chosen"),
        ({"body": "x" * 10_000_000}, ("body", None, None), "longer than"),
    ],
)
def test_says_what_to_mend_and_where(
    change: dict[str, str], where: tuple[str, int | None, int | None], words: str
) -> None:
    draft = replace(Draft(), **change)  # type: ignore[arg-type]
    with pytest.raises(ContentError, match=words) as caught:
        compile_content(draft)
    error = caught.value
    assert (error.field, error.line, error.column) == where
    assert [(p.field, p.line, p.column) for p in problems(draft)] == [where]


def test_problems_are_all_of_them() -> None:
    found = problems(Draft(subject="", body="{% x %}", from_email="?", text_body="{{ a|b }}"))
    assert [problem.field for problem in found] == ["subject", "from_email", "body", "text_body"]
    assert problems(Draft()) == []


def test_markdown_keeps_merge_tags_whole() -> None:
    content = compile_content(
        Draft(
            body_format="markdown",
            body=(
                '# Hi *{{ name|default:"you & yours" }}*\n\n'
                "{% if vip and score > 3 %}\n\n**VIP** [shop]({{ shop }}?a=1&b={{ name }})\n\n"
                "{% endif %}\n\nA `{{ code }}` <https://example.org/x>\n\n"
                "| a | b |\n|---|---|\n| {{ name|upper }} | 2 |\n"
            ),
        )
    )
    assert '<em>{{ name|default:"you & yours" }}</em>' in content.html
    assert '<a href="{{ shop }}?a=1&amp;b={{ name }}">shop</a>' in content.html
    assert "<p>{%" not in content.html
    assert "<td>{{ name|upper }}</td>" in content.html
    for person, wanted, unwanted in [
        ({"vip": True, "score": 4, "shop": "https://s.example", "name": "Zoë"}, "VIP", "yours"),
        ({}, "you & yours", "VIP"),
    ]:
        message = sent(content, **person)
        assert wanted in message.text
        assert unwanted not in message.text
        assert "\n\n\n" not in message.text
        assert LEAVE in message.text


def test_mjml_keeps_merge_tags_whole_and_fetches_no_fonts() -> None:
    content = compile_content(
        Draft(
            body_format="mjml",
            body=(
                "<mjml><mj-body><mj-section><mj-column>{% if vip %}<mj-text>Hi "
                '{{ name|default:"you" }}</mj-text>{% endif %}'
                f"<mj-text>{LINK}{'<br>' * 50}</mj-text>"
                "<mj-button href='https://example.org/{{ path }}'>Go</mj-button>"
                "</mj-column></mj-section></mj-body></mjml>"
            ),
        ),
        bulk=False,
    )
    assert 'Hi {{ name|default:"you" }}' in content.html
    assert "fonts.googleapis.com" not in content.html
    message = sent(content, vip=True, path="x")
    assert message.text == f"Hi you\nLeave <{LEAVE}>\n\nGo <https://example.org/x>"
    assert "Hi you" not in sent(content).html


def test_text_is_made_from_the_html() -> None:
    content = compile_content(
        Draft(
            body=(
                "<style>p{color:red}</style><h1>News</h1><p>Dear {{ name }},&nbsp;see "
                '<a href="https://example.org/?a=1&amp;b={{ id }}">the <b>offer</b></a>.</p>'
                "<table><tr><th>Item</th><th>Price</th></tr><tr><td>Tea</td><td>3</td></tr></table>"
                "<table>{% if vip %}<tr><td>Left</td><td>Right</td></tr>{% endif %}"
                '<tr><td>Both</td><td><a href="https://example.org/p"><img alt="Photo"></a></td>'
                '</tr></table><p><a href="mailto:a@example.org?subject=x">a@example.org</a> '
                '<a href="#top">top</a></p><p style="display:none">secret</p>'
                f"<p>{LINK}</p>"
            )
        ),
        bulk=False,
    )
    assert sent(content, name="Zoë", id=7, vip=True).text.split("\n") == [
        "News",
        "",
        "Dear Zoë, see the offer <https://example.org/?a=1&b=7>.",
        "",
        "Item  Price",
        "Tea   3",
        "",
        "Left",
        "Right",
        "Both",
        "Photo <https://example.org/p>",
        "",
        "a@example.org top",
        "",
        f"Leave <{LEAVE}>",
    ]
    assert "Left" not in sent(content).text


def test_a_picture_that_is_a_block_has_a_line_of_its_own_in_the_text() -> None:
    picture = '<img alt="A pear" style="max-width:100%; display: block">'
    text = compile_content(Draft(body=f"<p>Dear Ann{picture}and all</p>"), bulk=False).text
    assert [line for line in text.splitlines() if line] == ["Dear Ann", "A pear", "and all"]
    inline = compile_content(Draft(body='<p>Dear <img alt="A pear"> Ann</p>'), bulk=False).text
    assert inline.strip() == "Dear A pear Ann"


def test_a_written_text_is_kept() -> None:
    mine = "Mine {{ name }}: {{ unsubscribe_url }} {{ account.postal_address }}"
    assert compile_content(Draft(text_body=mine)).text == mine


def test_text_only_has_no_html() -> None:
    content = compile_content(Draft(body_format="text", body="Hi {{ name }} & <b>"))
    message = sent(content, name="<Zoë>")
    assert message.html == ""
    assert message.text.startswith("Hi <Zoë> & <b>\n")


@pytest.mark.parametrize(
    "draft",
    [
        Draft(),
        Draft(body=f"<p>x {LINK}</p>"),
        Draft(body=f"{{% if vip %}}{LINK}{{% endif %}}"),
        Draft(body=f"<p>{LINK}</p>", text_body="no link"),
        Draft(body="x", body_format="text"),
        Draft(body="x {{ unsubscribe_url }}", body_format="text"),
        Draft(body="<p>{{ account.postal_address|linebreaksbr }}</p>"),
        Draft(body=f"<p>{{{{ account.postal_address|linebreaksbr }}}} {LINK}</p>"),
    ],
)
def test_no_bulk_message_without_a_way_out_and_an_address(draft: Draft) -> None:
    content = compile_content(draft)
    message = sent(content)
    if message.html:
        assert message.html.count(LEAVE) == 1
        assert message.html.count("1 Way &lt;b&gt;<br>Town") == 1
    assert LEAVE in message.text
    assert message.text.count("1 Way <b>") == 1
    without = compile_content(draft, bulk=False)
    assert without.html.count("postal_address") == draft.body.count("postal_address")


def test_an_address_that_was_typed_is_not_added_again() -> None:
    content = compile_content(Draft(body=f"1 Way <b>, Town: {LINK}", body_format="text"))
    assert "postal_address" not in content.text


def test_the_footer_is_inside_the_body() -> None:
    content = compile_content(Draft(body="<html><body><p>x</p></body></html>"))
    assert content.html.endswith("</div></body></html>")


def test_the_footer_speaks_the_installations_language() -> None:
    with translation.override("fr"):
        assert ">Unsubscribe</a>" in compile_content(Draft()).html


def test_the_preheader_is_first_and_hidden() -> None:
    content = compile_content(
        Draft(body="<body class='a'><p>x</p></body>", preheader='A & {{ name|default:"<b>" }}')
    )
    assert content.html.startswith("<body class='a'><div style=\"display:none;")
    assert 'A &amp; {{ name|default:"<b>" }}' in content.html
    assert "A &amp; &lt;i&gt;" in sent(content, name="<i>").html
    assert "A &" not in content.text


def test_comments_do_not_travel() -> None:
    content = compile_content(Draft(body="<p>x{# ask the boss #}</p>"))
    assert "boss" not in content.html + content.text


def test_what_looks_like_a_hidden_tag_is_left_alone() -> None:
    content = compile_content(Draft(body="<p>mergetagv00000z {{ name }}</p>"))
    assert "mergetagv00000z {{ name }}" in content.html
    assert "mergetagv00000z {{ name }}" in content.text


def test_half_a_tag_in_a_hidden_element_asks_for_a_written_text() -> None:
    body = "<p style='display:none'>{% if vip %}</p>x{% endif %}"
    with pytest.raises(ContentError, match="please write one") as caught:
        compile_content(Draft(body=body))
    assert caught.value.field == "text_body"
    assert compile_content(Draft(body=body, text_body="x")).text.startswith("x")


def test_system_fields_beat_attributes() -> None:
    context = build_context(
        email="a@example.org",
        attributes={"email": "x", "unsubscribe_url": "x", "account": "x", "web_url": "x", "n": 1},
        account_fields={"name": "Acme"},
        unsubscribe_url="u",
        preferences_url="p",
        web_url="w",
    )
    assert context == {
        "email": "a@example.org",
        "unsubscribe_url": "u",
        "preferences_url": "p",
        "web_url": "w",
        "account": {"name": "Acme"},
        "n": 1,
    }


@pytest.mark.parametrize(
    ("given", "line"),
    [
        ("a\r\nBcc: b@example.org", "a Bcc: b@example.org"),
        (" a\t\tb\x00\x1f\x85\u2028c \n", "a b c"),
        ("a\u00a0b é 🎉", "a\u00a0b é 🎉"),
        ("", ""),
    ],
)
def test_a_subject_is_one_line(given: str, line: str) -> None:
    assert one_line(given) == line
    assert sent(compile_content(Draft(subject="{{ s }}")), s=given).subject == line


def test_one_persons_data_fails_that_person_only() -> None:
    renderer = Renderer(compile_content(Draft()))
    with pytest.raises(RenderError):
        renderer.render({"name": "x" * 60_000})
    assert renderer.render({"name": "Zoë"}).text.startswith("Hi Zoë")
    with pytest.raises(RenderError, match="html"):
        Renderer(replace(compile_content(Draft()), html="{% load x %}"))
