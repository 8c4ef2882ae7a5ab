"""The merge templates' bounds: on values, on output, and on the work that is done on them."""

from __future__ import annotations

import time
import tracemalloc
from typing import Any

import pytest
from django.utils.safestring import mark_safe

from campaigns.sandbox import MAX_OUTPUT, MAX_VALUE, MAX_WORK, SandboxError, compile_template
from campaigns.sandbox_tags import work_on

from .test_sandbox import text


def test_values_and_output_are_bounded() -> None:
    long = "&" * MAX_VALUE
    with pytest.raises(SandboxError, match="longer than"):
        text("{{ x }}", {"x": long + "&"})
    source = compile_template("{{ x }}" * 100, html=True)
    with pytest.raises(SandboxError, match=str(MAX_OUTPUT)):
        source.render({"x": long})
    with pytest.raises(SandboxError):
        text("{{ x }}", {"x": 10**5000})


HEAVY: dict[str, Any] = {
    "bio": "a " * (MAX_VALUE // 2),
    "same": "a " * (MAX_VALUE // 2),
    "short": "Ada",
    "on": "2026-01-05",
    "format": "r" * 60,
    "list": [0.5] * MAX_VALUE,
    "nested": [0] * (MAX_VALUE - 1) + [[]],
    "number": 10**4000,
    "deep": {str(a): {str(b): "x" * 50 for b in range(50)} for a in range(20)},
}


@pytest.mark.parametrize(
    ("tag", "times", "refused"),
    [
        # The same tag at its honest and its excessive number.
        ("{{ bio|title|truncatechars:1 }}", 5, False),
        ("{{ bio|title|title|title|title|title|title|title|truncatechars:1 }}", 3, True),
        ("{{ bio|title|truncatechars:1 }}", 11, True),
        ("{{ short|title|truncatechars:1 }}", 5_000, False),
        ("{{ short|default:bio|truncatechars:1 }}", 5, False),
        ("{{ short|yesno:bio }}", 25, True),
        ("{{ short|date:bio }}", 1, True),
        ("{{ on|date:format|truncatechars:1 }}", 100, False),
        ("{{ on|date:format|truncatechars:1 }}", 1_000, True),
        ("{{ on|date:'j F Y' }}", 1_000, False),
        ("{{ on|date:'" + "r" * 60 + "' }}", 700, True),
        ("{{ 7|floatformat:2|floatformat:2|floatformat:2|floatformat:2 }}", 1_000, False),
        ("{{ 7|floatformat:2|floatformat:2|floatformat:2|floatformat:2 }}", 5_000, True),
        ("{{ number|upper|truncatechars:1 }}", 100, False),
        ("{{ number|upper|truncatechars:1 }}", 500, True),
        ("{{ short|truncatechars:number }}", 1_000, True),
        ("{{ list|truncatechars:1 }}", 2, False),
        ("{{ list|truncatechars:1 }}", 5, True),
        ("{{ list.7 }}", 1_000, False),
        ("{% if list %}{% endif %}", 2, False),
        ("{% if list %}{% endif %}", 20, True),
        ("{% if bio == same %}y{% endif %}", 5, False),
        ("{% if bio == same %}y{% endif %}", 11, True),
        ("{% if bio != same and short %}{% else %}y{% endif %}", 11, True),
        ("{% if not short in bio %}y{% endif %}", 21, True),
        ("{% if short in list %}y{% endif %}", 5, True),
        ("{% if short|default:'x' == 'Ada' and on %}y{% endif %}", 1_500, False),
        ("{% if deep == deep %}y{% endif %}", 2, False),
        ("{% if deep == deep %}y{% endif %}", 20, True),
        ("{{ bio|upper }}", 19, False),
        ("{{ bio }}", 39, False),
    ],
)
def test_work_on_long_values_is_bounded(tag: str, times: int, refused: bool) -> None:
    compiled = compile_template(tag * times, html=False)
    if refused:
        with pytest.raises(SandboxError, match="too much work on long values"):
            compiled.render(HEAVY)
    else:
        compiled.render(HEAVY)


@pytest.mark.parametrize(
    ("known", "others", "refused"),
    [
        # The same tag printed once for all and for each: together they have one budget.
        (9, 0, False),
        (4, 5, False),
        (5, 5, True),
        (10, 0, True),
        (0, 10, True),
    ],
)
def test_what_is_printed_once_for_all_is_charged_to_everybody(
    known: int, others: int, refused: bool
) -> None:
    tag = "{{{{ {}|title|truncatechars:1 }}}}"
    source = tag.format("account.bio") * known + tag.format("bio") * others
    compiled = compile_template(source, html=False).given({"account": {"bio": HEAVY["bio"]}})
    context = {"bio": HEAVY["bio"], "account": {"bio": HEAVY["bio"]}}
    for _ in range(2):
        if refused:
            with pytest.raises(SandboxError, match="too much work on long values"):
                compiled.render(context)
        else:
            assert compiled.render(context) == "…" * (known + others)


@pytest.mark.parametrize(
    ("known", "others", "refused"),
    [(40, 0, False), (20, 20, False), (41, 0, True), (20, 21, True), (0, 41, True)],
)
def test_what_is_printed_once_for_all_counts_as_output(
    known: int, others: int, refused: bool
) -> None:
    bio = "a" * (MAX_VALUE - 1)
    source = "{{ account.bio }}" * known + "{{ bio }}" * others
    compiled = compile_template(source, html=True).given({"account": {"bio": bio}})
    if refused:
        with pytest.raises(SandboxError, match=str(MAX_OUTPUT)):
            compiled.render({"bio": bio, "account": {"bio": bio}})
    else:
        assert len(compiled.render({"bio": bio})) == 40 * (MAX_VALUE - 1)


def test_the_budget_is_of_one_message() -> None:
    compiled = compile_template("{{ bio|title|truncatechars:2 }}" * 11, html=False)
    for _ in range(2):
        with pytest.raises(SandboxError):
            compiled.render(HEAVY)
        assert compiled.render({"bio": "ada"}) == "A…" * 11


@pytest.mark.parametrize(
    ("value", "work"),
    [
        ("", 0),
        ("abc", 3),
        (mark_safe("abc"), 3),
        (None, 0),
        (True, 0),
        (1.5, 0),
        (41, 0),
        (1 << 800, 100),
        ([], 0),
        (["ab", 1, None], 14),
        ({}, 0),
        ({"k": ["ab", {"x": "y" * 10}]}, 28),
    ],
)
def test_counts_the_work_on_a_value(value: Any, work: int) -> None:
    assert work_on(value, MAX_WORK) == work


def test_counting_stops_where_it_is_enough() -> None:
    ring: dict[str, Any] = {"text": "abc"}
    ring["ring"] = ring
    assert 100 < work_on(ring, 100) < 120
    assert work_on(ring, -1) == 0


@pytest.mark.parametrize(
    "source",
    [
        "{{ score|floatformat:200000000 }}",
        "{{ score|floatformat:-200000000 }}",
        "{{ '1e200000000'|floatformat:2 }}",
        "{{ '1e-200000000'|floatformat:2 }}",
        "{{ 1e400|floatformat:2 }}",
        "{{ name|truncatechars:200000000 }}",
        "{{ name|truncatechars:-1 }}",
        "{{ seen|date:name }}",
    ],
)
def test_no_filter_makes_much_of_little(source: str) -> None:
    tracemalloc.start()
    try:
        assert len(text(source)) < 200
        assert tracemalloc.get_traced_memory()[1] < 1_000_000
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("{{" * 400_000, "{{ is not closed"),
        ("{%" * 400_000, "{% is not closed"),
        ("{#" * 400_000, "More than 100 {#"),
        ("{{ a }}" + "x {{" * 200_000, "{{ is not closed"),
        ("{{" * 400_000 + "}}", "can't be read|not closed|too long|longer than|Could not parse"),
    ],
    ids=range(5),
)
def test_tags_without_an_end_take_no_time(source: str, words: str) -> None:
    start = time.process_time()
    with pytest.raises(SandboxError, match=words):
        compile_template(source, html=False)
    assert time.process_time() - start < 5


def test_an_open_comment_is_text() -> None:
    css = "@media print{#menu{color:red}}\n" * 100
    assert compile_template(css, html=False).render({}) == css
