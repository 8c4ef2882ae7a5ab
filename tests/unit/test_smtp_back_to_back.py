"""The end of a message and the envelope of the next in one write: what arrives, at which stage the
announced message ended, and what is never done with a session that waits for it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.core.exceptions import ImproperlyConfigured

from sending.outcomes import Stage
from sending.sessions import NotOpen, Prepared, SMTPSession, sent
from sending.smtp import EmailBackend, SMTPRefusedLocally, StaleConnection
from sending.smtp_wire import Wire

from .back_to_back import (
    TAKEN,
    A,
    B,
    C,
    Message,
    announced,
    envelope,
    failure,
    gone,
    hear_body,
    hear_envelope,
    hello,
    message,
    ordinary,
    relay_opened,
    relay_to,
    send,
)
from .scripted_smtp import Peer, scripted

# -- the bytes ------------------------------------------------------------------------------------


@pytest.mark.parametrize("count", [1, 2, 3])
def test_each_end_carries_the_next_envelope(count: int) -> None:
    messages = [A, B, C][:count]

    def talk(peer: Peer) -> None:
        hello(peer)
        hear_envelope(peer, A)
        peer.raw(TAKEN)
        for number, one in enumerate(messages):
            following = messages[number + 1] if number + 1 < count else None
            hear_body(peer, one, following)
            peer.raw(b"250 2.0.0 queued as Q%d\r\n" % number + TAKEN * (following is not None))
        assert peer.line() == b"QUIT"
        peer.say(b"221 bye")

    with scripted(talk) as server:
        relay = relay_to(server)
        relay.open()
        said = [send(relay, *pair) for pair in zip(messages, [*messages[1:], None], strict=True)]
        assert [one.message_id for one in said] == [f"Q{number}" for number in range(count)]
        assert relay.is_ready
        relay.close()


def test_body_dot_and_envelope_are_one_write(monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[bytes] = []
    write = Wire.write

    def noting(wire: Wire, data: bytes, timeout: float, **more: bool) -> None:
        written.append(data)
        write(wire, data, timeout, **more)

    def talk(peer: Peer) -> None:
        announced(peer)
        hear_body(peer, B)
        peer.say(b"250 ok")
        peer.bye()

    with scripted(talk) as server:
        relay = relay_to(server)
        relay.open()
        monkeypatch.setattr(Wire, "write", noting)
        send(relay, A, B)
        send(relay, B)
        monkeypatch.undo()
        relay.close()
    assert written == [envelope(A), A[2] + b".\r\n" + envelope(B), B[2] + b".\r\n"]


@pytest.mark.parametrize(
    ("features", "options", "is_stuffed"),
    [
        ((), {}, True),
        ((b"PIPELINING",), {"back_to_back": False}, True),
        ((b"PIPELINING",), {}, False),
        ((b"PIPELINING",), {"messages_per_connection": 1}, True),
    ],
    ids=["no PIPELINING", "not asked for", "not stuffed", "used up"],
)
def test_nothing_follows(
    features: tuple[bytes, ...], options: dict[str, Any], is_stuffed: bool
) -> None:
    def talk(peer: Peer) -> None:
        peer.hello(*features)
        assert peer.take() == A[2]
        assert peer.line() == b"QUIT"
        peer.say(b"221 bye")

    with scripted(talk) as server:
        relay = relay_to(server, **options)
        relay.deliver(*A, is_stuffed=is_stuffed, following=B)
        relay.close()


def test_what_used_a_connection_up_has_nothing_behind_it() -> None:
    def first(peer: Peer) -> None:
        announced(peer)
        hear_body(peer, B)
        peer.say(b"250 last")
        assert peer.line() == b"QUIT"
        peer.say(b"221 bye")

    with scripted(first, ordinary(C)) as server:
        relay = relay_to(server, messages_per_connection=2)
        relay.open()
        send(relay, A, B)
        assert send(relay, B, C).text == "last"
        with pytest.raises(StaleConnection):
            send(relay, C)
        relay.open()
        assert send(relay, C).text == "second connection"
        relay.close()


def test_a_lanes_session_announces_stuffed_messages_only() -> None:
    def talk(peer: Peer) -> None:
        announced(peer)
        hear_body(peer, B)
        peer.say(b"250 ok")
        hear_envelope(peer, C)
        peer.raw(TAKEN)
        hear_body(peer, C)
        peer.say(b"250 ok")
        peer.bye()

    with scripted(talk) as server:
        session = SMTPSession(relay_to(server))
        session.open()
        sent(session, Prepared(*A, stuffed=True), Prepared(*B, stuffed=True))
        sent(session, Prepared(*B, stuffed=True), Prepared(*C))
        sent(session, Prepared(*C))
        session.close()


def test_not_together_with_chunking() -> None:
    with pytest.raises(ImproperlyConfigured, match="at most one of chunking and back_to_back"):
        EmailBackend(host="127.0.0.1", chunking=True, back_to_back=True)


# -- the announced message, stage by stage --------------------------------------------------------


@pytest.mark.parametrize(
    ("replies", "empty", "stage", "code"),
    [
        (b"550 5.7.1 you\r\n503 no sender\r\n503 no recipient\r\n", False, Stage.MAIL, 550),
        (b"250 ok\r\n550 5.1.1 nobody\r\n354 go\r\n", True, Stage.RCPT, 550),
        (b"250 ok\r\n550 5.1.1 nobody\r\n554 no valid recipients\r\n", False, Stage.RCPT, 550),
        (b"250 ok\r\n250 ok\r\n451 4.3.0 later\r\n", False, Stage.DATA, 451),
    ],
)
def test_a_refusal_of_it_is_told_at_its_stage_and_the_session_goes_on(
    replies: bytes, empty: bool, stage: Stage, code: int
) -> None:
    def talk(peer: Peer) -> None:
        announced(peer, replies)
        if empty:
            assert peer.line() == b"."
            peer.say(b"554 no valid recipients")
        assert peer.ask(b"250 reset") == b"RSET"
        hear_envelope(peer, C)
        peer.raw(TAKEN)
        hear_body(peer, C)
        peer.say(b"250 ok")
        peer.bye()

    with scripted(talk) as server:
        relay = relay_to(server)
        relay.open()
        assert send(relay, A, B).message_id == "Q1"
        said = failure(relay, B, C)
        assert (said.stage, said.code) == (stage, code)
        assert relay.is_ready
        assert send(relay, C).code == 250
        relay.close()


@pytest.mark.parametrize(
    "replies",
    [b"", b"2", b"421 4.3.2 closing\r\n", b"421 too many messages\r\n", b"nonsense\r\n"],
)
@pytest.mark.parametrize("end", [Peer.end, Peer.reset])
def test_before_mail_is_answered_it_was_not_begun(
    replies: bytes, end: Callable[[Peer], None]
) -> None:
    def talk(peer: Peer) -> None:
        announced(peer, replies)
        end(peer)

    with scripted(talk, ordinary(B)) as server:
        session = SMTPSession(relay_to(server))
        session.open()
        sent(session, Prepared(*A, stuffed=True), Prepared(*B, stuffed=True))
        with pytest.raises(NotOpen) as caught:
            sent(session, Prepared(*B, stuffed=True), Prepared(*C, stuffed=True))
        assert caught.value.answer.stage is Stage.MAIL
        assert not session.seems_open
        session.open()
        assert sent(session, Prepared(*B, stuffed=True)).text == "second connection"
        session.close()


def test_where_it_may_reconnect_it_does() -> None:
    def talk(peer: Peer) -> None:
        announced(peer, b"421 4.3.2 closing\r\n")

    with scripted(talk, ordinary(B)) as server:
        relay = relay_to(server)
        relay.open()
        send(relay, A, B)
        said = relay.deliver(*B, is_stuffed=True, following=C)
        assert said.text == "second connection"
        relay.close()


# -- something else than what was announced -------------------------------------------------------


@pytest.mark.parametrize("other", [C, (B[0], B[1], C[2]), (B[0], C[1], B[2]), (C[1], B[1], B[2])])
def test_another_message_waits_for_another_session(other: Message) -> None:
    def talk(peer: Peer) -> None:
        announced(peer)
        gone(peer)

    with scripted(talk, ordinary(other)) as server:
        relay = relay_opened(server)
        send(relay, A, B)
        with pytest.raises(StaleConnection) as caught:
            send(relay, other)
        assert caught.value.answer.stage is Stage.MAIL
        assert not relay.is_open
        relay.open()
        assert send(relay, other).text == "second connection"
        relay.close()


def test_nor_does_one_that_is_not_stuffed_become_part_of_it() -> None:
    """As ``send_messages`` and ``deliver`` without further ado send it."""

    def talk(peer: Peer) -> None:
        announced(peer)
        gone(peer)

    with scripted(talk, ordinary(B)) as server:
        relay = relay_opened(server)
        send(relay, A, B)
        assert relay.deliver(*B).text == "second connection"
        relay.close()


def test_closing_says_nothing_where_a_body_is_waited_for() -> None:
    def talk(peer: Peer) -> None:
        announced(peer)
        gone(peer)

    with scripted(talk) as server:
        session = SMTPSession(relay_to(server))
        session.open()
        sent(session, Prepared(*A, stuffed=True), Prepared(*B, stuffed=True))
        assert session.seems_open, "for the one that was announced"
        assert not session.is_open, "for any other"
        session.close()
        assert not session.seems_open


def test_opening_again_begins_anew() -> None:
    def talk(peer: Peer) -> None:
        announced(peer)
        gone(peer)

    with scripted(talk, ordinary(C)) as server:
        session = SMTPSession(relay_to(server))
        session.open()
        sent(session, Prepared(*A, stuffed=True), Prepared(*B, stuffed=True))
        session.open()
        assert session.is_open
        assert sent(session, Prepared(*C, stuffed=True)).text == "second connection"
        session.close()


def test_an_abort_ends_it_too() -> None:
    def talk(peer: Peer) -> None:
        announced(peer)
        gone(peer)

    with scripted(talk) as server:
        relay = relay_opened(server)
        send(relay, A, B)
        relay.abort()
        said = failure(relay, B)
        assert (said.stage, said.code) == (Stage.BODY, None)
        relay.close()


# -- what can't be announced ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("refused", "enhanced"),
    [
        (message("b", b"x" * 2000), "5.3.4"),
        (("s@example.org", "bä@example.org", B[2]), "5.6.7"),
    ],
)
def test_what_the_relay_does_not_take_is_not_announced(refused: Message, enhanced: str) -> None:
    def talk(peer: Peer) -> None:
        peer.hello(b"PIPELINING", b"SIZE 1000")
        for one in (A, C):
            size = len(one[2])
            assert peer.line() == b"MAIL FROM:<s@example.org> SIZE=%d" % size
            peer.line()
            peer.line()
            peer.raw(TAKEN)
            assert peer.body() == one[2]
            peer.say(b"250 ok")
        assert peer.line() == b"QUIT"
        peer.say(b"221 bye")

    with scripted(talk) as server:
        relay = relay_opened(server)
        send(relay, A, refused)
        assert relay.is_ready
        with pytest.raises(SMTPRefusedLocally) as caught:
            send(relay, refused, C)
        assert caught.value.answer.enhanced == enhanced
        send(relay, C)
        relay.close()
