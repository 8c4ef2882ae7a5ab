"""What looks like a connection that was never made, and is an answer that was lost."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from sending.answers import Answer, Outcome
from sending.transports import Transport

from .mail import a_message, outcome, send

pytest.importorskip("anymail")


@contextmanager
def _server(says: bytes) -> Iterator[int]:
    """Takes each request whole, answers with ``says`` and hangs up."""
    listener = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        while True:
            try:
                peer, _ = listener.accept()
            except OSError:
                return
            with peer:
                peer.settimeout(5)
                heard = b""
                while b"\r\n\r\n" not in heard:
                    heard += peer.recv(65536)
                head, _, body = heard.partition(b"\r\n\r\n")
                length = next(
                    int(line.split(b":")[1])
                    for line in head.lower().split(b"\r\n")
                    if line.startswith(b"content-length")
                )
                while len(body) < length:
                    body += peer.recv(65536)
                peer.sendall(says)

    threading.Thread(target=serve, daemon=True).start()
    try:
        yield listener.getsockname()[1]
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()


def _answer(api_url: str) -> Answer:
    options = {"api_url": api_url, "server_token": "x"}
    transport = Transport("p", "anymail.backends.postmark.EmailBackend", options)
    session = transport.session()
    try:
        return send(session, a_message(transport, "ann@example.org"))
    finally:
        session.close()


def test_an_answer_that_is_lost_behind_a_proxy_is_doubt(monkeypatch: pytest.MonkeyPatch) -> None:
    with _server(b"") as port:
        monkeypatch.setenv("HTTP_PROXY", f"http://127.0.0.1:{port}")
        monkeypatch.delenv("NO_PROXY", raising=False)
        monkeypatch.delenv("no_proxy", raising=False)
        assert outcome(_answer("http://api.example.org/")) is Outcome.IN_DOUBT


@pytest.mark.parametrize(
    "says",
    [
        b"HTTP/1.1 503 Busy\r\nContent-Length: 62\r\nConnection: close\r\n\r\n"
        b"upstream connect error: TLS error: CERTIFICATE_VERIFY_FAILED  ",
        b"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n",
        b"HTTP/1.1 303 See\r\nLocation: nothing://x\r\nContent-Length: 0\r\n\r\n",
    ],
)
def test_an_answer_is_an_answer_whatever_words_it_has(says: bytes) -> None:
    with _server(says) as port:
        assert outcome(_answer(f"http://127.0.0.1:{port}/")) is Outcome.IN_DOUBT


def test_a_date_that_overflows_is_no_wait() -> None:
    says = (
        b"HTTP/1.1 429 Slow\r\nRetry-After: Mon, 01 Jan 2026 00:00:00 +9999999999999999999\r\n"
        b"Content-Length: 2\r\nConnection: close\r\n\r\n{}"
    )
    with _server(says) as port:
        said = _answer(f"http://127.0.0.1:{port}/")
    assert (outcome(said), said.retry_after) == (Outcome.RETRY, None)


def test_a_refusal_nested_too_deeply_is_a_refusal() -> None:
    body = b"[" * 100_000
    says = b"HTTP/1.1 400 Bad\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s" % (
        len(body),
        body,
    )
    with _server(says) as port:
        assert outcome(_answer(f"http://127.0.0.1:{port}/")) is Outcome.FAILED
