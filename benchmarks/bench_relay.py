"""The whole sender before a relay at the end of a long line, against what the line allows.

    python -m benchmarks.bench_relay --latency 0.02 --lanes 50

A session has one message under way, so that with ``round trips`` a message no more than sessions /
(round trips x latency) can leave in a second: two with DATA (MAIL, RCPT and DATA go out together;
then the message), one with ``--chunking`` or ``--back-to-back``. Our own sink plays the line: what
arrives together is answered together, a latency later. The rate is taken from the first hand-over
to the last acceptance, by the database's clock; with start-up it is printed beside it, and what as
many sessions of one process send of ready bytes, without a database: a machine that is too busy
for the line shows there. Each round sends a campaign of its own to the same people; medians are
told. Traffic stays on 127.0.0.1.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

SECONDS = 12.0
#: Of the sessions that send ready bytes.
READY_SECONDS = 3.0
#: Options of the SMTP backend with which a message takes one round trip.
WAYS = {
    "chunking": "BDAT instead of DATA",
    "back_to_back": "the next envelope with the end of each message",
}
ROOT = Path(__file__).resolve().parent.parent
if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))


def main() -> None:
    from benchmarks.harness import cluster, command_line, timing

    parser = command_line.parser(__doc__)
    parser.add_argument("--latency", type=float, default=0.02, help="of a round trip, in seconds")
    parser.add_argument("--lanes", type=command_line.count, default=50)
    parser.add_argument("--sessions", type=command_line.count, default=1, help="of each lane")
    parser.add_argument("--lot", type=command_line.count, default=20)
    parser.add_argument(
        "--processes", type=command_line.count, default=1, help="the lanes are shared among them"
    )
    parser.add_argument(
        "--seconds", type=command_line.duration, default=SECONDS, help="how long a round is to take"
    )
    parser.add_argument("--rounds", type=command_line.count, default=3)
    ways = parser.add_mutually_exclusive_group()
    for way, words in WAYS.items():
        name = f"--{way.replace('_', '-')}"
        ways.add_argument(name, dest="way", action="store_const", const=way, help=words)
    parser.set_defaults(way="")
    options = command_line.parse(parser, seconds=3.0, rounds=1)
    timing.stop_like_ctrl_c()
    if options.latency <= 0 or options.lanes % options.processes:
        sys.exit("error: --latency is above 0, and --processes share --lanes evenly")
    with cluster.server() as server, line(options.latency) as port:
        run(options, server, port)


def run(options: argparse.Namespace, server: Any, port: int) -> None:
    from benchmarks import bench_smtp
    from benchmarks.harness import campaign, cluster, command_line, figures, table, timing

    trips = 1 if options.way else 2
    sessions = options.lanes * options.sessions
    possible = sessions / (trips * options.latency)
    messages = max(int(possible * options.seconds), 1)
    cluster.set_up(server.url())
    segment = campaign.people(campaign.account(), messages)
    several = command_line.knows("run_sender", "--processes")
    copies = 1 if several else options.processes
    rates, whole, cpu, ready = [], [], [], []
    few, data = max(int(possible * READY_SECONDS), sessions), bench_smtp.message(6_000)
    for number in range(1, options.rounds + 1):
        campaign_id = campaign.approved(segment, f"Bench {number}").pk
        command = timing.manage(
            *("run_sender", "--drain", "--no-progress", "--verbosity", "0"),
            *("--campaign", str(campaign_id), "--lot", str(options.lot)),
            *("--lanes", str(options.lanes // options.processes)),
            *(["--sessions", str(options.sessions)] if options.sessions > 1 else []),
            *(["--processes", str(options.processes)] if several else []),
        )
        took = timing.run([command] * copies, environ(server.url(), port, options.way))
        rates.append(messages / seconds_to_send(campaign_id, messages))
        whole.append(messages / took.seconds)
        cpu.append(took.cpu / messages)
        seconds, _ = bench_smtp.measure(port, sessions, few, data, options.way)
        ready.append(few / seconds)
        print(
            f"round {number}: {rates[-1]:.0f} messages/s, ready bytes {ready[-1]:.0f}", flush=True
        )

    rate, with_start = table.median(rates), table.median(whole)
    lanes = f"{options.lanes} lanes" + (f" x {options.sessions}" if options.sessions > 1 else "")
    how = f"{lanes}, lot {options.lot}, {trips} x {options.latency * 1000:g} ms"
    processes = table.plural(options.processes, "process")
    rounds = table.plural(options.rounds, "round")
    print(f"{messages:,} messages, {processes}, {how}, {rounds}")
    print(f"possible       {possible:8.0f} messages/s")
    print(f"reached        {rate:8.0f} messages/s   ratio {rate / possible:.3f}")
    print(f"with start-up  {with_start:8.0f} messages/s   ratio {with_start / possible:.3f}")
    line_rate = table.median(ready)
    print(f"ready bytes    {line_rate:8.0f} messages/s   ratio {line_rate / possible:.3f}")
    print(f"CPU            {table.median(cpu) * 1e6:8.0f} us a message, start-up included")
    name = f"relay_{options.way}" if options.way else "relay"
    extent = table.Extent(
        options.rounds, f"{messages:,} messages", smaller=options.seconds < SECONDS
    )
    figures.tell(name, rate / possible, f"{how}; ready bytes {line_rate / possible:.3f}", extent)


def seconds_to_send(campaign_id: int, messages: int) -> float:
    """From the first hand-over to the last acceptance. Raises ``RuntimeError`` unless everybody
    was sent it."""
    from django.db import connection

    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(*), extract(epoch FROM max(sent_at) - min(handed_at)) "
            "FROM sendonce_sending_send WHERE campaign_id = %s AND status = 'sent'",
            [campaign_id],
        )
        sent, seconds = cursor.fetchone()
    if sent != messages:
        raise RuntimeError(f"{sent} of {messages} were sent")
    return float(seconds)


def environ(database_url: str, port: int, way: str) -> dict[str, str]:
    from benchmarks.harness import cluster

    options = {"host": "127.0.0.1", "port": port, **({way: True} if way else {})}
    relay = {"BACKEND": "sending.smtp.EmailBackend", "OPTIONS": options}
    return {
        **cluster.environ(database_url),
        "SENDONCE_TRANSPORTS": json.dumps({"default": relay}),
    }


@contextmanager
def line(latency: float) -> Iterator[int]:
    """The port of a sink at the end of a long line: seconds of a round trip, offers CHUNKING."""
    from benchmarks.harness import timing

    command = [sys.executable, "-m", "sending.sink", "--port", "0", "--latency", str(latency)]
    command += ["--chunking"]
    with timing.started(command, output=subprocess.PIPE) as process:
        assert process.stdout is not None
        yield int(process.stdout.readline().rpartition(":")[2])


if __name__ == "__main__":
    main()
