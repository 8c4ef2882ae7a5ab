"""The SMTP backend against real sockets: every loss at its stage."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import pytest

from sending.outcomes import Outcome, Stage
from sending.smtp import EmailBackend, SMTPFailure
from sending.smtp_wire import Wire

from .scripted_smtp import Peer, scripted
from .smtp_relay import DATA, backend, deliver, failure, outcome, until

WAITING = [Stage.GREETING, Stage.EHLO, Stage.MAIL, Stage.RCPT, Stage.DATA, Stage.DOT]
LOST = {
    Stage.GREETING: Outcome.RELAY_DOWN,
    Stage.EHLO: Outcome.RELAY_DOWN,
    Stage.MAIL: Outcome.RETRY,
    Stage.RCPT: Outcome.RETRY,
    Stage.DATA: Outcome.RETRY,
    Stage.DOT: Outcome.IN_DOUBT,
}


def half(peer: Peer) -> None:
    peer.raw(b"250-half\r\n250")
    peer.end()


ENDS: dict[str, Callable[[Peer], None]] = {
    "fin": Peer.end,
    "rst": Peer.reset,
    "half a reply": half,
    "no code": lambda peer: peer.say(b"hello there"),
    "code out of range": lambda peer: peer.say(b"999 ok"),
    "http": lambda peer: peer.say(b"HTTP/1.1 400 Bad Request"),
    "codes disagree": lambda peer: peer.raw(b"250-ok\r\n550 no\r\n"),
    "line of 70 kB": lambda peer: peer.say(b"250 " + b"x" * 70_000),
    "NUL and 8 bit": lambda peer: peer.say(b"\x00\xff\xfe250 ok"),
    "endless line": lambda peer: peer.raw(b"2" * 20_000),
}


@pytest.mark.parametrize("stage", WAITING)
@pytest.mark.parametrize("end", ENDS)
def test_a_lost_or_unreadable_reply_is_known_by_its_stage(stage: Stage, end: str) -> None:
    def talk(peer: Peer) -> None:
        until(stage)(peer)
        ENDS[end](peer)

    with scripted(talk) as server:
        relay = backend(server)
        said = failure(relay)
        assert not relay.is_open
        relay.close()
    # A reset that comes quickly enough is still an error of connecting.
    stages = {stage, Stage.CONNECT} if (stage, end) == (Stage.GREETING, "rst") else {stage}
    assert said.stage in stages
    assert said.code is None
    assert outcome(said) is LOST[stage]


@pytest.mark.parametrize("stage", WAITING)
def test_silence_times_out_at_its_stage(stage: Stage) -> None:
    done = threading.Event()

    def talk(peer: Peer) -> None:
        until(stage)(peer)
        done.wait(20)

    with scripted(talk) as server:
        said = failure(backend(server, timeout=0.2, reply_timeout=0.3))
        done.set()
    assert (said.stage, said.code, said.text) == (stage, None, "timed out")
    assert outcome(said) is LOST[stage]


def test_a_dripping_reply_does_not_outlast_its_deadline() -> None:
    done = threading.Event()

    def talk(peer: Peer) -> None:
        until(Stage.RCPT)(peer)
        try:
            while not done.wait(0.05):
                peer.raw(b"250-x\r\n")
        except OSError:
            pass

    with scripted(talk) as server:
        said = failure(backend(server, timeout=0.5))
        done.set()
    assert (said.stage, said.text) == (Stage.RCPT, "timed out")


def test_only_the_reply_after_the_dot_has_the_long_patience() -> None:
    def talk(peer: Peer) -> None:
        until(Stage.DOT)(peer)
        time.sleep(0.6)
        peer.say(b"250 late")
        peer.bye()

    with scripted(talk) as server:
        relay = backend(server, timeout=0.3, reply_timeout=10)
        assert deliver(relay).code == 250
        relay.close()


BIG = b"Subject: big\r\n\r\n" + b"x" * 70 * 1000 + b"\r\n" + (b"y" * 70 + b"\r\n") * 200_000


def test_a_loss_within_the_body_is_no_doubt() -> None:
    def talk(peer: Peer) -> None:
        until(Stage.DATA)(peer)
        peer.say(b"354 go")
        peer.sock.recv(1000)
        peer.reset()

    with scripted(talk) as server:
        said = failure(backend(server), data=BIG)
    assert (said.stage, said.code) == (Stage.BODY, None)
    assert outcome(said) is Outcome.RETRY


def test_a_server_that_stops_reading_times_out_in_the_body() -> None:
    done = threading.Event()

    def talk(peer: Peer) -> None:
        until(Stage.DATA)(peer)
        peer.say(b"354 go")
        done.wait(20)

    with scripted(talk) as server:
        said = failure(backend(server, timeout=0.4), data=BIG)
        done.set()
    assert (said.stage, said.code) == (Stage.BODY, None)


def test_an_end_that_is_seen_before_the_dot_is_no_doubt() -> None:
    def talk(peer: Peer) -> None:
        until(Stage.DATA)(peer)
        peer.sock.setsockopt(6, 3, 1)  # TCP_CORK: the reply and the FIN in one segment
        peer.say(b"354 go")
        peer.sock.shutdown(1)
        while peer.sock.recv(65536):
            pass

    with scripted(talk) as server:
        said = failure(backend(server))
    assert (said.stage, said.code) == (Stage.BODY, None)


@pytest.mark.parametrize(
    ("chunking", "fatal", "stage"),
    [
        (False, DATA, Stage.BODY),
        (False, b".\r\n", Stage.DOT),
        (True, b" LAST\r\n" + DATA[:-2], Stage.BODY),
        (True, b"\r\n", Stage.DOT),
    ],
)
def test_doubt_begins_with_the_write_of_the_last_bytes(
    monkeypatch: pytest.MonkeyPatch, chunking: bool, fatal: bytes, stage: Stage
) -> None:
    """The connection ends just before a write, so that the write itself fails."""
    write = Wire.write

    def noting(wire: Wire, data: bytes, timeout: float, **more: bool) -> None:
        if data == fatal or (len(fatal) > 5 and data.endswith(fatal)):
            wire.abort()
        write(wire, data, timeout, **more)

    monkeypatch.setattr(Wire, "write", noting)

    def talk(peer: Peer) -> None:
        peer.hello(b"PIPELINING", b"CHUNKING")
        peer.line()
        if not chunking:
            peer.raw(b"250 ok\r\n250 ok\r\n354 go\r\n")
        while peer.sock.recv(65536):
            pass

    with scripted(talk) as server:
        relay = backend(server, chunking=chunking)
        said = failure(relay)
        assert not relay.is_open
    assert (said.stage, said.code) == (stage, None)
    assert outcome(said) is (Outcome.IN_DOUBT if stage is Stage.DOT else Outcome.RETRY)


def test_a_refusal_within_the_body_is_heard() -> None:
    said_it = threading.Event()

    def talk(peer: Peer) -> None:
        until(Stage.DATA)(peer)
        peer.raw(b"354 go\r\n552 5.3.4 too big\r\n")
        said_it.set()
        peer.line()

    with scripted(talk) as server:
        said = failure(backend(server))
    assert (said.stage, said.code, said.enhanced) == (Stage.BODY, 552, "5.3.4")
    assert outcome(said) is Outcome.FAILED


def test_nobody_listens() -> None:
    with scripted() as server:
        pass
    said = failure(backend(server.port))
    # Host and port are not for all who read it.
    assert (said.stage, said.code) == (Stage.CONNECT, None)
    assert said.text == "no connection: Connection refused"
    assert outcome(said) is Outcome.RELAY_DOWN


def test_a_name_that_does_not_resolve() -> None:
    relay = EmailBackend(host="host.invalid..", port=25, connect_timeout=1)
    with pytest.raises(SMTPFailure) as caught:
        relay.open()
    assert caught.value.answer.stage is Stage.CONNECT
    assert caught.value.answer.text.startswith("the host does not resolve: ")
    assert "host.invalid" not in caught.value.answer.text
