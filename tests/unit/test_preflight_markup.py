"""What preflight reads out of HTML, however it is written."""

from __future__ import annotations

import time

import pytest

from campaigns.preflight.markup import MAX_LOOKED_AT, Picture, read

SIZE = 1_000_000


def test_links_keep_their_tags_and_know_what_is_in_them() -> None:
    page = read(
        '<a href="https://example.org/?a=1&amp;b={{ b }}">Go <b>there</b></a>'
        '<a href="{{ url }}"><img src="x" alt="Shop"></a><a href=y><img src="x"></a>'
        '<a href=""> </a><map><area href=z></map><a name=here>no link</a>'
    )
    assert [(link.url, link.is_empty, link.images) for link in page.links] == [
        ("https://example.org/?a=1&b={{ b }}", False, 0),
        ("{{ url }}", False, 1),
        ("y", True, 1),
        ("", True, 0),
        ("z", True, 0),
    ]
    assert page.targets == {"here"}


def test_both_ways_of_an_if_are_looked_at() -> None:
    page = read("{% if a %}<a href=a>x</a>{% else %}<img src=b>{% endif %}")
    assert [link.url for link in page.links] == ["a"]
    assert page.images == [Picture("b", None)]


def test_what_is_shown_and_what_is_hidden() -> None:
    page = read(
        "<title>No</title><style>no</style><!-- {{ no }} --><script>no</script>"
        '<p>Yes {{ name }} <a href="{{ unsubscribe_url }}">Leave</a></p>'
        '<div style="color:red;display : NONE"><a href=x>Hidden</a> {{ b }}</div>'
        "<p hidden>away</p><p style=opacity:0>gone</p><p style=opacity:0.9>seen</p>"
    )
    assert "".join(page.text.split()) == "Yes{{name}}Leaveseen"
    assert "".join(page.prose.split()) == "Yesseen"
    assert "".join(page.hidden.split()) == "Hiddenawaygone"
    assert [link.hidden for link in page.links] == [False, True]


def test_what_mail_programs_take_out_is_counted() -> None:
    page = read(
        "<form><input onFocus=x><input></form><script></script><iframe></iframe>"
        '<link rel="StyleSheet" href=x><link rel=icon href=x><p onclick="y" on=z>'
    )
    assert page.dropped == {"form": 1, "input": 2, "script": 1, "iframe": 1, "link": 1}
    assert page.handlers == {"onfocus": 1, "onclick": 1}


def test_so_many_links_and_no_more_are_looked_at() -> None:
    page = read("<a href=x>x</a><img src=y>" * (MAX_LOOKED_AT + 3))
    assert (len(page.links), len(page.images), page.more) == (MAX_LOOKED_AT, MAX_LOOKED_AT, 6)


def test_elements_too_deep_inside_each_other_are_said() -> None:
    page = read("<a href=first>x</a>" + "<div>" * 600 + "<a href=last>x</a>")
    assert page.unread
    assert [link.url for link in page.links] == ["first"]


@pytest.mark.parametrize(
    "piece",
    [
        "<a ", '<a href="x', "<a href=x>", "<a href=x>y", "<div>", "<b>", "<b><i><p>", "<!--",
        "<!-", "<", "</a>", "<table><tr><td>", "&", "&#x", "<?", "<script>", "<p>", "<form>",
        "<title>",
        "<svg>", "<![CDATA[", "<!DOCTYPE ", "\0", "<dl><dd>", "<p style=display>", "<img>", "é",
    ],
)  # fmt: skip
def test_hostile_markup_is_read_at_once(piece: str) -> None:
    begun = time.process_time()
    read(piece * (SIZE // len(piece)))
    assert time.process_time() - begun < 2.0


def test_end_tags_without_a_start_in_a_deep_document_are_no_trap() -> None:
    begun = time.process_time()
    read("<b>" * (SIZE // 8) + "</i>" * (SIZE // 8))
    assert time.process_time() - begun < 2.0
