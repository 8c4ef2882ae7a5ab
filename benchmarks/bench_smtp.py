"""What one message costs on the wire: ready bytes through our SMTP backend.

    python -m benchmarks.bench_smtp --messages 20000 --threads 1,8
    python -m benchmarks.bench_smtp --latency 0.02 --messages 500  (DATA, BDAT, back to back)

No database and no rendering: the session, its replies, and what the answer means. Prints
messages/s and the CPU of this process for each message (user and system). Into Postfix's
``smtp-sink`` (Debian: package postfix), or with ``--latency`` (seconds of a round trip, 0 too) into
our own sink, which offers CHUNKING. ``--profile`` says where the time goes. Traffic stays on
127.0.0.1.
"""

from __future__ import annotations

import argparse
import cProfile
import pstats
import sys
import threading
import time
from pathlib import Path

#: Ways to send a message, beside DATA: options of the backend.
CHUNKING, BACK_TO_BACK = "chunking", "back_to_back"
ROOT = Path(__file__).resolve().parent.parent
if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))


def main() -> None:
    from benchmarks.harness import command_line, sink, timing

    parser = command_line.parser(__doc__)
    parser.add_argument("--messages", type=command_line.count, default=20_000)
    parser.add_argument("--rounds", type=command_line.count, default=3)
    parser.add_argument("--size", type=command_line.count, default=6_000, help="bytes of a message")
    parser.add_argument("--threads", default="1,8", help="one run for each of these numbers")
    parser.add_argument("--latency", type=float, help="of our own sink: seconds of a round trip")
    parser.add_argument("--profile", action="store_true", help="profile a run with one thread")
    options = command_line.parse(parser, messages=1_000, rounds=1)
    timing.stop_like_ctrl_c()

    from django.conf import settings

    if not settings.configured:
        settings.configure()
    if options.latency is not None:
        from benchmarks.bench_relay import line

        with line(options.latency) as port:
            for name, way in (("DATA", ""), ("BDAT", CHUNKING), ("together", BACK_TO_BACK)):
                run(options, port, way, f"{name:<9}")
        return
    with sink.running() as relay:
        if options.profile:
            profile = cProfile.Profile()
            profile.runcall(send, relay.port, options.messages, message(options.size), "")
            pstats.Stats(profile).sort_stats("tottime").print_stats(25)
        else:
            run(options, relay.port, "", "")


def run(options: argparse.Namespace, port: int, way: str, name: str) -> None:
    from benchmarks.harness import figures, table

    for threads in [int(number) for number in options.threads.split(",")]:
        data = message(options.size)
        took = [measure(port, threads, options.messages, data, way) for _ in range(options.rounds)]
        rate = options.messages / table.median(seconds for seconds, _ in took)
        each = table.median(cpu for _, cpu in took) / options.messages * 1e6
        print(
            f"{name}{threads:>3} threads  {rate:8.0f} messages/s  {each:6.1f} us of CPU a message"
        )
        if not name:
            key = f"smtp_cpu_{threads}_threads"
            extent = table.Extent(options.rounds, f"{options.messages:,} messages")
            figures.tell(key, each, f"us of CPU a message, {rate:.0f} messages/s", extent)


def message(size: int) -> bytes:
    """A message of about ``size`` bytes with lines as quoted-printable makes them."""
    head = b"From: news@example.org\r\nTo: person@example.org\r\nSubject: s\r\n\r\n"
    line = b"0123456789" * 7 + b"abcdef\r\n"
    return head + line * ((size - len(head)) // len(line))


def measure(port: int, threads: int, messages: int, data: bytes, way: str) -> tuple[float, float]:
    """Seconds, and seconds of this process's CPU, for ``messages`` over so many threads. ``way``:
    an option of the backend, or "" for DATA."""
    task = (port, messages // threads, data, way)
    running = [threading.Thread(target=send, args=task) for _ in range(threads)]
    started, spent = time.perf_counter(), time.process_time()
    for thread in running:
        thread.start()
    for thread in running:
        thread.join()
    return time.perf_counter() - started, time.process_time() - spent


def send(port: int, messages: int, data: bytes, way: str) -> None:
    """Send over one session as a lane does, down to what the answer means."""
    from sending.outcomes import ACCEPTED, classify
    from sending.sessions import Prepared, SMTPSession, sent
    from sending.smtp import EmailBackend

    backend = EmailBackend(
        host="127.0.0.1",
        port=port,
        messages_per_connection=1_000_000,
        chunking=way == CHUNKING,
        back_to_back=way == BACK_TO_BACK,
    )
    session = SMTPSession(backend)
    session.open()
    following: Prepared | None = Prepared("news@example.org", "first@example.org", data, True)
    for left in range(messages - 1, -1, -1):
        one, to = following, f"person{left}@example.org"
        following = Prepared("news@example.org", to, data, True) if left else None
        said = sent(session, one, following)
        assert classify(said.stage, said.code, said.enhanced, said.text) == ACCEPTED
    session.close()


if __name__ == "__main__":
    main()
