"""Back to back: what the answer to a message is, and where doubt begins when there is none."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator

import pytest

from sending import smtp
from sending.outcomes import Outcome, Stage
from sending.smtp import StaleConnection
from sending.smtp_wire import Wire, WireLost

from .back_to_back import (
    BIG,
    TAKEN,
    A,
    B,
    C,
    announced,
    envelope,
    failure,
    gone,
    hear_body,
    hear_envelope,
    hello,
    ordinary,
    relay_opened,
    relay_to,
    send,
    until_data,
)
from .scripted_smtp import Peer, Talk, scripted
from .smtp_relay import outcome


@pytest.fixture(autouse=True)
def _forgotten() -> Iterator[None]:
    """A later test's server may get the same port."""
    yield
    smtp._unanswering.clear()


# -- the answer to the message whose end carries an envelope --------------------------------------


def told(said: bytes) -> Talk:
    """Take A, whose end carried the envelope of B, say this, and nothing more."""

    def talk(peer: Peer) -> None:
        hello(peer)
        hear_envelope(peer, A)
        peer.raw(TAKEN)
        hear_body(peer, A, B)
        peer.raw(said)
        gone(peer)

    return talk


@pytest.mark.parametrize("code", [451, 554])
def test_after_a_refusal_what_was_announced_is_gone_on_with(code: int) -> None:
    def talk(peer: Peer) -> None:
        hello(peer)
        hear_envelope(peer, A)
        peer.raw(TAKEN)
        hear_body(peer, A, B)
        peer.raw(b"%d no\r\n" % code + TAKEN)
        hear_body(peer, B)
        peer.say(b"250 ok")
        peer.bye()

    with scripted(talk) as server:
        relay = relay_opened(server)
        answered = failure(relay, A, B)
        assert (answered.stage, answered.code) == (Stage.DOT, code)
        assert send(relay, B).code == 250
        relay.close()


@pytest.mark.parametrize(
    ("said", "code"),
    [
        (b"421 4.3.2 closing\r\n", 421),
        (b"354 what\r\n", None),
        (b"nonsense\r\n", None),
        # No answer to A at all: the first of these would be taken for it.
        (TAKEN, None),
        # One reply too many: it may be that to A, or not.
        *(
            (one + b"250 ok\r\n" + TAKEN, None)
            for one in (b"250 ok\r\n", b"451 a\r\n", b"554 b\r\n")
        ),
        (b"250 ok\r\n550 5.1.1 nobody\r\n" + TAKEN, None),
        (b"250 ok\r\n250 ok\r\n550 5.1.1 nobody\r\n250 ok\r\n354 go\r\n", None),
        (b"250 ok\r\n250 ok\r\n354 go\r\n354 go\r\n", None),
        # Only a part of them comes, in the time for a command.
        (b"250 ok\r\n", None),
        (b"554 5.7.1 no\r\n", None),
        (b"250 ok\r\n250 ok\r\n", None),
    ],
)
def test_replies_that_do_not_fit_leave_doubt_and_nothing_is_gone_on_with(
    said: bytes, code: int | None
) -> None:
    with scripted(told(said), ordinary(B)) as server:
        relay = relay_opened(server, timeout=0.5)
        answered = failure(relay, A, B)
        assert (answered.stage, answered.code) == (Stage.DOT, code)
        assert (outcome(answered) is Outcome.IN_DOUBT) == (code is None)
        assert not relay.is_open
        with pytest.raises(StaleConnection):
            send(relay, B)
        relay.open()
        assert send(relay, B).text == "second connection"
        relay.close()


