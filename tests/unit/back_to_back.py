"""Messages back to back: both sides of such a connection, in words."""

from __future__ import annotations

from typing import Any

import pytest

from sending.outcomes import Answer
from sending.smtp import EmailBackend, SMTPFailure, StaleConnection

from .scripted_smtp import Peer, Server, Talk
from .smtp_relay import backend

Message = tuple[str, str, bytes]
TAKEN = b"250 ok\r\n250 ok\r\n354 go\r\n"


def message(name: str, body: bytes = b"body") -> Message:
    data = b"Subject: " + name.encode() + b"\r\n\r\n" + body + b"\r\n"
    return "s@example.org", f"{name}@example.org", data


A, B, C = message("a"), message("b"), message("c")
BIG = message("big", b"\r\n".join([b"y" * 70] * 200_000))


def relay_to(server: Server, **options: Any) -> EmailBackend:
    return backend(server, **{"back_to_back": True, **options})


def relay_opened(server: Server, **options: Any) -> EmailBackend:
    relay = relay_to(server, **options)
    relay.open()
    return relay


def send(relay: EmailBackend, one: Message, following: Message | None = None) -> Answer:
    """As a lane does it."""
    return relay.deliver(*one, is_stuffed=True, reconnect=False, following=following)


def failure(relay: EmailBackend, one: Message, following: Message | None = None) -> Answer:
    with pytest.raises(SMTPFailure) as caught:
        send(relay, one, following)
    assert not isinstance(caught.value, StaleConnection)
    return caught.value.answer


def envelope(one: Message) -> bytes:
    sender, recipient, _ = one
    return b"MAIL FROM:<%b>\r\nRCPT TO:<%b>\r\nDATA\r\n" % (sender.encode(), recipient.encode())


def hello(peer: Peer) -> None:
    peer.hello(b"PIPELINING")


def hear_envelope(peer: Peer, one: Message) -> None:
    """All three, before anything is answered: they came together, or this waits for ever."""
    assert b"".join(peer.line() + b"\r\n" for _ in range(3)) == envelope(one)


def until_data(peer: Peer, one: Message = BIG) -> None:
    hello(peer)
    hear_envelope(peer, one)
    peer.raw(TAKEN)


def hear_body(peer: Peer, one: Message, following: Message | None = None) -> None:
    """The message, and behind its end the envelope of the next, before that is answered."""
    assert peer.body() == one[2]
    if following is not None:
        hear_envelope(peer, following)


def announced(peer: Peer, replies: bytes = TAKEN) -> None:
    """Take A, behind whose end came the envelope of B, and answer that so."""
    hello(peer)
    hear_envelope(peer, A)
    peer.raw(TAKEN)
    hear_body(peer, A, B)
    peer.raw(b"250 2.0.0 queued as Q1\r\n" + replies)


def ordinary(*messages: Message) -> Talk:
    """A connection on which these come one by one, and nothing else."""

    def talk(peer: Peer) -> None:
        hello(peer)
        for one in messages:
            hear_envelope(peer, one)
            peer.raw(TAKEN)
            hear_body(peer, one)
            peer.say(b"250 second connection")
        assert peer.line() == b"QUIT"
        peer.say(b"221 bye")
        assert peer.line() == b""

    return talk


def gone(peer: Peer) -> None:
    """Not another byte came, a QUIT neither: it would be part of the body."""
    assert peer.rest() == b""
