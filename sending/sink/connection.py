"""The sink's side of one connection: a small, fast SMTP dialogue with faults built in."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import re
import socket
from collections.abc import Callable

from ..smtp_envelope import unstuffed
from .faults import Fault
from .kept import Folder
from .line import Line
from .state import Sink

_END = b"\r\n.\r\n"
_MESSAGE_ID = re.compile(rb"^message-id:[ \t\r\n]*(<[^>\r\n]*>|\S+)", re.IGNORECASE | re.MULTILINE)
_PATH = re.compile(rb"^(?:FROM|TO):\s*<?([^>\r\n]*?)>?(?:\s+(.*))?$", re.IGNORECASE)
_LINE_LIMIT = 4096
_SIZE_LIMIT = 52_428_800

REFUSALS = {
    Fault.GREYLIST: ("greylisted", "451 4.7.1 Greylisted, please try again later"),
    Fault.REFUSE: ("refused", "550 5.1.1 No such user here"),
    Fault.FULL: ("full", "452 4.2.2 The mailbox is full"),
    Fault.DEFER: ("deferred", "451 4.3.0 Temporary local problem"),
    Fault.POLICY: ("policy", "550 5.7.1 Message refused by policy"),
    Fault.CONTENT: ("content", "554 5.6.0 Message content rejected"),
}
TAKEN = {Fault.DROP: "dropped_after_dot", Fault.GARBAGE: "garbage", Fault.SILENT: "silent"}
AT_RCPT = frozenset({Fault.GREYLIST, Fault.REFUSE, Fault.FULL})


class Connection(asyncio.Protocol):
    """One client. Commands are handled in order; while the server is slow, input waits. Replies to
    what has arrived together leave in one write."""

    def __init__(self, sink: Sink) -> None:
        self.sink = sink
        self.options = sink.options
        self.transport: asyncio.Transport
        self._line: Line
        self._buffer = bytearray()
        self._searched = 0
        self._receiving = False
        #: Bytes that a BDAT brings, and whether they are the last of their message.
        self._chunk: tuple[int, bool] | None = None
        self._chunks: list[bytes] = []
        self._busy = False
        self._gone = False
        self._login: list[str] | None = None
        self._authenticated = self.options.auth is None
        self._sender: str | None = None
        self._recipients: list[tuple[str, Fault]] = []
        self._taken = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        self._line = Line(transport, self.options.latency)
        self._say(f"220 {self.options.hostname} ESMTP sink")
        self._line.flush()

    def connection_lost(self, exc: Exception | None) -> None:
        self._gone = True

    def data_received(self, data: bytes) -> None:
        if self._gone:
            return
        self._buffer += data
        self._advance()

    # -- flow ------------------------------------------------------------------------------

    def _advance(self) -> None:
        """Work through what has arrived, then say what there is to say."""
        while not self._busy and not self._gone and self._next():
            pass
        self._line.flush()

    def _next(self) -> bool:
        """Handle one message or command; False when more has to arrive."""
        if self._receiving:
            end = self._buffer.find(_END, max(0, self._searched - len(_END)))
            if end < 0:
                self._searched = len(self._buffer)
                return False
            # The two bytes in front were put there so that an empty message ends too.
            data = bytes(self._buffer[2 : end + 2])
            del self._buffer[: end + len(_END)]
            self._receiving = False
            self._message(data)
            return True
        if self._chunk is not None:
            size, is_last = self._chunk
            if len(self._buffer) < size:
                return False
            data = bytes(self._buffer[:size])
            del self._buffer[:size]
            self._chunk = None
            self._chunk_read(data, is_last)
            return True
        end = self._buffer.find(b"\n")
        if end < 0:
            if len(self._buffer) > _LINE_LIMIT:
                self._drop()
            return False
        line = bytes(self._buffer[:end]).rstrip(b"\r")
        del self._buffer[: end + 1]
        self._command(line)
        return True

    def _say(
        self, text: str, *, after: float = 0.0, then: Callable[[], None] | None = None
    ) -> None:
        """Reply; ``then`` is called when the reply has left."""
        wait = after + self.options.delay
        if wait > 0:
            self._busy = True
            asyncio.get_running_loop().call_later(wait, self._say_late, text, then)
        else:
            self._say_now(text, then)

    def _say_late(self, text: str, then: Callable[[], None] | None) -> None:
        self._busy = False
        self._say_now(text, then)
        self._advance()

    def _say_now(self, text: str, then: Callable[[], None] | None) -> None:
        if self._gone:
            return
        self._line.say(text)
        if then is not None:
            self._line.flush(then)

    def _drop(self) -> None:
        """Close without another word; what was not read makes it a reset."""
        self._gone = True
        self.transport.abort()

    def _hang_up(self) -> None:
        """Close behind what was said."""
        self._gone = True
        self.transport.close()

    # -- commands --------------------------------------------------------------------------

    def _command(self, line: bytes) -> None:
        if self._login is not None:
            self._continue_login(line)
            return
        verb, _, rest = line.partition(b" ")
        name = verb.upper()
        if name in (b"MAIL", b"RCPT", b"DATA") and not self._authenticated:
            self._say("530 5.7.0 Authentication required")
        elif name == b"EHLO":
            self._reset()
            offered = ["PIPELINING", f"SIZE {_SIZE_LIMIT}", "8BITMIME", "SMTPUTF8"]
            offered.append("ENHANCEDSTATUSCODES")
            if self.options.chunking:
                offered.append("CHUNKING")
            if self.options.auth is not None:
                offered.append("AUTH PLAIN LOGIN")
            lines = [self.options.hostname, *offered]
            ends = ["-"] * (len(lines) - 1) + [" "]
            self._say("\r\n".join(f"250{e}{text}" for e, text in zip(ends, lines, strict=True)))
        elif name == b"HELO":
            self._reset()
            self._say(f"250 {self.options.hostname}")
        elif name == b"MAIL":
            self._mail(rest)
        elif name == b"RCPT":
            self._rcpt(rest)
        elif name == b"DATA":
            self._data()
        elif name == b"BDAT" and self.options.chunking:
            self._bdat(rest)
        elif name == b"RSET":
            self._reset()
            self._say("250 2.0.0 Ok")
        elif name == b"NOOP":
            self._say("250 2.0.0 Ok")
        elif name == b"AUTH" and self.options.auth is not None:
            self._auth(rest)
        elif name == b"QUIT":
            self._say("221 2.0.0 Bye", then=self._hang_up)
        else:
            self._say("502 5.5.2 Command not recognized")

    def _reset(self) -> None:
        self._sender = None
        self._recipients.clear()
        self._chunks.clear()

    def _mail(self, rest: bytes) -> None:
        found = _PATH.match(rest)
        if self._sender is not None:
            self._say("503 5.5.1 Nested MAIL command")
        elif found is None:
            self._say("501 5.5.4 Syntax: MAIL FROM:<address>")
        else:
            self._sender = found[1].decode("utf-8", "replace")
            self._say("250 2.1.0 Ok")

    def _rcpt(self, rest: bytes) -> None:
        found = _PATH.match(rest)
        if self._sender is None:
            self._say("503 5.5.1 Need MAIL command")
            return
        if found is None or not found[1]:
            self._say("501 5.5.4 Syntax: RCPT TO:<address>")
            return
        recipient = found[1].decode("utf-8", "replace")
        fault = self.sink.fault_of(recipient)
        if fault in AT_RCPT:
            event, reply = REFUSALS[fault]
            self.sink.note(event, recipient)
            self._say(reply)
            return
        self._recipients.append((recipient, fault))
        self._say("250 2.1.5 Ok")

    def _data(self) -> None:
        if not self._recipients:
            self._say("503 5.5.1 Need RCPT command")
            return
        recipient, fault = self._recipients[0]
        if fault is Fault.DROPBODY:
            self.sink.note("dropped_before_dot", recipient)
            # 354 and the end of the stream in one segment: the client can't have sent its dot
            # before the end was there to be seen.
            sock = self.transport.get_extra_info("socket")
            if hasattr(socket, "TCP_CORK"):
                sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_CORK, 1)
            self._busy = True  # whatever else comes is ignored until the client hangs up
            self._say_now("354 Go ahead", self._end_stream)
            return
        self._buffer[:0] = b"\r\n"
        self._searched = 0
        self._receiving = True
        self._say("354 End data with <CR><LF>.<CR><LF>")

    def _end_stream(self) -> None:
        self._gone = True
        with contextlib.suppress(OSError):
            self.transport.get_extra_info("socket").shutdown(socket.SHUT_WR)

    def _bdat(self, rest: bytes) -> None:
        size, _, last = rest.strip().partition(b" ")
        if not size.isdigit() or int(size) > _SIZE_LIMIT or last.upper() not in (b"", b"LAST"):
            self._busy = True  # how many bytes follow is not known: nothing is made of them
            self._say_now("501 5.5.4 Syntax: BDAT size [LAST]", self._hang_up)
            return
        if self._recipients and self._recipients[0][1] is Fault.DROPBODY:
            self.sink.note("dropped_before_dot", self._recipients[0][0])
            self._drop()
            return
        self._chunk = int(size), bool(last)

    def _chunk_read(self, data: bytes, is_last: bool) -> None:
        """The bytes are read before anything is said of them (RFC 3030 section 2)."""
        if not self._recipients:
            self._say("503 5.5.1 Need RCPT command")
            return
        self._chunks.append(data)
        if is_last:
            self._message(b"".join(self._chunks), is_stuffed=False)
        else:
            self._say(f"250 2.0.0 Ok: {len(data)} bytes")

    def _message(self, data: bytes, *, is_stuffed: bool = True) -> None:
        head = data[: data.find(b"\r\n\r\n") + 2 or len(data)]
        found = _MESSAGE_ID.search(head)
        message_id = found[1].decode("utf-8", "replace") if found else ""
        recipients, sender = list(self._recipients), self._sender
        self._reset()
        fault = next((f for _, f in recipients if f in REFUSALS), recipients[0][1])
        if fault in REFUSALS:
            event, reply = REFUSALS[fault]
            for recipient, _ in recipients:
                self.sink.note(event, recipient, message_id=message_id, size=len(data))
            self._say(reply)
            return
        if self.sink.folder is not None and not self._keep(
            self.sink.folder, recipients, unstuffed(data) if is_stuffed else data
        ):
            return
        self._busy = True
        for number, (recipient, _) in enumerate(recipients, 1):
            self.sink.note(
                TAKEN.get(fault, "accepted"),
                recipient,
                accepted=True,
                message_id=message_id,
                sender=sender,
                size=len(data),
                then=(lambda: self._taken_with(fault)) if number == len(recipients) else None,
            )

    def _keep(self, folder: Folder, recipients: list[tuple[str, Fault]], data: bytes) -> bool:
        """Write the message to the folder. What can't be kept is not taken."""
        try:
            for recipient, _ in recipients:
                folder.keep(recipient, data)
        except OSError as error:
            for recipient, _ in recipients:
                self.sink.note("not_kept", recipient, error=str(error))
            self._say("452 4.3.1 The message can't be written")
            return False
        return True

    def _taken_with(self, fault: Fault) -> None:
        """The message is on the disk; now answer, or fail as the fault has it."""
        self._taken += 1
        if self._gone or fault is Fault.SILENT:
            return
        if fault is Fault.DROP:
            self._drop()
            return
        limit = self.options.max_messages_per_connection
        then = self._hang_up if limit and self._taken >= limit else None
        self._busy = False
        if fault is Fault.GARBAGE:
            self._say("<html>Bad gateway</html>", then=then)
        else:
            after = self.options.slow_seconds if fault is Fault.SLOW else 0.0
            said = f"250 2.0.0 Ok: queued as {id(self):X}-{self._taken}"
            self._say(said, after=after, then=then)
        self._advance()

    # -- authentication --------------------------------------------------------------------

    def _auth(self, rest: bytes) -> None:
        way, _, initial = rest.partition(b" ")
        if way.upper() == b"PLAIN" and initial:
            parts = _decoded(initial).split("\0")
            self._finish_login(parts[1:])
        elif way.upper() == b"LOGIN":
            self._login = [_decoded(initial)] if initial else []
            self._say("334 " + base64.b64encode(b"Password:" if initial else b"User:").decode())
        else:
            self._say("504 5.5.4 Unrecognized authentication type")

    def _continue_login(self, line: bytes) -> None:
        assert self._login is not None
        self._login.append(_decoded(line))
        if len(self._login) < 2:
            self._say("334 " + base64.b64encode(b"Password:").decode())
            return
        given, self._login = self._login, None
        self._finish_login(given)

    def _finish_login(self, given: list[str]) -> None:
        if tuple(given) == self.options.auth:
            self._authenticated = True
            self._say("235 2.7.0 Authentication successful")
        else:
            self._say("535 5.7.8 Authentication credentials invalid")


def _decoded(data: bytes) -> str:
    try:
        return base64.b64decode(data).decode("utf-8", "replace")
    except ValueError:
        return ""
