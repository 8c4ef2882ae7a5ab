"""The benchmarks start programs, time them and leave none behind; their options."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
import time

import psutil
import pytest

from benchmarks.__main__ import PARTS, Part
from benchmarks.harness import command_line, timing
from benchmarks.harness.contestants import PEERS, told
from benchmarks.harness.environments import PINS
from benchmarks.harness.timing import Failed

BUSY = "sum(range(3_000_000))"
#: Starts a child that would stay for a minute, tells its number, and stays itself.
PARENT = """
import subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
print(child.pid, flush=True)
time.sleep(60)
"""


def python(code: str) -> list[str]:
    return [sys.executable, "-c", code]


def test_processor_time_of_all_programs_is_counted() -> None:
    one = timing.run([python(BUSY)])
    three = timing.run([python(BUSY)] * 3)

    assert 0 < one.cpu < three.cpu
    assert three.seconds > 0


def test_a_program_that_fails_is_named() -> None:
    with pytest.raises(Failed, match=r"exit status 3: .*exit"):
        timing.run([python("import sys; sys.exit(3)")])


def test_a_program_that_takes_too_long_is_ended() -> None:
    with pytest.raises(Failed, match="more than 0 s"):
        timing.run([python("import time; time.sleep(60)")], patience=0.2)


def test_what_a_program_started_ends_with_it() -> None:
    with timing.started(python(PARENT), output=subprocess.PIPE) as process:
        assert process.stdout is not None
        child = int(process.stdout.readline())
        assert is_alive(child)
    process.stdout.close()

    assert process.returncode != 0
    for _ in range(200):
        if not is_alive(child):
            break
        time.sleep(0.05)
    assert not is_alive(child)


def is_alive(pid: int) -> bool:
    """A zombie that nobody has reaped yet is not."""
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


@pytest.mark.parametrize(
    ("arguments", "people", "rounds"),
    [
        ([], 50_000, 3),
        (["--quick"], 500, 1),
        (["--quick", "--people", "7"], 7, 1),
        (["--rounds", "9"], 50_000, 9),
    ],
)
def test_quick_changes_what_was_not_given(arguments: list[str], people: int, rounds: int) -> None:
    parser = command_line.parser("Something.")
    parser.add_argument("--people", type=int, default=50_000)
    parser.add_argument("--rounds", type=int, default=3)

    options = command_line.parse(parser, arguments, people=500, rounds=1)

    assert (options.people, options.rounds) == (people, rounds)


@pytest.mark.parametrize("text", ["0", "-3", "many", ""])
def test_a_number_of_nothing_is_refused_in_a_line(
    text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    parser = command_line.parser("Something.")
    parser.add_argument("--rounds", type=command_line.count)

    with pytest.raises(SystemExit):
        command_line.parse(parser, ["--rounds", text])

    assert f"--rounds: {text!r} is not a number of 1 or more" in capsys.readouterr().err


@pytest.mark.parametrize("part", PARTS, ids=lambda part: part.name)
def test_a_quick_part_keeps_its_own_sizes(part: Part) -> None:
    quick = part.with_options(quick=True)

    assert quick[-1] == "--quick"
    assert not {"--rows", "--people"} & set(quick)
    assert part.with_options(quick=False) == list(part.arguments)


def test_a_setting_in_words() -> None:
    assert told({"processes": 2, "lock file": False}) == "processes 2, lock file false"


def test_a_part_that_does_not_exist_is_refused() -> None:
    wrong = subprocess.run(
        [sys.executable, "-m", "benchmarks", "--only", "drain,nothing"],
        cwd=timing.ROOT,
        env=os.environ,
        capture_output=True,
        text=True,
        check=False,
    )

    assert wrong.returncode == 2
    assert "no such part: nothing" in wrong.stderr


@pytest.mark.parametrize("name", PEERS)
def test_a_peer_says_what_it_is_and_is_pinned_with_all_it_needs(name: str) -> None:
    module = importlib.import_module(f"benchmarks.peers.{name}")
    lines = (PINS / f"{name}.txt").read_text().splitlines()
    pins = [line for line in lines if not line.startswith("#")]

    assert module.NAME
    assert module.GUARANTEE
    assert len({told(setting) for setting in module.SETTINGS}) == len(module.SETTINGS) > 1
    assert all("==" in pin for pin in pins)
    assert {module.PACKAGE.lower(), "django", "psycopg"} <= {
        pin.partition("==")[0].lower().replace("_", "-") for pin in pins
    }
