"""The SMTP backend against real sockets: every loss and every refusal at its stage."""

from __future__ import annotations

import base64
import hmac
import smtplib
import ssl
import subprocess
import threading
import time
import warnings
from collections.abc import Callable
from email import message_from_bytes
from pathlib import Path
from typing import Any

import django
import pytest
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.core.mail import EmailMessage, EmailMultiAlternatives
from django.test import override_settings

from sending.outcomes import Answer, Outcome, Stage, classify
from sending.smtp import EmailBackend, SMTPFailure, SMTPRefusedLocally
from sending.smtp_envelope import mailbox, wire_body
from sending.smtp_message import message_bytes

from .scripted_smtp import Peer, Server, Talk, scripted

DATA = b"Subject: hello\r\n\r\nbody\r\n"


def backend(server: Server | int, **options: Any) -> EmailBackend:
    port = server if isinstance(server, int) else server.port
    return EmailBackend(
        host="127.0.0.1",
        port=port,
        **{
            "timeout": 10,
            "reply_timeout": 10,
            "connect_timeout": 10,
            "local_hostname": "client.example.org",
            **options,
        },
    )


def deliver(relay: EmailBackend, to: str = "a@example.org", data: bytes = DATA) -> Answer:
    return relay.deliver("s@example.org", to, data)


def failure(relay: EmailBackend, **message: Any) -> Answer:
    with pytest.raises(SMTPFailure) as caught:
        deliver(relay, **message)
    return caught.value.answer


def outcome(said: Answer) -> Outcome:
    return classify(said.stage, said.code, said.enhanced, said.text).outcome


# -- acceptance ----------------------------------------------------------------------------


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


# -- losses --------------------------------------------------------------------------------


def until(stage: Stage) -> Talk:
    """Behave well up to where the client waits for this stage's reply."""

    def talk(peer: Peer) -> None:
        if stage is Stage.GREETING:
            return
        peer.say(b"220 ready")
        if stage is Stage.EHLO:
            peer.line()
            return
        peer.offer()
        for at in (Stage.MAIL, Stage.RCPT):
            peer.line()
            if stage is at:
                return
            peer.say(b"250 ok")
        peer.line()
        if stage is Stage.DATA:
            return
        peer.say(b"354 go")
        peer.body()

    return talk


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
    assert (said.stage, said.code) == (Stage.CONNECT, None)
    assert outcome(said) is Outcome.RELAY_DOWN


def test_a_name_that_does_not_resolve() -> None:
    relay = EmailBackend(host="host.invalid..", port=25, connect_timeout=1)
    with pytest.raises(SMTPFailure) as caught:
        relay.open()
    assert caught.value.answer.stage is Stage.CONNECT


# -- refusals ------------------------------------------------------------------------------


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


# -- connections ---------------------------------------------------------------------------


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


# -- parameters and addresses --------------------------------------------------------------


def test_parameters_follow_what_the_server_offers() -> None:
    heard: list[bytes] = []

    def talk(peer: Peer) -> None:
        peer.hello(b"SIZE 1000", b"8BITMIME", b"SMTPUTF8")
        for _ in range(3):
            peer.take()
        heard.extend(line for line in peer.heard if line[:4] in (b"MAIL", b"RCPT"))
        peer.bye()

    with scripted(talk) as server:
        relay = backend(server)
        deliver(relay)
        deliver(relay, data="A: b\r\n\r\nñ\r\n".encode())
        deliver(relay, to="ñandú@bücher.example")
        relay.close()
    assert heard == [
        b"MAIL FROM:<s@example.org> SIZE=24",
        b"RCPT TO:<a@example.org>",
        b"MAIL FROM:<s@example.org> BODY=8BITMIME SIZE=12",
        b"RCPT TO:<a@example.org>",
        b"MAIL FROM:<s@example.org> SMTPUTF8 BODY=8BITMIME SIZE=24",
        "RCPT TO:<ñandú@bücher.example>".encode(),
    ]


