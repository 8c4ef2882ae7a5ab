"""The SMTP backend's logins and its TLS."""

from __future__ import annotations

import base64
import hmac
import ssl
from pathlib import Path

import pytest

from sending.outcomes import Outcome, Stage
from sending.smtp import SMTPFailure

from .scripted_smtp import Peer, Talk, scripted
from .smtp_relay import backend, deliver, failure, make_certificate, outcome


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
    return make_certificate(tmp_path_factory.mktemp("tls"))


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
