"""The socket under an SMTP session: bounded reads, deadlines, and one kind of loss.

Nothing here knows what a command means. Whoever drives it knows the stage, and that is the point:
``smtplib`` raises the same exception whatever was lost, and when.

Every call into the kernel costs microseconds, and lets another lane have the interpreter. So a
plain socket blocks, and the kernel's own timers (``SO_RCVTIMEO``, ``SO_SNDTIMEO``) end its waits:
a time-out of Python's would look with ``poll`` before each read and write, and set the socket's
mode again each time it changes. OpenSSL can't be told to give up by those timers, nor can a socket
of green threads, and there the time-out is Python's.
"""

from __future__ import annotations

import _socket
import contextlib
import select
import socket
import ssl
import struct
import time
from typing import NamedTuple

LINE_LIMIT = 8192  # RFC 5321 4.5.3.1.5 says 512; real servers exceed it
REPLY_LIMIT = 1 << 20
KEEP_LINES = 64
#: Seconds after which a call that waits looks at the clock. With one tick for all deadlines the
#: timer of the socket need not be set for each; only the last part of a deadline is shorter.
TICK = 1.0
#: Seconds for a last look when a deadline has passed meanwhile: what has come counts.
_LAST_LOOK = 0.05
_CHUNK = 65536
_SHORTEST = 0.0001  # for the kernel 0 means for ever
_MORE = getattr(socket, "MSG_MORE", 0)  # Linux
_AFTER_CODE = (b" ", b"-", b"")
_CODES = {b"%d" % code: code for code in range(200, 600)}


class WireLost(Exception):
    """The connection is gone, timed out, or said something that is no SMTP reply.

    The message says which in plain words ("connection lost", "timed out", "unreadable reply").
    """

    #: Of a write: how many of its bytes may be on their way. The other side has no later one.
    taken = 0


class WireTimedOut(WireLost):
    """Nothing came, or nothing was taken, in the time given."""


class WireClosed(WireLost):
    """Somebody called ``abort``."""


