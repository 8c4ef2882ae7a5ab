"""The sink's command line, shared by ``python -m sending.sink`` and ``manage.py sink``."""

from __future__ import annotations

import argparse
import asyncio
import selectors
from typing import Any

from .faults import MEANING, Fault, Faults
from .server import serve
from .state import Options


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options on any parser."""
    parser.add_argument("--host", default="127.0.0.1", help="listen here (default 127.0.0.1)")
    parser.add_argument(
        "--port", type=int, default=2525, help="(default 2525; 0: a free one, printed)"
    )
    parser.add_argument("--record", metavar="FILE", help="append a JSON line per event")
    parser.add_argument(
        "--keep",
        metavar="DIR",
        help="write each accepted message to DIR/<n>-<recipient>.eml, to open it in a mail program",
    )
    parser.add_argument(
        "--delay",
        type=float,
        default=0.0,
        metavar="S",
        help="a slow server: wait before each reply",
    )
    parser.add_argument(
        "--latency",
        type=float,
        default=0.0,
        metavar="S",
        help="a long line: a round trip takes S, and what came together is answered together "
        "(for a thousand connections at most)",
    )
    parser.add_argument("--chunking", action="store_true", help="offer CHUNKING (BDAT)")
    parser.add_argument(
        "--max-messages-per-connection",
        type=int,
        default=0,
        metavar="N",
        help="hang up after so many (0: no limit)",
    )
    parser.add_argument("--auth", metavar="USER:PASSWORD", help="demand this login")
    faults = parser.add_argument_group(
        "faults",
        "PCT is the percentage of recipients that meet the fault, chosen by address and --seed. "
        "An address such as drop-1@example.org asks for its fault by name.",
    )
    for fault, meaning in MEANING.items():
        if fault is not Fault.NONE:
            faults.add_argument(f"--{fault}", type=float, default=0.0, metavar="PCT", help=meaning)
    faults.add_argument("--seed", default="", help="another seed hits other addresses")
    faults.add_argument(
        "--greylist-seconds", type=float, default=5.0, metavar="S", help="(default 5)"
    )
    faults.add_argument("--slow-seconds", type=float, default=2.0, metavar="S", help="(default 2)")


def options_from(given: dict[str, Any]) -> Options:
    """The parsed arguments as ``Options``. Raises ``ValueError`` with a plain sentence."""
    auth = None
    if given["auth"]:
        user, colon, password = given["auth"].partition(":")
        if not colon:
            raise ValueError("--auth wants USER:PASSWORD")
        auth = (user, password)
    percent = {fault: given[fault.value] for fault in Fault if given.get(fault.value)}
    return Options(
        host=given["host"],
        port=given["port"],
        record=given["record"],
        keep=given["keep"],
        faults=Faults(percent, given["seed"]),
        greylist_seconds=given["greylist_seconds"],
        slow_seconds=given["slow_seconds"],
        delay=given["delay"],
        latency=given["latency"],
        chunking=given["chunking"],
        max_messages_per_connection=given["max_messages_per_connection"],
        auth=auth,
    )


def run(given: dict[str, Any]) -> None:
    """Serve until a signal; prints ``listening HOST:PORT`` first.

    Raises ``ValueError`` for bad options and ``OSError`` when port, record or the folder of
    ``--keep`` can't be opened.
    """
    options = options_from(given)
    with asyncio.Runner(loop_factory=_exact_loop if options.latency > 0 else None) as runner:
        runner.run(serve(options, ready=_announce))


def _exact_loop() -> asyncio.AbstractEventLoop:
    """``epoll`` waits in whole milliseconds, rounded up, which a latency would be longer by;
    ``select`` does not, and is good for a thousand connections."""
    return asyncio.SelectorEventLoop(selectors.SelectSelector())


def _announce(host: str, port: int) -> None:
    print(f"listening {host}:{port}", flush=True)


def main(arguments: list[str] | None = None) -> int:
    """Run from a shell; the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m sending.sink",
        description="A local SMTP server that delivers nothing, records what it accepts, and "
        "fails as asked.",
    )
    add_arguments(parser)
    try:
        run(vars(parser.parse_args(arguments)))
    except (OSError, ValueError) as error:
        parser.exit(2, f"sink: {error}\n")
    return 0
