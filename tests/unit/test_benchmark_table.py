"""The benchmarks' sums: medians, ratios by round, tables, the verdict on the targets."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.harness import contest, figures, results, table
from benchmarks.harness.contest import Round
from benchmarks.harness.table import Extent, Target
from benchmarks.harness.timing import Failed, Took
from benchmarks.profile_drain import count, report, working

AT_LEAST = Target("drain", "a drain", least=0.3, climb=0.5)
AT_MOST = Target("claim", "a claim", least=2, climb=1.3, unit="x", at_most=True)


def test_a_ratio_is_taken_round_by_round() -> None:
    # The second round was disturbed as a whole: both were three times slower in it.
    assert table.ratio([100, 30, 110], [200, 60, 200]) == pytest.approx(0.5)


def test_rounds_that_do_not_correspond_are_refused() -> None:
    with pytest.raises(ValueError, match="shorter"):
        table.ratio([1, 2], [1])


@pytest.mark.parametrize(
    ("target", "reached", "expected"),
    [
        (AT_LEAST, 0.29, "missed"),
        (AT_LEAST, 0.30, "reached"),
        (AT_LEAST, 0.49, "reached"),
        (AT_LEAST, 0.50, "climbed"),
        (AT_LEAST, 0.0, "missed"),
        (AT_LEAST, None, "not measured"),
        (AT_MOST, 2.01, "missed"),
        (AT_MOST, 2.0, "reached"),
        (AT_MOST, 1.3, "climbed"),
        (AT_MOST, 0.9, "climbed"),
        (AT_MOST, None, "not measured"),
    ],
)
def test_the_verdict(target: Target, reached: float | None, expected: str) -> None:
    assert table.verdict(target, reached) == expected


def test_every_climb_is_beyond_what_is_asked_at_least() -> None:
    for target in table.TARGETS:
        assert target.meets(target.climb, target.least), target.key
        assert not target.meets(target.least, target.climb), target.key


def test_the_score_has_a_row_for_each_target_and_says_what_is_missing() -> None:
    extents = {"drain": Extent(3, "50,000 people")}

    rows = table.score({"drain": 0.4123}, {"drain": "how"}, extents, (AT_LEAST, AT_MOST))

    assert rows[1:] == [
        ["a drain", "at least 0.3", "0.5", "0.412", "reached", "3", "50,000 people", "how"],
        ["a claim", "at most 2x", "1.3x", "", "not measured", "", "", ""],
    ]


@pytest.mark.parametrize(
    ("extent", "expected"),
    [
        (Extent(3, "all"), "climbed"),
        (Extent(1, "all"), "climbed (1 run)"),
        (Extent(2, "few", smaller=True), "climbed (2 runs, smaller)"),
        (Extent(3, "few", smaller=True), "climbed (smaller)"),
        (None, "climbed (1 run)"),
    ],
)
def test_a_verdict_on_few_runs_or_a_smaller_size_is_marked(
    extent: Extent | None, expected: str
) -> None:
    extents = {} if extent is None else {"drain": extent}

    rows = table.score({"drain": 0.6}, {}, extents, (AT_LEAST,))

    assert rows[1][4] == expected


def test_of_small_numbers_nothing_is_concluded() -> None:
    rows = table.score({"post_office": 9.0}, {}, {"post_office": Extent(1)}, quick=True)

    assert {row[4] for row in rows[1:]} == {"-"}
    assert not any("best" in row[0] for row in rows)


@pytest.mark.parametrize(
    ("number", "noun", "expected"),
    [
        (1, "round", "1 round"),
        (3, "round", "3 rounds"),
        (1, "process", "1 process"),
        (2, "process", "2 processes"),
    ],
)
def test_a_number_of_things(number: int, noun: str, expected: str) -> None:
    assert table.plural(number, noun) == expected


def test_a_table_of_text_has_numbers_to_the_right() -> None:
    assert table.text([["who", "rate"], ["smtp-source", "19,000"], ["us", "9"]]) == (
        "who          rate\nsmtp-source  19,000\nus                9"
    )


def test_a_table_of_markdown_survives_a_bar_in_a_cell() -> None:
    assert table.markdown([["a", "b"], ["1|2", "3"]]) == "| a | b |\n| --- | --- |\n| 1\\|2 | 3 |"


def rounds(*seconds: float, messages: int = 1000, idle: float = 1.0) -> list[Round]:
    return [
        Round(messages, Took(whole, cpu=whole / 2), Took(idle, cpu=idle / 2), bytes=messages * 6000)
        for whole in seconds
    ]


def test_start_up_is_taken_off_a_rate_and_off_processor_time() -> None:
    (only,) = rounds(3.0)

    assert only.rate == pytest.approx(500)
    assert only.rate_with_start == pytest.approx(1000 / 3)
    assert only.cpu == pytest.approx(0.001)


def test_a_drain_as_short_as_its_start_up_divides_by_no_zero() -> None:
    (only,) = rounds(0.5)

    assert only.rate > 0
    assert only.cpu == 0


def test_a_record_of_the_sending_counts_more_than_start_up_taken_off() -> None:
    only = Round(1000, Took(3.0, 1.0), Took(1.0, 0.5), span=2.5)

    assert only.rate == pytest.approx(400)
    assert only.rate_with_start == pytest.approx(1000 / 3)


def test_the_table_of_a_contest_has_medians_and_ratios() -> None:
    found = {"ceiling": rounds(1.0, 2.0, 1.0, idle=0.0), "us": rounds(3.0, 5.0, 3.0)}

    heading, ceiling, us = contest.rows(found, "ceiling", {"version": {"us": "1.0"}})

    assert heading[3] == "to ceiling"
    assert ceiling[:4] == ["ceiling", "1,000", "1,000", "1.000"]
    assert us == ["us", "500", "333", "0.500", "1.000", "6,000", "1.0"]
    assert contest.ratio_of(found, "us", "ceiling") == pytest.approx(0.5)


class Scripted:
    """A contestant that writes down what it is asked to do."""

    name = "scripted"
    messages = 10

    def __init__(self) -> None:
        self.done: list[str] = []

    def prepare(self) -> None:
        self.done.append("prepare")

    def drain(self) -> Took:
        self.done.append("drain")
        return Took(2.0, 1.0) if self.done.count("drain") % 2 else Took(1.0, 0.5)

    def check(self) -> None:
        self.done.append("check")


def test_rounds_are_taken_in_turn_and_each_is_checked_before_its_idle_run() -> None:
    first, second = Scripted(), Scripted()
    second.name = "other"
    said: list[str] = []

    found = contest.contest([first, second], 2, lambda: 0, said.append)

    assert first.done == ["prepare", "drain", "check", "drain"] * 2
    assert [line.split()[2] for line in said] == ["scripted", "other", "scripted", "other"]
    assert [r.seconds for r in found["scripted"]] == [1.0, 1.0]


def test_a_round_that_would_be_late_is_not_begun_but_the_first_is() -> None:
    late = Scripted()
    said: list[str] = []

    found = contest.contest([late], 3, lambda: 0, said.append, until=0.0)

    assert len(found["scripted"]) == 1
    assert said[-1] == "no time for round 2"


class Hanging(Scripted):
    """One whose second round takes too long."""

    name = "hanging"

    def drain(self) -> Took:
        if self.done.count("prepare") == 2:
            raise Failed("more than 120 s")
        return super().drain()


def test_a_peer_that_fails_is_left_out_and_takes_nobody_along() -> None:
    ours, said = Scripted(), list[str]()

    found = contest.contest([ours, Hanging()], 3, lambda: 0, said.append, may_fail={"hanging"})

    assert {name: len(rounds) for name, rounds in found.items()} == {"scripted": 3}
    assert "round 2: hanging is left out: more than 120 s" in said


def test_our_own_failure_is_nothing_to_leave_out() -> None:
    with pytest.raises(Failed):
        contest.contest([Hanging(), Scripted()], 3, lambda: 0, lambda _: None, may_fail={"other"})


def test_figures_are_read_as_they_were_written(tmp_path: Path) -> None:
    path = tmp_path / "figures"
    found = figures.Found()
    figures.write_to(path)
    try:
        figures.tell("drain", 0.41, "how", Extent(3, "50,000 people", smaller=True))
        figures.tell_table("drain", [["a"], ["1"]])
        figures.tell_left_out("a peer: no Python")
    finally:
        figures.write_to(None)
    figures.tell("drain", 9.0, "nobody asked")

    found.take(path.read_text())

    assert found.reached == {"drain": 0.41}
    assert found.notes == {"drain": "how"}
    assert found.extents == {"drain": Extent(3, "50,000 people", smaller=True)}
    assert found.tables == {"drain": [["a"], ["1"]]}
    assert found.left_out == ["a peer: no Python"]


def test_the_document_says_what_was_reached_left_out_and_run() -> None:
    found = figures.Found(
        {"drain": 0.6, "compose": 0.12},
        {"drain": "how", "compose": "so"},
        {"drain": Extent(3, "9 people"), "compose": Extent(5, "7 messages")},
        left_out=["scale: no."],
    )

    text = results.document(found, {"cores": "2"}, [("python -m benchmarks.bench_drain", 61.4, "")])

    assert "| at least 0.3 | 0.5 | 0.6 | climbed | 3 | 9 people | how |" in text
    assert "| compose | 0.12 | 5 | 7 messages | so |" in text
    assert "- scale: no." in text
    assert "| cores | 2 |" in text
    assert "python -m benchmarks.bench_drain    # 61 s\n" in text


STACKS = (
    "main (manage.py:1);wait (threading.py:9) 70",
    "_bootstrap_inner (threading.py:1);step (lanes.py:1);render (compose.py:1) 6",
    "_bootstrap_inner (threading.py:1);step (lanes.py:1) 2",
    "_bootstrap_inner (threading.py:1);step (lanes.py:1);step (lanes.py:1) 2",
)


def test_a_profile_counts_own_samples_and_those_below_once_a_stack() -> None:
    own, below, every = count(working(STACKS))

    assert every == 10
    assert own == {"render (compose.py:1)": 6, "step (lanes.py:1)": 4}
    assert below["step (lanes.py:1)"] == 10


def test_a_profile_without_samples_says_so() -> None:
    assert report(STACKS[:1], 5) == "no samples"
    assert "  60.0%  render (compose.py:1)" in report(STACKS, 1)
