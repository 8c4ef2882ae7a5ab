"""The senders in words, and their rate from the rows that were handed over last."""

from __future__ import annotations

from collections import Counter

import pytest

from sending.senders import Senders, rates, summary


def seen(
    alive: int, silent: int = 0, *, rate: float = 0, running: bool = False, alone: int = 0
) -> Senders:
    return Senders(alive, silent, alive * 8, rate, {}, Counter(), running, alone)


@pytest.mark.parametrize(
    ("found", "words"),
    [
        (seen(0), "No sender is alive: nothing leaves, and nothing is lost. Start one on the "
                  "machine that sends: manage.py run_sender."),
        (seen(0, 1), "No sender is alive: nothing leaves, and nothing is lost. One fell silent "
                     "within a day. Start one on the machine that sends: manage.py run_sender."),
        (seen(1), "1 sender alive, 8 lanes; no campaign is on its way."),
        (seen(2, rate=1234.5, running=True),
         "2 senders alive, 16 lanes, about 1,234 messages a minute at the moment."),
        (seen(1, 2), "1 sender alive, 8 lanes; no campaign is on its way. 2 others fell silent "
                     "within a day without signing off; what was held there is "
                     "taken over by itself."),
        (seen(1, alone=1),
         "1 sender alive, 8 lanes; no campaign is on its way. It serves nothing but the campaign "
         "that it was started for: no other leaves."),
        (seen(3, alone=1),
         "3 senders alive, 24 lanes; no campaign is on its way. One of them serves nothing but the "
         "campaign that it was started for."),
        (seen(3, alone=2),
         "3 senders alive, 24 lanes; no campaign is on its way. 2 of them serve nothing but the "
         "campaign that each was started for."),
        (seen(2, alone=2),
         "2 senders alive, 16 lanes; no campaign is on its way. Each serves nothing but the "
         "campaign that it was started for: no other leaves."),
    ],
)  # fmt: skip
def test_the_senders_in_words(found: Senders, words: str) -> None:
    assert summary(found, command=True) == words


def test_who_can_start_none_is_told_whom_to_ask() -> None:
    told = summary(seen(0), command=False)
    assert "run_sender" not in told
    assert told.endswith("Tell whoever runs the senders.")


def test_rates_are_of_each_campaigns_last_seconds() -> None:
    handed: list[tuple[int, int | None, float | None]]
    handed = [(1, 7, age / 10) for age in range(100)]  # ten a second for ten seconds
    handed += [(2, 8, 1.0), (2, 8, 500.0), (2, None, 2.0), (2, 8, None)]
    total, each = rates(handed, sample=500)
    assert total == pytest.approx(600 + 2 * 6, rel=0.02)
    assert each[7] == pytest.approx(600, rel=0.02)
    assert each[8] == pytest.approx(6)


def test_of_a_full_sample_the_rate_is_of_its_own_time() -> None:
    total, _ = rates([(1, 7, age / 100) for age in range(1, 101)], sample=100)
    assert total == pytest.approx(100 * 60)
