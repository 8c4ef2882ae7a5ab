"""MAIL, RCPT and DATA in one write: every stage is told apart as without."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from sending.answers import Answer, Stage
from sending.smtp import EmailBackend, SMTPFailure

from .scripted_smtp import Peer, Server, scripted

DATA = b"Subject: hello\r\n\r\nbody\r\n"
ENVELOPE = b"MAIL FROM:<s@example.org>\r\nRCPT TO:<a@example.org>\r\nDATA\r\n"


def _backend(server: Server) -> EmailBackend:
    return EmailBackend(
        host="127.0.0.1",
        port=server.port,
        timeout=10,
        reply_timeout=10,
        connect_timeout=10,
        local_hostname="client.example.org",
    )


def _deliver(relay: EmailBackend) -> Answer:
    return relay.deliver("s@example.org", "a@example.org", DATA)


def _envelope(peer: Peer) -> None:
    """Hear all three before anything is answered: they were one write, or this waits for ever."""
    assert b"".join(peer.line() + b"\r\n" for _ in range(3)) == ENVELOPE


def test_one_write_and_three_answers() -> None:
    def talk(peer: Peer) -> None:
        peer.hello(b"PIPELINING")
        for _ in range(2):
            _envelope(peer)
            peer.raw(b"250 ok\r\n250 ok\r\n354 go\r\n")
            assert peer.body() == DATA
            peer.say(b"250 2.0.0 queued as Q1")
        peer.bye()

    with scripted(talk) as server:
        relay = _backend(server)
        assert [_deliver(relay).code, _deliver(relay).code] == [250, 250]
        relay.close()


def _refuse_mail(peer: Peer) -> None:
    peer.raw(b"550 5.7.1 you\r\n503 no sender\r\n503 no recipient\r\n")


def _refuse_rcpt(peer: Peer) -> None:
    peer.raw(b"250 ok\r\n550 5.1.1 nobody\r\n554 no valid recipients\r\n")


def _refuse_rcpt_but_go_on(peer: Peer) -> None:
    peer.raw(b"250 ok\r\n550 5.1.1 nobody\r\n354 go\r\n")
    assert peer.line() == b"."
    peer.say(b"554 no valid recipients")


def _refuse_data(peer: Peer) -> None:
    peer.raw(b"250 ok\r\n250 ok\r\n451 4.3.0 later\r\n")


@pytest.mark.parametrize(
    ("refuse", "stage", "code"),
    [
        (_refuse_mail, Stage.MAIL, 550),
        (_refuse_rcpt, Stage.RCPT, 550),
        (_refuse_rcpt_but_go_on, Stage.RCPT, 550),
        (_refuse_data, Stage.DATA, 451),
    ],
)
def test_the_first_refusal_is_the_answer_and_the_session_goes_on(
    refuse: Callable[[Peer], None], stage: Stage, code: int
) -> None:
    def talk(peer: Peer) -> None:
        peer.hello(b"PIPELINING")
        _envelope(peer)
        refuse(peer)
        assert peer.ask(b"250 reset") == b"RSET"
        _envelope(peer)
        peer.raw(b"250 ok\r\n250 ok\r\n354 go\r\n")
        peer.body()
        peer.say(b"250 ok")
        peer.bye()

    with scripted(talk) as server:
        relay = _backend(server)
        with pytest.raises(SMTPFailure) as caught:
            _deliver(relay)
        assert (caught.value.answer.stage, caught.value.answer.code) == (stage, code)
        assert _deliver(relay).code == 250
        relay.close()


@pytest.mark.parametrize(
    ("said", "stage", "code"),
    [
        (b"", Stage.MAIL, None),
        (b"250 ok\r\n", Stage.RCPT, None),
        (b"250 ok\r\n250 ok\r\n", Stage.DATA, None),
        (b"250 ok\r\nnonsense\r\n", Stage.RCPT, None),
        (b"421 4.3.2 closing\r\n", Stage.MAIL, 421),
        (b"250 ok\r\n421 4.7.0 too many\r\n", Stage.RCPT, 421),
        (b"550 5.7.1 you\r\n", Stage.MAIL, 550),
        (b"250 ok\r\n550 5.1.1 nobody\r\n", Stage.RCPT, 550),
    ],
)
def test_a_loss_is_told_at_its_stage_and_a_refusal_before_it_counts(
    said: bytes, stage: Stage, code: int | None
) -> None:
    def talk(peer: Peer) -> None:
        peer.hello(b"PIPELINING")
        _envelope(peer)
        peer.raw(said)

    with scripted(talk) as server:
        relay = _backend(server)
        with pytest.raises(SMTPFailure) as caught:
            _deliver(relay)
        assert not relay.is_open
    assert (caught.value.answer.stage, caught.value.answer.code) == (stage, code)


@pytest.mark.parametrize(
    "said",
    [
        # The recipient may have been taken: an empty message would be delivered.
        b"550 5.7.1 you\r\n250 ok\r\n354 go\r\n",
        b"250 ok\r\n299 what\r\n354 go\r\n",
        b"250 ok\r\n354 go\r\n354 go\r\n",
    ],
)
def test_no_empty_message_where_somebody_could_get_it(said: bytes) -> None:
    left: list[bytes] = []

    def talk(peer: Peer) -> None:
        peer.hello(b"PIPELINING")
        _envelope(peer)
        peer.raw(said)
        left.append(peer.line())

    with scripted(talk) as server:
        relay = _backend(server)
        with pytest.raises(SMTPFailure):
            _deliver(relay)
        assert not relay.is_open
    assert left == [b""]


def test_what_the_server_said_unasked_is_not_taken_for_an_answer() -> None:
    def talk(peer: Peer) -> None:
        peer.hello(b"PIPELINING")
        peer.say(b"250 stray")
        peer.line()

    with scripted(talk) as server:
        relay = _backend(server)
        relay.open()
        while relay.is_ready:  # the stray reply is on its way
            time.sleep(0.01)
        with pytest.raises(SMTPFailure) as caught:
            _deliver(relay)
        assert caught.value.answer.stage is Stage.MAIL
        assert not relay.is_open


@pytest.mark.parametrize(
    "said",
    [
        b"550 5.1.1 nobody\r\n250 ok\r\n250 ok\r\n354 go\r\n",
        b"250 ok\r\n550 5.1.1 nobody\r\n250 ok\r\n354 go\r\n",
        b"250 ok\r\n250 ok\r\n550 5.1.1 nobody\r\n354 go\r\n",
    ],
    ids=["for MAIL", "for RCPT", "for DATA"],
)
def test_a_refusal_that_stands_among_the_replies_is_nobodys(said: bytes) -> None:
    """One reply too many: by that nobody's address is dead."""

    def talk(peer: Peer) -> None:
        peer.hello(b"PIPELINING")
        _envelope(peer)
        peer.raw(said)
        while peer.sock.recv(65536):
            pass

    with scripted(talk) as server:
        relay = _backend(server)
        with pytest.raises(SMTPFailure) as caught:
            _deliver(relay)
        assert not relay.is_open
    answered = caught.value.answer
    assert (answered.stage, answered.code) == (Stage.MAIL, None)
