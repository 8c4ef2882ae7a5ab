"""Drain a campaign over SMTP, beside ``smtp-source`` and other senders into the same sink.

    python -m benchmarks.bench_drain --people 50000 --processes 2
    python -m benchmarks.bench_drain --peers post_office,mailer --rounds 5

All run in turn on one embedded PostgreSQL and one ``smtp-sink``, with the same message, so that
their ratios mean something on any machine. CPU for a message is compared with building the same
message with Django alone (``EmailMultiAlternatives(...).message().as_bytes()``, subject, text and
HTML given). Traffic stays on 127.0.0.1.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence

from config.embedded.cluster import Cluster

from .harness import (
    campaign,
    cluster,
    command_line,
    contest,
    contestants,
    figures,
    machine,
    message,
    sink,
    table,
    timing,
)
from .harness.contestants import CEILING, SENDONCE, Ceiling, Peer, Sendonce
from .harness.environments import Unavailable
from .harness.sink import Sink

#: Messages of a peer's round: at most, and without a trial.
MOST, FEW = 5_000, 300


def main() -> None:
    parser = command_line.parser(__doc__)
    parser.add_argument("--people", type=int, default=50_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--processes", type=int, default=machine.cores())
    parser.add_argument("--lanes", type=int, default=8, help="of each process")
    parser.add_argument("--lot", type=int, default=20)
    parser.add_argument("--peers", default="", help="names, with commas between, or 'all'")
    parser.add_argument(
        "--trial",
        type=int,
        default=300,
        help="messages to try each setting of a peer with; 0: its first setting, untried",
    )
    parser.add_argument("--seconds", type=float, default=8.0, help="of a peer's round, about")
    parser.add_argument("--minutes", type=float, default=12, help="fewer rounds rather than more")
    options = command_line.parse(parser, people=5_000, rounds=1, trial=0)
    timing.stop_like_ctrl_c()
    names = contestants.PEERS if options.peers == "all" else options.peers.split(",")
    if wrong := [name for name in names if name and name not in contestants.PEERS]:
        parser.error(f"no peer {wrong[0]!r}: {', '.join(contestants.PEERS)} or all")
    if missing := sink.missing_tools():
        sys.exit(f"error: {' and '.join(missing)} missing: {sink.HOW_TO_GET}")
    with cluster.server() as server, sink.running() as relay:
        run(options, [name for name in names if name], server, relay)


def run(options: argparse.Namespace, names: Sequence[str], server: Cluster, relay: Sink) -> None:
    until = time.monotonic() + options.minutes * 60
    ours = sendonce(options, server, relay)
    others = peers(options, names, server, relay)
    found = contest.contest(
        [Ceiling(relay, options.people), ours, *others],
        options.rounds,
        relay.bytes_read,
        say,
        until,
    )
    rounds = len(found[SENDONCE])
    columns = words(ours, others)
    print()
    print(table.text(contest.rows(found, CEILING, {"setting": columns["setting"]})))
    figures.tell_table("Drain over SMTP", contest.rows(found, CEILING, columns))

    drain = contest.ratio_of(found, SENDONCE, CEILING)
    with_start = contest.ratio_of(found, SENDONCE, CEILING, with_start=True)
    print(f"\n{SENDONCE} to {CEILING}: {drain:.3f}; with start-up {with_start:.3f}")
    how = f"{options.people:,} people, {rounds} rounds, {' '.join(ours.options)}"
    figures.tell("drain", drain, f"{how}; with start-up {with_start:.3f}")

    building = django_alone(2000)
    cpu = table.median(r.cpu for r in found[SENDONCE])
    against = f"{cpu * 1e6:.0f} us a message against {building * 1e6:.0f} us of Django's building"
    print(f"CPU: {against}")
    figures.tell("cpu", cpu / building, against)

    for peer in others:
        times = contest.ratio_of(found, SENDONCE, peer.name)
        print(f"{SENDONCE} to {peer.name}: {times:.1f}x")
        if peer.name == "django-post_office":
            figures.tell("post_office", times, contestants.told(peer.setting))


def sendonce(options: argparse.Namespace, server: Cluster, relay: Sink) -> Sendonce:
    """The campaign is made and approved here; each round drains a copy of its database."""
    cluster.set_up(server.url())
    from django.db import connections

    approved = campaign.approved(campaign.people(campaign.account(), options.people))
    connections.close_all()
    shape = ["--processes", str(options.processes), "--lanes", str(options.lanes)]
    shape += ["--lot", str(options.lot)]
    return Sendonce(server, relay, approved.pk, options.people, shape)


def peers(
    options: argparse.Namespace, names: Sequence[str], server: Cluster, relay: Sink
) -> list[Peer]:
    """Those that can be had, each at its best setting; of the others, the reason is printed."""
    found = []
    for name in names:
        try:
            peer = contestants.find_peer(name, server, relay, FEW)
        except Unavailable as error:
            print(f"note: {name} is left out: {error}", file=sys.stderr)
            figures.tell_left_out(f"{name}: {error}.")
            continue
        if options.trial:
            contestants.put_at_its_best(peer, options.trial, options.seconds, MOST, say)
        found.append(peer)
    return found


def words(ours: Sendonce, others: Sequence[Peer]) -> dict[str, dict[str, str]]:
    """The columns of the table that are no numbers, by contestant."""
    return {
        "setting": {
            CEILING: "-d -s 20 -l 6000",
            SENDONCE: " ".join(ours.options),
            **{peer.name: contestants.told(peer.setting) for peer in others},
        },
        "version": {peer.name: peer.version for peer in others},
        "after kill -9": {
            SENDONCE: "nobody gets it twice, nobody is dropped; at most lanes x lot rows of a "
            "process are in doubt, shown as such",
            **{peer.name: str(peer.module.GUARANTEE) for peer in others},
        },
    }


def django_alone(count: int) -> float:
    """Processor seconds in which Django builds the message, subject, text and HTML being given."""
    from django.core.mail import EmailMultiAlternatives
    from django.template import Context, Engine

    engine = Engine()
    sources = (message.SUBJECT, message.TEXT, message.HTML)
    templates = [engine.from_string(source) for source in sources]
    contexts = [Context(message.context(number)) for number in range(count)]
    contents = [[template.render(context) for template in templates] for context in contexts]
    started = time.process_time()
    for number, (subject, text, html) in enumerate(contents):
        email = EmailMultiAlternatives(subject, text, message.FROM, [message.address(number)])
        email.attach_alternative(html, "text/html")
        email.message().as_bytes()
    return (time.process_time() - started) / count


def say(line: str) -> None:
    print(line, flush=True)


if __name__ == "__main__":
    main()