def test_what_the_relay_can_not_take_is_refused_here_and_the_session_goes_on() -> None:
    def talk(peer: Peer) -> None:
        peer.hello(b"SIZE 100")
        peer.take()
        peer.bye()

    with scripted(talk) as server:
        relay = backend(server)
        said = failure(relay, to="ñ@example.org")
        assert (said.stage, said.code, said.enhanced) == (Stage.LOCAL, None, "5.6.7")
        said = failure(relay, data=b"A: b\r\n\r\n" + b"x" * 200)
        assert (said.stage, said.code, said.enhanced) == (Stage.LOCAL, None, "5.3.4")
        assert outcome(said) is Outcome.FAILED
        assert deliver(relay).code == 250
        relay.close()


@pytest.mark.parametrize(
    ("address", "bare"),
    [
        ("a@example.org", "a@example.org"),
        ("A.b+c@Example.ORG", "A.b+c@Example.ORG"),
        ("Ann Example <ann@example.org>", "ann@example.org"),
        ('"Ann, B." <ann@example.org>', "ann@example.org"),
        ("a@bücher.example", "a@xn--bcher-kva.example"),
        ("Ünal <ü@bücher.example>", "ü@bücher.example"),
        ('"a b"@example.org', '"a b"@example.org'),
        ("a@localhost", "a@localhost"),
        ("a@[127.0.0.1]", "a@[127.0.0.1]"),
        ("<>", ""),
    ],
)
def test_envelope_address(address: str, bare: str) -> None:
    assert mailbox(address) == bare


BAD_ADDRESSES = [
    "",
    " ",
    "a",
    "@",
    "a@",
    "@example.org",
    "a@example.org\r\nRCPT TO:<b@example.org>",
    "a@example.org\n",
    "a@exam\x00ple.org",
    "a b@example.org",
    "a@example.org, b@example.org",
    "a@example.org> SIZE=1 <x@example.org",
    "<a@example.org",
    "a@exa mple.org",
    "ñ x@example.org",
    "ñ>@example.org",
    "a@" + "x" * 300 + ".org",
    "a" * 250 + "@example.org",
    "a..b@example.org",
    ".a@example.org",
    "a@-example.org\u2028",
    "\udcff@example.org",
]


@pytest.mark.parametrize("address", BAD_ADDRESSES)
def test_a_bad_address_never_reaches_the_network(address: str) -> None:
    relay = backend(1)  # nobody listens there
    said = failure(relay, to=address)
    assert (said.stage, said.code) == (Stage.LOCAL, None)
    assert outcome(said) is Outcome.FAILED
    with pytest.raises(SMTPRefusedLocally):
        relay.deliver(address, "a@example.org", DATA)


def test_nothing_to_send_is_refused_here() -> None:
    assert failure(backend(1), data=b"").stage is Stage.LOCAL
    with pytest.raises(ValueError, match="no recipient"):
        backend(1).deliver("s@example.org", "<>", DATA)
    with pytest.raises(ValueError, match="empty"):
        wire_body(b"")


# -- authentication and TLS ----------------------------------------------------------------


def b64(text: bytes) -> bytes:
    return base64.b64encode(text)


def login_plain(peer: Peer) -> None:
    peer.hello(b"AUTH LOGIN PLAIN")
    assert peer.ask(b"235 ok") == b"AUTH PLAIN " + b64("\0ü\0pä".encode())


def login_login(peer: Peer) -> None:
    peer.hello(b"AUTH=LOGIN")
    assert peer.ask(b"334 " + b64(b"Password:")) == b"AUTH LOGIN " + b64("ü".encode())
    assert peer.ask(b"235 ok") == b64("pä".encode())


def login_cram(peer: Peer) -> None:
    peer.hello(b"AUTH PLAIN CRAM-MD5")
    assert peer.ask(b"334 " + b64(b"<1@example.org>")) == b"AUTH CRAM-MD5"
    digest = hmac.new("pä".encode(), b"<1@example.org>", "md5").hexdigest()
    assert peer.ask(b"235 ok") == b64(b"\xc3\xbc " + digest.encode())


def login_second_way(peer: Peer) -> None:
    peer.hello(b"AUTH CRAM-MD5 PLAIN")
    peer.ask(b"334 *not base64*")
    peer.ask(b"501 cancelled")
    peer.ask(b"235 ok")


