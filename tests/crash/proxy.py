"""A link to PostgreSQL that can fall silent: nothing passes any more, and nobody is told."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Callable
from types import TracebackType
from typing import Self
from urllib.parse import quote

from psycopg.conninfo import conninfo_to_dict


class Proxy:
    """A TCP port on 127.0.0.1 that leads to the server of a database URL.

    Leaving the block cuts every connection, as the end of a network outage does.
    """

    def __init__(self, url: str) -> None:
        """``url``: of a server on a unix socket or on TCP."""
        self._parts = {name: str(value) for name, value in conninfo_to_dict(url).items()}
        self._flows = threading.Event()
        self._flows.set()
        self._fatal: bytes | None = None
        self._ends: list[socket.socket] = []
        self._threads: list[threading.Thread] = []
        self._closing = False

    @property
    def url(self) -> str:
        """The ``DATABASE_URL`` of the same database through this link."""
        user, password = self._parts.get("user", ""), self._parts.get("password", "")
        secret = f":{quote(password, safe='')}" if password else ""
        host, port = self._listener.getsockname()
        name = quote(self._parts["dbname"], safe="")
        return f"postgresql://{quote(user, safe='')}{secret}@{host}:{port}/{name}"

    @property
    def is_silent(self) -> bool:
        return not self._flows.is_set()

    def stall(self) -> None:
        """Fall silent now."""
        self._flows.clear()

    def recover(self) -> None:
        """Let through what was held up, and everything after it."""
        self._flows.set()

    def stall_after(self, statement: bytes) -> None:
        """Fall silent as soon as a client has said this: the server does it and is not heard."""
        self._fatal = statement

    def __enter__(self) -> Self:
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=64)
        self._start(self._accept)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._closing = True
        for end in (self._listener, *self._ends):
            _hang_up(end)
        self._flows.set()
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
            while not self._closing:
                client, _ = self._listener.accept()
                self._ends.append(client)
                server = self._connect()
                self._ends.append(server)
                self._start(self._carry, client, server, True)
                self._start(self._carry, server, client, False)

    def _connect(self) -> socket.socket:
        host, port = self._parts.get("host", "127.0.0.1"), self._parts.get("port", "5432")
        if host.startswith("/"):
            server = socket.socket(socket.AF_UNIX)
            server.connect(f"{host}/.s.PGSQL.{port}")
            return server
        return socket.create_connection((host, int(port)))

    def _carry(self, source: socket.socket, target: socket.socket, from_client: bool) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                self._flows.wait()
                if from_client and self._fatal is not None and self._fatal in data:
                    self._fatal = None
                    self._flows.clear()
                target.sendall(data)
        self._flows.wait()  # over a dead link nobody learns of the other's end either
        for end in (source, target):
            _hang_up(end)


def _hang_up(end: socket.socket) -> None:
    with contextlib.suppress(OSError):
        end.shutdown(socket.SHUT_RDWR)