def test_a_relay_that_throws_away_what_comes_behind_is_not_asked_again(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with scripted(told(b"250 ok\r\n"), ordinary(B, C)) as server:
        relay = relay_opened(server, timeout=0.3)
        assert failure(relay, A, B).code is None
        relay.open()
        send(relay, B, C)
        assert relay.is_ready, "nothing was announced"
        send(relay, C)
        relay.close()
    assert [record.__dict__["event"] for record in caplog.records] == ["back_to_back_off"]


def test_after_a_refusal_of_the_last_one_the_session_goes_on() -> None:
    def talk(peer: Peer) -> None:
        announced(peer)
        hear_body(peer, B)
        peer.say(b"554 5.7.1 spam")
        assert peer.ask(b"250 reset") == b"RSET"
        hear_envelope(peer, C)
        peer.raw(TAKEN)
        hear_body(peer, C)
        peer.say(b"250 ok")
        peer.bye()

    with scripted(talk) as server:
        relay = relay_to(server)
        relay.open()
        send(relay, A, B)
        assert failure(relay, B).code == 554
        assert send(relay, C).code == 250
        relay.close()


def test_silence_after_the_end_is_doubt() -> None:
    done = threading.Event()

    def talk(peer: Peer) -> None:
        hello(peer)
        hear_envelope(peer, A)
        peer.raw(TAKEN)
        hear_body(peer, A, B)
        done.wait(20)

    with scripted(talk) as server:
        said = failure(relay_opened(server, reply_timeout=0.2), A, B)
        done.set()
    assert (said.stage, said.code, said.text) == (Stage.DOT, None, "timed out")
    assert outcome(said) is Outcome.IN_DOUBT


# -- an end within the one write ------------------------------------------------------------------


def test_a_reset_within_the_body_is_no_doubt() -> None:
    def talk(peer: Peer) -> None:
        until_data(peer)
        peer.sock.recv(1000)
        peer.reset()

    with scripted(talk) as server:
        relay = relay_opened(server)
        said = failure(relay, BIG, B)
        assert not relay.is_open
    assert (said.stage, said.code) == (Stage.BODY, None)
    assert outcome(said) is Outcome.RETRY


def test_a_server_that_stops_reading_times_out_in_the_body() -> None:
    done = threading.Event()

    def talk(peer: Peer) -> None:
        until_data(peer)
        done.wait(20)

    with scripted(talk) as server:
        said = failure(relay_opened(server, timeout=0.4), BIG, B)
        done.set()
    assert (said.stage, said.code, said.text) == (Stage.BODY, None, "timed out")


def test_an_abort_within_the_body_is_no_doubt() -> None:
    def talk(peer: Peer) -> None:
        until_data(peer)
        peer.sock.recv(1000)
        relay.abort()

    with scripted(talk) as server:
        relay = relay_opened(server)
        said = failure(relay, BIG, B)
    assert (said.stage, said.code) == (Stage.BODY, None)


def test_an_end_that_is_seen_before_the_write_is_no_doubt() -> None:
    def talk(peer: Peer) -> None:
        hello(peer)
        hear_envelope(peer, A)
        peer.sock.setsockopt(6, 3, 1)  # TCP_CORK: the reply and the FIN in one segment
        peer.raw(TAKEN)
        peer.sock.shutdown(1)
        gone(peer)

    with scripted(talk) as server:
        said = failure(relay_opened(server), A, B)
    assert (said.stage, said.code) == (Stage.BODY, None)
    assert outcome(said) is Outcome.RETRY


@pytest.mark.parametrize("end", [Peer.end, Peer.reset])
def test_a_refusal_within_the_body_is_heard(end: Callable[[Peer], None]) -> None:
    """Also where the connection is gone with it."""

    def talk(peer: Peer) -> None:
        until_data(peer)
        peer.sock.recv(1000)
        peer.say(b"552 5.3.4 too big")
        end(peer)

    with scripted(talk) as server:
        relay = relay_opened(server)
        said = failure(relay, BIG, B)
        assert not relay.is_open
    assert (said.stage, said.code, said.enhanced) == (Stage.BODY, 552, "5.3.4")
    assert outcome(said) is Outcome.FAILED


def test_what_is_said_before_the_body_is_about_something_else() -> None:
    """Nothing of it goes, and it is no refusal of it."""

    def talk(peer: Peer) -> None:
        hello(peer)
        hear_envelope(peer, A)
        peer.raw(TAKEN + b"550 5.1.1 nobody\r\n")
        gone(peer)

    with scripted(talk) as server:
        said = failure(relay_opened(server), A, B)
    assert (said.stage, said.code) == (Stage.BODY, None)
    assert outcome(said) is Outcome.RETRY


def cut_after(monkeypatch: pytest.MonkeyPatch, count: int) -> None:
    """The write of A with its end stops after so many bytes, as when nobody reads any more."""
    write = Wire.write

    def cutting(wire: Wire, data: bytes, timeout: float, **more: bool) -> None:
        if not data.startswith(A[2]):
            write(wire, data, timeout, **more)
            return
        write(wire, data[:count], timeout)
        lost = WireLost("timed out")
        lost.taken = count
        raise lost

    monkeypatch.setattr(Wire, "write", cutting)


@pytest.mark.parametrize("short", [1, 3, len(A[2])])
def test_before_the_whole_end_was_taken_there_is_no_doubt(
    short: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    cut_after(monkeypatch, len(A[2]) + 3 - short)

    def talk(peer: Peer) -> None:
        until_data(peer, A)
        peer.rest()

    with scripted(talk) as server:
        relay = relay_opened(server)
        said = failure(relay, A, B)
        assert not relay.is_open
    assert (said.stage, said.code, said.text) == (Stage.BODY, None, "timed out")
    assert outcome(said) is Outcome.RETRY


@pytest.mark.parametrize("beyond", [0, 1, 30, len(envelope(B)) - 1])
@pytest.mark.parametrize(
    ("said", "code"), [(b"250 ok\r\n", 250), (b"554 5.7.1 no\r\n", 554), (b"", None)]
)
def test_once_it_was_taken_the_answer_counts_and_half_an_envelope_is_not_gone_on_with(
    said: bytes, code: int | None, beyond: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    cut_after(monkeypatch, len(A[2]) + 3 + beyond)

    def talk(peer: Peer) -> None:
        until_data(peer, A)
        assert peer.body() == A[2]
        if said:
            peer.raw(said)
            assert peer.rest() == envelope(B)[:beyond]

    with scripted(talk) as server:
        relay = relay_opened(server)
        if code == 250:
            assert send(relay, A, B).code == 250
        else:
            answered = failure(relay, A, B)
            assert (answered.stage, answered.code) == (Stage.DOT, code)
            assert (outcome(answered) is Outcome.IN_DOUBT) == (code is None)
        assert not relay.is_open
        with pytest.raises(StaleConnection):
            send(relay, B)


def test_the_acceptance_of_a_server_that_goes_with_the_envelope_unread_is_heard() -> None:
    """That is a reset behind the reply."""

    def talk(peer: Peer) -> None:
        until_data(peer, A)
        peer.sock.recv(len(A[2]) + 3, socket.MSG_WAITALL)
        peer.say(b"250 2.0.0 queued as Q1")
        peer.end()

    with scripted(talk, ordinary(B)) as server:
        relay = relay_opened(server)
        assert send(relay, A, B).message_id == "Q1"
        with pytest.raises(StaleConnection):
            send(relay, B)
        relay.open()
        assert send(relay, B).text == "second connection"
        relay.close()


def hung_up_after(replies: bytes) -> Talk:
    def talk(peer: Peer) -> None:
        hello(peer)
        hear_envelope(peer, A)
        peer.raw(TAKEN)
        hear_body(peer, A, B)
        peer.sock.setsockopt(6, 3, 1)  # TCP_CORK: the replies and the FIN in one segment
        peer.raw(b"250 2.0.0 queued as Q1\r\n" + replies)
        peer.sock.shutdown(1)
        peer.rest()

    return talk


@pytest.mark.parametrize(
    "replies",
    [
        b"",
        b"25",
        b"250 ok\r\n",
        b"250 ok\r\n250 ok\r\n",
        b"250 ok\r\n550 5.1.1 nobody\r\n",
        b"x\r\n",
    ],
)
def test_who_hangs_up_has_given_its_answer_and_the_next_was_not_begun(replies: bytes) -> None:
    with scripted(hung_up_after(replies), ordinary(B)) as server:
        relay = relay_opened(server)
        assert send(relay, A, B).message_id == "Q1"
        with pytest.raises(StaleConnection):
            send(relay, B, C)
        relay.open()
        assert send(relay, B).text == "second connection"
        relay.close()


@pytest.mark.parametrize(
    ("replies", "stage", "code"),
    [
        (b"421 4.7.28 slow down\r\n", Stage.MAIL, 421),
        (b"250 ok\r\n421 4.7.0 slow down\r\n", Stage.RCPT, 421),
        (TAKEN, Stage.BODY, None),
    ],
)
def test_a_loss_of_it_later_is_told_at_its_stage_and_is_no_doubt(
    replies: bytes, stage: Stage, code: int | None
) -> None:
    with scripted(hung_up_after(replies)) as server:
        relay = relay_opened(server)
        send(relay, A, B)
        said = failure(relay, B, C)
        assert not relay.is_open
    assert (said.stage, said.code) == (stage, code)
    assert outcome(said) is not Outcome.IN_DOUBT