@pytest.mark.parametrize("way", [login_plain, login_login, login_cram, login_second_way])
def test_authentication(way: Talk) -> None:
    def talk(peer: Peer) -> None:
        way(peer)
        peer.take()
        peer.bye()

    with scripted(talk) as server:
        relay = backend(server, username="ü", password="pä")
        assert deliver(relay).code == 250
        relay.close()


@pytest.mark.parametrize(
    ("offer", "reply", "code"),
    [(b"AUTH PLAIN", b"535 5.7.8 wrong", 535), (b"AUTH XOAUTH2", b"", None), (b"X", b"", None)],
)
def test_failed_authentication(offer: bytes, reply: bytes, code: int | None) -> None:
    def talk(peer: Peer) -> None:
        peer.hello(offer)
        if reply:
            peer.ask(reply)
        peer.line()

    with scripted(talk) as server:
        relay = backend(server, username="u", password="secret-word")
        with pytest.raises(SMTPFailure) as caught:
            relay.open()
    said = caught.value.answer
    assert (said.stage, said.code) == (Stage.AUTH, code)
    assert outcome(said) is Outcome.RELAY_DOWN
    assert "secret-word" not in f"{said} {caught.value}"


def test_a_hang_up_after_a_refused_login_is_still_a_refusal() -> None:
    def talk(peer: Peer) -> None:
        peer.hello(b"AUTH PLAIN LOGIN")
        peer.ask(b"535 5.7.8 wrong")
        peer.reset()

    with scripted(talk) as server:
        relay = backend(server, username="u", password="p")
        assert failure(relay).code == 535


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("tls") / "both.pem"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256",
         "-nodes", "-days", "2", "-subj", "/CN=127.0.0.1",
         "-addext", "subjectAltName=IP:127.0.0.1",
         "-addext", "keyUsage=critical,digitalSignature,keyCertSign",
         "-keyout", str(path), "-out", str(path.with_suffix(".crt"))],
        check=True, capture_output=True,
    )  # fmt: skip
    path.write_bytes(path.read_bytes() + path.with_suffix(".crt").read_bytes())
    return path


@pytest.fixture
def tls(certificate: Path, monkeypatch: pytest.MonkeyPatch) -> ssl.SSLContext:
    """A server's context, trusted by the client through OpenSSL's own variable."""
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate.with_suffix(".crt")))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    return context


@pytest.mark.parametrize("option", ["use_tls", "use_ssl"])
def test_tls(tls: ssl.SSLContext, option: str) -> None:
    def talk(peer: Peer) -> None:
        if option == "use_ssl":
            peer.start_tls(tls)
            peer.hello(b"AUTH PLAIN")
        else:
            peer.hello(b"STARTTLS")
            assert peer.ask(b"220 go ahead") == b"STARTTLS"
            peer.start_tls(tls)
            peer.offer(b"AUTH PLAIN")
        peer.ask(b"235 ok")
        # TLS 1.3 sends session tickets behind the handshake: no word of the server's.
        peer.take()
        peer.take(b"250 second")
        peer.bye()

    with scripted(talk) as server:
        relay = backend(server, username="u", password="p", **{option: True})
        assert deliver(relay).code == 250
        assert deliver(relay).text == "second"
        relay.close()


def test_a_certificate_that_is_not_trusted(certificate: Path) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)

    def talk(peer: Peer) -> None:
        with pytest.raises(ssl.SSLError):
            peer.start_tls(context)

    with scripted(talk) as server:
        said = failure(backend(server, use_ssl=True))
    assert (said.stage, said.code) == (Stage.TLS, None)
    assert "certificate" in said.text
    assert outcome(said) is Outcome.RELAY_DOWN


def test_starttls_not_offered() -> None:
    def talk(peer: Peer) -> None:
        peer.hello(b"SIZE")
        peer.line()

    with scripted(talk) as server:
        said = failure(backend(server, use_tls=True))
    assert (said.stage, said.code) == (Stage.TLS, None)


def test_plain_text_behind_starttls_is_not_believed() -> None:
    def talk(peer: Peer) -> None:
        peer.hello(b"STARTTLS")
        peer.line()
        peer.raw(b"220 go\r\n250 injected\r\n")
        peer.line()

    with scripted(talk) as server:
        said = failure(backend(server, use_tls=True))
    assert said.stage is Stage.TLS


