"""Looking for plain strings first is only quick: it must not hide a match of the pattern."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sending.replies import http_rules
from sending.replies import rules as reply_rules
from sending.replies import words as reply_words
from sending.replies.words import Words, plain

from .replies import API_REPLIES, REPLIES

#: By name, or by the table and the place in it.
ALL: dict[str, Words] = {
    **{name: value for name, value in vars(reply_words).items() if isinstance(value, Words)},
    **{
        f"{table}[{place}]": rule.text
        for table in ("HOUSES", "EVERYONE", "BASIC", "DEFERRED")
        for place, rule in enumerate(getattr(reply_rules, table))
        if rule.text is not None
    },
    **{f"HTTP_REFUSED[{i}]": said for i, (said, _) in enumerate(http_rules.HTTP_REFUSED)},
}
QUICK = {name: said for name, said in ALL.items() if said.needles}
TEXTS = [plain(row[4], row[3]) for row in (*REPLIES, *API_REPLIES)]


def test_the_houses_are_passed_over_by_their_needles() -> None:
    for rule in reply_rules.HOUSES:
        assert rule.text is not None
        assert set(rule.text.needles) <= set(reply_rules.HOUSE_NEEDLES)
        assert rule.text.needles


@pytest.mark.parametrize("name", sorted(QUICK))
def test_no_real_reply_is_overlooked(name: str) -> None:
    said = QUICK[name]
    overlooked = [t for t in TEXTS if said.pattern.search(t) and not said.search(t)]
    assert not overlooked


@pytest.mark.parametrize("name", sorted(QUICK))
@settings(derandomize=True, max_examples=10, deadline=None, suppress_health_check=[*HealthCheck])
@given(data=st.data())
def test_nothing_that_matches_is_overlooked(name: str, data: st.DataObject) -> None:
    said = QUICK[name]
    text = data.draw(st.from_regex(said.pattern)).lower()
    if said.pattern.search(text):
        assert said.search(text)


def test_an_address_and_repeated_codes_are_no_words() -> None:
    text = "5.7.1 <spam.blocked@example.org>: it is 5.7.1 likely"
    assert plain(text, "5.7.1") == " <@>: it is likely"
    assert plain("Nobody@Example.Org unknown", "") == " @ unknown"
    assert plain("@" * 500, "") == " " + "@" * 500
