"""Doubt in words: what each reason means, what is likely right, what happens by itself."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from sending.answers import Reason
from sending.doubt_advice import (
    BRIEF_FATES,
    FATES,
    advice,
    consequences,
    fate,
    reason_meaning,
    reason_name,
)
from sending.withheld import WITHHELD

NOW = datetime(2026, 5, 1, 12, tzinfo=UTC)
LATER, BEFORE = NOW + timedelta(minutes=5), NOW - timedelta(minutes=5)
#: Every reason that a row in doubt can have: an outcome's, a rescue's, the last look's.
IN_DOUBT = (
    Reason.CONNECTION_LOST,
    Reason.TIMEOUT,
    Reason.UNREADABLE,
    Reason.UNCLASSIFIED,
    "worker_lost",
    *WITHHELD,
)


@pytest.mark.parametrize("reason", [*IN_DOUBT, "", "of_another_version"])
def test_every_reason_has_a_name_a_meaning_and_advice(reason: str) -> None:
    assert "_" not in reason_name(reason)
    assert reason_meaning(reason).endswith(".")
    for canceled in (False, True):
        for harmless in (False, True):
            told = advice(reason, None, harmless=harmless, canceled=canceled)
            assert told.why.endswith(".")
            assert told.likely in ("", "send_again", "treat_as_sent")


@pytest.mark.parametrize(
    "reason", [r for r in IN_DOUBT if r != "not_sending"], ids=lambda reason: str(reason)
)
def test_no_reason_is_left_without_words_of_its_own(reason: str) -> None:
    assert reason_name(reason) != reason_name("of_another_version")


@pytest.mark.parametrize(
    ("reason", "code", "harmless", "canceled", "likely", "words"),
    [
        ("connection_lost", None, False, False, "treat_as_sent", "mostly have the message"),
        ("timeout", None, False, False, "treat_as_sent", "mostly have the message"),
        ("timeout", None, True, False, "send_again", "does not deliver it twice"),
        ("timeout", None, True, True, "treat_as_sent", "campaign is canceled"),
        ("worker_lost", None, False, False, "", "twice, or that some don't get it"),
        ("worker_lost", None, True, False, "send_again", "by its key"),
        ("unreadable", 502, False, False, "", "had trouble of its own"),
        ("unreadable", 200, False, False, "", "Nothing speaks for one"),
        ("unclassified", None, False, False, "", "Nothing speaks for one"),
        ("suppressed", None, False, False, "treat_as_sent", "the address is suppressed"),
        ("unsubscribed", None, True, False, "treat_as_sent", "the person unsubscribed"),
    ],
)
def test_the_advice(
    reason: str, code: int | None, harmless: bool, canceled: bool, likely: str, words: str
) -> None:
    told = advice(reason, code, harmless=harmless, canceled=canceled)
    assert told.likely == likely
    assert words in told.why


@pytest.mark.parametrize(
    ("settle", "replay", "policy", "status", "what", "until"),
    [
        (None, None, "hold", "sending", "held", None),
        (None, LATER, "hold", "sending", "held", None),
        (NOW, LATER, "hold", "sending", "replay", LATER),
        (NOW, LATER, "hold", "", "replay", LATER),
        (NOW, LATER, "resend", "paused", "replay_paused", LATER),
        (LATER, BEFORE, "hold", "sending", "held", None),
        (LATER, None, "resend", "sent", "resend", LATER),
        (LATER, BEFORE, "assume_sent", "paused", "assume_sent", LATER),
        (LATER, LATER, "resend", "canceled", "closed", None),
    ],
)
def test_what_happens_by_itself(
    settle: datetime | None,
    replay: datetime | None,
    policy: str,
    status: str,
    what: str,
    until: datetime | None,
) -> None:
    told = fate(
        settle_at=settle, replay_until=replay, policy=policy, campaign_status=status, now=NOW
    )
    assert told == (what, until)
    # With a moment, the words go on behind it; both tables know the same.
    assert (FATES[what][1] != "") == (until is not None)
    assert FATES.keys() == BRIEF_FATES.keys()


def test_before_a_decision_it_is_said_what_it_may_do() -> None:
    assert consequences("treat_as_sent", rows=3) == [
        "They count as sent. Whoever did not get the message does not get it.",
        "This can't be taken back.",
    ]
    assert consequences("send_again", rows=3) == ["Whoever got the message already gets it twice."]
    mixed = consequences("send_again", rows=3, harmless=2, reopens=True)
    assert mixed[0] == "Whoever got the message already gets it twice."
    assert "still recognises 2 of them" in mixed[1]
    assert "is sending again until" in mixed[2]
    safe = consequences("send_again", rows=3, harmless=3)
    assert len(safe) == 1
    assert "still recognises them" in safe[0]
