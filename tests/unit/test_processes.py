"""Several processes side by side: what an end means, and what they tell together."""

from __future__ import annotations

import io
import threading

import pytest

from sending import clock
from sending.processes import NotAlone, Supervisor, Tie
from sending.processes_ends import Next, after, exit_code, wait_before
from sending.processes_reports import LARGEST, Reporter, Totals, decode, encode
from sending.progress import Figures, Lines, fields
from sending.remaining import Remaining


def remaining(**given: int | float) -> Remaining:
    return Remaining(**{"total": 100, "open": 60, "waiting": 0, "building": False, **given})  # type: ignore[arg-type]


def figures(sent: int, **given: object) -> Figures:
    return Figures(**{"counts": {"sent": sent}, "remaining": None, "reasons": [], **given})  # type: ignore[arg-type]


# --- ends ------------------------------------------------------------------------------------

STAYS = {"any_came_up": True, "drain": False, "stopping": False}


@pytest.mark.parametrize(
    ("code", "given", "follows"),
    [
        # A process that was killed, that failed, or that somebody stopped alone.
        (-9, {}, Next.AGAIN),
        (1, {}, Next.AGAIN),
        (5, {}, Next.AGAIN),
        (143, {}, Next.AGAIN),
        (0, {}, Next.AGAIN),
        # There is work left as long as one has not drained.
        (0, {"drain": True}, Next.OVER),
        (-9, {"drain": True}, Next.AGAIN),
        (1, {"drain": True}, Next.AGAIN),
        (5, {"drain": True}, Next.AGAIN),
        # Another start would meet the same.
        (2, {}, Next.END_ALL),
        (3, {}, Next.END_ALL),
        (4, {"drain": True}, Next.END_ALL),
        # The first one looks at the database for all.
        (1, {"any_came_up": False}, Next.END_ALL),
        (3, {"any_came_up": False}, Next.END_ALL),
        (-9, {"any_came_up": False}, Next.AGAIN),
        # They were told to end.
        (0, {"stopping": True}, Next.OVER),
        (-9, {"stopping": True}, Next.OVER),
        (4, {"stopping": True}, Next.OVER),
        (1, {"stopping": True, "any_came_up": False}, Next.OVER),
    ],
)
def test_what_follows_an_end(code: int, given: dict[str, bool], follows: Next) -> None:
    assert after(code, **{**STAYS, **given}) is follows


def test_the_waits_grow_and_begin_anew_after_a_good_life() -> None:
    waits = [0.0]
    for _ in range(7):
        waits.append(wait_before(lived=2.0, last=waits[-1]))
    assert waits[1:] == [1.0, 2.0, 4.0, 8.0, 16.0, 30.0, 30.0]
    assert wait_before(lived=60.0, last=30.0) == 1.0


@pytest.mark.parametrize(
    ("ended_all", "any_abandoned", "last", "code"),
    [
        (None, False, [0, 0], 0),
        (None, False, [0, -9], 1),
        (None, False, [143, 0], 1),
        (None, True, [0, 0], 5),
        (None, True, [5, -9], 5),
        (4, False, [4, 0], 4),
        (4, True, [4, 5], 4),
    ],
)
def test_the_exit_code_of_the_whole(
    ended_all: int | None, any_abandoned: bool, last: list[int], code: int
) -> None:
    assert exit_code(ended_all=ended_all, any_abandoned=any_abandoned, last=last) == code


# --- figures ---------------------------------------------------------------------------------


def test_a_report_is_read_as_it_was_told() -> None:
    told = figures(
        7, remaining=remaining(closed_here=3, at=12.5), reasons=["relay: 421 élan"], ending=True
    )
    assert decode(encode(42, told)) == (42, told)
    assert decode(encode(43, figures(0))) == (43, figures(0))


def test_a_report_stays_small_whatever_there_is_to_say() -> None:
    told = figures(10**9, remaining=remaining(closed_here=10**9), reasons=['✉"' * 5000] * 100)
    report = encode(42, told)
    assert len(report) <= LARGEST
    _, read = decode(report)
    assert (read.counts, read.remaining) == (told.counts, told.remaining)
    assert 0 < len(read.reasons) < 100


def test_a_reporter_tells_twice_a_second_and_at_the_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    told: list[bytes] = []
    reporter = Reporter(io.StringIO(), told.append, count_every=2.0)
    now = [0.0]
    monkeypatch.setattr(clock, "now", lambda: now[0])
    for tenth in range(20):
        now[0] = tenth / 10
        reporter.present(figures(tenth))
    assert [decode(report)[1].counts["sent"] for report in told] == [0, 5, 10, 15]
    reporter.present(figures(20, ending=True))
    assert decode(told[-1])[1] == figures(20, ending=True)


def test_what_a_dead_process_did_stays_in_the_sum() -> None:
    totals = Totals(2)
    totals.heard(11, figures(5, reasons=["a", "b"]))
    totals.heard(12, figures(7, reasons=["b", "c"]))
    assert totals.read() == figures(12, reasons=["a", "b", "c"], processes="2")
    totals.ended(11)
    totals.missing = 1
    assert totals.read() == figures(12, reasons=["b", "c"], processes="1 of 2")
    totals.heard(13, figures(1))
    totals.missing = 0
    totals.ending = True
    assert totals.read() == figures(13, reasons=["b", "c"], processes="2", ending=True)
    totals.ended(99)  # one that never told anything


def test_what_all_had_closed_when_one_counted_is_the_measure(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    totals = Totals(2)
    now = [0.0]
    monkeypatch.setattr(clock, "now", lambda: now[0])
    for second in range(1, 5):
        now[0] = float(second)
        totals.heard(11, figures(10 * second))
        totals.heard(12, figures(10 * second))
    # Counted at 2.5 s: 40 of the 80 were closed by then.
    totals.heard(11, figures(40, remaining=remaining(closed_here=20, at=2.5)))
    assert totals.read().remaining == remaining(closed_here=40, at=2.5)
    shown = Lines(io.StringIO()).combine(4.0, totals.read())
    assert (shown.done, shown.total) == (80, 100)
    # The same count, told again, is not a new one; one without a count leaves it be.
    now[0] = 5.0
    totals.heard(11, figures(50, remaining=remaining(closed_here=20, at=2.5)))
    totals.heard(12, figures(50))
    assert totals.read().remaining == remaining(closed_here=40, at=2.5)


def test_a_log_line_says_how_many_processes_it_is_of() -> None:
    totals = Totals(3)
    totals.missing = 1
    totals.heard(11, figures(5))
    shown = Lines(io.StringIO()).combine(0.0, totals.read())
    assert fields(shown)["processes"] == "2 of 3"
    assert fields(shown)["rows_sent"] == 5


# --- forks -----------------------------------------------------------------------------------


def _never(tie: Tie) -> int:
    raise AssertionError("started")


def test_a_process_with_threads_is_not_forked() -> None:
    done = threading.Event()
    thread = threading.Thread(target=done.wait, name="telemetry")
    thread.start()
    try:
        with pytest.raises(NotAlone, match="telemetry"):
            Supervisor(2, _never, drain=False, patience=1.0)
    finally:
        done.set()
        thread.join()
