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
import dataclasses
import shlex
import sys
import time
from collections.abc import Sequence

from config.embedded.cluster import DATABASE, Cluster

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
from .harness.contestants import CEILING, SENDONCE, UNBUILT, Ceiling, Peer, Sendonce
from .harness.environments import Unavailable
from .harness.sink import Sink

#: Messages of a peer's round: at most, and without a trial.
MOST, FEW = 5_000, 300
PEOPLE = 50_000
#: Options of the SMTP backend for a relay that is known to go along with them.
NEARBY = "back_to_back=true&messages_per_connection=1000"
GUARANTEE = (
    "nobody gets it twice, nobody is dropped; at most lanes x lot rows of a process are in doubt, "
    "shown as such"
)


def main() -> None:
    parser = command_line.parser(__doc__)
    parser.add_argument("--people", type=command_line.count, default=PEOPLE)
    parser.add_argument("--rounds", type=command_line.count, default=3)
    parser.add_argument("--processes", type=command_line.count, default=machine.cores())
    parser.add_argument("--lanes", type=command_line.count, default=8, help="of each process")
    parser.add_argument("--lot", type=command_line.count, default=20)
    parser.add_argument("--sessions", type=command_line.count, default=1, help="of each lane")
    parser.add_argument(
        "--also",
        default=f"--processes {machine.cores() + 1} --lanes 1 --lot 400 --sessions 4",
        metavar="OPTIONS",
        help="a second setting of ours in the same rounds, for a relay nearby that is one's own, "
        "as options of run_sender (default: %(default)s); '': none",
    )
    parser.add_argument("--peers", default="", help="names, with commas between, or 'all'")
    parser.add_argument(
        "--trial",
        type=int,
        default=300,
        help="messages to try each setting of a peer with; 0: its first setting, untried",
    )
    parser.add_argument(
        "--seconds", type=command_line.duration, default=6.0, help="of a peer's round, about"
    )
    parser.add_argument(
        "--minutes", type=command_line.duration, default=6, help="fewer rounds rather than more"
    )
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
    first = sendonce(options, server, relay)
    ours = [first, *([nearby(first, options.also)] if options.also else [])]
    building = dataclasses.replace(ours[-1], name=f"{ours[-1].name} + build", builds=True)
    others = peers(options, names, server, relay)
    found = contest.contest(
        [Ceiling(relay, options.people), *ours, building, *others],
        options.rounds,
        relay.bytes_read,
        say,
        until,
        may_fail={peer.name for peer in others},
    )
    for peer in [peer for peer in others if peer.name not in found]:
        figures.tell_left_out(f"{peer.name}: failed, or took too long.")
        others.remove(peer)
    rounds = len(found[SENDONCE])
    extent = table.Extent(rounds, f"{options.people:,} people", smaller=options.people < PEOPLE)
    columns = words([*ours, building], others)
    print()
    print(table.text(contest.rows(found, CEILING, {"setting": columns["setting"]})))
    figures.tell_table("Drain over SMTP", contest.rows(found, CEILING, columns))

    print(f"\n{table.plural(rounds, 'round')}")
    all_ours = [*ours, building]
    drains = {one.name: contest.ratio_of(found, one.name, CEILING) for one in all_ours}
    for name, drain in drains.items():
        with_start = contest.ratio_of(found, name, CEILING, with_start=True)
        print(f"{name} to {CEILING}: {drain:.3f}; with start-up {with_start:.3f}")
    best = max(ours, key=lambda one: drains[one.name])
    with_start = contest.ratio_of(found, best.name, CEILING, with_start=True)
    how = f"{best.setting()}; with start-up {with_start:.3f}"
    how += "".join(
        f"; {drains[one.name]:.3f} with {one.setting()}" for one in all_ours if one is not best
    )
    figures.tell("drain", drains[best.name], how, extent)

    django = table.median(django_alone(2000) for _ in range(max(rounds, 1)))
    cpu = table.median(r.cpu for r in found[best.name])
    against = f"{cpu * 1e6:.0f} us a message against {django * 1e6:.0f} us of Django's building"
    print(f"CPU: {against}")
    figures.tell("cpu", cpu / django, f"{against}; {best.setting()}", extent)

    for peer in others:
        times = contest.ratio_of(found, best.name, peer.name)
        print(f"{best.name} to {peer.name}: {times:.1f}x")
        if peer.name == "django-post_office":
            figures.tell("post_office", times, contestants.told(peer.setting), extent)


def sendonce(options: argparse.Namespace, server: Cluster, relay: Sink) -> Sendonce:
    """The campaign is made, approved and built here; each round drains a copy of its database."""
    cluster.set_up(server.url())
    from django.db import connections

    approved = campaign.approved(campaign.people(campaign.account(), options.people))
    connections.close_all()
    cluster.copy(server, DATABASE, UNBUILT)
    campaign.build(approved)
    connections.close_all()
    given = [
        *("--processes", str(options.processes), "--lanes", str(options.lanes)),
        *("--lot", str(options.lot), "--sessions", str(options.sessions)),
    ]
    return Sendonce(server, relay, approved.pk, options.people, given)


def nearby(first: Sendonce, given: str) -> Sendonce:
    """The same campaign, drained at the setting for a relay nearby that is one's own."""
    name = f"{SENDONCE} nearby"
    return dataclasses.replace(first, options=shlex.split(given), name=name, relay_options=NEARBY)


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


def words(ours: Sequence[Sendonce], others: Sequence[Peer]) -> dict[str, dict[str, str]]:
    """The columns of the table that are no numbers, by contestant."""
    return {
        "setting": {
            CEILING: "-d -s 20 -l 6000",
            **{one.name: one.setting() for one in ours},
            **{peer.name: contestants.told(peer.setting) for peer in others},
        },
        "version": {peer.name: peer.version for peer in others},
        "after kill -9": {
            **dict.fromkeys((one.name for one in ours), GUARANTEE),
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