class Reply(NamedTuple):
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
        #: Whether the kernel's timers end its calls.
        self._has_timers = False
        #: What was received; the next reply begins at ``_at``.
        self._buffer = b""
        self._at = 0
        #: For how many seconds at most a call into the kernel waits, as it is set.
        self._patience: float | None = None
        self._look: select.poll | None = None
        self._aborted = False
        self._ended = False

    def connect(self, host: str, port: int, timeout: float) -> None:
        """Connect to the first address that answers; ``timeout`` (seconds) is for each.

        Raises ``WireLost`` for every failure, a name that does not resolve included. It says what
        went wrong and not where: staff who may not know host and port read it.
        """
        try:
            found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        except (OSError, UnicodeError) as error:
            raise WireLost(f"the host does not resolve: {_plain(error)}") from error
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
                self._has_timers = isinstance(sock, _socket.socket)
                self._look = select.poll()
                self._look.register(sock, select.POLLIN)  # POLLHUP and POLLERR come unasked
                return
            except OSError as error:
                problem = error
                self.close()
            except WireClosed:
                self.close()
                raise
        if self._aborted:
            raise WireClosed("aborted")
        raise WireLost(f"no connection: {_plain(problem)}")

    def wrap(self, context: ssl.SSLContext, host: str, timeout: float) -> None:
        """Start TLS on the open connection. Raises ``WireLost``, also for a bad certificate."""
        sock = self._open_socket()
        if self._at < len(self._buffer):
            # Plain text sent behind the answer to STARTTLS would be taken for the server's own
            # words under TLS (CVE-2011-0411).
            raise WireLost("unreadable reply: text after the answer to STARTTLS")
        try:
            sock.settimeout(timeout)
            self._sock = context.wrap_socket(sock, server_hostname=host)
            self._has_timers, self._patience = False, None
        except (OSError, ValueError) as error:
            self.close()
            said = self._words(error).replace(f"'{host}'", "the host in the settings")
            raise WireLost(f"TLS failed: {said}") from error

    def write(self, data: bytes, timeout: float, *, more: bool = False) -> None:
        """Write all of ``data``; ``timeout`` (seconds) is for the whole of it.

        ``more``: the rest of a message follows at once. The kernel may keep what fills no packet
        until then (Linux; for 200 ms at most), so that both go in one packet and wake the other
        side once. Raises ``WireLost``, which says how much of it was ``taken``.
        """
        sock = self._open_socket()
        flags = _MORE if more and self._has_timers else 0
        deadline = time.monotonic() + timeout
        rest: bytes | memoryview = data
        try:
            while True:
                self._wait_until(deadline)
                try:
                    written = sock.send(rest, flags)
                except (BlockingIOError, TimeoutError):
                    continue  # a tick is over, and nothing of ``rest`` was taken
                except (OSError, ValueError) as error:
                    raise self._lost(error) from error
                if written == len(rest):
                    return
                rest = memoryview(rest)[written:]
        except WireLost as lost:
            # The kernel says what it has taken; OpenSSL may have sent records of what failed.
            lost.taken = len(data) - len(rest) if self._has_timers else len(data)
            raise

    def read_reply(self, timeout: float) -> Reply:
        """The next whole reply, within ``timeout`` seconds however slowly it drips.

        Raises ``WireLost`` at the end of the connection, when time is up, and for anything that
        is not a reply by RFC 5321 section 4.2: a line without code, lines that disagree, a line
        over 8 KiB, a reply over 1 MiB. A reply cut off before its last line end is no reply.
        """
        deadline = time.monotonic() + timeout
        line = self._read_line(deadline)
        code = _code_of(line)
        if code and line[3:4] != b"-":  # one line, as nearly all of them are
            return Reply(code, (line[4:],))
        lines: list[bytes] = []
        total = 0
        while True:
            total += len(line)
            found = _code_of(line)
            if found is None or found != code:
                raise WireLost(f"unreadable reply: {line[:200].decode('utf-8', 'replace')}")
            if total > REPLY_LIMIT:
                raise WireLost("unreadable reply: longer than 1 MiB")
            if len(lines) < KEEP_LINES:
                lines.append(line[4:])
            if line[3:4] != b"-":
                return Reply(found, tuple(lines))
            line = self._read_line(deadline)

    def fileno(self) -> int:
        """Of the connection; -1 where there is none."""
        return self._sock.fileno() if self._sock is not None else -1

    @property
    def has_words(self) -> bool:
        """Whether something was received that is not read yet."""
        return self._at < len(self._buffer)

    def hears(self, deadline: float, *, waits: bool = True) -> bool:
        """Whether the server says anything; waits for a tick at most, or not at all. After
        ``deadline`` (``time.monotonic``) it looks once. Raises ``WireLost`` at the end of the
        connection, and when time is up."""
        now = time.monotonic()
        if not waits and now < deadline:
            return self.has_words
        if self.has_words or self._receive(max(deadline, now + _LAST_LOOK)):
            return True
        if now >= deadline:
            raise WireTimedOut("timed out")
        return False

    def spoke_unasked(self) -> bool:
        """Whether the server has said something (or closed) though nothing was asked.

        A reply that waits here would be read as the answer to the next command, and every later
        answer would be off by one; so nobody writes before this says no.
        """
        sock, look = self._sock, self._look
        if self._at < len(self._buffer) or self._ended or sock is None or look is None:
            return True
        if not look.poll(0) and not (isinstance(sock, ssl.SSLSocket) and sock.pending()):
            return False
        try:
            # Under TLS a readable socket may hold a session ticket and no word of the server's.
            sock.settimeout(0)
            data = sock.recv(_CHUNK)
        except (BlockingIOError, ssl.SSLWantReadError):
            return False
        except (OSError, ValueError):
            data = b""
        finally:
            self._patience = None
        self._buffer, self._at = data, 0
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
        self._look = self._patience = None
        self._buffer, self._at = b"", 0
        self._has_timers = self._ended = False
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
        searched = self._at
        while (end := self._buffer.find(b"\n", searched)) < 0:
            have = len(self._buffer) - self._at
            if have > LINE_LIMIT:
                raise WireLost("unreadable reply: line too long")
            self._fill(deadline)  # which moves what there is to the front
            searched = have
        line = self._buffer[self._at : end]
        self._at = end + 1
        if len(line) > LINE_LIMIT:
            raise WireLost("unreadable reply: line too long")
        return line.rstrip(b"\r")

    def _fill(self, deadline: float) -> None:
        """Receive more, behind what was not read yet."""
        while not self._receive(deadline):
            pass

    def _receive(self, deadline: float) -> bool:
        """The same, but False when a tick is over first."""
        sock = self._open_socket()
        if self._ended:
            raise self._lost(None)
        self._wait_until(deadline)
        try:
            data = sock.recv(_CHUNK)
        except (BlockingIOError, TimeoutError):
            return False
        except (OSError, ValueError) as error:
            raise self._lost(error) from error
        if not data:
            raise self._lost(None)
        self._buffer, self._at = self._buffer[self._at :] + data, 0
        return True

    def _wait_until(self, deadline: float) -> None:
        """The next call into the kernel waits for a tick at most, and not beyond ``deadline``
        (``time.monotonic``). Raises ``WireLost`` when that is over."""
        left = deadline - time.monotonic()
        if left <= 0:
            raise WireTimedOut("timed out")
        wanted = left if left < TICK else TICK
        if wanted != self._patience:
            self._be_patient(max(wanted, _SHORTEST))
            self._patience = wanted

    def _be_patient(self, seconds: float) -> None:
        sock = self._open_socket()
        try:
            if not self._has_timers:
                sock.settimeout(seconds)
                return
            sock.settimeout(None)
            whole = int(seconds)
            timer = struct.pack("ll", whole, int((seconds - whole) * 1e6))
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, timer)
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, timer)
        except OSError as error:
            raise self._lost(error) from error

    def _lost(self, error: Exception | None) -> WireLost:
        if self._aborted:
            return WireClosed("connection lost: aborted")
        return WireLost("connection lost" if error is None else self._words(error))

    @staticmethod
    def _words(error: Exception) -> str:
        if isinstance(error, TimeoutError):
            return "timed out"
        if isinstance(error, ssl.SSLCertVerificationError):
            return f"certificate refused: {error.verify_message}"
        return f"connection lost: {error}"


def _plain(error: Exception | None) -> str:
    """``Connection refused``, without its number."""
    if isinstance(error, TimeoutError):
        return "timed out"
    return getattr(error, "strerror", None) or str(error)


def _code_of(line: bytes) -> int | None:
    return _CODES.get(line[:3]) if line[3:4] in _AFTER_CODE else None
