"""What classifying an answer costs, beside what a lane spends on the message it is about.

    python -m benchmarks.outcomes        (--rounds 9, --messages 200)

Each round classifies every reply of the tests' tables, mostly refusals, and one acceptance, and
hands messages over SMTP to the project's own sink on 127.0.0.1 (MAIL, RCPT, DATA, final dot), so
that whatever else the machine does falls on both. Printed are the medians of the rounds. No relay
answers faster than the loopback, and an acceptance is what most messages get: the share of the
refusals is the worst that a lane can meet. Exits 1 when that is 5 % or more.
"""

from __future__ import annotations

import argparse
import contextlib
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from sending.smtp import EmailBackend

ROOT = Path(__file__).resolve().parent.parent
LIMIT = 0.05

#: About as long as a newsletter.
DATA = (
    b"Message-ID: <%d@example.org>\r\nFrom: s@example.org\r\nTo: a@example.org\r\n"
    b"Subject: News\r\n\r\n" + b"A line of an ordinary newsletter, as long as they are.\r\n" * 100
)

Asked = tuple[str, int | None, str, str]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--messages", type=int, default=200, help="in each round")
    options = parser.parse_args()
    refusals = replies()
    accepted: list[Asked] = [("dot", 250, "2.0.0", "2.0.0 Ok: queued as 4dKq1S2vbZz9rYw")]
    rounds: list[tuple[float, float, float]] = []
    with session(options.rounds * options.messages) as backend:
        for number in range(options.rounds):
            rounds.append(
                (
                    seconds_each(refusals, repeat=2),
                    seconds_each(accepted, repeat=1000),
                    conversation(backend, options.messages, number),
                )
            )
    report(len(refusals), rounds)


def report(replies: int, rounds: list[tuple[float, float, float]]) -> None:
    """Print the medians; exit 1 when a lane would notice."""
    talk = statistics.median(talk for *_, talk in rounds)
    print(f"{replies} replies, medians of {len(rounds)} rounds")
    shares = []
    for column, name in enumerate(("a reply of the tables", "an acceptance")):
        seconds = statistics.median(row[column] for row in rounds)
        shares.append(statistics.median(row[column] / row[2] for row in rounds))
        print(
            f"{name:<24}{seconds * 1e6:8.1f} microseconds {1 / seconds:12,.0f} a second"
            f"{shares[-1]:9.2%} of a conversation"
        )
    print(f"{'a conversation':<24}{talk * 1e6:8.1f} microseconds, one message to the sink")
    if shares[0] >= LIMIT:
        sys.exit(f"classifying takes {LIMIT:.0%} or more of a lane's time")


def replies() -> list[Asked]:
    """Stage, code, enhanced code and text of every row of the tables."""
    from tests.unit.replies import API_REPLIES, REPLIES

    return [row[1:5] for row in (*REPLIES, *API_REPLIES)]


def seconds_each(asked: list[Asked], repeat: int) -> float:
    """Seconds for one call."""
    from sending.outcomes import classify

    started = time.perf_counter()
    for _ in range(repeat):
        for stage, code, enhanced, text in asked:
            classify(stage, code, enhanced, text)
    return (time.perf_counter() - started) / (repeat * len(asked))


@contextlib.contextmanager
def session(messages: int) -> Iterator[EmailBackend]:
    """An open session with a sink of its own, good for so many messages."""
    sink = subprocess.Popen(
        [sys.executable, "-m", "sending.sink", "--port", "0"],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert sink.stdout is not None
        backend = EmailBackend(
            host="127.0.0.1",
            port=int(sink.stdout.readline().rpartition(":")[2]),
            local_hostname="client.example.org",
            messages_per_connection=messages + 1,
        )
        backend.open()
        yield backend
        backend.close()
    finally:
        sink.kill()
        sink.wait()


def conversation(backend: EmailBackend, messages: int, turn: int) -> float:
    """Seconds for one message over the open session."""
    started = time.perf_counter()
    for number in range(messages):
        backend.deliver("s@example.org", "a@example.org", DATA % (turn * messages + number))
    return (time.perf_counter() - started) / messages


if __name__ == "__main__":
    main()
