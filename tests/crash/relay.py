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
OUT_OF_ORDER = "503 5.5.1 out of order"
GREETING = "220 relay.example.org ESMTP"


class Relay:
    """An SMTP server on ``port`` of 127.0.0.1, in threads of the test's process.

    ``greeting_delay(n)``: seconds before the greeting of the n-th connection, the first is 1.
    ``greeting(n)``: that greeting; one that is not 220 ends the connection.
    ``at_mail(sender)``, ``at_rcpt(recipient)``, ``at_dot(recipient)``: the answer, a line; None
    is never given. 421 ends the connection, and so does an empty one, without a word.
    ``features``: what it offers at EHLO.
    """

    def __init__(
        self,
        *,
        greeting_delay: Callable[[int], float] = lambda number: 0.0,
        greeting: Callable[[int], str] = lambda number: GREETING,
        at_mail: Callable[[str], str] = lambda sender: OK,
        at_rcpt: Callable[[str], str] = lambda recipient: OK,
        at_dot: Callable[[str], str | None] = lambda recipient: OK,
        features: tuple[str, ...] = (),
    ) -> None:
        self.greeting_delay = greeting_delay
        self.greeting = greeting
        self.at_mail = at_mail
        self.at_rcpt = at_rcpt
        self.at_dot = at_dot
        self.features = features
        #: Connections so far, and those that ended with QUIT.
        self.connections = self.quits = 0
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

    def stop_listening(self) -> None:
        """Whoever connects from now on is refused; connections that are open go on."""
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)

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
            greeting = self.greeting(number)
            _say(client, greeting)
            if greeting.startswith("220"):
                self._converse(client, lines)
        with contextlib.suppress(OSError):
            client.shutdown(socket.SHUT_RDWR)

    def _converse(self, client: socket.socket, lines: BinaryIO) -> None:
        recipient = ""
        sender_said, recipient_said = "", ""
        while line := lines.readline():
            command, answer = line[:4].upper(), OK
            if command == b"EHLO":
                *before, answer = ("relay.example.org", *self.features)
                for feature in before:
                    _say(client, f"250-{feature}")
                answer = f"250 {answer}"
            elif command == b"MAIL":
                answer = sender_said = self.at_mail(_address(line))
                recipient_said = ""
            elif command == b"RCPT":
                recipient = _address(line)
                self.named.append(recipient)
                answer = self.at_rcpt(recipient) if sender_said.startswith("2") else OUT_OF_ORDER
                recipient_said = answer
            elif command in (b"DATA", b"BDAT"):
                is_taken = recipient_said.startswith("2")
                if command == b"DATA" and not is_taken:
                    answer = OUT_OF_ORDER
                elif not self._hears(client, lines, line):
                    return
                elif is_taken:
                    said = self.at_dot(recipient)
                    if said is None:
                        self._closed.wait()
                    elif said.startswith("2"):
                        self.accepted.append(recipient)
                    answer = said or ""
                else:
                    answer = OUT_OF_ORDER
            elif command == b"QUIT":
                self.quits += 1
                answer = "221 2.0.0 bye"
            if answer:
                _say(client, answer)
            if not answer or answer.startswith(("221", "421")):
                return

    @staticmethod
    def _hears(client: socket.socket, lines: BinaryIO, command: bytes) -> bool:
        """Whether the whole message comes that this command begins."""
        if command[:4].upper() == b"BDAT":
            size = int(command.split()[1])
            return len(lines.read(size)) == size
        _say(client, "354 go on")
        while (line := lines.readline()) != b".\r\n":
            if not line:
                return False
        return True


def _say(client: socket.socket, line: str) -> None:
    client.sendall(f"{line}\r\n".encode())


def _address(line: bytes) -> str:
    return line.decode().split("<", 1)[1].split(">", 1)[0]
