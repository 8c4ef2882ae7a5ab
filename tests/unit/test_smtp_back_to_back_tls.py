"""Back to back under TLS, where nobody says how much of a write has left."""

from __future__ import annotations

import ssl
import threading
from pathlib import Path

import pytest

from sending.outcomes import Outcome, Stage

from .back_to_back import (
    BIG,
    A,
    B,
    Message,
    announced,
    failure,
    hear_body,
    relay_opened,
    send,
    until_data,
)
from .scripted_smtp import Peer, scripted
from .smtp_relay import make_certificate, outcome


@pytest.fixture
def tls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ssl.SSLContext:
    """The server's context; the client trusts its certificate."""
    certificate = make_certificate(tmp_path)
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate.with_suffix(".crt")))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    return context


def test_it_works_under_tls(tls: ssl.SSLContext) -> None:
    def talk(peer: Peer) -> None:
        peer.start_tls(tls)
        announced(peer)
        hear_body(peer, B)
        peer.say(b"250 ok")
        peer.bye()

    with scripted(talk) as server:
        relay = relay_opened(server, use_ssl=True)
        send(relay, A, B)
        assert send(relay, B).code == 250
        relay.close()


def test_under_tls_a_write_that_fails_is_doubt(tls: ssl.SSLContext) -> None:
    """Nobody says how much of it has left."""

    def talk(peer: Peer) -> None:
        peer.start_tls(tls)
        until_data(peer)
        peer.sock.recv(1000)
        peer.reset()

    with scripted(talk) as server:
        relay = relay_opened(server, use_ssl=True)
        said = failure(relay, BIG, B)
        assert not relay.is_open
    assert (said.stage, said.code) == (Stage.DOT, None)
    assert outcome(said) is Outcome.IN_DOUBT


@pytest.mark.parametrize("following", [None, B])
def test_under_tls_nothing_is_said_behind_a_write_that_failed(
    tls: ssl.SSLContext, following: Message | None
) -> None:
    """A RSET would be a line of the body."""
    heard: list[bytes] = []

    def talk(peer: Peer) -> None:
        peer.start_tls(tls)
        until_data(peer)
        start = peer.sock.recv(1000)
        peer.say(b"552 5.3.4 too big")
        timed_out.wait(20)
        heard.append(start + peer.rest())

    timed_out = threading.Event()
    with scripted(talk) as server:
        relay = relay_opened(server, use_ssl=True, timeout=0.4)
        said = failure(relay, BIG, following)
        assert not relay.is_open
        timed_out.set()
    assert (said.stage, said.code) == (Stage.DOT, 552)
    assert outcome(said) is Outcome.FAILED
    assert BIG[2].startswith(heard[0])
