"""Bodies of every format in their layouts: the message that comes out, and whose error it is."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from campaigns.content import ContentError, compile_content, problems
from campaigns.merge_tags import MergeTags
from campaigns.rendering import build_context, render


@dataclass
class Account:
    pk: int = 1
    name: str = "Acme"
    slug: str = "acme"
    from_email: str = "news@example.org"
    from_name: str = "Acme News"
    reply_to: str = ""
    postal_address: str = "1 Way\nTown"


@dataclass
class Frame:
    body: str
    body_format: str = "html"
    account_id: int = 1


@dataclass
class Draft:
    body: str
    body_format: str = "html"
    layout: Any = None
    subject: str = "Hello"
    preheader: str = ""
    from_email: str = ""
    from_name: str = ""
    reply_to: str = ""
    text_body: str = ""
    account: Account = field(default_factory=Account)


HTML = Frame(
    "<!doctype html><html><head><title>{% block title %}News{% endblock %}</title>"
    "<style>p{color:red}</style></head><body>{% block content %}{% endblock %}"
    '<p>{{ account.postal_address }} <a href="{{ unsubscribe_url }}">Leave</a></p></body></html>'
)
MJML = Frame(
    "<mjml><mj-body>{% block content %}{% endblock %}\n<mj-section><mj-column><mj-text>"
    '{{ account.postal_address }} <a href="{{ unsubscribe_url }}">Leave</a>'
    "</mj-text></mj-column></mj-section></mj-body></mjml>",
    "mjml",
)
TEXT = Frame(
    "{% block content %}{% endblock %}\n--\n{{ account.postal_address }}\n{{ unsubscribe_url }}\n",
    "text",
)
MJML_BODY = "<mj-section><mj-column><mj-text>Hi {{ name }}</mj-text></mj-column></mj-section>"


def sent(draft: Draft, **attributes: Any) -> Any:
    content = compile_content(draft)
    context = build_context(
        email="a@example.org",
        attributes=attributes,
        account_fields=content.account_fields,
        unsubscribe_url="https://example.org/u/T",
        preferences_url="",
        web_url="",
    )
    return render(content, context)


def test_an_html_body_is_placed_and_styled_by_its_frame() -> None:
    made = sent(Draft("{% block title %}Spring{% endblock %}<p>Hi {{ name }}</p>", layout=HTML))
    assert "<title>Spring</title>" in made.html
    made = sent(Draft("<p>Hi {{ name }}</p>", layout=HTML), name="A<b>")
    assert '<p style="color: red;">Hi A&lt;b&gt;</p>' in made.html
    assert "<title>News</title>" in made.html
    assert made.html.count("https://example.org/u/T") == 1
    assert made.html.count("<body") == 1
    # The text part is made of the whole.
    assert made.text.startswith("Hi A<b>")
    assert "Leave <https://example.org/u/T>" in made.text


def test_a_written_text_part_wins_over_the_frame() -> None:
    assert sent(Draft("<p>x</p>", layout=HTML, text_body="Mine")).text.startswith("Mine")


def test_markdown_is_rendered_before_it_is_placed() -> None:
    body = (
        "{% block title %}Spring & {{ name }}{% endblock %}\n\n"
        "# Hi {{ name }}\n\n{% if vip %}\n\nFor you\n\n{% endif %}\n"
    )
    made = sent(Draft(body, "markdown", HTML), name="Ann", vip=True)
    assert "<title>Spring &amp; Ann</title>" in made.html
    assert "<h1>Hi Ann</h1>" in made.html
    assert '<p style="color: red;">For you</p>' in made.html
    assert "max-width:600px" not in made.html


def test_a_markdown_block_of_several_lines_is_paragraphs() -> None:
    frame = Frame("<html><body>{% block content %}{% endblock %}{% block foot %}{% endblock %}")
    made = sent(Draft("x\n{% block foot %}\nBye\n{% endblock %}\n", "markdown", frame))
    assert "<p>x</p><p>Bye</p>" in made.html


def test_mjml_is_placed_in_mjml() -> None:
    made = sent(Draft(MJML_BODY, "mjml", MJML), name="Ann")
    assert "Hi Ann" in made.html
    assert made.html.count("https://example.org/u/T") == 1


def test_text_is_placed_in_text() -> None:
    made = sent(Draft("Hi {{ name }} & all", "text", TEXT), name="Ann")
    assert made.html == ""
    assert made.text == "Hi Ann & all\n--\n1 Way\nTown\nhttps://example.org/u/T\n"


def test_what_the_frame_does_not_show_the_footer_does() -> None:
    frame = Frame("<html><body>{% block content %}{% endblock %}</body></html>")
    made = sent(Draft("<p>x</p>", layout=frame))
    assert "Town" in made.html
    assert "https://example.org/u/T" in made.html
    assert "https://example.org/u/T" in made.text
    made = sent(Draft("x", "text", Frame("{% block content %}{% endblock %}", "text")))
    assert "https://example.org/u/T" in made.text
    # An address in a block that a body fills otherwise is not in the message.
    frame = Frame(
        "<html><body>{% block content %}{% endblock %}{% block a %}1 Way, Town{% endblock %}"
        "{{ unsubscribe_url }}"
    )
    assert sent(Draft("<p>x</p>", layout=frame)).html.count("1 Way") == 1
    filled = sent(Draft("<p>x</p>{% block a %}{% endblock %}", layout=frame))
    assert filled.html.count("1 Way") == 1


@pytest.mark.parametrize(
    ("draft", "where", "words"),
    [
        (Draft("<p>{% block x %}{% endblock %}", layout=HTML), ("body", 1, 4), "no block x"),
        (Draft("a\n {{ b|c }}", layout=HTML), ("body", 2, 2), "no filter"),
        (
            Draft("{% block title %}\n{{ b|c }}{% endblock %}", layout=HTML),
            ("body", 2, 1),
            "no filter",
        ),
        (Draft("x\n\n{% include 'a' %}", "markdown", HTML), ("body", 3, 1), "no tag"),
        (Draft("x", layout=replace(HTML, body="a\n{{ b|c }}")), ("layout", None, None), "no {% b"),
        (
            Draft("x", layout=replace(HTML, body=HTML.body + "\n  {{ b|c }}")),
            ("layout", 2, 3),
            "no filter",
        ),
        (
            Draft("x", layout=replace(HTML, body=HTML.body + "\n{% extends 'x' %}")),
            ("layout", 2, 1),
            "no tag",
        ),
        (Draft("x", layout=TEXT), ("layout", None, None), "a body in HTML needs one in HTML"),
        (Draft("x", "markdown", MJML), ("layout", None, None), "Markdown needs one in HTML"),
        (Draft("x", "text", HTML), ("layout", None, None), "plain text needs one in plain text"),
        (Draft("x", layout=replace(HTML, account_id=2)), ("layout", None, None), "another account"),
        (Draft("\n<html><body>x", layout=HTML), ("body", 2, 1), "leave out <html>"),
        (Draft("<mjml><mj-body>", "mjml", MJML), ("body", 1, 1), "leave out <mjml>"),
        (Draft("\n<mj-nope/>", "mjml", MJML), ("body", 2, 1), "no element mj-nope"),
        (
            Draft(MJML_BODY, "mjml", replace(MJML, body=MJML.body + "\n<mj-nope/>")),
            ("layout", 3, 1),
            "no element mj-nope",
        ),
        (
            Draft("{{ é }}\n<mj-section></mj-section></mj-section>", "mjml", MJML),
            ("layout", None, None),
            "MJML",
        ),
        (
            # The compiler drops attributes that it does not know, and an {% if %} with it.
            Draft(
                "\n<mj-section><mj-column nope='{% if a %}'>"
                "<mj-text>x {% endif %}</mj-text></mj-column></mj-section>",
                "mjml",
                MJML,
            ),
            ("body", 2, 53),
            "does not survive its format",
        ),
        (Draft("{{ a }}" * 4_999, layout=HTML), ("body", None, None), "More than 5000 tags"),
    ],
)
def test_an_error_is_told_where_it_was_written(
    draft: Draft, where: tuple[str, int | None, int | None], words: str
) -> None:
    with pytest.raises(ContentError) as caught:
        compile_content(draft)
    error = caught.value
    assert words in str(error)
    if where[1] is not None or "MJML" not in words:
        assert (error.field, error.line, error.column) == where
    assert (error.field, error.line) in [(p.field, p.line) for p in problems(draft)]


def test_words_of_hidden_tags_are_traced_back() -> None:
    source = "é{{ a }}{# gone #}\n{% if b %}x{% endif %}"
    tags = MergeTags(source)
    hidden = tags.hide(source, lambda start: start)
    for place, char in enumerate(hidden):
        found = tags.offset_in(source, place)
        if char in "é\nx" and not hidden[place:].startswith("xx"):
            assert source[found] == char
    shown = tags.show(hidden)
    for tag in ("{{ a }}", "{% if b %}", "{% endif %}"):
        at = shown.index(tag)
        assert tags.origin_at(hidden, at) == source.index(tag)
        assert tags.origin_at(hidden, at + len(tag) - 1) == source.index(tag)
    assert tags.origin_at(hidden, 0) is None
    assert tags.origin_at(hidden, len(shown)) is None
    assert tags.offset_in(source, len(hidden) + 9) == len(source)
