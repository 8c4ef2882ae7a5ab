"""The sink as a process: its record is the oracle of every crash test, so it is tested first."""

from __future__ import annotations

import contextlib
import json
import signal
import socket
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from sending.outcomes import Outcome, Stage, classify
from sending.sink import Fault, Faults, accepted, read_record
from sending.sink.faults import MEANING
from sending.sink.kept import Folder, safe_name
from sending.smtp import EmailBackend, SMTPFailure

ROOT = Path(__file__).resolve().parents[2]
DATA = b"Message-ID: <%d@example.org>\r\nSubject: s\r\n\r\nbody\r\n"


@contextlib.contextmanager
def sink(*options: str) -> Iterator[tuple[subprocess.Popen[str], int]]:
    process = subprocess.Popen(
        [sys.executable, "-m", "sending.sink", "--port", "0", *options],
        cwd=ROOT, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        assert process.stdout is not None
        first = process.stdout.readline()
        assert first.startswith("listening 127.0.0.1:"), first
        yield process, int(first.rpartition(":")[2])
    finally:
        process.kill()
        process.wait()
        if process.stdout is not None:
            process.stdout.close()


def relay(port: int, **options: Any) -> EmailBackend:
    return EmailBackend(
        host="127.0.0.1", port=port, timeout=10, reply_timeout=10,
        local_hostname="client.example.org", **options,
    )  # fmt: skip


def send(backend: EmailBackend, to: str, number: int = 1) -> tuple[str, int | None, Outcome]:
    try:
        said = backend.deliver("s@example.org", to, DATA % number)
    except SMTPFailure as failure:
        said = failure.answer
    verdict = classify(said.stage, said.code, said.enhanced, said.text)
    return said.stage, said.code, verdict.outcome


def once(port: int, to: str, **options: Any) -> tuple[str, int | None, Outcome]:
    backend = relay(port, **options)
    try:
        return send(backend, to)
    finally:
        backend.close()


@pytest.fixture
def record(tmp_path: Path) -> Path:
    return tmp_path / "record.jsonl"


def test_what_is_acknowledged_is_on_the_record(record: Path) -> None:
    with sink("--record", str(record)) as (process, port):
        backend = relay(port)
        for number in range(3):
            assert send(backend, f"r{number}@example.org", number)[1] == 250
        process.kill()  # nothing more is written after this
        process.wait()
        backend.close()
    lines = read_record(record)
    assert [line["recipient"] for line in lines] == [f"r{n}@example.org" for n in range(3)]
    assert [line["message_id"] for line in lines] == [f"<{n}@example.org>" for n in range(3)]
    assert {line["event"] for line in lines} == {"accepted"}
    assert all(line["accepted"] and line["attempt"] == 1 and line["size"] > 40 for line in lines)
    assert all(abs(line["time"] - time.time()) < 60 for line in lines)


@pytest.mark.parametrize(
    ("to", "first", "event", "taken"),
    [
        ("refuse-1@example.org", (Stage.RCPT, 550, Outcome.BOUNCED), "refused", False),
        ("full-1@example.org", (Stage.RCPT, 452, Outcome.RETRY), "full", False),
        ("greylist-1@example.org", (Stage.RCPT, 451, Outcome.RETRY), "greylisted", False),
        ("defer-1@example.org", (Stage.DOT, 451, Outcome.RETRY), "deferred", False),
        ("policy-1@example.org", (Stage.DOT, 550, Outcome.FAILED), "policy", False),
        ("content-1@example.org", (Stage.DOT, 554, Outcome.FAILED), "content", False),
        ("drop-1@example.org", (Stage.DOT, None, Outcome.IN_DOUBT), "dropped_after_dot", True),
        ("dropbody-1@example.org", (Stage.BODY, None, Outcome.RETRY), "dropped_before_dot", False),
        ("garbage-1@example.org", (Stage.DOT, None, Outcome.IN_DOUBT), "garbage", True),
        ("slow-1@example.org", (Stage.DOT, 250, Outcome.SENT), "accepted", True),
        ("ok-1@example.org", (Stage.DOT, 250, Outcome.SENT), "accepted", True),
    ],
)
def test_a_fault_by_prefix(
    record: Path, to: str, first: tuple[Stage, int | None, Outcome], event: str, taken: bool
) -> None:
    with sink("--record", str(record), "--slow-seconds", "0.1") as (_, port):
        backend = relay(port)
        assert send(backend, to) == first
        # The session, or a new one, serves the next message.
        assert send(backend, "next@example.org")[1] == 250
        backend.close()
    line = read_record(record)[0]
    assert (line["event"], line["accepted"], line["recipient"]) == (event, taken, to)
    assert len(accepted(read_record(record))) == 1 + taken


def test_a_silent_sink_is_doubt(record: Path) -> None:
    with sink("--record", str(record)) as (_, port):
        backend = EmailBackend(host="127.0.0.1", port=port, reply_timeout=0.3)
        assert send(backend, "silent-1@example.org") == (Stage.DOT, None, Outcome.IN_DOUBT)
    assert [line["event"] for line in accepted(read_record(record))] == ["silent"]


def test_the_greylist_opens_after_its_time_and_not_before(record: Path) -> None:
    with sink("--record", str(record), "--greylist-seconds", "0.5") as (_, port):
        backend = relay(port)
        assert send(backend, "greylist-1@example.org")[1] == 451
        assert send(backend, "greylist-1@example.org")[1] == 451
        time.sleep(0.6)
        assert send(backend, "greylist-1@example.org")[1] == 250
        backend.close()
    assert [line["attempt"] for line in read_record(record)] == [1, 2, 3]


def test_a_drop_strikes_once_and_a_restart_remembers_it(record: Path) -> None:
    with sink("--record", str(record)) as (_, port):
        assert once(port, "drop-1@example.org")[1] is None
    with sink("--record", str(record)) as (_, port):
        assert once(port, "drop-1@example.org")[1] == 250
    lines = accepted(read_record(record))
    assert [(line["event"], line["attempt"]) for line in lines] == [
        ("dropped_after_dot", 1),
        ("accepted", 2),
    ]


def test_a_torn_line_is_left_out_and_does_not_swallow_the_next(record: Path) -> None:
    record.write_bytes(b'{"event": "accepted", "accepted": true}\n{"event": "acc')
    assert len(read_record(record)) == 1
    with sink("--record", str(record)) as (_, port):
        assert once(port, "a@example.org")[1] == 250
    assert [line.get("recipient") for line in read_record(record)] == [None, "a@example.org"]
    assert read_record(record.with_name("none")) == []


def test_accepted_messages_are_kept_as_they_came(record: Path, tmp_path: Path) -> None:
    folder = tmp_path / "new" / "mail"
    data = b"Subject: s\r\n\r\n.hidden\r\n..\r\nbytes \xff\r\n"
    for to in ("Ann+x@example.org", "refuse-1@example.org", "policy-1@example.org"):
        with sink("--keep", str(folder), "--record", str(record)) as (_, port):
            backend = relay(port)
            with contextlib.suppress(SMTPFailure):
                backend.deliver("s@example.org", to, data)
            backend.close()
    with sink("--keep", str(folder)) as (_, port):
        assert once(port, "drop-1@example.org")[1] is None
    assert sorted(file.name for file in folder.iterdir()) == [
        "1-Ann+x@example.org.eml",
        "2-drop-1@example.org.eml",
    ]
    assert (folder / "1-Ann+x@example.org.eml").read_bytes() == data


def test_what_can_not_be_kept_is_not_accepted(record: Path, tmp_path: Path) -> None:
    folder = tmp_path / "mail"
    with sink("--keep", str(folder), "--record", str(record)) as (_, port):
        folder.rmdir()
        assert once(port, "a@example.org")[:2] == (Stage.DOT, 452)
    (line,) = read_record(record)
    assert (line["event"], line["accepted"]) == ("not_kept", False)


@pytest.mark.parametrize(
    ("recipient", "name"),
    [
        ("ann@example.org", "ann@example.org"),
        ("../../etc/passwd@x", ".._.._etc_passwd@x"),
        ('"a b\n\0|"@example.org', "_a_b____@example.org"),
        ("zoë@example.org", "zo_@example.org"),
        ("x" * 300, "x" * 100),
    ],
)
def test_a_file_name_is_safe(recipient: str, name: str, tmp_path: Path) -> None:
    assert safe_name(recipient) == name
    assert Folder(str(tmp_path)).keep(recipient, b"").parent == tmp_path


def test_the_help_tells_what_each_fault_does() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "sending.sink", "--help"],
        cwd=ROOT, capture_output=True, text=True, timeout=30, check=True,
    )  # fmt: skip
    words = " ".join(done.stdout.split())
    for fault, meaning in MEANING.items():
        assert fault is Fault.NONE or f"--{fault} PCT {meaning}" in words


