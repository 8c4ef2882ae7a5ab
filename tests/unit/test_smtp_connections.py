"""The SMTP backend's connections: used again, replaced, ended and aborted."""

from __future__ import annotations

import threading
import time

import pytest

from sending.outcomes import Outcome, Stage
from sending.smtp import EmailBackend, StaleConnection
from sending.smtp_dialogue import Timeouts

from .scripted_smtp import Peer, Talk, scripted
from .smtp_relay import DATA, backend, deliver, failure, outcome, until


@pytest.mark.parametrize(
    ("patience", "seconds"), [(None, (30, 300, 600)), (10, (10, 10, 600)), (100, (30, 100, 600))]
)
def test_patience_shortens_what_opening_may_take(
    patience: float | None, seconds: tuple[int, int, int]
) -> None:
    found = Timeouts().for_opening(patience)
    assert (found.connect, found.command, found.final) == seconds


def stale_fin(peer: Peer) -> None:
    peer.end()


def stale_421(peer: Peer) -> None:
    peer.say(b"421 4.4.2 idle too long")
    peer.end()


def stale_rst(peer: Peer) -> None:
    peer.reset()


def stale_at_mail(peer: Peer) -> None:
    assert peer.line().startswith(b"MAIL")
    peer.reset()


def stale_421_at_mail(peer: Peer) -> None:
    assert peer.line().startswith(b"MAIL")
    peer.say(b"421 too many messages in this connection")


@pytest.mark.parametrize(
    "ending", [stale_fin, stale_421, stale_rst, stale_at_mail, stale_421_at_mail]
)
def test_a_used_connection_that_has_ended_is_replaced_unnoticed(ending: Talk) -> None:
    ended = threading.Event()

    def first(peer: Peer) -> None:
        peer.hello()
        peer.take()
        if ending not in (stale_at_mail, stale_421_at_mail):
            ending(peer)
            ended.set()
        else:
            ended.set()
            ending(peer)

    def second(peer: Peer) -> None:
        peer.hello()
        peer.take(b"250 second")
        peer.bye()

    with scripted(first, second) as server:
        relay = backend(server)
        deliver(relay)
        ended.wait(10)
        assert deliver(relay).text == "second"
        relay.close()


def until_it_shows(relay: EmailBackend) -> None:
    while relay.is_ready:
        time.sleep(0.01)


@pytest.mark.parametrize("ending", [stale_fin, stale_421, stale_rst])
def test_a_new_connection_that_ended_before_its_first_message_is_replaced(ending: Talk) -> None:
    def first(peer: Peer) -> None:
        peer.hello()
        ending(peer)

    def second(peer: Peer) -> None:
        peer.hello()
        peer.take(b"250 second")
        peer.bye()

    with scripted(first, first, second) as server:
        relay = backend(server)
        relay.open()
        until_it_shows(relay)
        with pytest.raises(StaleConnection):
            relay.deliver("s@example.org", "a@example.org", DATA, reconnect=False)
        relay.open()
        until_it_shows(relay)
        assert deliver(relay).text == "second"
        relay.close()


def test_what_is_lost_once_mail_was_said_on_a_new_connection_is_an_attempt() -> None:
    def talk(peer: Peer) -> None:
        peer.hello()
        peer.line()
        peer.end()

    with scripted(talk) as server:
        said = failure(backend(server))
    assert (said.stage, said.code) == (Stage.MAIL, None)


def test_a_request_to_slow_down_is_no_reason_to_reconnect() -> None:
    def talk(peer: Peer) -> None:
        peer.hello()
        peer.take()
        peer.line()
        peer.say(b"421 4.7.28 slow down")

    with scripted(talk) as server:
        relay = backend(server)
        deliver(relay)
        said = failure(relay)
    assert (said.stage, said.code, said.enhanced) == (Stage.MAIL, 421, "4.7.28")


def test_messages_per_connection() -> None:
    def two(peer: Peer) -> None:
        peer.hello()
        peer.take()
        peer.take()
        assert peer.ask(b"221 bye") == b"QUIT"

    def one(peer: Peer) -> None:
        peer.hello()
        peer.take()
        peer.bye()

    with scripted(two, two, one) as server:
        relay = backend(server, messages_per_connection=2)
        for number in range(5):
            assert deliver(relay, to=f"r{number}@example.org").code == 250
        relay.close()


def test_helo_when_ehlo_is_unknown() -> None:
    def talk(peer: Peer) -> None:
        peer.say(b"220 old")
        assert peer.ask(b"502 what") == b"EHLO client.example.org"
        assert peer.ask(b"250 hello") == b"HELO client.example.org"
        peer.take()
        peer.bye()

    with scripted(talk) as server:
        relay = backend(server)
        assert deliver(relay).code == 250
        relay.close()


def test_abort_while_the_final_reply_is_awaited() -> None:
    waiting, done = threading.Event(), threading.Event()

    def talk(peer: Peer) -> None:
        until(Stage.DOT)(peer)
        waiting.set()
        done.wait(20)

    with scripted(talk) as server:
        relay = backend(server)

        def abort() -> None:
            waiting.wait(10)
            relay.abort()

        thread = threading.Thread(target=abort)
        thread.start()
        said = failure(relay)
        thread.join()
        done.set()
    assert (said.stage, said.code) == (Stage.DOT, None)
    assert outcome(said) is Outcome.IN_DOUBT


def test_an_aborted_backend_connects_only_after_close() -> None:
    def talk(peer: Peer) -> None:
        peer.hello()
        peer.take()
        peer.bye()

    with scripted(talk) as server:
        relay = backend(server)
        relay.abort()
        assert failure(relay).stage is Stage.CONNECT
        relay.close()
        assert deliver(relay).code == 250
        relay.close()
