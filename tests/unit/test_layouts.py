"""Frames and the bodies that fill them: what comes out, and where an error is said to be."""

from __future__ import annotations

import re
import time

import pytest

from campaigns.layouts import (
    BODY,
    LAYOUT,
    LayoutError,
    compose,
    first_block_tag,
    read_body,
    read_frame,
)
from campaigns.sandbox import place

FRAME = """\
<h1>{% block title %}News{% endblock %}</h1>
{% block content %}{% endblock %}
<p>{% block foot %}{{ account.name }}{% endblock foot %}</p>
"""


def composed(body: str, frame: str = FRAME) -> str:
    read = read_frame(frame)
    return compose(read, read_body(body, read)).text


@pytest.mark.parametrize(
    ("body", "made"),
    [
        ("<p>Hi</p>", "<h1>News</h1>\n<p>Hi</p>\n<p>{{ account.name }}</p>\n"),
        ("", "<h1>News</h1>\n\n<p>{{ account.name }}</p>\n"),
        (
            "{% block title %}Spring{% endblock %}\n<p>Hi</p>",
            "<h1>Spring</h1>\n<p>Hi</p>\n<p>{{ account.name }}</p>\n",
        ),
        (
            "a\n{%block foot%}\nBye\n{%endblock%}\nb",
            "<h1>News</h1>\na\nb\n<p>Bye</p>\n",
        ),
        ("a{% block foot %}{% endblock %}b", "<h1>News</h1>\nab\n<p></p>\n"),
        (
            "{% block foot %}F{% endblock %}{% block title %}T{% endblock title %}C",
            "<h1>T</h1>\nC\n<p>F</p>\n",
        ),
        (
            "{% block foot %}{% if a %}F{% endif %}{% endblock %}{% if b %}C{% endif %}",
            "<h1>News</h1>\n{% if b %}C{% endif %}\n<p>{% if a %}F{% endif %}</p>\n",
        ),
        # No tags: a comment, and what only looks like one.
        (
            "{# {% block x %} #}{ % block x % }",
            "<h1>News</h1>\n{# {% block x %} #}{ % block x % }\n<p>{{ account.name }}</p>\n",
        ),
    ],
)
def test_a_body_fills_the_blocks_and_the_rest_is_the_content(body: str, made: str) -> None:
    assert composed(body) == made


@pytest.mark.parametrize(
    ("body", "where", "words"),
    [
        ("a\n {% block nope %}{% endblock %}", (2, 2), "has no block nope; there are foot, title"),
        ("{% block content %}a{% endblock %}", (1, 1), "leave out {% block content %}"),
        (
            "{% block title %}{% endblock %}\n{% block title %}{% endblock %}",
            (2, 1),
            "second {% block title %}",
        ),
        (
            "{% block title %}{% block foot %}{% endblock %}{% endblock %}",
            (1, 18),
            "inside of {% block title %}",
        ),
        ("x{% block title %}\n", (1, 2), "has no {% endblock %}"),
        ("\nx {% endblock %}", (2, 3), "without its {% block %}"),
        ("{% block title %}{% endblock foot %}", (1, 18), "ends in {% endblock foot %}"),
        (
            "{% if a %}\n{% block title %}{% endblock %}{% endif %}",
            (2, 1),
            "inside of {% if %}",
        ),
        (
            "{% if a %}{% elif b %}{% block title %}{% endblock %}{% endif %}",
            (1, 23),
            "inside of {% if %}",
        ),
        (
            "{% block title %}\n{% if a %}{% endblock %}{% endif %}",
            (2, 1),
            "has no {% endif %} inside of {% block title %}",
        ),
        ("{% block %}{% endblock %}", (1, 1), "one name"),
        ("{% block a b %}{% endblock %}", (1, 1), "one name"),
        ("{% block 'title' %}{% endblock %}", (1, 1), "one name"),
        ("{% block _x %}{% endblock %}", (1, 1), "one name"),
        ("{% block ../x %}{% endblock %}", (1, 1), "one name"),
        (f"{{% block {'x' * 51} %}}{{% endblock %}}", (1, 1), "one name"),
        ("{% block ſ %}{% endblock %}", (1, 1), "one name"),
        ("x" * 1_000_001, (None, None), "longer than"),
        ("{% block title %}" * 50_000, (1, 18), "inside of"),
        ("{% block title %}" * 100_000, (None, None), "longer than"),
        ("{% block title %}{% endblock %}" * 20_000, (1, 32), "second"),
        ("{{ a }}\n" * 5_001, (5_001, 1), "More than 5000 tags"),
    ],
)
def test_what_is_wrong_with_a_body_and_where(
    body: str, where: tuple[int | None, int | None], words: str
) -> None:
    with pytest.raises(LayoutError, match=re.escape(words)) as caught:
        composed(body)
    error = caught.value
    assert (error.field, error.line, error.column) == (BODY, *where)


