"""The socket under an SMTP session: bounded reads, deadlines, and one kind of loss.

Nothing here knows what a command means. Whoever drives it knows the stage, and that is the point:
``smtplib`` raises the same exception whatever was lost, and when.
"""

from __future__ import annotations

import contextlib
import select
import socket
import ssl
import time
from dataclasses import dataclass

LINE_LIMIT = 8192  # RFC 5321 4.5.3.1.5 says 512; real servers exceed it
REPLY_LIMIT = 1 << 20
KEEP_LINES = 64
_CHUNK = 65536


class WireLost(Exception):
    """The connection is gone, timed out, or said something that is no SMTP reply.

    The message says which in plain words ("connection lost", "timed out", "unreadable reply").
    """


class WireClosed(WireLost):
    """Somebody called ``abort``."""


@dataclass(frozen=True, slots=True)
class Reply:
    """A complete reply: its code (200 to 599) and the first ``KEEP_LINES`` lines without it."""

    code: int
    lines: tuple[bytes, ...]

    @property
    def text(self) -> bytes:
        return b"\n".join(self.lines)


class Wire:
    """One connection. Used by one thread; only ``abort`` may be called from another."""

    def __init__(self) -> None:
        self._sock: socket.socket | None = None
        self._buffer = bytearray()
        self._aborted = False
        self._ended = False

    def connect(self, host: str, port: int, timeout: float) -> None:
        """Connect to the first address that answers; ``timeout`` (seconds) is for each.

        Raises ``WireLost`` for every failure, a name that does not resolve included.
        """
        try:
            found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        except (OSError, UnicodeError) as error:
            raise WireLost(f"{host} does not resolve: {error}") from error
        problem: OSError | None = None
        for family, kind, protocol, _, address in found:
            sock = socket.socket(family, kind, protocol)
            self._sock = sock  # before connecting, so that abort reaches it
            try:
                sock.settimeout(timeout)
                if self._aborted:
                    raise WireClosed("aborted")
                # Before connecting: on a socket that was reset meanwhile they would fail.
                sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
                sock.connect(address)
                return
            except OSError as error:
                problem = error
                self.close()
            except WireClosed:
                self.close()
                raise
        if self._aborted:
            raise WireClosed("aborted")
        words = "timed out" if isinstance(problem, TimeoutError) else str(problem)
        raise WireLost(f"no connection to {host}:{port}: {words}")

    def wrap(self, context: ssl.SSLContext, host: str, timeout: float) -> None:
        """Start TLS on the open connection. Raises ``WireLost``, also for a bad certificate."""
        sock = self._open_socket()
        if self._buffer:
            # Plain text sent behind the answer to STARTTLS would be taken for the server's own
            # words under TLS (CVE-2011-0411).
            raise WireLost("unreadable reply: text after the answer to STARTTLS")
        try:
            sock.settimeout(timeout)
            self._sock = context.wrap_socket(sock, server_hostname=host)
        except (OSError, ValueError) as error:
            self.close()
            raise WireLost(f"TLS failed: {self._words(error)}") from error

    def write(self, data: bytes, timeout: float) -> None:
        """Write all of ``data``; ``timeout`` is for the whole of it. Raises ``WireLost``."""
        sock = self._open_socket()
        try:
            sock.settimeout(timeout)
            sock.sendall(data)
        except (OSError, ValueError) as error:
            raise self._lost(error) from error

    def read_reply(self, timeout: float) -> Reply:
        """The next whole reply, within ``timeout`` seconds however slowly it drips.

        Raises ``WireLost`` at the end of the connection, when time is up, and for anything that
        is not a reply by RFC 5321 section 4.2: a line without code, lines that disagree, a line
        over 8 KiB, a reply over 1 MiB. A reply cut off before its last line end is no reply.
        """
        deadline = time.monotonic() + timeout
        lines: list[bytes] = []
        code = total = 0
        while True:
            line = self._read_line(deadline)
            total += len(line)
            found = _code_of(line)
            if found is None or (code and found != code):
                raise WireLost(f"unreadable reply: {line[:200].decode('utf-8', 'replace')}")
            if total > REPLY_LIMIT:
                raise WireLost("unreadable reply: longer than 1 MiB")
            code = found
            if len(lines) < KEEP_LINES:
                lines.append(line[4:])
            if line[3:4] != b"-":
                return Reply(code, tuple(lines))

    def spoke_unasked(self) -> bool:
        """Whether the server has said something (or closed) though nothing was asked.

        A reply that waits here would be read as the answer to the next command, and every later
        answer would be off by one; so nobody writes before this says no.
        """
        sock = self._sock
        if self._buffer or self._ended or sock is None:
            return True
        try:
            if not (isinstance(sock, ssl.SSLSocket) and sock.pending()) and not _readable(sock):
                return False
            # Under TLS a readable socket may hold a session ticket and no word of the server's.
            sock.settimeout(0)
            data = sock.recv(_CHUNK)
        except (BlockingIOError, ssl.SSLWantReadError):
            return False
        except (OSError, ValueError):
            data = b""
        self._buffer += data
        self._ended = not data
        return True

    def abort(self) -> None:
        """Shut the connection down hard, from any thread; whoever waits on it gets ``WireLost``.

        It stays unusable: a later ``connect`` fails too.
        """
        self._aborted = True
        sock = self._sock
        if sock is not None:
            with contextlib.suppress(OSError):
                # Not SSLSocket's own: that one drops the TLS object under the reader's feet.
                socket.socket.shutdown(sock, socket.SHUT_RDWR)

    def close(self) -> None:
        """Close without a word. Never raises."""
        sock, self._sock = self._sock, None
        self._buffer.clear()
        self._ended = False
        if sock is not None:
            with contextlib.suppress(OSError):
                sock.close()

    def _open_socket(self) -> socket.socket:
        if self._aborted:
            raise WireClosed("aborted")
        if self._sock is None:
            raise WireLost("connection lost")
        return self._sock

    def _read_line(self, deadline: float) -> bytes:
        searched = 0
        while (end := self._buffer.find(b"\n", searched)) < 0:
            searched = len(self._buffer)
            if searched > LINE_LIMIT:
                raise WireLost("unreadable reply: line too long")
            self._fill(deadline)
        if end > LINE_LIMIT:
            raise WireLost("unreadable reply: line too long")
        line = bytes(self._buffer[:end]).rstrip(b"\r")
        del self._buffer[: end + 1]
        return line

    def _fill(self, deadline: float) -> None:
        sock = self._open_socket()
        if self._ended:
            raise self._lost(None)
        remaining = deadline - time.monotonic()
        if remaining <= 0:
            raise WireLost("timed out")
        try:
            sock.settimeout(remaining)
            data = sock.recv(_CHUNK)
        except (OSError, ValueError) as error:
            raise self._lost(error) from error
        if not data:
            raise self._lost(None)
        self._buffer += data

    def _lost(self, error: Exception | None) -> WireLost:
        if self._aborted:
            return WireClosed("connection lost: aborted")
        if error is None:
            return WireLost("connection lost")
        return WireLost(self._words(error))

    @staticmethod
    def _words(error: Exception) -> str:
        if isinstance(error, TimeoutError):
            return "timed out"
        if isinstance(error, ssl.SSLCertVerificationError):
            return f"certificate refused: {error.verify_message}"
        return f"connection lost: {error}"


def _readable(sock: socket.socket) -> bool:
    poll = select.poll()
    poll.register(sock, select.POLLIN)  # POLLHUP and POLLERR come unasked
    return bool(poll.poll(0))


def _code_of(line: bytes) -> int | None:
    code = line[:3]
    if len(code) == 3 and code.isdigit() and line[3:4] in (b"", b" ", b"-"):
        number = int(code)
        return number if 200 <= number <= 599 else None
    return None