def test_a_limit_of_messages_closes_without_a_word(record: Path) -> None:
    options = ["--record", str(record), "--max-messages-per-connection", "2"]
    with sink(*options) as (_, port):
        backend = relay(port)
        for number in range(7):
            assert send(backend, f"r{number}@example.org")[1] == 250
        backend.close()
    assert len(accepted(read_record(record))) == 7


def test_authentication() -> None:
    with sink("--auth", "u:p:q") as (_, port):
        assert once(port, "a@example.org")[:2] == (Stage.MAIL, 530)
        assert once(port, "a@example.org", username="u", password="x")[:2] == (
            Stage.AUTH,
            535,
        )
        backend = relay(port, username="u", password="p:q")
        assert send(backend, "a@example.org")[1] == 250
        backend.close()


def test_delay_counts_for_each_reply() -> None:
    with sink("--delay", "0.05") as (_, port):
        backend = relay(port)
        started = time.monotonic()
        assert send(backend, "a@example.org")[1] == 250
        assert time.monotonic() - started >= 6 * 0.05  # greeting, EHLO, MAIL, RCPT, DATA, dot
        backend.close()


def replies(port: int, sent: bytes, count: int) -> tuple[list[bytes], list[float]]:
    """The first ``count`` lines after the greeting, and when each had come, in seconds."""
    with socket.create_connection(("127.0.0.1", port), 10) as sock, sock.makefile("rb") as lines:
        lines.readline()
        started = time.monotonic()
        sock.sendall(sent)
        found, times = [], []
        for _ in range(count):
            found.append(lines.readline().strip())
            times.append(time.monotonic() - started)
    return found, times


