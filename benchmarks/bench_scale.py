"""The table of sends when it is big: build, claim, a thousand campaigns, memory.

    python -m benchmarks.bench_scale --people 1000000 --rows 10000000
    python -m benchmarks.bench_scale --parts claim --rows 1000000

Build: a campaign to ``--people``, in chunks, beside one ``INSERT ... SELECT`` of the same rows
(see ``scale.build``). Claim: from ``--rows`` rows of ten campaigns, each half sent, while another
session keeps a snapshot and 100,000 rows are claimed and sent, beside 10,000 fresh rows, before
and after. Memory: of a sender that has sent 5,000 messages of a campaign to ``--people``, and of
one to 10,000. The ten million take about 9 GB of disk for the time of the run.
"""

from __future__ import annotations

import argparse
import logging
import shutil
import sys
import tempfile
from collections.abc import Sequence
from typing import TYPE_CHECKING

from config.embedded.cluster import Cluster

from .harness import campaign, cluster, command_line, figures, sink, table, timing
from .scale import build, claim, ledger_table, memory

if TYPE_CHECKING:
    from subscribers.models import Segment

PARTS = ("build", "memory", "campaigns", "claim")
FEW = 10_000
CAMPAIGNS = 10
#: Bytes of disk for a row of the ledger, its indexes and the log, generously.
BYTES_PER_ROW = 1200


def main() -> None:
    parser = command_line.parser(__doc__)
    parser.add_argument("--people", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=1, help="of the build")
    parser.add_argument("--rows", type=int, default=10_000_000, help="of the table of claims")
    parser.add_argument("--claims", type=int, default=100_000, help="rows claimed from it")
    parser.add_argument("--messages", type=int, default=5_000, help="sent before memory is read")
    parser.add_argument("--parts", default=",".join(PARTS))
    options = command_line.parse(parser, people=20_000, rows=100_000, claims=5_000, messages=1_000)
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


def run_build(every: Segment, options: argparse.Namespace) -> None:
    raw, ours, cpu = [], [], []
    for _ in range(options.rounds):
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
        f"{options.people:,} sends, {options.people / table.median(o.whole for o in ours):,.0f} "
        f"a second, {options.rounds} rounds; by processor time {table.median(cpu):.2f}",
    )


def run_memory(few: Segment, every: Segment, options: argparse.Namespace, server: Cluster) -> None:
    with sink.running() as relay:
        used = {}
        for segment in (few, every):
            number = campaign.approved(segment).pk
            used[segment.slug] = memory.peak(
                server.url(), relay.email_url, number, min(options.messages, FEW)
            )
            ledger_table.empty()
    small, big = used["few"], used["all"]
    print(
        f"memory of a sender: {small / 1e6:.1f} MB with {FEW:,} people, "
        f"{big / 1e6:.1f} MB with {options.people:,}: {big / small:.3f}x",
        flush=True,
    )
    figures.tell("memory", big / small, f"{options.people:,} people, {big / 1e6:.0f} MB")


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
        "campaigns", table.median(seconds), f"claim p50 in seconds, {len(many):,} campaigns at once"
    )
    ledger_table.empty()


def run_claim(few: Segment, every: Segment, options: argparse.Namespace, server: Cluster) -> None:
    before = fresh(few)
    campaigns = ledger_table.sending(every, CAMPAIGNS)
    ledger_table.fill(every, campaigns, options.rows, sent=True)
    with claim.pinned_xmin(server.url()):
        seconds = claim.claims(campaigns, options.claims)
    ledger_table.empty()
    after = fresh(few)
    tenth = max(len(seconds) // 10, 1)
    # The faster of the two: what disturbed the other shall not flatter us.
    base = min(table.median(before), table.median(after))
    times = table.median(seconds) / base
    print(
        f"claim p50 of {claim.TOTAL}: {milliseconds(before)} and {milliseconds(after)} from "
        f"{FEW:,} fresh rows, {milliseconds(seconds)} from {options.rows:,} half sent, xmin pinned "
        f"(first tenth {milliseconds(seconds[:tenth])}, last {milliseconds(seconds[-tenth:])}): "
        f"{times:.2f}x",
        flush=True,
    )
    figures.tell("claim", times, f"{options.rows:,} rows, p50 {milliseconds(seconds)}")


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
