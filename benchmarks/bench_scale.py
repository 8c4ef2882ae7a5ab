"""The table of sends when it is big: build, claim, a thousand campaigns, memory.

    python -m benchmarks.bench_scale --people 1000000 --rows 10000000
    python -m benchmarks.bench_scale --parts claim --rows 1000000

Build: a campaign to ``--people``, in chunks, beside one ``INSERT ... SELECT`` of the same rows
(see ``scale.build``). Claim: from ``--rows`` rows of ten campaigns, each half sent, while another
session keeps a snapshot and 100,000 rows are claimed and sent, beside 10,000 fresh rows, before
and after; that table is made once, and each third of the claims is a run, begun as by a sender that
has just been started. Memory: of a sender that has sent 5,000
messages of a campaign to ``--people``, and of one to 10,000. A round of build or memory that would
end later than ``--part-seconds`` allow is not begun, and the figure says how many there were. The
ten million take about 9 GB of disk for the time of the run.
"""

from __future__ import annotations

import argparse
import logging
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from config.embedded.cluster import Cluster

from .harness import campaign, cluster, command_line, figures, sink, table, timing
from .scale import build, claim, ledger_table, memory

if TYPE_CHECKING:
    from subscribers.models import Segment

PARTS = ("build", "memory", "claim", "campaigns")
FEW = 10_000
CAMPAIGNS = 10
CLAIM_RUNS = 3
PEOPLE, ROWS = 1_000_000, 10_000_000
#: Bytes of disk for a row of the ledger, its indexes and the log, generously.
BYTES_PER_ROW = 1200


def main() -> None:
    parser = command_line.parser(__doc__)
    parser.add_argument("--people", type=command_line.count, default=PEOPLE)
    parser.add_argument(
        "--rounds", type=command_line.count, default=3, help="of build and of memory"
    )
    parser.add_argument(
        "--part-seconds",
        type=command_line.duration,
        default=120.0,
        help="for build and for memory: fewer rounds rather than more",
    )
    parser.add_argument(
        "--rows", type=command_line.count, default=ROWS, help="of the table of claims"
    )
    parser.add_argument(
        "--claims", type=command_line.count, default=100_000, help="rows claimed from it"
    )
    parser.add_argument(
        "--messages", type=command_line.count, default=5_000, help="sent before memory is read"
    )
    parser.add_argument("--parts", default=",".join(PARTS))
    options = command_line.parse(
        parser, people=20_000, rows=100_000, claims=5_000, messages=1_000, rounds=1
    )
    options.parts = [part for part in options.parts.split(",") if part]
    if wrong := set(options.parts) - set(PARTS):
        parser.error(f"no such part: {', '.join(sorted(wrong))}; there are: {', '.join(PARTS)}")
    options.rows = fitting(options.rows)
    options.people = max(
        options.people, FEW, options.rows // CAMPAIGNS * ("claim" in options.parts)
    )
    timing.stop_like_ctrl_c()
    with cluster.server() as server:
        cluster.set_up(server.url())
        logging.getLogger("sendonce").setLevel(logging.WARNING)
        run(options, server)


def fitting(rows: int) -> int:
    """So many rows, or as many as the disk takes."""
    room = shutil.disk_usage(tempfile.gettempdir()).free // 2 // BYTES_PER_ROW
    if room < rows:
        print(f"note: the disk takes {room:,} rows only", file=sys.stderr)
    return min(rows, room)


def run(options: argparse.Namespace, server: Cluster) -> None:
    account = campaign.account()
    few = campaign.people(account, FEW, "few")
    every = campaign.people(account, options.people, "all", first=FEW + 1)
    for part in options.parts:
        match part:
            case "build":
                run_build(every, options)
            case "memory":
                run_memory(few, every, options, server)
            case "campaigns":
                run_campaigns(few)
            case "claim":
                run_claim(few, every, options, server)


def rounds(options: argparse.Namespace) -> Iterator[int]:
    """The numbers of the rounds from 1, the next only if it is likely to end in time."""
    started = time.monotonic()
    for number in range(1, options.rounds + 1):
        spent = time.monotonic() - started
        if number > 1 and spent * number / (number - 1) > options.part_seconds:
            print(f"no time for round {number}", flush=True)
            return
        yield number


