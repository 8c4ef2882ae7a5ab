"""The wire alone: deadlines that outlast a tick, and replies in any pieces."""

from __future__ import annotations

import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from sending import smtp_wire
from sending.smtp_wire import Wire, WireLost, WireTimedOut

from .scripted_smtp import Peer
from .smtp_relay import make_certificate

Pair = tuple[Wire, socket.socket]


@pytest.fixture
def ends() -> Iterator[Pair]:
    """A connected wire, and the server's socket."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        wire = Wire()
        wire.connect("127.0.0.1", listener.getsockname()[1], 10)
        server, _ = listener.accept()
    with server:
        yield wire, server
        wire.close()


@pytest.fixture
def short_tick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(smtp_wire, "TICK", 0.05)


def later(act: Callable[[], object], seconds: float = 0.3) -> threading.Thread:
    def run() -> None:
        time.sleep(seconds)
        act()

    thread = threading.Thread(target=run)
    thread.start()
    return thread


@pytest.mark.usefixtures("short_tick")
def test_a_reply_may_take_longer_than_a_tick(ends: Pair) -> None:
    wire, server = ends
    thread = later(lambda: server.sendall(b"250 late\r\n"))
    assert wire.read_reply(10) == (250, (b"late",))
    thread.join()


@pytest.mark.parametrize("timeout", [0.02, 0.2, 0.12])
@pytest.mark.usefixtures("short_tick")
def test_silence_ends_with_its_deadline_whatever_was_waited_for_before(
    ends: Pair, timeout: float
) -> None:
    wire, server = ends
    started = time.monotonic()
    with pytest.raises(WireLost, match="timed out"):
        wire.read_reply(timeout)
    assert time.monotonic() - started >= timeout
    # The short patience was that one's alone.
    thread = later(lambda: server.sendall(b"250 late\r\n"))
    assert wire.read_reply(10).code == 250
    thread.join()


def test_a_deadline_shorter_than_a_tick_does_not_wait_for_it(
    ends: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(smtp_wire, "TICK", 10.0)
    wire, server = ends
    server.sendall(b"250 soon\r\n")
    assert wire.read_reply(10).code == 250
    started = time.monotonic()
    with pytest.raises(WireLost, match="timed out"):
        wire.read_reply(0.05)
    assert time.monotonic() - started < smtp_wire.TICK


@pytest.mark.usefixtures("short_tick")
def test_a_write_may_take_longer_than_a_tick(ends: Pair) -> None:
    wire, server = ends
    data = bytes(range(256)) * 80_000
    got = bytearray()

    def read() -> None:
        while len(got) < len(data):
            got.extend(server.recv(1 << 20))

    thread = later(read)
    wire.write(data, 30)
    thread.join()
    assert got == data


@pytest.mark.usefixtures("short_tick")
def test_a_peer_that_reads_drop_by_drop_does_not_outlast_the_deadline(ends: Pair) -> None:
    wire, server = ends
    done = threading.Event()

    def sip() -> None:
        while not done.wait(0.02):
            server.recv(4096)

    thread = threading.Thread(target=sip)
    thread.start()
    with pytest.raises(WireLost, match="timed out"):
        wire.write(b"x" * 50_000_000, 0.4)
    done.set()
    thread.join()


def test_a_time_that_is_up_is_up_also_when_nothing_was_waited_for(ends: Pair) -> None:
    wire, _ = ends
    with pytest.raises(WireLost, match="timed out"):
        wire.read_reply(0)
    with pytest.raises(WireLost, match="timed out"):
        wire.write(b"x", 0)


@pytest.mark.usefixtures("short_tick")
def test_what_has_come_counts_though_time_is_up_and_silence_does_not(ends: Pair) -> None:
    wire, server = ends
    assert wire.hears(time.monotonic() + 10) is False, "a tick is over"
    server.sendall(b"250 ok\r\n")
    passed = time.monotonic() - 1
    assert wire.hears(passed)
    assert wire.read_reply(10).code == 250
    with pytest.raises(WireTimedOut):
        wire.hears(passed)


REPLIES = b"250-one\r\n250 two\r\n354 go\r\n421\r\n250 \xff\r\n"
READ = [(250, (b"one", b"two")), (354, (b"go",)), (421, (b"",)), (250, (b"\xff",))]


@pytest.mark.parametrize("size", [1, 2, 3, 7, 11, len(REPLIES)])
def test_replies_in_any_pieces(ends: Pair, size: int) -> None:
    wire, server = ends

    def drip() -> None:
        for start in range(0, len(REPLIES), size):
            server.sendall(REPLIES[start : start + size])
            time.sleep(0.002)

    thread = threading.Thread(target=drip)
    thread.start()
    assert [tuple(wire.read_reply(10)) for _ in READ] == READ
    thread.join()
    assert not wire.spoke_unasked()


def test_what_was_not_read_yet_was_said_unasked(ends: Pair) -> None:
    wire, server = ends
    server.sendall(b"250 asked\r\n421 unasked\r\n")
    assert wire.read_reply(10).code == 250
    while not wire.spoke_unasked():  # it may come in a segment of its own
        time.sleep(0.01)
    assert wire.read_reply(10) == (421, (b"unasked",))
    assert not wire.spoke_unasked()
    server.close()
    while not wire.spoke_unasked():
        time.sleep(0.01)
    with pytest.raises(WireLost, match="connection lost"):
        wire.read_reply(10)


def test_abort_wakes_who_waits(ends: Pair) -> None:
    wire, _ = ends
    thread = later(wire.abort)
    with pytest.raises(WireLost, match="aborted"):
        wire.read_reply(30)
    thread.join()
    with pytest.raises(WireLost, match="aborted"):
        wire.write(b"x", 10)


def secured(wire: Wire, plain: socket.socket, folder: Path) -> ssl.SSLSocket:
    """The server's socket after the handshake."""
    certificate = make_certificate(folder)
    theirs = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    theirs.load_cert_chain(certificate)
    ours = ssl.create_default_context(cafile=str(certificate.with_suffix(".crt")))
    made: list[ssl.SSLSocket] = []
    thread = threading.Thread(
        target=lambda: made.append(theirs.wrap_socket(plain, server_side=True))
    )
    thread.start()
    wire.wrap(ours, "127.0.0.1", 10)
    thread.join()
    return made[0]