def test_a_client_certificate_that_is_missing() -> None:
    said = failure(backend(1, use_ssl=True, ssl_certfile="/nonexistent.pem"))
    assert said.stage is Stage.TLS


# -- as an ordinary backend ----------------------------------------------------------------


def mail(**fields: Any) -> EmailMultiAlternatives:
    fields = {
        "subject": "Grüße",
        "body": "Hello\n.\n",
        "from_email": "Sender <s@example.org>",
        "to": ["a@example.org"],
        **fields,
    }
    return EmailMultiAlternatives(**fields)


def test_send_messages_makes_a_transaction_per_recipient() -> None:
    bodies: list[bytes] = []
    heard: list[bytes] = []

    def talk(peer: Peer) -> None:
        peer.hello()
        bodies.extend(peer.take() for _ in range(4))
        heard.extend(line for line in peer.heard if line.startswith(b"RCPT"))
        peer.bye()

    message = mail(to=["A <a@example.org>"], cc=["c@example.org"], bcc=["b@example.org"])
    with scripted(talk) as server:
        assert backend(server).send_messages([message, mail(to=["d@example.org"])]) == 2
    assert [line.decode() for line in heard] == [f"RCPT TO:<{name}@example.org>" for name in "acbd"]
    assert b"b@example.org" not in b"".join(bodies)
    parsed = message_from_bytes(bodies[0])
    assert parsed["To"] == "A <a@example.org>"
    assert parsed["Cc"] == "c@example.org"
    assert bodies[0] == bodies[1] == bodies[2]
    assert message.smtp_answers["c@example.org"].code == 250  # type: ignore[attr-defined]


def refusing(*names: bytes, count: int) -> Talk:
    def talk(peer: Peer) -> None:
        peer.hello()
        for _ in range(count):
            peer.ask(b"250 ok")
            recipient = peer.line()
            if any(name in recipient for name in names):
                peer.say(b"550 5.1.1 no")
                assert peer.ask(b"250 ok") == b"RSET"
                continue
            peer.say(b"250 ok")
            peer.ask(b"354 go")
            peer.body()
            peer.say(b"250 ok")
        peer.bye()

    return talk


def test_a_message_counts_when_somebody_took_it() -> None:
    message = mail(to=["no@example.org", "a@example.org"])
    with scripted(refusing(b"no@", count=2)) as server:
        assert backend(server).send_messages([message]) == 1
    codes = {to: said.code for to, said in message.smtp_answers.items()}  # type: ignore[attr-defined]
    assert codes == {"no@example.org": 550, "a@example.org": 250}


def test_a_message_that_nobody_took_raises_as_django_does() -> None:
    with scripted(refusing(b"no@", count=1)) as server, pytest.raises(smtplib.SMTPException):
        backend(server).send_messages([mail(to=["no@example.org"]), mail()])


def test_fail_silently_goes_on() -> None:
    with scripted(refusing(b"no@", count=2)) as server:
        relay = backend(server, fail_silently=True)
        assert relay.send_messages([mail(to=["no@example.org"]), mail(subject="a\nb"), mail()]) == 1
    assert backend(server.port, fail_silently=True).send_messages([mail()]) == 0


def test_a_loss_names_those_who_have_it_already() -> None:
    def talk(peer: Peer) -> None:
        peer.hello()
        peer.take()
        peer.ask(b"250 ok")
        peer.line()
        peer.reset()

    with scripted(talk) as server, pytest.raises(SMTPFailure) as caught:
        backend(server).send_messages([mail(to=["a@example.org", "b@example.org"])])
    assert caught.value.accepted == ("a@example.org",)
    assert caught.value.answer.stage is Stage.RCPT


def test_nothing_to_do_opens_nothing() -> None:
    assert backend(1).send_messages([]) == 0
    with scripted(refusing(count=0)) as server:
        assert backend(server).send_messages([EmailMessage("s", "b", "s@example.org", [])]) == 0