ENVELOPE = b"MAIL FROM:<s@example.org>\r\nRCPT TO:<a@example.org>\r\nDATA\r\n"


def test_latency_counts_once_for_what_came_together() -> None:
    with sink("--latency", "0.2") as (_, port):
        said, times = replies(port, b"NOOP\r\n" * 40, 40)
        assert set(said) == {b"250 2.0.0 Ok"}
        assert times[0] >= 0.19
        assert times[-1] < 40 * 0.2 / 2
        said, times = replies(port, ENVELOPE + b"QUIT\r\n.\r\nQUIT\r\n", 5)
    assert [line[:3] for line in said] == [b"250", b"250", b"354", b"250", b"221"]


def test_latency_leaves_replies_in_their_order() -> None:
    with sink("--latency", "0.02") as (_, port):
        backend = relay(port)
        for to, code in [("a@", 250), ("refuse-1@", 550), ("policy-1@", 550), ("b@", 250)] * 5:
            assert send(backend, f"{to}example.org")[1] == code
        backend.close()


@pytest.mark.parametrize("latency", ["0", "0.02"])
def test_a_drop_before_the_dot_is_seen_at_the_end_of_a_long_line(latency: str) -> None:
    with sink("--latency", latency) as (_, port):
        assert once(port, "dropbody-1@example.org") == (Stage.BODY, None, Outcome.RETRY)


@pytest.mark.parametrize(
    ("to", "first", "taken"),
    [
        ("ok-1@example.org", (Stage.DOT, 250, Outcome.SENT), True),
        ("refuse-1@example.org", (Stage.RCPT, 550, Outcome.BOUNCED), False),
        ("greylist-1@example.org", (Stage.RCPT, 451, Outcome.RETRY), False),
        ("policy-1@example.org", (Stage.DOT, 550, Outcome.FAILED), False),
        ("defer-1@example.org", (Stage.DOT, 451, Outcome.RETRY), False),
        ("drop-1@example.org", (Stage.DOT, None, Outcome.IN_DOUBT), True),
        ("garbage-1@example.org", (Stage.DOT, None, Outcome.IN_DOUBT), True),
    ],
)
@pytest.mark.parametrize("latency", ["0", "0.02"])
def test_faults_with_chunking(
    record: Path, latency: str, to: str, first: tuple[Stage, int | None, Outcome], taken: bool
) -> None:
    with sink("--record", str(record), "--chunking", "--latency", latency) as (_, port):
        backend = relay(port, chunking=True)
        assert send(backend, to) == first
        assert send(backend, "next@example.org")[1] == 250
        backend.close()
    assert len(accepted(read_record(record))) == 1 + taken