@pytest.mark.parametrize(
    ("frame", "where", "words"),
    [
        ("", (None, None), "no {% block content %}"),
        ("<p>{% block body %}{% endblock %}</p>", (None, None), "no {% block content %}"),
        (FRAME + "{% block content %}{% endblock %}", (4, 1), "second {% block content %}"),
        (
            "{% if a %}{% block content %}{% endblock %}{% endif %}",
            (1, 11),
            "inside of {% if %}",
        ),
        (
            "{% block a %}{% block content %}{% endblock %}{% endblock %}",
            (1, 14),
            "inside of {% block a %}",
        ),
        ("{% block content %}", (1, 1), "has no {% endblock %}"),
    ],
)
def test_what_is_wrong_with_a_frame_and_where(
    frame: str, where: tuple[int | None, int | None], words: str
) -> None:
    with pytest.raises(LayoutError, match=re.escape(words)) as caught:
        read_frame(frame)
    error = caught.value
    assert (error.field, error.line, error.column) == (LAYOUT, *where)


def test_each_character_is_traced_to_where_it_was_written() -> None:
    body = "{% block title %}\nÄ😀\n{% endblock %}\none\ntwo"
    frame = read_frame(FRAME)
    made = compose(frame, read_body(body, frame))
    for word, field, source in (
        ("<h1>", LAYOUT, FRAME),
        ("😀", BODY, body),
        ("two", BODY, body),
        ("one", BODY, body),
        ("{{ account", LAYOUT, FRAME),
    ):
        assert made.origin(made.text.index(word)) == (field, source.index(word))
    assert made.origin(len(made.text) + 5) == (LAYOUT, len(FRAME))
    assert compose(frame, read_body("", frame)).origin(0) == (LAYOUT, 0)


def test_other_tags_keep_their_places_for_the_sandbox() -> None:
    body = "{% block title %}a {{ b }}{% endblock %}\n{{ c }}"
    masked = read_body(body, read_frame(FRAME)).masked()
    assert len(masked) == len(body)
    assert "block" not in masked
    for tag in ("{{ b }}", "{{ c }}"):
        assert masked.index(tag) == body.index(tag)


@pytest.mark.parametrize(
    ("text", "offset", "where"),
    [("", 0, (1, 1)), ("ab\ncd", 3, (2, 1)), ("ab\ncd", 2, (1, 3)), ("\n\n", 2, (3, 1))],
)
def test_lines_and_columns_count_from_one(text: str, offset: int, where: tuple[int, int]) -> None:
    assert place(text, offset) == where


def test_the_first_tag_of_a_block_is_found_and_nothing_else() -> None:
    assert first_block_tag("{{ block }} {% if block %} {# {% block %} #} block") is None
    assert first_block_tag("x {%block a%}") == 2
    assert first_block_tag("x {% endblock %}") == 2


def test_reading_is_linear_in_the_number_of_blocks() -> None:
    def seconds(number: int) -> float:
        names = [f"b{n}" for n in range(number)]
        blocks = "".join(f"{{% block {name} %}}{'x' * 100}{{% endblock %}}\n" for name in names)
        frame = "{% block content %}{% endblock %}" + blocks
        start = time.process_time()
        assert len(composed(blocks, frame)) > 100 * number
        return time.process_time() - start

    seconds(100)
    few, many = min(seconds(200) for _ in range(3)), min(seconds(2_000) for _ in range(3))
    assert many < 40 * few, (few, many)
