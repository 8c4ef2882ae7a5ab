"""The SMTP backend against real sockets: every refusal at its stage, and the session after it."""

from __future__ import annotations

import threading

import pytest

from sending.outcomes import Outcome, Stage

from .scripted_smtp import Peer, scripted
from .smtp_relay import backend, deliver, failure, outcome, until


@pytest.mark.parametrize(
    ("stage", "reply", "code"),
    [
        (Stage.GREETING, b"554 no service", 554),
        (Stage.GREETING, b"250 what", 250),
        (Stage.EHLO, b"550 go away", 550),
    ],
)
def test_a_relay_that_will_not_talk(stage: Stage, reply: bytes, code: int) -> None:
    def talk(peer: Peer) -> None:
        until(stage)(peer)
        peer.say(reply)

    with scripted(talk) as server:
        said = failure(backend(server))
    assert (said.stage, said.code) == (stage, code)
    assert outcome(said) is Outcome.RELAY_DOWN


@pytest.mark.parametrize(
    ("stage", "reply", "code", "enhanced"),
    [
        (Stage.MAIL, b"550 5.1.8 bad sender", 550, "5.1.8"),
        (Stage.MAIL, b"451 4.3.0 later", 451, "4.3.0"),
        (Stage.RCPT, b"550 5.1.1 no such user", 550, "5.1.1"),
        (Stage.RCPT, b"450-4.2.0 Greylisted\r\n450 4.2.0 come back", 450, "4.2.0"),
        (Stage.DATA, b"554 5.7.1 no", 554, "5.7.1"),
        (Stage.DOT, b"554 5.7.1 spam", 554, "5.7.1"),
        (Stage.DOT, b"452 4.3.1 disk", 452, "4.3.1"),
    ],
)
def test_after_a_refusal_the_session_serves_the_next(
    stage: Stage, reply: bytes, code: int, enhanced: str
) -> None:
    def talk(peer: Peer) -> None:
        until(stage)(peer)
        peer.say(reply)
        assert peer.ask(b"250 flushed") == b"RSET"
        peer.take()
        peer.bye()

    with scripted(talk) as server:
        relay = backend(server)
        said = failure(relay)
        assert (said.stage, said.code, said.enhanced) == (stage, code, enhanced)
        assert relay.is_open
        assert deliver(relay, to="b@example.org").code == 250
        relay.close()


@pytest.mark.parametrize("stage", [Stage.MAIL, Stage.RCPT, Stage.DATA, Stage.DOT])
def test_421_ends_the_session_and_the_next_message_has_a_new_one(stage: Stage) -> None:
    def first(peer: Peer) -> None:
        until(stage)(peer)
        peer.say(b"421 4.3.2 shutting down")

    def second(peer: Peer) -> None:
        peer.hello()
        peer.take()
        peer.bye()

    with scripted(first, second) as server:
        relay = backend(server)
        said = failure(relay)
        assert (said.stage, said.code) == (stage, 421)
        assert not relay.is_open
        assert deliver(relay).code == 250
        relay.close()


def test_a_failed_rset_keeps_the_refusal_and_drops_the_session() -> None:
    def talk(peer: Peer) -> None:
        until(Stage.RCPT)(peer)
        peer.say(b"550 5.1.1 no")
        peer.line()
        peer.reset()

    with scripted(talk) as server:
        relay = backend(server)
        assert failure(relay).code == 550
        assert not relay.is_open


@pytest.mark.parametrize("reply", [b"354 again", b"299", b"3"])
def test_after_the_dot_only_a_valid_reply_counts(reply: bytes) -> None:
    def talk(peer: Peer) -> None:
        until(Stage.DOT)(peer)
        peer.say(reply)
        peer.line()

    with scripted(talk) as server:
        relay = backend(server)
        if reply == b"299":
            assert deliver(relay).code == 299
            relay.close()
            return
        said = failure(relay)
    assert (said.stage, said.code) == (Stage.DOT, None)
    assert outcome(said) is Outcome.IN_DOUBT


@pytest.mark.parametrize(
    "reply",
    [
        b"".join(b"250-%d %s\r\n" % (n, b"x" * 90) for n in range(1100)) + b"250 done\r\n",
        b"250 \xe9\xa2\x91 \xff\xfe\x00\x01\x1b[31m\r\n",
        b"250 ok\n",
        b"250\r\n",
    ],
    ids=["100 kB", "8 bit and NUL", "bare LF", "no text"],
)
def test_odd_but_valid_replies_are_taken(reply: bytes) -> None:
    def talk(peer: Peer) -> None:
        until(Stage.DOT)(peer)
        peer.raw(reply)
        peer.bye()

    with scripted(talk) as server:
        relay = backend(server)
        said = deliver(relay)
        relay.close()
    assert said.code == 250
    assert len(said.text) <= 500
    assert all(char.isprintable() or char == " " for char in said.text)


def test_a_reply_over_a_mebibyte_is_not_waited_for() -> None:
    def talk(peer: Peer) -> None:
        until(Stage.DOT)(peer)
        try:
            while True:
                peer.raw(b"250-" + b"x" * 4000 + b"\r\n")
        except OSError:
            pass

    with scripted(talk) as server:
        said = failure(backend(server))
    assert (said.stage, said.code) == (Stage.DOT, None)


def test_a_reply_too_many_never_answers_the_next_command() -> None:
    """Read as the answer to MAIL it would put every later answer one message behind."""
    spoke = threading.Event()

    def first(peer: Peer) -> None:
        peer.hello()
        peer.take()
        peer.say(b"250 2.0.0 once more")
        spoke.set()
        peer.line()

    def second(peer: Peer) -> None:
        peer.hello()
        peer.take(b"250 second")
        peer.bye()

    with scripted(first, second) as server:
        relay = backend(server)
        assert deliver(relay).code == 250
        spoke.wait(10)
        assert deliver(relay).text == "second"
        relay.close()
