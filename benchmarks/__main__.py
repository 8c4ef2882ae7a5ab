"""All benchmarks in turn, the issue's table, and RESULTS.md: what ``make bench`` runs.

    make bench                              under half an hour
    make bench ARGS=--quick                 under three minutes; writes no RESULTS.md
    make bench ARGS="--only drain,relay"    some of them; without RESULTS.md, too

Each is a program of its own with its own PostgreSQL; one that fails or takes too long is said and
does not stop the others. Exit status 0: all ran; 1: some did not.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from .harness import contestants, environments, machine, results, sink, table, timing
from .harness.figures import Found

RESULTS = Path(__file__).with_name("RESULTS.md")


@dataclass(frozen=True)
class Part:
    """A module of ``benchmarks`` and its arguments; ``patience`` in seconds, quick and whole."""

    name: str
    module: str
    arguments: tuple[str, ...] = ()
    patience: tuple[float, float] = (120, 240)
    needs_postfix: bool = False


#: What the issue asks first; the budget may cut the last ones short.
PARTS = (
    Part("drain", "bench_drain", ("--peers", "all"), (240, 780), needs_postfix=True),
    Part("relay", "bench_relay"),
    Part("compose", "bench_compose"),
    Part("smtp", "bench_smtp"),
    Part("fairness", "bench_fairness", patience=(120, 300)),
    Part("scale", "bench_scale", patience=(120, 900)),
    Part("import", "bench_import"),
    Part("counts", "bench_counts"),
)
#: Seconds for all parts, quick and whole: a bound for a busy machine; a quiet one takes half of it.
BUDGET = (480.0, 1500.0)
#: With less left, a part isn't begun.
LEAST_S = 10.0


def main() -> None:
    options = parse()
    timing.stop_like_ctrl_c()
    about = {**machine.describe(), "load before": f"{machine.load():.1f}"}
    found, commands, broken = Found(), [], False
    if missing := sink.missing_tools():
        print(f"note: {' and '.join(missing)} missing: {sink.HOW_TO_GET}", file=sys.stderr)
    parts = chosen(options)
    if any("--peers" in part.arguments for part in parts) and not missing:
        # Outside what is timed; who can't be installed is named by the part.
        environments.make(contestants.PEERS)
    column = 0 if options.quick else 1
    over = time.monotonic() + BUDGET[column]
    for part in parts:
        if part.needs_postfix and missing:
            found.left_out.append(f"{part.name}: needs {' and '.join(missing)}; {sink.HOW_TO_GET}.")
            continue
        arguments = [*part.arguments, *(["--quick"] if options.quick else [])]
        shown = " ".join(["python -m", f"benchmarks.{part.module}", *arguments])
        print(f"\n== {shown}", flush=True)
        started = time.perf_counter()
        left = over - time.monotonic()
        if left > LEAST_S:
            problem = run(part, arguments, found, min(part.patience[column], left))
        else:
            problem = "no time was left"
        seconds = time.perf_counter() - started
        commands.append((shown, seconds, f", {problem}" if problem else ""))
        if problem:
            print(f"{part.name}: {problem}", file=sys.stderr)
            found.left_out.append(f"{part.name}: {problem}.")
            broken = True
    print(f"\n{table.text([row[:5] for row in table.score(found.reached, found.notes)])}")
    if not options.quick and not options.only:
        RESULTS.write_text(results.document(found, about, commands))
        print(f"\nwritten: {RESULTS}")
    sys.exit(1 if broken else 0)


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks", description=(__doc__ or "").splitlines()[0]
    )
    parser.add_argument("--quick", action="store_true", help="small numbers: do they run at all?")
    names = ", ".join(part.name for part in PARTS)
    parser.add_argument("--only", default="", metavar="NAMES", help=f"some of: {names}")
    options = parser.parse_args()
    wrong = set(filter(None, options.only.split(","))) - {part.name for part in PARTS}
    if wrong:
        parser.error(f"no such part: {', '.join(sorted(wrong))}; there are: {names}")
    return options


def chosen(options: argparse.Namespace) -> list[Part]:
    names = set(filter(None, options.only.split(",")))
    return [part for part in PARTS if part.name in names or not names]


def run(part: Part, arguments: list[str], found: Found, patience: float) -> str:
    """Run it and add its figures; returns what went wrong, or nothing."""
    with tempfile.TemporaryDirectory(prefix="sendonce-bench-") as folder:
        figures = Path(folder) / "figures"
        command = [sys.executable, "-m", f"benchmarks.{part.module}", *arguments]
        problem = ""
        with timing.started([*command, "--figures", str(figures)]) as process:
            try:
                status = process.wait(patience)
                problem = f"ended with status {status}" if status else ""
            except subprocess.TimeoutExpired:
                problem = f"took more than {patience:.0f} s"
        if figures.exists():
            found.take(figures.read_text())
    return problem


if __name__ == "__main__":
    main()
