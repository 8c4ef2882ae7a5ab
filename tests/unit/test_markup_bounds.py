"""Markup that no parser should be given."""

from __future__ import annotations

import pytest

from campaigns.markup_bounds import MOST_ATTRIBUTES, overlong_tag

MANY = " ".join(f"a{n}=1" for n in range(MOST_ATTRIBUTES + 1))


@pytest.mark.parametrize(
    "tag",
    [
        f"<p {MANY}>",
        f"<p {MANY}",
        f'<p title=">" {MANY}>',
        f"<p title='<' {MANY}>",
        "<p " + " ".join(f"a{n}" for n in range(MOST_ATTRIBUTES + 1)) + ">",
        "<p " + "".join(f'a{n}="1"' for n in range(MOST_ATTRIBUTES + 1)) + ">",
        "<p " + "/".join(f"a{n}" for n in range(MOST_ATTRIBUTES + 1)) + ">",
    ],
)
def test_a_tag_of_too_many_attributes_is_found(tag: str) -> None:
    assert overlong_tag(f"<b>x</b>{tag}") == len("<b>x</b>")


@pytest.mark.parametrize(
    "markup",
    [
        "",
        "<p>" + "a=1 " * 10_000 + "</p>",
        "<p title='" + "a=1 " * 10_000 + "'>",
        "a < b " * 10_000,
        "<br>" * 10_000,
        "<" * 100_000,
        "<a " * 100_000,
        '<a "' * 100_000,
    ],
    ids=range(8),
)
def test_text_and_other_markup_are_not(markup: str) -> None:
    assert overlong_tag(markup) is None