def run_build(every: Segment, options: argparse.Namespace) -> None:
    raw, ours, cpu = [], [], []
    for _ in rounds(options):
        seconds, busy = build.raw(every)
        raw.append(seconds)
        ours.append(build.ours(every, options.people))
        last = ours[-1]
        cpu.append(busy / last.cpu if last.cpu else 0.0)
        print(
            f"build of {options.people:,}: raw {seconds:.1f} s, ours {last.whole:.1f} s "
            f"(first rows after {last.first:.2f} s, longest chunk {last.longest:.2f} s, "
            f"sweep {last.sweep:.1f} s): {seconds / last.whole:.2f}; "
            f"by the server's processor time {busy:.1f} s, {last.cpu:.1f} s: {cpu[-1]:.2f}",
            flush=True,
        )
    figures.tell(
        "build",
        table.ratio(raw, [found.whole for found in ours]),
        f"{options.people / table.median(o.whole for o in ours):,.0f} a second; "
        f"by processor time {table.median(cpu):.2f}",
        table.Extent(len(raw), f"{options.people:,} sends", smaller=options.people < PEOPLE),
    )


def run_memory(few: Segment, every: Segment, options: argparse.Namespace, server: Cluster) -> None:
    small: list[float] = []
    big: list[float] = []
    with sink.running() as relay:
        for _ in rounds(options):
            for segment, used in ((few, small), (every, big)):
                number = campaign.approved(segment).pk
                used.append(
                    memory.peak(server.url(), relay.email_url, number, min(options.messages, FEW))
                )
                ledger_table.empty()
            print(
                f"memory of a sender: {small[-1] / 1e6:.1f} MB with {FEW:,} people, "
                f"{big[-1] / 1e6:.1f} MB with {options.people:,}: {big[-1] / small[-1]:.3f}x",
                flush=True,
            )
    figures.tell(
        "memory",
        table.ratio(big, small),
        f"{table.median(big) / 1e6:.0f} MB",
        table.Extent(len(big), f"{options.people:,} people", smaller=options.people < PEOPLE),
    )


def run_campaigns(few: Segment) -> None:
    many = ledger_table.sending(few, 1000)
    ledger_table.fill(few, many, 20 * len(many), sent=False)
    number, seconds = claim.reach_all(many)
    print(
        f"{len(many):,} campaigns at once: all served by {number} claims of {claim.TOTAL}, "
        f"p50 {milliseconds(seconds)}",
        flush=True,
    )
    figures.tell(
        "campaigns",
        table.median(seconds),
        f"claim p50 in seconds, {number} claims",
        table.Extent(1, f"{len(many):,} campaigns at once"),
    )
    ledger_table.empty()


def run_claim(few: Segment, every: Segment, options: argparse.Namespace, server: Cluster) -> None:
    before = [fresh(few), fresh(few)]
    campaigns = ledger_table.sending(every, CAMPAIGNS)
    ledger_table.fill(every, campaigns, options.rows, sent=True)
    with claim.pinned_xmin(server.url()):
        runs = [
            claim.claims(campaigns, -(-options.claims // CLAIM_RUNS)) for _ in range(CLAIM_RUNS)
        ]
    ledger_table.empty()
    small = [*before, fresh(few)]
    # The fastest of them: what disturbed the others shall not flatter us.
    base = min(map(table.median, small))
    times = table.median(table.median(run) for run in runs) / base
    print(
        f"claim p50 of {claim.TOTAL}: {', '.join(map(milliseconds, small))} from {FEW:,} fresh "
        f"rows, {', '.join(map(milliseconds, runs))} from {options.rows:,} half sent, xmin pinned: "
        f"{times:.2f}x",
        flush=True,
    )
    p50 = milliseconds([table.median(run) for run in runs])
    figures.tell(
        "claim",
        times,
        f"p50 {p50} of {sum(map(len, runs)):,} claims from a table made once",
        table.Extent(len(runs), f"{options.rows:,} rows", smaller=options.rows < ROWS),
    )


def fresh(few: Segment) -> list[float]:
    """Seconds of the claims that empty a small table."""
    campaigns = ledger_table.sending(few, CAMPAIGNS)
    ledger_table.fill(few, campaigns, FEW, sent=False)
    seconds = claim.claims(campaigns, FEW)
    ledger_table.empty()
    return seconds


def milliseconds(seconds: Sequence[float]) -> str:
    return f"{table.median(seconds) * 1000:.2f} ms"


if __name__ == "__main__":
    main()
