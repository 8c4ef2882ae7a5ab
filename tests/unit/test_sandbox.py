"""The merge templates' sandbox: what it prints and what it refuses."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, date, datetime
from typing import Any

import pytest
from django.utils import translation
from django.utils.safestring import mark_safe
from hypothesis import given, settings
from hypothesis import strategies as st

from campaigns.sandbox import (
    MAX_SOURCE,
    MAX_VALUE,
    SandboxError,
    compile_template,
    fields,
)

DATA: dict[str, Any] = {
    "name": "Zoë <O'Hara>",
    "first-name": "unreachable",
    "age": 41,
    "score": 3.14159,
    "vip": True,
    "nothing": None,
    "joined": "2026-01-05",
    "seen": datetime(2026, 1, 5, 13, 7, tzinfo=UTC),
    "born": date(1990, 2, 28),
    "tags": ["a", 1, None],
    "account": {"name": "Acme", "postal_address": "1 Way\nTown", "items": "own key"},
    "html": "<b>x</b>",
}


def text(source: str, data: dict[str, Any] | None = None) -> str:
    return compile_template(source, html=False).render(DATA if data is None else data)


def html(source: str) -> str:
    return compile_template(source, html=True).render(DATA)


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("Hi {{ name }}", "Hi Zoë <O'Hara>"),
        ("{{ account.postal_address }}", "1 Way\nTown"),
        ("{{ account.items }}", "own key"),
        ("{{ account }}|{{ nothing }}|{{ missing }}|{{ account.missing.deeper }}", "|||"),
        ("{{ tags }} {{ tags.1 }} {{ tags.9 }}", "a, 1,  1 "),
        ("{{ age }} {{ score }} {{ vip }}", "41 3.14159 True"),
        ("{{ born }} {{ seen }}", "1990-02-28 2026-01-05 13:07+00:00"),
        ("{{ missing|default:'friend' }} {{ missing|default:age }}", "friend 41"),
        (
            "{{ nothing|default_if_none:'n' }}{{ vip|yesno:'y,n' }}{{ nothing|yesno:'y,n,m' }}",
            "nym",
        ),
        ("{{ name|upper }} {{ name|lower }}", "ZOË <O'HARA> zoë <o'hara>"),
        ("{{ 'don’t PANIC'|title }} {{ 'ab'|capfirst }}", "Don’t Panic Ab"),
        ("{{ name|truncatechars:4 }} {{ name|truncatechars:99 }}", "Zoë… Zoë <O'Hara>"),
        ("{{ joined|date }} {{ joined|date:'D d/m/y' }}", "5 January 2026 Mon 05/01/26"),
        ("{{ seen|date:'H:i' }}|{{ born|date:'H:i' }}|{{ name|date }}", "13:07||"),
        (
            "{{ score|floatformat }} {{ score|floatformat:2 }} {{ '7'|floatformat:2 }}",
            "3.1 3.14 7.00",
        ),
        (
            "{{ name|floatformat }}|{{ 'nan'|floatformat }}|{{ '1e-999999'|floatformat:2 }}",
            "||0.00",
        ),
        ("{{ account.postal_address|linebreaksbr }}", "1 Way\nTown"),
        ("{{ name|urlencode }}", "Zo%C3%AB%20%3CO%27Hara%3E"),
        ("{% if vip and age > 40 %}a{% elif age %}b{% else %}c{% endif %}", "a"),
        ("{% if not vip %}a{% elif 'a' in tags %}b{% endif %}", "b"),
        ("{% if missing.x == 1 or nothing is None %}y{% else %}n{% endif %}", "y"),
        ("{% if vip == True %}y{% endif %}", "y"),
        ("a{# a note {{ name }} #}b", "ab"),
        ("100 % { } } {x", "100 % { } } {x"),
    ],
)
def test_prints(source: str, expected: str) -> None:
    assert text(source) == expected


def test_escapes_in_html_only() -> None:
    assert html("{{ name }}") == "Zoë &lt;O&#x27;Hara&gt;"
    assert html("{{ html|upper }}{{ html|escape|escape }}") == (
        "&lt;B&gt;X&lt;/B&gt;&lt;b&gt;x&lt;/b&gt;"
    )
    assert html("{{ account.postal_address|linebreaksbr }}") == "1 Way<br>Town"
    assert text("{{ html }}") == "<b>x</b>"


@pytest.mark.parametrize(
    ("source", "place", "words"),
    [
        ("a\n b {% for x in tags %}", (2, 4), "no tag {% for %}"),
        ("{% load i18n %}", (1, 1), "no tag {% load %}"),
        ("{% include 'admin/base.html' %}", (1, 1), "no tag {% include %}"),
        ("{% extends 'x' %}", (1, 1), "no tag {% extends %}"),
        ("{% block a %}{% endblock %}", (1, 1), "no tag {% block %}"),
        ("{% now 'Y' %}", (1, 1), "no tag {% now %}"),
        ("{% with a=1 %}{% endwith %}", (1, 1), "no tag {% with %}"),
        ("{% verbatim %}{{ x }}{% endverbatim %}", (1, 1), "no tag {% verbatim %}"),
        ("{% comment %}x{% endcomment %}", (1, 1), "no tag {% comment %}"),
        ("{% autoescape off %}{% endautoescape %}", (1, 1), "no tag {% autoescape %}"),
        ("{% debug %}", (1, 1), "no tag {% debug %}"),
        ("{% csrf_token %}", (1, 1), "no tag {% csrf_token %}"),
        ("{% partialdef a %}{% endpartialdef %}", (1, 1), "no tag {% partialdef %}"),
        ("{% partial a %}", (1, 1), "no tag {% partial %}"),
        ("{% if vip %}{% for a in b %}{% endif %}", (1, 13), "no tag {% for %}"),
        ("{{ name|safe }}", (1, 1), "no filter 'safe'"),
        ("{{ 'a'|ljust:200000000 }}", (1, 1), "no filter 'ljust'"),
        ("{{ tags|join:name }}", (1, 1), "no filter 'join'"),
        ("{% if name|pprint %}{% endif %}", (1, 1), "no filter 'pprint'"),
        ("x\n{% if vip %}y", (2, 1), "no {% endif %}"),
        ("{% endif %}", (1, 1), "without its {% if %}"),
        ("one\ntwo {{ name", (2, 5), "not closed on its line"),
        ("{{ name\n}}", (1, 1), "not closed on its line"),
        ("{{ }}", (1, 1), "Empty variable tag"),
        ("{% %}", (1, 1), "Empty block tag"),
        ("{{ _private }}", (1, 1), "underscores"),
        ("{{ name.__class__.__mro__ }}", (1, 1), "underscores"),
        ("{{ name..x }}", (1, 1), "Not a field's name"),
        ("{{ _('') }}", (1, 1), "Translated"),
        ("{{ name|default:_('x') }}", (1, 1), "Translated"),
        ("{{ name|upper:1 }}", (1, 1), "upper requires"),
        ("{{ name|default }}", (1, 1), "default requires"),
        ("{{ name x }}", (1, 1), "Could not parse"),
        ("{% if %}{% endif %}", (1, 1), "Unexpected end of expression"),
        ("{% if _('a %}{% endif %}", (1, 1), "can't be read"),
        ("{{ name" + "|upper" * 9 + " }}", (1, 1), "filters in one tag"),
        ("{% if " + "not " * 100 + "vip %}{% endif %}", (1, 1), "words in one tag"),
        ("{{ '" + "x" * 2000 + "' }}", (1, 1), "too long"),
        ("{% if vip %}" * 30 + "{% endif %}" * 30, (1, 241), "inside each other"),
        ("{% if vip %}" * 3000, (1, 241), "inside each other"),
        ("{{ a }}" * 5001, (None, None), "tags"),
        ("x" * (MAX_SOURCE + 1), (None, None), "longer than"),
    ],
)
def test_refuses(source: str, place: tuple[int | None, int | None], words: str) -> None:
    with pytest.raises(SandboxError) as caught:
        compile_template(source, html=True)
    assert words in str(caught.value)
    assert (caught.value.line, caught.value.column) == place


@pytest.mark.parametrize(
    "source",
    [
        "{{ name.upper }}",
        "{{ account.keys }}",
        "{{ tags.sort }}",
        "{{ seen.year }}",
        "{{ age.real }}",
    ],
)
def test_methods_and_attributes_are_out_of_reach(source: str) -> None:
    assert text(source) == ""


def test_objects_are_refused() -> None:
    class Trap:
        def __str__(self) -> str:
            raise AssertionError("called")

        __bool__ = __len__ = __getitem__ = __str__

    for value in (Trap(), lambda: "x", [Trap()], [[1]], {1, 2}, b"x", mark_safe("<b>")):
        with pytest.raises(SandboxError):
            text("{{ x }}", {"x": value})
    assert text("{% if x.y %}a{% endif %}{{ x.y }}", {"x": Trap()}) == ""


GIVEN = {"account": {"name": "Acme & <Co>", "items": ["a", 1], "n": 0}}


@pytest.mark.parametrize(
    ("source", "texts", "reads_person"),
    [
        ("a{{ account.name }}b", {"aAcme &amp; &lt;Co&gt;b"}, False),
        ("{% if account.n %}x{% else %}{{ account.items }}{% endif %}.", {"a, 1."}, False),
        ("{% if account.n or vip %}x{{ account.name }}{% endif %}", {"x"}, True),
        ("a{# b #}c{{ 'd' }}{{ name|default:account.name }}", {"acd"}, True),
        ("{{ account }}{{ account.missing.deeper }}", {""}, False),
        ("{% if vip %}{{ account.name }}{% endif %}y", {"y"}, True),
    ],
)
def test_what_depends_on_nobody_is_printed_once(
    source: str, texts: set[str], reads_person: bool
) -> None:
    compiled = compile_template(source, html=True)
    given_ = compiled.given(GIVEN)
    assert given_.texts == texts
    assert all(type(step) is str for step in given_.steps) is not reads_person
    for person in ({}, {"vip": True, "name": "<Zoë>"}):
        assert given_.render({**person, **GIVEN}) == compiled.render({**person, **GIVEN})


def test_pieces_are_texts_and_what_is_printed_between_them() -> None:
    compiled = compile_template("a {{ x }} b{% if x %} c {{ x }}{% endif %}", html=False)
    assert compiled.texts == {"a ", " b", " c "}
    assert compiled.pieces({"x": "1"}) == ["a ", "1", " b", " c ", "1"]
    assert compiled.pieces({}) == ["a ", "", " b"]


def test_the_language_of_whoever_looks_changes_nothing() -> None:
    with translation.override("fr"):
        assert text("{{ joined|date }} {{ score|floatformat:2 }}") == "5 January 2026 3.14"


def test_names_the_fields() -> None:
    source = "{% if a %}{{ b|default:c }}{{ account.x }}{% elif d|upper == 'X' %}{% endif %}"
    assert fields(source) == {"a", "b", "c", "d", "account.x"}


def test_tells_bare_fields_from_those_with_a_way_out() -> None:
    compiled = compile_template(
        "{{ a }}{{ b|default:'x' }}{% if c and not d %}{{ c }}{{ e }}{% else %}{{ c|upper }}"
        "{% endif %}",
        html=False,
    )
    assert compiled.bare == {"a", "e"}


@pytest.mark.parametrize(
    ("source", "always"),
    [
        ("{{ u }}", {"u"}),
        ("{% if a %}{{ u }}{% endif %}", set()),
        ("{% if a %}{{ u }}{% else %}{{ u }}{{ v }}{% endif %}", {"u"}),
        ("{% if a %}{{ u }}{% elif b %}{% else %}{{ u }}{% endif %}", set()),
        ("{% if u %}x{% endif %}", set()),
    ],
)
def test_knows_what_everybody_sees(source: str, always: set[str]) -> None:
    assert compile_template(source, html=True).always == always


def test_renders_from_many_threads() -> None:
    compiled = compile_template("{% if n %}{{ n }}{% else %}zero{% endif %}" * 50, html=True)

    def render(number: int) -> bool:
        return compiled.render({"n": number}) == (str(number) if number else "zero") * 50

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(render, range(400)))


# fmt: off
FRAGMENTS = st.sampled_from([
    "{{", "}}", "{%", "%}", "{#", "#}", " if ", "endif", "else", "elif", "not ", "x", ".", "|", ":",
    "'", '"', "upper", "default", "_(", ")", "1", "e9", "-", "==", "é", "\\", " ", "\n", "\0",
])
# fmt: on


@given(st.lists(FRAGMENTS, max_size=30).map("".join))
@settings(derandomize=True, max_examples=300, deadline=None)
def test_garbage_is_refused_or_rendered_never_worse(source: str) -> None:
    try:
        compiled = compile_template(source, html=True)
    except SandboxError:
        return
    assert len(compiled.render({"x": "y"})) <= 6 * len(source) + 20


@given(st.text(max_size=80))
@settings(derandomize=True, max_examples=100, deadline=None)
def test_data_never_becomes_markup_or_template(value: str) -> None:
    assert compile_template("{{ x }}", html=False).render({"x": value}) == value
    assert not set("<>\"'") & set(compile_template("{{ x }}", html=True).render({"x": value}))


@pytest.mark.parametrize(
    "source",
    [
        "{% if x == x %}a{% else %}b{% endif %}",
        "{% if x in x %}a{% else %}b{% endif %}",
        "{% if 'a' != x and 1 %}a{% else %}b{% endif %}",
    ],
)
@pytest.mark.parametrize("value", ["y" * (MAX_VALUE + 1), object(), [object()]])
def test_a_refused_value_in_a_condition_is_no_other_branch(source: str, value: Any) -> None:
    with pytest.raises(SandboxError):
        compile_template(source, html=True).render({"x": value})
