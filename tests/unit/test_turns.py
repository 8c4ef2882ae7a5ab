"""Rows of one transport: single messages first, campaigns in turn, and none lost or doubled."""

from __future__ import annotations

from functools import partial

from hypothesis import given, settings
from hypothesis import strategies as st

from sending.queue import Claimed
from sending.turns import Turns
from tests.claimed_rows import claimed_row


def _turns(*rows: tuple[int, int | None]) -> Turns:
    turns = Turns()
    for row_id, campaign_id in rows:
        turns.append(claimed_row(row_id, campaign_id=campaign_id))
    return turns


def _ids(rows: list[Claimed]) -> list[int]:
    return [row.id for row in rows]


def test_campaigns_take_turns_by_lots() -> None:
    turns = _turns(*((n, 1) for n in range(10)), (20, 2), (21, 2), (30, 3))
    lots = [_ids(turns.take(3)) for _ in range(5)]
    # A lot is filled up by the next campaign, whose turn goes on with the lot after it.
    assert lots == [[0, 1, 2], [20, 21, 30], [3, 4, 5], [6, 7, 8], [9]]
    assert len(turns) == 0


def test_a_campaign_that_begins_waits_for_a_lot_of_each_other() -> None:
    turns = _turns(*((n, 1) for n in range(100)))
    turns.take(20)
    turns.append(claimed_row(500, campaign_id=2))
    assert 500 not in _ids(turns.take(20))
    assert 500 in _ids(turns.take(20))


def test_a_campaign_that_is_refilled_again_and_again_hides_no_other() -> None:
    turns = _turns(*((n, 1) for n in range(10)))
    seen: list[int] = []
    for n in range(10):
        for campaign_id in range(2, 12):
            turns.append(claimed_row(100 * campaign_id + n, campaign_id=campaign_id))
        seen += _ids(turns.take(10))
    assert sum(row_id < 100 for row_id in seen) >= 5


def test_single_messages_are_first_and_those_let_in_are_next() -> None:
    turns = _turns((1, 1), (2, 1), (7, None), (8, None))
    turns.let_in([claimed_row(30, campaign_id=3), claimed_row(31, campaign_id=3)])
    turns.append(claimed_row(9, campaign_id=None))
    assert _ids(turns.take(6)) == [7, 8, 9, 30, 31, 1]


def test_what_was_put_back_is_the_very_next() -> None:
    turns = _turns((1, 1), (2, 1), (7, None))
    taken = turns.take(2)
    turns.put_back(taken)
    assert _ids(turns.take(9)) == [7, 1, 2]


def test_what_is_taken_out_is_gone_wherever_it_stood() -> None:
    turns = _turns((1, 1), (2, 2), (3, 2), (7, None))
    turns.let_in([claimed_row(4, campaign_id=2)])
    assert sorted(_ids(turns.take_out(lambda row: row.campaign_id == 2))) == [2, 3, 4]
    assert (len(turns), _ids(list(turns)), _ids(turns.take(9))) == (2, [7, 1], [7, 1])


def _is_of(campaigns: list[int | None], row: Claimed) -> bool:
    return row.campaign_id in campaigns


_ROWS = st.lists(st.sampled_from([None, 1, 2, 3]), max_size=8)
_STEPS = st.lists(
    st.tuples(st.sampled_from(["append", "let_in", "put_back", "take", "take_out"]), _ROWS),
    max_size=30,
)


@given(_STEPS)
@settings(derandomize=True, max_examples=150, deadline=None)
def test_whatever_is_done_each_row_comes_out_once_and_campaigns_keep_their_order(
    steps: list[tuple[str, list[int | None]]],
) -> None:
    turns, here, number = Turns(), set[int](), 0
    in_order: list[tuple[int | None, int]] = []
    only_appended = all(verb in ("append", "take") for verb, _ in steps)
    for verb, campaigns in steps:
        out: list[Claimed] = []
        if verb == "take":
            out = turns.take(len(campaigns))
            assert len(out) == min(len(campaigns), len(here))
        elif verb == "take_out":
            out = turns.take_out(partial(_is_of, campaigns))
            assert not any(row.campaign_id in campaigns for row in turns)
        else:
            rows = [
                claimed_row(number + n, campaign_id=campaign)
                for n, campaign in enumerate(campaigns)
            ]
            number += len(rows)
            here |= {row.id for row in rows}
            if verb == "append":
                for row in rows:
                    turns.append(row)
            else:
                getattr(turns, verb)(rows)
        assert {row.id for row in out} <= here
        here -= {row.id for row in out}
        in_order += [(row.campaign_id, row.id) for row in out]
        assert {row.id for row in turns} == here
        assert len(turns) == len(here) == len(list(turns))
    if only_appended:
        for campaign in (None, 1, 2, 3):
            ids = [row_id for of, row_id in in_order if of == campaign]
            assert ids == sorted(ids)
