"""What pauses a campaign: refusals that speak of the sender, dead addresses, complaints."""

from __future__ import annotations

from typing import Any

import pytest

from sending.brakes import Thresholds, Totals, judge, judge_rates, step

USUAL = Thresholds()
REFUSAL = "(policy): 550 5.7.1 blocked"


def totals(accepted: int = 0, **given: Any) -> Totals:
    return Totals(**{"accepted": accepted, "accepted_in_all": accepted, **given})


@pytest.mark.parametrize(
    ("found", "reason"),
    [
        # Refusals in a row, whatever was accepted before.
        (totals(refused=19, in_a_row=19), None),
        (
            totals(9000, refused=20, in_a_row=20, refusal=REFUSAL),
            "20 refusals in a row (policy): 550 5.7.1 blocked",
        ),
        (totals(refused=25, in_a_row=25), "25 refusals in a row"),
        # Not in a row, but as many as were accepted: one of the mailbox providers blocks.
        (totals(100, refused=99, in_a_row=1), None),
        (totals(101, refused=100, in_a_row=1), None),
        (totals(90, refused=100, in_a_row=1), "100 of 190 messages refused"),
        (totals(40, bounced=1, refused=60, in_a_row=4), None),
        # Dead addresses.
        (totals(1), None),
        (totals(0, bounced=1), None),
        (totals(31, bounced=19), None),
        (
            totals(0, bounced=20),
            "20 of 20 addresses are dead (100 %; the account's limit is 5 %)",
        ),
        (
            totals(380, bounced=20),
            "20 of 400 addresses are dead (5 %; the account's limit is 5 %)",
        ),
        (totals(381, bounced=20), None),
        (totals(10_000, bounced=500), None),
        (
            totals(9_000, bounced=533),
            "533 of 9533 addresses are dead (5.59 %; the account's limit is 5 %)",
        ),
        # Complaints.
        (totals(100, complained=2), None),
        (
            totals(100, complained=3),
            "3 complaints about 100 messages (3 %; the account's limit is 0.1 %)",
        ),
        (
            totals(3000, complained=3),
            "3 complaints about 3000 messages (0.1 %; the account's limit is 0.1 %)",
        ),
        (totals(3001, complained=3), None),
        # Told by a provider about messages that this table never saw accepted.
        (
            totals(0, complained=3),
            "3 complaints about 0 messages (100 %; the account's limit is 0.1 %)",
        ),
        # Complaints are about all that was accepted, also before the last resume.
        (totals(10, accepted_in_all=9000, complained=3), None),
    ],
)
def test_what_pauses_a_campaign(found: Totals, reason: str | None) -> None:
    assert judge(found, USUAL) == reason


@pytest.mark.parametrize(
    ("limits", "found", "pauses"),
    [
        (Thresholds(max_refusals=3), totals(refused=3, in_a_row=3), True),
        (Thresholds(max_refusals=500), totals(refused=499, in_a_row=499), False),
        (Thresholds(max_refusals=3), totals(14, refused=15, in_a_row=1), True),
        (Thresholds(max_bounce_rate=0.5), totals(3980, bounced=20), True),
        (Thresholds(max_bounce_rate=100), totals(1, bounced=999), False),
        (Thresholds(max_complaint_rate=50), totals(7, complained=3), False),
        (Thresholds(max_complaint_rate=0.01), totals(30_000, complained=3), True),
    ],
)
def test_the_thresholds_are_the_accounts(limits: Thresholds, found: Totals, pauses: bool) -> None:
    assert (judge(found, limits) is not None) is pauses


def test_by_rates_alone_refusals_say_nothing() -> None:
    assert judge_rates(totals(refused=100, in_a_row=100), USUAL) is None
    assert judge_rates(totals(100, complained=3), USUAL) is not None


def test_a_long_refusal_fits_the_reason() -> None:
    reason = judge(totals(refused=20, in_a_row=20, refusal="x" * 900), USUAL)
    assert reason is not None
    assert len(reason) == 500


def test_counts_are_taken_from_the_last_resume() -> None:
    counts = {"accepted": 1000, "bounced": 70, "refused": 30, "complained": 4}
    base = {"accepted": 600, "bounced": 69, "complained": 9, "refusal": REFUSAL, "trips": 2}
    assert Totals.since(counts, base, 7) == Totals(
        accepted=400,
        bounced=1,
        refused=30,
        complained=0,
        in_a_row=7,
        accepted_in_all=1000,
        refusal=REFUSAL,
    )
    assert Totals.since(counts, {}, 0).answered == 1100


@pytest.mark.parametrize(("limit", "every"), [(1, 1), (7, 1), (20, 2), (80, 10)])
def test_a_process_tells_the_others_long_before_the_limit(limit: int, every: int) -> None:
    assert step(limit) == every
