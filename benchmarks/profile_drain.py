"""Where the time of a drain goes: one sender, sampled from outside by py-spy.

    python -m benchmarks.profile_drain --people 20000
    python -m benchmarks.profile_drain --wall             also what waits without the GIL
    python -m benchmarks.profile_drain --lanes 1 --lot 400 --sessions 4 --nearby

By default a sample counts the thread that holds the GIL, the one thing that all lanes share: the
shares add up to what one core does for the interpreter. With ``--wall`` every thread that runs
counts, also in system calls. py-spy is installed into an environment of its own under var/bench;
nothing is slowed down by hooks in the program. Traffic stays on 127.0.0.1.
"""

from __future__ import annotations

import argparse
import dataclasses
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

from config.embedded.cluster import Cluster

from .bench_drain import NEARBY, sendonce
from .harness import cluster, command_line, environments, sink, timing
from .harness.sink import Sink

#: A frame that every thread has but the main one.
THREAD = "_bootstrap_inner (threading.py:"


def main() -> None:
    parser = command_line.parser(__doc__)
    parser.add_argument("--people", type=int, default=20_000)
    parser.add_argument("--lanes", type=int, default=8)
    parser.add_argument("--lot", type=int, default=20)
    parser.add_argument("--sessions", type=int, default=1)
    parser.add_argument("--rate", type=int, default=400, help="samples a second")
    parser.add_argument("--top", type=int, default=25, help="lines to print")
    parser.add_argument("--nearby", action="store_true", help="with the options for a relay nearby")
    parser.add_argument("--wall", action="store_true", help="every running thread, not the GIL's")
    parser.add_argument("--lines", action="store_true", help="lines of code, not functions")
    parser.add_argument("--raw", metavar="FILE", help="keep the stacks there (for flame graphs)")
    options = command_line.parse(parser, people=3_000)
    timing.stop_like_ctrl_c()
    try:
        spy = environments.python_for("py_spy", (3, 11)).with_name("py-spy")
    except environments.Unavailable as error:
        sys.exit(f"error: {error}")
    with cluster.server() as server, sink.running() as relay:
        run(options, str(spy), server, relay)


def run(options: argparse.Namespace, spy: str, server: Cluster, relay: Sink) -> None:
    options.processes = 1
    sender = dataclasses.replace(sendonce(options, server, relay), builds=True)
    sender.relay_options = NEARBY if options.nearby else ""
    sender.prepare()
    with tempfile.TemporaryDirectory(prefix="sendonce-profile-") as folder:
        raw = Path(options.raw or Path(folder) / "stacks")
        took = timing.run(
            [
                [
                    *(spy, "record", "--format", "raw", "--rate", str(options.rate)),
                    *("--output", str(raw)),
                    *([] if options.wall else ["--gil"]),
                    *([] if options.lines else ["--function"]),
                    "--",
                    *sender.command(),
                ]
            ],
            sender.environ(),
        )
        sender.check()
        stacks = raw.read_text().splitlines()
    print(f"{options.people} messages in {took.seconds:.1f} s, start-up included")
    print(report(stacks, options.top))


def report(stacks: Iterable[str], top: int) -> str:
    """The functions with the most samples of their own, and those with the most below them.

    ``stacks`` are lines ``outermost;...;innermost COUNT``.
    """
    own, below, every = count(working(stacks))
    if not every:
        return "no samples"
    lines = [f"{every} samples, start-up left out"]
    for heading, found in (("own", own), ("with what it calls", below)):
        lines.append(f"\n{heading}")
        lines += [f"{n / every:7.1%}  {frame}" for frame, n in found.most_common(top)]
    return "\n".join(lines)


def working(stacks: Iterable[str]) -> Iterator[str]:
    """Without the main thread: it imports, starts the others, and waits for signals."""
    return (stack for stack in stacks if THREAD in stack)


def count(stacks: Iterable[str]) -> tuple[Counter[str], Counter[str], int]:
    """Samples by innermost frame, by any frame of the stack, and all."""
    own: Counter[str] = Counter()
    below: Counter[str] = Counter()
    every = 0
    for line in stacks:
        stack, _, samples = line.rpartition(" ")
        frames = stack.split(";")
        own[frames[-1]] += int(samples)
        for frame in set(frames):
            below[frame] += int(samples)
        every += int(samples)
    return own, below, every


if __name__ == "__main__":
    main()