def test_chunks_are_kept_as_they_came(tmp_path: Path) -> None:
    data = b"Subject: s\r\n\r\n.\r\n..two\r\n"
    with sink("--keep", str(tmp_path), "--chunking") as (_, port):
        backend = relay(port, chunking=True)
        backend.deliver("s@example.org", "a@example.org", data)
        backend.close()
        said, _ = replies(
            port,
            b"BDAT 3\r\nxyz" + ENVELOPE.replace(b"DATA", b"BDAT 2") + b"abBDAT 1 last\r\nc"
            b"BDAT 0 LAST\r\nBDAT x\r\nNOOP\r\n",
            8,
        )
    assert [line[:3] for line in said] == [
        b"503", b"250", b"250", b"250", b"250", b"503", b"501", b"",
    ]  # fmt: skip
    kept = {file.name: file.read_bytes() for file in tmp_path.iterdir()}
    assert kept == {"1-a@example.org.eml": data, "2-a@example.org.eml": b"abc"}


def test_chunking_is_offered_on_request_only() -> None:
    with sink() as (_, port):
        said, _ = replies(port, b"BDAT 0 LAST\r\n", 1)
    assert said == [b"502 5.5.2 Command not recognized"]


def test_many_connections_at_once_lose_nothing(record: Path) -> None:
    with sink("--record", str(record)) as (process, port):

        def lane(number: int) -> None:
            backend = relay(port)
            for n in range(50):
                assert send(backend, f"r{number}-{n}@example.org", n)[1] == 250
            backend.close()

        threads = [threading.Thread(target=lane, args=(number,)) for number in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        process.send_signal(signal.SIGTERM)
        assert process.wait(10) == 0
    seen = Counter(line["recipient"] for line in accepted(read_record(record)))
    assert len(seen) == 400
    assert set(seen.values()) == {1}


def test_percentages_are_met_and_repeatable() -> None:
    share = {Fault.GREYLIST: 5.0, Fault.REFUSE: 3.0, Fault.DROP: 1.0}
    addresses = [f"person{n}@example.org" for n in range(20_000)]
    faults = Faults(share, "seed")
    count = Counter(faults.of(address) for address in addresses)
    for fault, percent in share.items():
        assert count[fault] / 200 == pytest.approx(percent, abs=0.6)
    assert [faults.of(a) for a in addresses] == [Faults(share, "seed").of(a) for a in addresses]
    assert [faults.of(a) for a in addresses] != [Faults(share, "other").of(a) for a in addresses]
    assert faults.of("Person1@Example.org") is faults.of("person1@example.org")
    assert Faults({Fault.DROP: 100}).of("refuse-a@example.org") is Fault.REFUSE
    assert Faults().of("nobody-1@example.org") is Fault.NONE


def test_percentages_by_command_line(record: Path) -> None:
    with sink("--record", str(record), "--refuse", "100", "--seed", "7") as (_, port):
        assert once(port, "a@example.org")[1] == 550
    assert json.loads(record.read_text())["event"] == "refused"


@pytest.mark.parametrize(
    "options",
    [
        ["--refuse", "60", "--drop", "60"],
        ["--auth", "nocolon"],
        ["--refuse", "-1"],
        ["--keep", "/dev/null"],
    ],
)
def test_bad_options_are_one_plain_line(options: list[str]) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "sending.sink", "--port", "0", *options],
        cwd=ROOT, capture_output=True, text=True, timeout=30, check=False,
    )  # fmt: skip
    assert done.returncode == 2
    assert done.stderr.startswith("sink: ")
    assert done.stderr.count("\n") == 1


def test_the_management_command_says_what_is_wrong() -> None:
    with sink() as (_, port), pytest.raises(CommandError, match="sink: "):
        call_command("sink", "--port", str(port))