INJECTIONS: list[dict[str, Any]] = [
    {"subject": "a\r\nBcc: x@example.org"},
    {"from_email": "s@example.org\nX: y"},
    {"to": ["a@example.org\r\nX: y"]},
    {"headers": {"X-A": "b\nc"}},
    {"headers": {"List-Unsubscribe": "<https://example.org/>\r\nX: y"}},
    {"to": ["not an address"]},
    {"from_email": "nobody"},
]


@pytest.mark.parametrize("fields", INJECTIONS)
def test_a_message_that_can_not_be_built_is_refused_here(fields: dict[str, Any]) -> None:
    with pytest.raises(SMTPRefusedLocally) as caught:
        message_bytes(mail(**fields))
    assert outcome(caught.value.answer) is Outcome.FAILED


def test_header_lines_that_must_stay_whole() -> None:
    link = "<https://example.org/" + "u" * 300 + ">"
    identifier = "<" + "m" * 120 + "@example.org>"
    headers = {"List-Unsubscribe": link, "Message-ID": identifier, "X-Long": "word " * 60}
    _, data = message_bytes(mail(headers=headers))
    lines = data.split(b"\r\n")
    assert f"List-Unsubscribe: {link}".encode() in lines
    assert f"Message-ID: {identifier}".encode() in lines
    assert all(len(line) < 400 for line in lines)
    assert data.count(b"\n") == data.count(b"\r\n") == data.count(b"\r")
    parsed = message_from_bytes(data)
    assert parsed["X-Long"].split() == ["word"] * 60


def test_a_non_ascii_local_part_goes_out_as_it_is() -> None:
    sender, data = message_bytes(mail(to=["Ñandú <ñandú@bücher.example>"]))
    assert sender == "s@example.org"
    head = data.partition(b"\r\n\r\n")[0].decode()
    assert "ñandú@" in head
    assert "From: Sender <s@example.org>" in head


def test_without_a_host_djangos_settings_are_read() -> None:
    if django.VERSION >= (6, 1):
        with override_settings(MAILERS={}):
            with pytest.raises(ImproperlyConfigured, match="host"):
                EmailBackend()
            delattr(settings, "MAILERS")
            relay = EmailBackend()
        assert (relay.host, relay.port, relay.username) == ("localhost", 25, "")
        return
    with override_settings(
        EMAIL_HOST="mail.example.org",
        EMAIL_PORT=2600,
        EMAIL_HOST_USER="u",
        EMAIL_HOST_PASSWORD="p",
        EMAIL_USE_TLS=True,
        EMAIL_TIMEOUT=7,
    ):
        relay = EmailBackend()
        assert (relay.host, relay.port, relay.username) == ("mail.example.org", 2600, "u")
        assert relay.use_tls
        assert relay.timeouts.command == 7
        other = EmailBackend(host="other.example.org")
        assert (other.port, other.username, other.use_tls) == (25, "", False)


@pytest.mark.skipif(django.VERSION < (6, 1), reason="MAILERS came with Django 6.1")
def test_as_a_mailer() -> None:
    from django.core.mail import InvalidMailer, mailers

    def talk(peer: Peer) -> None:
        peer.hello()
        peer.take()
        peer.bye()

    path = "sending.smtp.EmailBackend"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with scripted(talk) as server:
            options = {"host": "127.0.0.1", "port": server.port, "messages_per_connection": 5}
            setting = {"default": {"BACKEND": path, "OPTIONS": options}}
            with override_settings(MAILERS=setting):
                assert mail().send(using="default") == 1
        for bad in ({}, {"host": "h", "nonsense": 1}):
            setting = {"default": {"BACKEND": path, "OPTIONS": bad}}
            with (
                override_settings(MAILERS=setting),
                pytest.raises((InvalidMailer, ImproperlyConfigured)),
            ):
                mailers["default"]


@pytest.mark.parametrize(
    "options",
    [{"use_tls": True, "use_ssl": True}, {"messages_per_connection": 0}, {"hots": "example.org"}],
)
def test_options_that_can_not_be_meant(options: dict[str, Any]) -> None:
    with pytest.raises(ImproperlyConfigured):
        EmailBackend(host="127.0.0.1", **options)
