"""What somebody who watches a sender sees."""

from __future__ import annotations

import io
import logging
import sys
import threading
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from rich.console import Console

from sending import clock, logs, progress
from sending.progress import (
    Display,
    Figures,
    Lines,
    OneSender,
    Reading,
    complaints,
    fields,
    headline,
    tallied,
)
from sending.progress_bar import Bar, SteadyConsole, render
from sending.remaining import Remaining, Watcher, Window, closed, eta
from sending.tally import Tally


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


class Broken(io.StringIO):
    """A terminal that went away."""

    def isatty(self) -> bool:
        return True

    def write(self, text: str) -> int:
        raise BrokenPipeError(32, "Broken pipe")


@pytest.fixture
def sender() -> Any:
    """A sender whose database is never reached: every connection is lent out."""
    stopping = threading.Event()
    shared = SimpleNamespace(
        tally=Tally(),
        pauses=SimpleNamespace(reasons=[]),
        stopping=stopping,
        campaign_id=None,
        pool=SimpleNamespace(lend=_never),
    )
    yield SimpleNamespace(shared=shared)
    stopping.set()


def _never() -> Any:
    raise AssertionError("asked for a connection")


@pytest.fixture
def now(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The clock, to be moved by hand."""
    moment = [1000.0]
    monkeypatch.setattr(clock, "now", lambda: moment[0])
    return moment


@pytest.fixture
def lines() -> Iterator[io.StringIO]:
    """What the sender's log says, as it is written."""
    stream = io.StringIO()
    log = logging.getLogger("sendonce.sender")
    before = (list(log.handlers), log.level, log.propagate)
    logs.configure(stream, level="INFO")
    yield stream
    log.handlers[:], log.propagate = before[0], before[2]
    log.setLevel(before[1])


def remaining(**given: Any) -> Remaining:
    return Remaining(
        **{"total": 100, "open": 60, "waiting": 0, "building": False, "closed_here": 0, **given}
    )


def reading(**given: Any) -> Reading:
    return Reading(
        **{
            "done": 612,
            "total": 1000,
            "waiting": 0,
            "building": False,
            "rate": 98.0,
            "left": 4.0,
            "counts": {},
            "reasons": [],
            **given,
        }
    )


# --- figures ---------------------------------------------------------------------------------


def test_a_rate_is_that_of_the_last_seconds() -> None:
    window = Window(seconds=10)
    for second in range(100):
        window.add(second, second * 1000 if second < 50 else 50_000 + (second - 50) * 2)
    assert window.rate == pytest.approx(2.0)


@pytest.mark.parametrize(
    "samples", [[], [(0.0, 5)], [(0.0, 5), (0.4, 500)]], ids=["none", "one", "too close"]
)
def test_a_rate_needs_a_second(samples: list[tuple[float, int]]) -> None:
    window = Window()
    for at, value in samples:
        window.add(at, value)
    assert window.rate == 0.0


def test_a_count_that_fell_starts_anew() -> None:
    window = Window()
    for at, value in [(0.0, 0), (5.0, 500), (6.0, 10), (8.0, 30)]:
        window.add(at, value)
    assert window.rate == pytest.approx(10.0)


def test_a_window_holds_a_bounded_number_of_samples() -> None:
    window = Window(seconds=1e9)
    for number in range(5000):
        window.add(number, number)
    assert len(window._samples) <= 1000
    assert window.rate == pytest.approx(1.0)


@pytest.mark.parametrize(("left", "rate", "seconds"), [(100, 10, 10), (0, 5, 0), (5, 0, None)])
def test_eta(left: int, rate: float, seconds: float | None) -> None:
    assert eta(left, rate) == seconds


def test_between_two_counts_our_own_progress_is_added() -> None:
    found = remaining(total=100, open=60, closed_here=5)
    assert found.done(5) == 40
    assert found.done(12) == 47
    assert found.done(500) == 100


def test_rows_that_wait_for_a_retry_are_not_closed() -> None:
    assert closed({"sent": 3, "retry": 5, "bounced": 1, "in_doubt": 1, "withheld": 2}) == 7


# --- words -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({}, "612 of 1,000   98/s   4 s left"),
        ({"building": True}, "612 of 1,000+   98/s   4 s left"),
        ({"done": 1000}, "1,000 of 1,000"),
        ({"done": 0, "total": 0}, "nothing to send"),
        ({"done": None, "total": None}, "98/s"),
        ({"done": None, "total": None, "rate": 0.0}, "..."),
        ({"rate": 0.5}, "612 of 1,000   0.5/s   4 s left"),
        (
            {"done": 990, "waiting": 10, "left": None, "rate": 0.0},
            "990 of 1,000   0/s   waiting for retries",
        ),
        (
            {"left": None, "rate": 0.0, "reasons": ["default: refused"]},
            "612 of 1,000   0/s   waiting",
        ),
        ({"left": None, "rate": 0.0}, "612 of 1,000   0/s   ..."),
    ],
)
def test_the_headline(given: dict[str, Any], words: str) -> None:
    assert headline(reading(**given)) == words


