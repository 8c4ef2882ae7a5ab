"""The sink's server: a small, fast SMTP dialogue with faults built in."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import re
import signal
import socket
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from .faults import Fault, Faults
from .kept import Folder
from .record import Recorder, read_record

_END = b"\r\n.\r\n"
_MESSAGE_ID = re.compile(rb"^message-id:[ \t\r\n]*(<[^>\r\n]*>|\S+)", re.IGNORECASE | re.MULTILINE)
_PATH = re.compile(rb"^(?:FROM|TO):\s*<?([^>\r\n]*?)>?(?:\s+(.*))?$", re.IGNORECASE)
_LINE_LIMIT = 4096

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


@dataclass(frozen=True)
class Options:
    """How the sink behaves. Times in seconds; ``auth`` is (user, password), ``keep`` a folder
    for the messages themselves."""

    host: str = "127.0.0.1"
    port: int = 2525
    record: str | None = None
    keep: str | None = None
    faults: Faults = field(default_factory=Faults)
    greylist_seconds: float = 5.0
    slow_seconds: float = 2.0
    delay: float = 0.0
    max_messages_per_connection: int = 0
    auth: tuple[str, str] | None = None
    hostname: str = "sink.example.org"


class Sink:
    """What all connections share: the record, the attempts per address, the greylist."""

    def __init__(self, options: Options) -> None:
        self.options = options
        self.recorder = Recorder(options.record)
        self.folder = Folder(options.keep) if options.keep else None
        self.attempts: Counter[str] = Counter()
        self.first_seen: dict[str, float] = {}
        for entry in read_record(options.record) if options.record else []:
            recipient = str(entry.get("recipient", "")).lower()
            self.attempts[recipient] += 1
            self.first_seen.setdefault(recipient, float(entry.get("time", 0)))

    def fault_of(self, recipient: str) -> Fault:
        """The fault that this attempt meets: some strike only once."""
        fault = self.options.faults.of(recipient)
        key = recipient.lower()
        if fault is Fault.GREYLIST:
            first = self.first_seen.setdefault(key, time.time())
            if time.time() - first >= self.options.greylist_seconds and self.attempts[key]:
                return Fault.NONE
        once = (Fault.DROP, Fault.DROPBODY, Fault.GARBAGE)
        return Fault.NONE if fault in once and self.attempts[key] else fault

    def note(
        self,
        event: str,
        recipient: str,
        *,
        accepted: bool = False,
        then: Callable[[], None] | None = None,
        **more: Any,
    ) -> None:
        """Record an event and count the attempt; ``then`` runs when it is on the disk."""
        key = recipient.lower()
        self.attempts[key] += 1
        entry = {
            "event": event,
            "accepted": accepted,
            "recipient": recipient,
            "attempt": self.attempts[key],
            "time": time.time(),
            **more,
        }
        self.recorder.add(entry, then)


class Connection(asyncio.Protocol):
    """One client. Commands are handled in order; while a reply is late, input waits."""

    def __init__(self, sink: Sink) -> None:
        self.sink = sink
        self.options = sink.options
        self.transport: asyncio.Transport
        self._buffer = bytearray()
        self._searched = 0
        self._receiving = False
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
        self._say(f"220 {self.options.hostname} ESMTP sink")

    def connection_lost(self, exc: Exception | None) -> None:
        self._gone = True

    def data_received(self, data: bytes) -> None:
        if self._gone:
            return
        self._buffer += data
        self._advance()

    # -- flow ------------------------------------------------------------------------------

    def _advance(self) -> None:
        while not self._busy and not self._gone:
            if self._receiving:
                end = self._buffer.find(_END, max(0, self._searched - len(_END)))
                if end < 0:
                    self._searched = len(self._buffer)
                    return
                # The two bytes in front were put there so that an empty message ends too.
                data = bytes(self._buffer[2 : end + 2])
                del self._buffer[: end + len(_END)]
                self._receiving = False
                self._message(data)
                continue
            end = self._buffer.find(b"\n")
            if end < 0:
                if len(self._buffer) > _LINE_LIMIT:
                    self._drop()
                return
            line = bytes(self._buffer[:end]).rstrip(b"\r")
            del self._buffer[: end + 1]
            self._command(line)

    def _say(
        self, text: str, *, after: float = 0.0, then: Callable[[], None] | None = None
    ) -> None:
        wait = after + self.options.delay
        if wait > 0:
            self._busy = True
            asyncio.get_running_loop().call_later(wait, self._say_now, text, then)
        else:
            self._say_now(text, then)

    def _say_now(self, text: str, then: Callable[[], None] | None) -> None:
        if self._gone:
            return
        late, self._busy = self._busy, False
        self.transport.write(text.encode() + b"\r\n")
        if then is not None:
            then()
        if late:
            self._advance()

    def _drop(self) -> None:
        """Close without another word; what was not read makes it a reset."""
        self._gone = True
        self.transport.abort()

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
            offered = ["PIPELINING", "SIZE 52428800", "8BITMIME", "SMTPUTF8", "ENHANCEDSTATUSCODES"]
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
        elif name == b"RSET":
            self._reset()
            self._say("250 2.0.0 Ok")
        elif name == b"NOOP":
            self._say("250 2.0.0 Ok")
        elif name == b"AUTH" and self.options.auth is not None:
            self._auth(rest)
        elif name == b"QUIT":
            self._say("221 2.0.0 Bye", then=self.transport.close)
        else:
            self._say("502 5.5.2 Command not recognized")

    def _reset(self) -> None:
        self._sender = None
        self._recipients.clear()

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
            self.transport.write(b"354 Go ahead\r\n")
            with contextlib.suppress(OSError):
                sock.shutdown(socket.SHUT_WR)
            self._gone = True  # whatever else comes is ignored until the client hangs up
            return
        self._buffer[:0] = b"\r\n"
        self._searched = 0
        self._receiving = True
        self._say("354 End data with <CR><LF>.<CR><LF>")

    def _message(self, data: bytes) -> None:
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
        if not self._keep(recipients, data):
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

    def _keep(self, recipients: list[tuple[str, Fault]], data: bytes) -> bool:
        """Write the message to the folder, if there is one. What can't be kept is not taken."""
        if self.sink.folder is None:
            return True
        try:
            for recipient, _ in recipients:
                self.sink.folder.keep(recipient, data)
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
        then = self.transport.close if limit and self._taken >= limit else None
        if fault is Fault.GARBAGE:
            self._say("<html>Bad gateway</html>", then=then)
            return
        after = self.options.slow_seconds if fault is Fault.SLOW else 0.0
        self._say(f"250 2.0.0 Ok: queued as {id(self):X}-{self._taken}", after=after, then=then)

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


async def serve(options: Options, *, ready: Callable[[str, int], None] | None = None) -> None:
    """Serve until SIGTERM or SIGINT; ``ready`` is told the address when it listens.

    Raises ``OSError`` when the port, the record or the folder can't be opened.
    """
    sink = Sink(options)
    loop = asyncio.get_running_loop()
    stop = asyncio.Event()
    with contextlib.suppress(NotImplementedError, RuntimeError):  # not in the main thread
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, stop.set)
    try:
        server = await loop.create_server(
            lambda: Connection(sink), options.host, options.port, backlog=512
        )
        async with server:
            host, port = server.sockets[0].getsockname()[:2]
            if ready is not None:
                ready(host, port)
            await stop.wait()
    finally:
        sink.recorder.close()
