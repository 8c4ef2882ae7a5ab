"""A message by BDAT, pipelined behind MAIL and RCPT: where doubt begins, and what ends it."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from sending.outcomes import Answer, Outcome, Stage
from sending.smtp import EmailBackend

from .scripted_smtp import Peer, Server, Talk, scripted
from .smtp_relay import DATA, backend, deliver, failure, outcome

BIG = b"Subject: big\r\n\r\n" + (b"y" * 70 + b"\r\n") * 200_000


def relay_to(server: Server, **options: Any) -> EmailBackend:
    return backend(server, chunking=True, **options)


def take(peer: Peer, replies: bytes = b"250 ok\r\n250 ok\r\n250 2.0.0 queued as Q1\r\n") -> bytes:
    """Hear all of it before anything is answered: it does not wait for the replies to MAIL and
    RCPT, or this waits for ever."""
    assert peer.line() == b"MAIL FROM:<s@example.org>"
    assert peer.line() == b"RCPT TO:<a@example.org>"
    found = peer.chunk()
    peer.raw(replies)
    return found


def hello(peer: Peer) -> None:
    peer.hello(b"PIPELINING", b"CHUNKING")


def when_it_hangs_up_after(replies: bytes) -> Answer:
    """The end of a message of which the server heard all, said this and went away."""

    def talk(peer: Peer) -> None:
        hello(peer)
        take(peer, replies)

    with scripted(talk) as server:
        relay = relay_to(server)
        said = failure(relay)
        assert not relay.is_open
    return said


def when_it_says_no_more_after(start: Talk, data: bytes, **patience: float) -> Answer:
    """The end of a message at which the server stays, and neither hears nor says any more."""
    done = threading.Event()

    def talk(peer: Peer) -> None:
        start(peer)
        done.wait(20)

    with scripted(talk) as server:
        said = failure(relay_to(server, **patience), data=data)
        done.set()
    return said


@pytest.mark.parametrize(
    ("data", "is_stuffed", "wire"),
    [
        (DATA, False, DATA),
        (b"A: b\r\n\r\n.\r\n..x\r\n", False, b"A: b\r\n\r\n.\r\n..x\r\n"),
        (b"A: b\r\n\r\n..\r\n...x\r\n", True, b"A: b\r\n\r\n.\r\n..x\r\n"),
        (b"..A: b\r\n\r\n", True, b".A: b\r\n\r\n"),
        (b"A: b\n\nx\rMAIL", False, b"A: b\r\n\r\nx\r\nMAIL\r\n"),
    ],
)
def test_one_round_trip_and_no_dots(data: bytes, is_stuffed: bool, wire: bytes) -> None:
    seen: list[bytes] = []

    def talk(peer: Peer) -> None:
        hello(peer)
        seen.extend(take(peer) for _ in range(2))
        peer.bye()

    with scripted(talk) as server:
        relay = relay_to(server)
        for _ in range(2):
            said = deliver(relay, data=data, is_stuffed=is_stuffed)
            assert (said.stage, said.code, said.message_id) == (Stage.DOT, 250, "Q1")
        relay.close()
    assert seen == [wire, wire]


@pytest.mark.parametrize(
    ("features", "chunking"),
    [((b"PIPELINING",), True), ((b"CHUNKING",), True), ((b"PIPELINING", b"CHUNKING"), False)],
)
def test_data_where_it_is_not_offered_or_not_wanted(
    features: tuple[bytes, ...], chunking: bool
) -> None:
    def talk(peer: Peer) -> None:
        peer.hello(*features)
        assert peer.take() == DATA
        assert b"DATA" in peer.heard
        peer.bye()

    with scripted(talk) as server:
        relay = backend(server, chunking=chunking)
        assert deliver(relay).code == 250
        relay.close()


@pytest.mark.parametrize(
    ("replies", "stage", "code"),
    [
        (b"550 5.7.1 you\r\n503 no\r\n503 no\r\n", Stage.MAIL, 550),
        (b"250 ok\r\n550 5.1.1 nobody\r\n554 no valid recipients\r\n", Stage.RCPT, 550),
        (b"250 ok\r\n450 4.2.0 later\r\n503 no\r\n", Stage.RCPT, 450),
        (b"250 ok\r\n250 ok\r\n554 5.7.1 spam\r\n", Stage.DOT, 554),
        (b"250 ok\r\n250 ok\r\n452 4.3.1 disk\r\n", Stage.DOT, 452),
        # Taken, but for nobody.
        (b"250 ok\r\n550 5.1.1 nobody\r\n250 ok\r\n", Stage.RCPT, 550),
        (b"550 5.7.1 you\r\n250 ok\r\n554 5.5.1 no sender\r\n", Stage.MAIL, 550),
    ],
)
def test_the_first_refusal_is_the_answer_and_the_session_goes_on(
    replies: bytes, stage: Stage, code: int
) -> None:
    def talk(peer: Peer) -> None:
        hello(peer)
        take(peer, replies)
        assert peer.ask(b"250 reset") == b"RSET"
        take(peer)
        peer.bye()

    with scripted(talk) as server:
        relay = relay_to(server)
        said = failure(relay)
        assert (said.stage, said.code) == (stage, code)
        assert deliver(relay).code == 250
        relay.close()


@pytest.mark.parametrize(
    "replies",
    [
        b"",
        b"250 ok\r\n",
        b"250 ok\r\n250 ok\r\n",
        b"250 ok\r\n250 ok\r\n25",
        b"nonsense\r\n",
        b"250 ok\r\nnonsense\r\n",
        b"250 ok\r\n250 ok\r\n354 go\r\n",
        b"299 what\r\n250 ok\r\n250 ok\r\n",
        b"250 ok\r\n354 go\r\n250 ok\r\n",
        # Refused as a sender, and yet the recipient was taken: who knows what that server did.
        b"550 5.7.1 you\r\n250 ok\r\n",
        b"550 5.7.1 you\r\n250 ok\r\n250 ok\r\n",
    ],
)
def test_once_the_last_bytes_are_written_a_loss_is_doubt(replies: bytes) -> None:
    said = when_it_hangs_up_after(replies)
    assert (said.stage, said.code) == (Stage.DOT, None)
    assert outcome(said) is Outcome.IN_DOUBT


@pytest.mark.parametrize(
    ("replies", "stage", "code"),
    [
        (b"550 5.7.1 you\r\n", Stage.MAIL, 550),
        (b"550 5.7.1 you\r\n503 no\r\n", Stage.MAIL, 550),
        (b"250 ok\r\n550 5.1.1 nobody\r\n", Stage.RCPT, 550),
        (b"421 4.3.2 closing\r\n", Stage.MAIL, 421),
        (b"250 ok\r\n421 4.7.0 too many\r\n", Stage.RCPT, 421),
        (b"250 ok\r\n250 ok\r\n421 4.3.2 closing\r\n", Stage.DOT, 421),
    ],
)
def test_a_refusal_before_the_loss_counts(replies: bytes, stage: Stage, code: int) -> None:
    said = when_it_hangs_up_after(replies)
    assert (said.stage, said.code) == (stage, code)
    assert outcome(said) is not Outcome.IN_DOUBT


@pytest.mark.parametrize("taken", [b"", b"250 ok\r\n"])
def test_nothing_is_waited_for_after_421(taken: bytes) -> None:
    def talk(peer: Peer) -> None:
        hello(peer)
        take(peer, taken + b"421 4.7.0 too many\r\n")
        assert peer.line() == b""

    with scripted(talk) as server:
        assert failure(relay_to(server, reply_timeout=600)).code == 421


def test_silence_is_doubt_after_the_long_patience() -> None:
    def half_answered(peer: Peer) -> None:
        hello(peer)
        take(peer, b"250 ok\r\n")

    said = when_it_says_no_more_after(half_answered, DATA, timeout=10, reply_timeout=0.3)
    assert (said.stage, said.code, said.text) == (Stage.DOT, None, "timed out")


def test_all_replies_have_the_long_patience() -> None:
    def talk(peer: Peer) -> None:
        hello(peer)
        take(peer, b"")
        threading.Event().wait(0.6)
        peer.raw(b"250 late\r\n250 late\r\n250 late\r\n")
        peer.bye()

    with scripted(talk) as server:
        relay = relay_to(server, timeout=0.3, reply_timeout=10)
        assert deliver(relay).code == 250
        relay.close()


def _envelope(peer: Peer) -> None:
    hello(peer)
    peer.line()
    peer.line()


def _reset(peer: Peer) -> None:
    peer.sock.recv(1000)
    peer.reset()


@pytest.mark.parametrize("end", [_reset, Peer.end])
def test_a_loss_before_the_last_bytes_is_no_doubt(end: Talk) -> None:
    def talk(peer: Peer) -> None:
        _envelope(peer)
        end(peer)

    with scripted(talk) as server:
        said = failure(relay_to(server), data=BIG)
    assert (said.stage, said.code) == (Stage.BODY, None)
    assert outcome(said) is Outcome.RETRY


def test_a_server_that_stops_reading_times_out_before_the_last_bytes() -> None:
    said = when_it_says_no_more_after(_envelope, BIG, timeout=0.4)
    assert (said.stage, said.code, said.text) == (Stage.BODY, None, "timed out")


@pytest.mark.parametrize(
    ("replies", "stage", "code"),
    [
        (b"451 4.3.0 later\r\n", Stage.MAIL, 451),
        (b"250 ok\r\n550 5.1.1 nobody\r\n", Stage.RCPT, 550),
        (b"250 ok\r\n550 5.1.1 nobody\r\n503 no\r\n", Stage.RCPT, 550),
        (b"250 ok\r\n250 ok\r\n552 5.3.4 too big\r\n", Stage.BODY, 552),
        (b"421 4.3.2 closing\r\n", Stage.MAIL, 421),
        (b"250 ok\r\n250 ok\r\n250 ok\r\n", Stage.BODY, None),
        (b"250 ok\r\n299 what\r\n", Stage.BODY, None),
    ],
)
def test_what_is_refused_early_is_never_completed(
    replies: bytes, stage: Stage, code: int | None
) -> None:
    got: list[bytes] = []

    def talk(peer: Peer) -> None:
        _envelope(peer)
        peer.raw(replies)  # before the client can have written all: nothing was read of it
        got.append(peer.chunk())

    with scripted(talk) as server:
        relay = relay_to(server)
        said = failure(relay, data=BIG)
        assert not relay.is_open
    assert (said.stage, said.code) == (stage, code)
    assert outcome(said) is not Outcome.IN_DOUBT
    assert got == [b""]  # the client hung up before the end of the message


def test_a_big_message_whose_recipient_was_answered_early_is_completed() -> None:
    seen: list[bytes] = []

    def talk(peer: Peer) -> None:
        _envelope(peer)
        peer.raw(b"250 ok\r\n250 ok\r\n")
        seen.append(peer.chunk())
        peer.say(b"250 2.0.0 queued as Q1")
        peer.bye()

    with scripted(talk) as server:
        relay = relay_to(server)
        assert deliver(relay, data=BIG).message_id == "Q1"
        relay.close()
    assert seen == [BIG]


def test_a_session_that_ended_between_two_messages_is_replaced_unnoticed() -> None:
    ended = threading.Event()

    def first(peer: Peer) -> None:
        hello(peer)
        take(peer)
        peer.end()
        ended.set()

    def second(peer: Peer) -> None:
        hello(peer)
        take(peer, b"250 ok\r\n250 ok\r\n250 second\r\n")
        peer.bye()

    with scripted(first, second) as server:
        relay = relay_to(server)
        deliver(relay)
        ended.wait(10)
        assert deliver(relay).text == "second"
        relay.close()
