"""The SMTP backend against real sockets: what is accepted, and how a message is written."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sending.outcomes import Stage
from sending.sessions import Prepared
from sending.smtp_envelope import unstuffed, whole_lines, wire_body

from .scripted_smtp import Peer, scripted
from .smtp_relay import DATA, arrived, backend, deliver


def test_accepts_and_says_what_was_said() -> None:
    def talk(peer: Peer) -> None:
        peer.hello(b"PIPELINING")
        assert peer.take() == DATA
        peer.bye()
        assert peer.heard[1:] == [
            b"MAIL FROM:<s@example.org>",
            b"RCPT TO:<a@example.org>",
            b"DATA",
            b"QUIT",
        ]

    with scripted(talk) as server:
        relay = backend(server)
        assert relay.open() is True
        assert relay.open() is False
        said = deliver(relay)
        relay.close()
    assert (said.stage, said.code, said.enhanced) == (Stage.DOT, 250, "2.0.0")
    assert said.message_id == "Q1"
    assert not relay.is_open


@pytest.mark.parametrize("reply", [b"221", b"nonsense", b"5", b"", b"\x00\xff" * 9000])
def test_what_quit_says_is_irrelevant(reply: bytes) -> None:
    def talk(peer: Peer) -> None:
        peer.hello()
        peer.take()
        peer.line()
        peer.raw(reply + b"\r\n")

    with scripted(talk) as server:
        relay = backend(server)
        assert deliver(relay).code == 250
        relay.close()


@pytest.mark.parametrize(
    ("data", "wire"),
    [
        (b"A: b\n\nx", b"A: b\r\n\r\nx\r\n"),
        (b"A: b\r\n\r\n.\r\n..\r\n.x\r\n", b"A: b\r\n\r\n..\r\n...\r\n..x\r\n"),
        (b".A: b\r\n\r\n", b"..A: b\r\n\r\n"),
        (b"A: b\r\n\r\nx\n.\r\nMAIL\r.\r\ny", b"A: b\r\n\r\nx\r\n..\r\nMAIL\r\n..\r\ny\r\n"),
        (b"A: b\r\n\r\nx\r", b"A: b\r\n\r\nx\r\n"),
    ],
)
def test_dots_are_stuffed_and_line_ends_made_whole(data: bytes, wire: bytes) -> None:
    seen: list[bytes] = []

    def talk(peer: Peer) -> None:
        peer.hello()
        seen.append(peer.take())
        peer.bye()

    with scripted(talk) as server:
        relay = backend(server)
        deliver(relay, data=data)
        relay.close()
    assert seen == [wire]


def test_what_is_stuffed_goes_out_as_it_is() -> None:
    body = b"A: b\r\n\r\n..\r\n..x\r\n"
    assert arrived(Prepared("s@example.org", "a@example.org", body, stuffed=True)) == body


@given(st.binary(min_size=1))
def test_stuffing_is_undone(data: bytes) -> None:
    body = wire_body(data)
    assert unstuffed(body) == whole_lines(data)
    assert b"\r\n.\r\n" not in b"\r\n" + body


@pytest.mark.parametrize(
    ("sent", "meant"),
    [(b"", b""), (b"..\r\n", b".\r\n"), (b"a\r\n...b\r\n", b"a\r\n..b\r\n"), (b"a.b", b"a.b")],
)
def test_dots_are_unstuffed(sent: bytes, meant: bytes) -> None:
    assert unstuffed(sent) == meant