def test_the_tally_in_words() -> None:
    counts = {"sent": 1590, "retry": 12, "in_doubt": 2, "bounced": 0}
    assert tallied(counts) == "1,590 sent, 12 to retry, 2 in doubt"
    assert tallied({}) == ""


def test_only_the_first_reasons_are_shown() -> None:
    shown = complaints([f"relay-{n}: 421 busy\nand more" for n in range(5)])
    assert shown == [
        "relay-0: 421 busy and more",
        "relay-1: 421 busy and more",
        "relay-2: 421 busy and more",
        "and 2 more: see sender_status",
    ]


def test_a_log_line_leaves_out_what_is_unknown() -> None:
    known = fields(reading(counts={"sent": 5}, done=None, total=None, left=None))
    assert {k: v for k, v in known.items() if v is not None} == {
        "event": "progress",
        "rate": "98.0/s",
        "rows_sent": 5,
    }


# --- displays --------------------------------------------------------------------------------


def test_a_terminal_gets_the_bar_and_everything_else_lines() -> None:
    assert isinstance(progress.choose(Terminal(), live=True), Bar)
    assert isinstance(progress.choose(Terminal(), live=False), Lines)
    assert isinstance(progress.choose(io.StringIO(), live=True), Lines)


def test_without_rich_there_are_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.split(".")[0] == "rich"]:
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.setitem(sys.modules, "rich", None)
    monkeypatch.delitem(sys.modules, "sending.progress_bar")
    assert isinstance(progress.choose(Terminal(), live=True), Lines)


def test_a_line_every_half_minute_in_which_something_moved_and_now_and_then_when_nothing_does(
    sender: Any, now: list[float], lines: io.StringIO
) -> None:
    display = Lines(io.StringIO())
    source = counted(sender, remaining())
    moved: list[int] = []
    sender.shared.pauses.reasons.append("default: refused")
    for second in range(700):
        now[0] = 1000.0 + second
        if second in (10, 70):
            sender.shared.tally.settled({1: "sent", 2: "retry"})
        before = lines.getvalue().count("\n")
        display.show(source)
        moved += [second] * (lines.getvalue().count("\n") - before)
    assert moved == [30, 90, 390, 690]
    said = "INFO progress done=41 total=100 rate=0.0/s rows_sent=1 rows_retry=1"
    assert said in lines.getvalue()
    assert 'waiting_for="default: refused"' in lines.getvalue().splitlines()[-1]


@pytest.mark.parametrize(
    ("given", "over"),
    [
        ({"done": 0, "total": 0, "rate": 0.0}, True),
        ({"done": 9, "total": 9, "rate": 0.0}, True),
        ({"done": 9, "total": 9, "rate": 0.0, "building": True}, False),
        ({"done": 8, "total": 9, "rate": 0.0}, False),
        ({"done": None, "total": None, "rate": 0.0}, False),
        ({"done": 0, "total": 0, "rate": 3.0}, False),
    ],
)
def test_it_is_over_when_nothing_is_open_and_nothing_moves(
    given: dict[str, Any], over: bool
) -> None:
    assert progress.is_over(reading(**given)) == over


