"""An SMTP server that does exactly what a test says, byte by byte, on a real socket."""

from __future__ import annotations

import contextlib
import socket
import ssl
import struct
import threading
from collections.abc import Callable, Iterator

PATIENCE = 20.0


class Peer:
    """The server's side of one connection."""

    def __init__(self, sock: socket.socket) -> None:
        self.sock = sock
        self.sock.settimeout(PATIENCE)
        self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.heard: list[bytes] = []
        self._buffer = b""

    def say(self, text: bytes) -> None:
        self.sock.sendall(text + b"\r\n")

    def raw(self, data: bytes) -> None:
        self.sock.sendall(data)

    def line(self) -> bytes:
        """The next command without its line end; b"" when the client has gone."""
        found = self._until(b"\r\n")
        if found:
            self.heard.append(found)
        return found

    def ask(self, reply: bytes) -> bytes:
        """Hear a command and answer it."""
        heard = self.line()
        self.say(reply)
        return heard

    def body(self) -> bytes:
        """What comes up to the final dot, as it was on the wire."""
        self._buffer = b"\r\n" + self._buffer
        return self._until(b"\r\n.\r\n")[2:] + b"\r\n"

    def chunk(self) -> bytes:
        """What the BDAT that comes next brings, as it was on the wire; b"" when it isn't whole."""
        size = int(self.line().split()[1])
        while len(self._buffer) < size:
            data = self.sock.recv(65536)
            if not data:
                return b""
            self._buffer += data
        found, self._buffer = self._buffer[:size], self._buffer[size:]
        return found

    def rest(self) -> bytes:
        """All that comes until the client has gone."""
        with contextlib.suppress(ConnectionResetError, ssl.SSLError):
            while data := self.sock.recv(65536):
                self._buffer += data
        found, self._buffer = self._buffer, b""
        return found

    def hello(self, *features: bytes) -> None:
        """Greet and answer EHLO."""
        self.say(b"220 ready")
        self.offer(*features)

    def offer(self, *features: bytes) -> None:
        lines = [b"relay.example.org", *features]
        self.line()
        for line in lines[:-1]:
            self.say(b"250-" + line)
        self.say(b"250 " + lines[-1])

    def take(self, reply: bytes = b"250 2.0.0 Ok: queued as Q1") -> bytes:
        """Take one message and answer it so; its body on the wire."""
        self.ask(b"250 2.1.0 Ok")
        self.ask(b"250 2.1.5 Ok")
        self.ask(b"354 go")
        body = self.body()
        self.say(reply)
        return body

    def bye(self) -> None:
        """Expect QUIT (or the end) and answer it."""
        if self.line():
            self.say(b"221 bye")

    def start_tls(self, context: ssl.SSLContext) -> None:
        self.sock = context.wrap_socket(self.sock, server_side=True)
        self._buffer = b""

    def reset(self) -> None:
        """Close with an RST."""
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.sock.close()

    def end(self) -> None:
        """Close with a FIN (an RST when there is unread input)."""
        self.sock.close()

    def _until(self, mark: bytes) -> bytes:
        while mark not in self._buffer:
            data = self.sock.recv(65536)
            if not data:
                return b""
            self._buffer += data
        found, _, self._buffer = self._buffer.partition(mark)
        return found


Talk = Callable[[Peer], None]


class Server:
    """Serves one script per connection, in order; what a script raises fails the test."""

    def __init__(self, *talks: Talk) -> None:
        self.talks = list(talks)
        self.peers: list[Peer] = []
        self.errors: list[BaseException] = []
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.listener.settimeout(PATIENCE)
        self.port: int = self.listener.getsockname()[1]
        self.thread = threading.Thread(target=self._serve, daemon=True)
        self.thread.start()

    def _serve(self) -> None:
        for talk in self.talks:
            try:
                sock, _ = self.listener.accept()
            except OSError:
                return
            peer = Peer(sock)
            self.peers.append(peer)
            try:
                talk(peer)
            except BaseException as error:
                self.errors.append(error)
            finally:
                with contextlib.suppress(OSError):
                    peer.sock.close()

    def finish(self) -> None:
        """Wait for the scripts to end; raise what they raised."""
        self.thread.join(PATIENCE)
        self.listener.close()
        if self.errors:
            raise self.errors[0]
        assert len(self.peers) == len(self.talks), "not every script had its connection"


@contextlib.contextmanager
def scripted(*talks: Talk) -> Iterator[Server]:
    """A server that serves these scripts, one connection each, and checks that all were had."""
    server = Server(*talks)
    try:
        yield server
    except BaseException:
        server.listener.close()
        raise
    server.finish()
