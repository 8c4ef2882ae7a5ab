"""What the page of a campaign says that may be written into it."""

from __future__ import annotations

import pytest

from campaigns.composing import FILTERS, SYSTEM_FIELDS, attribute_field
from campaigns.sandbox import compile_template, fields
from campaigns.sandbox_tags import register
from subscribers.models import AttributeDefinition


def test_every_filter_is_told_with_an_example_that_works() -> None:
    assert [shown.name for shown in FILTERS] != []
    assert {shown.name for shown in FILTERS} == set(register.filters)
    for shown in FILTERS:
        assert f"|{shown.name}" in shown.example
        compile_template(shown.example, html=True)


def test_every_system_field_is_told() -> None:
    for shown in SYSTEM_FIELDS:
        assert fields(shown.tag) == {shown.key}


@pytest.mark.parametrize(
    ("key", "kind", "choices", "tag", "about"),
    [
        ("first_name", "text", [], '{{ first_name|default:"friend" }}', "text"),
        ("company", "text", [], "{{ company }}", "text"),
        ("points", "number", [], '{{ points|default:"0" }}', "number"),
        ("born", "date", [], '{{ born|date:"j F Y" }}', "date"),
        ("vip", "boolean", [], "{% if vip %}...{% endif %}", "yes or no"),
        ("plan", "choice", ["basic", "full"], '{{ plan|default:"basic" }}', "one of basic, full"),
        ("plan", "choice", ['a "b" }}'], "{{ plan }}", 'one of a "b" }}'),
        ("plan", "choice", [], "{{ plan }}", "one of several"),
        ("prénom", "text", [], "{{ prénom }}", "text"),
    ],
)
def test_an_attribute_has_a_tag_of_its_kind(
    key: str, kind: str, choices: list[str], tag: str, about: str
) -> None:
    shown = attribute_field(AttributeDefinition(key=key, kind=kind, choices=choices))
    assert (shown.tag, shown.about) == (tag, about)
    assert fields(tag) == {key}


def test_labels_and_many_choices() -> None:
    choices = [f"c{n}" for n in range(20)]
    shown = attribute_field(
        AttributeDefinition(key="x", label="City", kind="choice", choices=choices)
    )
    assert shown.about == "City: one of c0, c1, c2, c3, c4, c5, c6, c7, ..."
