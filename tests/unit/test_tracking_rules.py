"""What a provider's event does to a row: every state, every kind, every order."""

from __future__ import annotations

from datetime import UTC, datetime
from itertools import combinations, permutations

import pytest

from sending.models import Send
from sending.tracking.rules import ARRIVED, NOT_DELIVERED, TAKEN, Result, Row, decide

NOW = datetime(2026, 3, 1, tzinfo=UTC)
KINDS = sorted(TAKEN | ARRIVED | NOT_DELIVERED | {"hard_bounce"})
STATUSES = [str(status) for status in Send.Status.values]
OPEN = ["queued", "retry", "claimed"]


def end(
    status: str, kinds: tuple[str, ...] | list[str], known: frozenset[str] | None = None
) -> str:
    row = Row(status, NOW, known or frozenset())
    for kind in kinds:
        row = decide(row, kind).row
    return str(row.status)


@pytest.mark.parametrize("status", STATUSES)
@pytest.mark.parametrize("kind", KINDS)
def test_one_event(status: str, kind: str) -> None:
    if status == "bounced" or kind == "hard_bounce":
        expected = "bounced"
    elif kind in ARRIVED | TAKEN:
        expected = "sent"
    else:
        expected = status if status in OPEN else "failed"
    assert end(status, [kind]) == expected


@pytest.mark.parametrize("status", STATUSES)
def test_the_order_means_nothing(status: str) -> None:
    kinds = [k for k in KINDS if status not in OPEN or k not in NOT_DELIVERED]
    for size in (2, 3):
        for chosen in combinations(kinds, size):
            ends = {end(status, order) for order in permutations(chosen)}
            assert len(ends) == 1, (chosen, ends)


@pytest.mark.parametrize("status", ["sending", "in_doubt", "sent", "failed"])
@pytest.mark.parametrize(
    ("kinds", "expected"),
    [
        (["queued", "sent", "deferred", "delivered"], "sent"),
        (["queued", "soft_bounce"], "sent"),
        (["queued", "rejected"], "failed"),
        (["soft_bounce", "rejected"], "failed"),
        (["rejected", "delivered"], "sent"),
        (["failed", "opened"], "sent"),
        (["delivered", "hard_bounce", "opened"], "bounced"),
        (["rejected", "hard_bounce"], "bounced"),
        (["complained", "rejected"], "sent"),
    ],
)
def test_the_stronger_word_wins(status: str, kinds: list[str], expected: str) -> None:
    assert {end(status, order) for order in permutations(kinds)} == {expected}


@pytest.mark.parametrize("kind", [*KINDS, "subscribed", "unknown", "inbound", "unreadable", ""])
def test_what_was_never_handed_over_does_not_change(kind: str) -> None:
    for status in STATUSES:
        decision = decide(Row(status), kind)
        assert decision.row.status == status
        assert not decision.bounced
        if kind in ("complained", "unsubscribed"):  # who says so wants no more, in any case
            assert decision.result is Result.APPLIED
        else:
            assert decision.result in (Result.NEVER_HANDED_OVER, Result.IGNORED)


@pytest.mark.parametrize("kind", ["subscribed", "unknown", "inbound", "unreadable", "", "x" * 40])
def test_other_kinds_mean_nothing(kind: str) -> None:
    row = Row("in_doubt", NOW)
    assert decide(row, kind) == decide(row, kind)
    assert (decide(row, kind).result, decide(row, kind).row) == (Result.IGNORED, row)


def test_what_is_sent_again_after_a_rejection_is_not_stopped_by_a_weak_word() -> None:
    """ "Queued" may speak of the attempt that was rejected; "delivered" is a delivery."""
    rejected = frozenset({"rejected"})
    for status in OPEN:
        assert end(status, ["rejected"]) == status
        assert {end(status, [kind], rejected) for kind in TAKEN} == {status}
        assert {end(status, [kind], rejected) for kind in ARRIVED} == {"sent"}


def test_an_opening_is_kept_once() -> None:
    row = Row("sent", NOW)
    first = decide(row, "opened")
    assert (first.result, decide(first.row, "opened").result) == (Result.APPLIED, Result.IGNORED)
    assert decide(first.row, "clicked").result is Result.APPLIED


def test_a_bounce_and_a_complaint_are_counted_once() -> None:
    first = decide(Row("sent", NOW), "hard_bounce")
    again = decide(first.row, "hard_bounce")
    assert (first.bounced, again.bounced, again.result) == (True, False, Result.APPLIED)
    first = decide(Row("sent", NOW), "complained")
    again = decide(first.row, "complained")
    assert (first.complained, again.complained) == (True, False)
