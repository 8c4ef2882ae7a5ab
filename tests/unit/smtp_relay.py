"""The SMTP backend before a scripted server, and what it says of a message."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest

from sending.outcomes import Answer, Outcome, Stage, classify
from sending.sessions import Prepared, SMTPSession, sent
from sending.smtp import EmailBackend, SMTPFailure

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


def deliver(
    relay: EmailBackend, to: str = "a@example.org", data: bytes = DATA, **more: Any
) -> Answer:
    return relay.deliver("s@example.org", to, data, **more)


def failure(relay: EmailBackend, **message: Any) -> Answer:
    with pytest.raises(SMTPFailure) as caught:
        deliver(relay, **message)
    return caught.value.answer


def outcome(said: Answer) -> Outcome:
    return classify(said.stage, said.code, said.enhanced, said.text).outcome


def arrived(message: Prepared) -> bytes:
    """What a server hears of a message before the final dot, sent as a lane sends it."""
    heard: list[bytes] = []

    def talk(peer: Peer) -> None:
        peer.hello(b"PIPELINING")
        heard.append(peer.take())
        peer.bye()

    with scripted(talk) as server:
        session = SMTPSession(backend(server))
        session.open()
        sent(session, message)
        session.close()
    return heard[0]


def make_certificate(folder: Path) -> Path:
    """A self-signed one for 127.0.0.1 with its key; beside it, as ``.crt``, without."""
    path = folder / "both.pem"
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
