"""Why a decision left rows as they were, told plainly."""

from __future__ import annotations

from collections import Counter

import pytest

from sending.doubt_decisions import Decided, Seen, leftovers, told, why_left
from sending.models import Send


@pytest.mark.parametrize(
    ("row", "decision", "words"),
    [
        (Seen("in_doubt", canceled=True), "send_again", "campaign is canceled"),
        (Seen("in_doubt", canceled=True), "treat_as_sent", "somebody decides about it"),
        (Seen("in_doubt", erased=True), "send_again", "person was erased"),
        (Seen("in_doubt", erased=True), "treat_as_sent", "somebody decides about it"),
        (Seen("in_doubt", held=True), "send_again", "may still live"),
        (Seen("in_doubt", held=True), "treat_as_sent", "somebody decides about it"),
        (Seen("in_doubt", newer=True), "send_again", "in doubt anew"),
        (Seen("in_doubt", newer=True, held=True), "treat_as_sent", "in doubt anew"),
        (Seen("in_doubt"), "send_again", "somebody decides about it"),
        (Seen("failed", canceled=True), "send_again", "campaign is canceled"),
        (Seen("failed", erased=True), "send_again", "person was erased"),
        (Seen("failed"), "treat_as_sent", "was refused"),
        (Seen("sent"), "send_again", "it arrived"),
        (Seen("sent"), "treat_as_sent", "it arrived"),
        (Seen("sent", reason="treated_as_sent"), "send_again", "somebody treated it as sent"),
        (Seen("sent", reason="treated_as_sent"), "treat_as_sent", "decided the same"),
        (Seen("queued"), "send_again", "decided the same"),
        (Seen("queued"), "treat_as_sent", "being sent again"),
        (Seen("claimed"), "send_again", "being sent again"),
        (Seen("sending"), "treat_as_sent", "being sent again"),
        (Seen("retry"), "send_again", "being sent again"),
        (Seen("bounced"), "send_again", "address is dead"),
        (Seen("suppressed"), "send_again", "not to be sent any more"),
        (Seen("canceled"), "treat_as_sent", "not to be sent any more"),
    ],
)
def test_why_a_row_was_left(row: Seen, decision: str, words: str) -> None:
    assert words in why_left(row, decision)


def test_every_status_has_words() -> None:
    for status in Send.Status:
        for decision in ("send_again", "treat_as_sent"):
            assert why_left(Seen(status), decision)


def test_those_decided_are_not_among_those_left() -> None:
    rows = [Seen("queued"), Seen("queued"), Seen("queued"), Seen("sent")]
    left = leftovers(rows, "send_again", decided=2, gone=1)
    assert left == Counter(
        {
            "somebody else decided the same meanwhile": 1,
            "it became known meanwhile that it arrived": 1,
            "there is no such row any more": 1,
        }
    )
    assert leftovers(rows[:3], "send_again", decided=3) == Counter()


def test_what_came_of_it_is_one_line_and_one_for_each_reason() -> None:
    done = Decided(1200, Counter({"changed": 3, "gone": 1}))
    assert told(done, "send_again") == [
        "1,200 of 1,204 messages to be sent again.",
        "3 left as before: changed.",
        "1 left as before: gone.",
    ]
    assert told(Decided(1), "treat_as_sent") == ["1 of 1 message treated as sent."]
