"""A relay that a test scripts: late greetings, refusals by recipient, answers that never come.

The sink is the oracle of these tests and fails at random; this one fails where a test says so.
"""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Callable
from types import TracebackType
from typing import BinaryIO, Self

OK = "250 2.0.0 ok"


class Relay:
    """An SMTP server on ``port`` of 127.0.0.1, in threads of the test's process.

    ``greeting_delay(n)``: seconds before the greeting of the n-th connection, the first is 1.
    ``at_mail(sender)``, ``at_rcpt(recipient)``, ``at_dot(recipient)``: the answer, a line; None
    is never given.
    """

    def __init__(
        self,
        *,
        greeting_delay: Callable[[int], float] = lambda number: 0.0,
        at_mail: Callable[[str], str] = lambda sender: OK,
        at_rcpt: Callable[[str], str] = lambda recipient: OK,
        at_dot: Callable[[str], str | None] = lambda recipient: OK,
    ) -> None:
        self.greeting_delay = greeting_delay
        self.at_mail = at_mail
        self.at_rcpt = at_rcpt
        self.at_dot = at_dot
        #: Connections so far.
        self.connections = 0
        #: Recipients named at RCPT, and those whose message was accepted, in this order.
        self.named: list[str] = []
        self.accepted: list[str] = []
        self._closed = threading.Event()
        self._ends: list[socket.socket] = []
        self._threads: list[threading.Thread] = []

    def __enter__(self) -> Self:
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=64)
        self.port: int = self._listener.getsockname()[1]
        self._start(self._accept)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._closed.set()
        for end in (self._listener, *self._ends):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
        for thread in list(self._threads):
            thread.join()
        for end in (self._listener, *self._ends):
            end.close()

    def _start(self, run: Callable[..., None], *arguments: object) -> None:
        thread = threading.Thread(target=run, args=arguments, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while not self._closed.is_set():
                client, _ = self._listener.accept()
                self._ends.append(client)
                self.connections += 1
                self._start(self._serve, client, self.connections)

    def _serve(self, client: socket.socket, number: int) -> None:
        with contextlib.suppress(OSError), client.makefile("rb") as lines:
            self._closed.wait(self.greeting_delay(number))
            _say(client, "220 relay.example.org ESMTP")
            self._converse(client, lines)
        with contextlib.suppress(OSError):
            client.shutdown(socket.SHUT_RDWR)

    def _converse(self, client: socket.socket, lines: BinaryIO) -> None:
        recipient = ""
        while line := lines.readline():
            command = line[:4].upper()
            if command == b"MAIL":
                _say(client, self.at_mail(_address(line)))
            elif command == b"RCPT":
                recipient = _address(line)
                self.named.append(recipient)
                _say(client, self.at_rcpt(recipient))
            elif command == b"DATA":
                _say(client, "354 go on")
                while lines.readline() not in (b".\r\n", b""):
                    pass
                answer = self.at_dot(recipient)
                if answer is None:
                    self._closed.wait()
                    return
                if answer.startswith("2"):
                    self.accepted.append(recipient)
                _say(client, answer)
            elif command == b"QUIT":
                _say(client, "221 2.0.0 bye")
                return
            else:
                _say(client, OK)


def _say(client: socket.socket, line: str) -> None:
    client.sendall(f"{line}\r\n".encode())


def _address(line: bytes) -> str:
    return line.decode().split("<", 1)[1].split(">", 1)[0]