def test_after_a_cancel_the_log_does_not_read_like_a_failure(
    sender: Any, now: list[float], lines: io.StringIO
) -> None:
    display = Lines(io.StringIO())
    source = counted(sender, remaining(total=0, open=0, closed_here=186))
    display.show(source)
    sender.shared.tally.settled(dict.fromkeys(range(186), "sent"))
    for at in (1015.0, 1031.0, 1062.0):
        now[0] = at
        display.show(source)
    assert lines.getvalue() == ""
    assert fields(reading(done=0, total=0))["total"] is None


def test_a_campaign_that_began_after_the_count_is_unknown_not_nothing() -> None:
    display = Lines(io.StringIO())
    empty = remaining(total=0, open=0)
    assert display.combine(0.0, Figures({}, empty, [])).total == 0
    assert display.combine(1.0, Figures({"sent": 5}, empty, [])).total is None


def test_the_bar_shows_figures_counts_and_reasons() -> None:
    out = io.StringIO()
    console = Console(file=out, width=90, force_terminal=True, color_system=None)
    console.print(
        render(reading(counts={"sent": 600}, reasons=["default: [Errno 111] Connection refused"]))
    )
    drawn = out.getvalue()
    assert "612 of 1,000   98/s   4 s left" in drawn
    assert "this process: 600 sent" in drawn
    # What a relay said is data, not markup.
    assert "waiting: default: [Errno 111] Connection refused" in drawn


def test_log_lines_print_above_the_bar_as_they_are(sender: Any, now: list[float]) -> None:
    out = Terminal()
    console = SteadyConsole(
        file=out, width=60, force_terminal=True, color_system=None, highlight=False
    )
    line = f"2026 INFO sent [bold]x[/bold] :smile: {'y' * 100}"
    with Bar(out, console=console) as display:
        source = counted(sender, remaining())
        display.show(source)
        display.stream.write(f"{line}\n")
        now[0] += 1
        display.show(source)
    assert line in out.getvalue()
    assert "\x1b[?25l" not in out.getvalue(), "a killed process could not show the cursor again"
    assert "40 of 100" in out.getvalue()


@pytest.mark.parametrize("kind", [Lines, Bar])
def test_a_terminal_that_went_away_does_not_stop_the_sender(
    kind: type[Display], sender: Any, now: list[float], lines: io.StringIO
) -> None:
    display = kind(Broken())
    source = counted(sender, remaining())
    for _ in range(5):
        now[0] += 40.0
        sender.shared.tally.settled({1: "sent"})
        display.show(source)
    assert lines.getvalue().count("progress_error") <= 1


def test_a_database_that_is_away_neither_stalls_nor_fails(sender: Any) -> None:
    hold = threading.Event()

    class Pool:
        asked = threading.Event()

        def lend(self) -> Any:
            self.asked.set()
            hold.wait()
            raise AssertionError("the database is away")

    sender.shared.pool = Pool()
    display = Lines(io.StringIO())
    source = OneSender(sender.shared, count_every=2.0)
    for _ in range(10):
        display.show(source)
    assert Pool.asked.wait(30)
    sender.shared.tally.settled({1: "sent"})
    seen = source.read()
    assert (seen.remaining, seen.counts) == (None, {"sent": 1})
    hold.set()


def test_a_sender_that_stops_is_not_asked_any_more(sender: Any) -> None:
    sender.shared.stopping.set()
    source = OneSender(sender.shared, count_every=2.0)
    Lines(io.StringIO()).show(source)
    assert source.watcher is not None
    assert source.watcher._thread is None


def test_who_does_not_count_asks_nobody(sender: Any) -> None:
    source = OneSender(sender.shared, count_every=None)
    sender.shared.tally.settled({1: "sent"})
    sender.shared.pauses.reasons += ["default: refused", "default: refused"]
    for _ in range(3):
        seen = source.read()
    assert seen == Figures({"sent": 1}, None, ["default: refused"], ending=False)


def counted(sender: Any, found: Remaining) -> OneSender:
    source = OneSender(sender.shared, count_every=2.0)
    source.watcher = _Counted(sender.shared, found)
    return source


class _Counted(Watcher):
    """A watcher that has counted once and for all."""

    def __init__(self, shared: Any, found: Remaining) -> None:
        super().__init__(shared, every=2.0)
        self.latest = found

    def poke(self) -> None:
        """Nothing to ask."""
