"""Refusals that speak of us, in a row, pause a campaign; nothing else does."""

from __future__ import annotations

import pytest

from sending.answers import Answer, Outcome, Reason, Stage, Verdict
from sending.brakes import Brake

POLICY = Verdict(Outcome.FAILED, Reason.POLICY)
SENT = Verdict(Outcome.SENT, Reason.ACCEPTED)
REFUSED = Answer(Stage.DOT, 550, "5.7.1", "5.7.1 blocked")


def test_the_last_straw_tells_why_and_the_count_starts_again() -> None:
    brake = Brake(limit=3)
    assert [brake.note(1, POLICY, REFUSED) for _ in range(2)] == [None, None]
    assert brake.note(1, POLICY, REFUSED) == "3 refusals in a row (policy): 550 5.7.1 blocked"
    assert brake.note(1, POLICY, REFUSED) is None


def test_an_acceptance_between_them_starts_again() -> None:
    brake = Brake(limit=2)
    brake.note(1, POLICY, REFUSED)
    brake.note(1, SENT, Answer(Stage.DOT, 250))
    assert brake.note(1, POLICY, REFUSED) is None


def test_campaigns_count_apart_and_transactional_messages_not_at_all() -> None:
    brake = Brake(limit=2)
    brake.note(1, POLICY, REFUSED)
    assert brake.note(2, POLICY, REFUSED) is None
    assert [brake.note(None, POLICY, REFUSED) for _ in range(5)] == [None] * 5


@pytest.mark.parametrize(
    "verdict",
    [
        Verdict(Outcome.BOUNCED, Reason.ADDRESS_DEAD),
        Verdict(Outcome.RETRY, Reason.GREYLISTED),
        Verdict(Outcome.FAILED, Reason.REFUSED_LOCALLY),
        Verdict(Outcome.IN_DOUBT, Reason.CONNECTION_LOST),
    ],
)
def test_what_speaks_of_the_recipient_or_the_weather_neither_counts_nor_clears(
    verdict: Verdict,
) -> None:
    brake = Brake(limit=2)
    brake.note(1, POLICY, REFUSED)
    assert brake.note(1, verdict, REFUSED) is None
    assert brake.note(1, POLICY, REFUSED) is not None
