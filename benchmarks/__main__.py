"""All benchmarks in turn, the table of targets, and RESULTS.md: what ``make bench`` runs.

    make bench                              about 25 minutes
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
    patience: tuple[float, float] = (60, 60)
    needs_postfix: bool = False

    def with_options(self, quick: bool) -> list[str]:
        """``--quick`` has sizes of its own, for which those given here would be too big."""
        if not quick:
            return list(self.arguments)
        sizes = ("--rows", "--people")
        kept = [] if self.arguments[:1] and self.arguments[0] in sizes else self.arguments
        return [*kept, "--quick"]


#: What has a target first; the budget may cut the last ones short.
PARTS = (
    Part(
        "drain", "bench_drain", ("--peers", "all", "--minutes", "8"), (240, 600), needs_postfix=True
    ),
    Part("relay", "bench_relay", patience=(60, 90)),
    Part("fairness", "bench_fairness", patience=(120, 150)),
    # With ten million rows, which are four minutes of filling.
    Part("scale", "bench_scale", ("--part-seconds", "200"), (120, 1000)),
    Part("compose", "bench_compose"),
    Part("smtp", "bench_smtp"),
    Part("import", "bench_import", ("--rows", "300000")),
    Part("counts", "bench_counts", ("--people", "500000")),
    # Some two hundred pages; a million rows, the script's default, take minutes to fill in.
    Part("lists", "bench_admin_lists", ("--rows", "100000", "--rounds", "1"), (150, 300)),
)
#: Seconds for all parts, quick and whole: a bound for a busy machine.
BUDGET = (480.0, 2200.0)
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
        arguments = part.with_options(options.quick)
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
    if options.quick:
        print("\nsmall numbers of one round: that it runs, not how fast it is")
    score = table.score(found.reached, found.notes, found.extents, quick=options.quick)
    print(f"\n{table.text([row[:7] for row in score])}")
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