@pytest.mark.usefixtures("short_tick")
def test_under_tls_the_same_deadlines_hold(ends: Pair, tmp_path: Path) -> None:
    wire, plain = ends
    with secured(wire, plain, tmp_path) as server:
        # Session tickets follow the handshake: the socket is readable, and nothing was said.
        wire.write(b"NOOP\r\n", 10)
        for _ in range(20):
            assert not wire.spoke_unasked()
            time.sleep(0.01)
        assert server.recv(100) == b"NOOP\r\n"
        with pytest.raises(WireLost, match="timed out"):
            wire.read_reply(0.12)
        thread = later(lambda: server.sendall(b"250 late\r\n250 two\r\n"))
        assert wire.read_reply(10).code == 250
        thread.join()
        assert wire.read_reply(10).code == 250
        data = b"y" * 3_000_000
        got = bytearray()

        def read() -> None:
            while len(got) < len(data):
                got.extend(server.recv(1 << 20))

        thread = later(read)
        wire.write(data, 30, more=True)
        thread.join()
        assert got == data
        with pytest.raises(WireLost, match="timed out"):
            wire.write(b"x" * 50_000_000, 0.2)


# -- how much of a write that failed was taken ---------------------------------------------------

MUCH = b"0123456789abcdef" * 2_000_000


def taken_of(wire: Wire, data: bytes, timeout: float = 10) -> int:
    with pytest.raises(WireLost) as caught:
        wire.write(data, timeout)
    return caught.value.taken


@pytest.mark.parametrize("read", [0, 1_000_000])
@pytest.mark.usefixtures("short_tick")
def test_what_was_taken_is_what_arrives_and_not_a_byte_more(ends: Pair, read: int) -> None:
    """Over several calls into the kernel, the last of which timed out."""
    wire, server = ends
    got = bytearray()

    def sip() -> None:
        while len(got) < read:
            got.extend(server.recv(read - len(got)))

    thread = later(sip, 0.1)
    taken = taken_of(wire, MUCH, 0.6)
    thread.join()
    wire.close()
    while part := server.recv(1 << 20):
        got.extend(part)
    assert read < taken < len(MUCH)
    assert got == MUCH[:taken]


def test_what_a_reset_met_on_its_way_was_taken(ends: Pair) -> None:
    wire, server = ends
    got = bytearray()

    def read_and_reset() -> None:
        while len(got) < 500_000:
            got.extend(server.recv(65536))
        Peer(server).reset()

    thread = later(read_and_reset, 0.0)
    taken = taken_of(wire, MUCH)
    thread.join()
    assert len(got) <= taken < len(MUCH)


def test_of_what_never_began_nothing_was_taken(ends: Pair) -> None:
    wire, server = ends
    assert taken_of(wire, b"x" * 10, 0) == 0
    Peer(server).reset()
    while not wire.spoke_unasked():
        time.sleep(0.01)
    assert taken_of(wire, b"x" * 10) == 0
    wire.abort()
    assert taken_of(wire, b"x" * 10) == 0
    wire.close()
    assert taken_of(wire, b"x" * 10) == 0


def test_under_tls_all_of_it_may_be_on_its_way(ends: Pair, tmp_path: Path) -> None:
    wire, plain = ends
    with secured(wire, plain, tmp_path) as server:
        assert taken_of(wire, MUCH, 0.2) == len(MUCH)
        Peer(server).reset()
    assert taken_of(wire, b"x" * 10) == 10
