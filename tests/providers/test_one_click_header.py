"""``List-Unsubscribe`` on its last metre: one line, as it is, however long, through every backend.

A folded or encoded one is not recognised by the mailbox providers' one-click (RFC 8058). Django 6.1
encodes a URI of 78 characters and more unless it is told otherwise.
"""

from __future__ import annotations

import base64
import io
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import pytest
from django.core import mail
from django.test import override_settings

from sending.answers import Outcome
from sending.messages import to_bytes
from sending.sink.record import read_record
from sending.transports import Transport
from subscribers.tokens import unsubscribe_url
from tests.unit.scripted_smtp import Peer, scripted

from .mail import a_message, outcome, send, through
from .running import ProviderServer
from .shapes import SHAPES

LARGEST = 2**42 - 1
DJANGO = "django.core.mail.backends"
#: Of the base URL; one of 30 gives a link of the length from which Django 6.1 would encode it.
LENGTHS = (30, 43, 200, 600)


@contextmanager
def made_for(transport: Transport, length: int) -> Iterator[tuple[str, Any]]:
    """The unsubscribe link of an installation whose base URL has that many characters, and a
    message with it for ``transport``."""
    base = "https://n.example.org/"
    with override_settings(SENDONCE={"BASE_URL": base + "p" * (length - len(base))}):
        link = unsubscribe_url(LARGEST, LARGEST)
        assert len(link) == length + len("/u/") + 32
        to = f"{transport.alias}-{length}@example.org"
        yield link, a_message(transport, to, unsubscribe_url=link)


def is_one_line(link: str, data: bytes) -> bool:
    lines = data.replace(b"\r\n", b"\n").split(b"\n")
    return f"List-Unsubscribe: <{link}>".encode() in lines


@pytest.mark.parametrize("length", LENGTHS)
def test_our_own_bytes(length: int) -> None:
    with made_for(Transport("t", "sending.smtp.EmailBackend", {}), length) as (link, message):
        assert is_one_line(link, message.wire_bytes())
        assert is_one_line(link, to_bytes(message))
        assert is_one_line(link, message.message().as_bytes())
        assert is_one_line(link, message.message().as_string().encode())


@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("name", ["sending.smtp.EmailBackend", f"{DJANGO}.smtp.EmailBackend"])
def test_over_smtp(name: str, length: int) -> None:
    received: list[bytes] = []

    def talk(peer: Peer) -> None:
        peer.hello()
        received.append(peer.take())
        peer.bye()

    with scripted(talk) as server:
        transport = Transport("t", name, {"host": "127.0.0.1", "port": server.port, "timeout": 20})
        with made_for(transport, length) as (link, message):
            session = transport.session()
            assert outcome(send(session, message)) is Outcome.SENT
            session.close()
    assert is_one_line(link, received[0])


@pytest.mark.parametrize("length", LENGTHS)
def test_into_a_file(tmp_path: Path, length: int) -> None:
    transport = Transport("t", f"{DJANGO}.filebased.EmailBackend", {"file_path": str(tmp_path)})
    with made_for(transport, length) as (link, message):
        session = transport.session()
        assert outcome(send(session, message)) is Outcome.SENT
        session.close()
    (file,) = tmp_path.iterdir()
    assert is_one_line(link, file.read_bytes())


@pytest.mark.parametrize("length", LENGTHS)
def test_onto_a_console(length: int) -> None:
    stream = io.StringIO()
    transport = Transport("t", f"{DJANGO}.console.EmailBackend", {"stream": stream})
    with made_for(transport, length) as (link, message):
        assert outcome(send(transport.session(), message)) is Outcome.SENT
    assert is_one_line(link, stream.getvalue().encode())


@pytest.mark.parametrize("length", LENGTHS)
def test_into_memory(length: int) -> None:
    transport = Transport("t", f"{DJANGO}.locmem.EmailBackend", {})
    with made_for(transport, length) as (link, message):
        assert outcome(send(transport.session(), message)) is Outcome.SENT
    assert is_one_line(link, mail.outbox[-1].message().as_bytes())


@pytest.mark.filterwarnings("ignore:django-anymail has dropped official support")
@pytest.mark.parametrize("length", [43, 200])
@pytest.mark.parametrize("provider", SHAPES)
def test_to_a_providers_api(server: ProviderServer, provider: str, length: int) -> None:
    """What leaves this machine; what a provider makes of it is the provider's."""
    transport = through(provider, server.url(provider))
    before = len(read_record(server.wire)) if server.wire.exists() else 0
    with made_for(transport, length) as (link, message):
        assert outcome(send(transport.session(), message)) is Outcome.SENT
    (request,) = read_record(server.wire)[before:]
    content = request["content"]
    if provider == "amazon_ses":
        raw = base64.b64decode(json.loads(content)["Content"]["Raw"]["Data"])
        assert is_one_line(link, raw)
    elif provider == "mailgun":
        assert parse_qs(content)["h:List-Unsubscribe"] == [f"<{link}>"]
    else:
        assert f"<{link}>" in content.replace("\\/", "/").replace("\\u003c", "<")
