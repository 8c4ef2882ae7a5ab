"""The SMTP backend as one of Django's: whole messages, their counts and its settings."""

from __future__ import annotations

import smtplib
import warnings
from email import message_from_bytes
from typing import Any

import django
import pytest
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.core.mail import EmailMessage, EmailMultiAlternatives
from django.test import override_settings

from sending.outcomes import Outcome, Stage
from sending.smtp import EmailBackend, SMTPFailure, SMTPRefusedLocally
from sending.smtp_message import message_bytes

from .scripted_smtp import Peer, Talk, scripted
from .smtp_relay import backend, outcome


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
    [
        {"use_tls": True, "use_ssl": True},
        {"messages_per_connection": 0},
        {"hots": "example.org"},
        {"chunking": "no"},
        {"back_to_back": "off"},
        {"use_tls": "false"},
        {"timeout": 0},
        {"timeout": "5"},
        {"reply_timeout": -3},
        {"connect_timeout": float("inf")},
        {"messages_per_connection": "100"},
    ],
)
def test_options_that_can_not_be_meant(options: dict[str, Any]) -> None:
    with pytest.raises(ImproperlyConfigured):
        EmailBackend(host="127.0.0.1", **options)
