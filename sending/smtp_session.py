"""One SMTP session that always knows how far it has come.

Where the server offers PIPELINING (RFC 2920), MAIL, RCPT and DATA go out in one write and their
three replies are read one after the other, so that the stage is known as well as without.

Every failure is an ``SMTPFailure`` whose answer carries the stage. The body and the final dot are
two writes: a loss during the first is definite (the server has no complete message), a loss from
the beginning of the second on can't be known (RFC 1047).
"""

from __future__ import annotations

import base64
import hmac
import re
import smtplib
import ssl
from collections.abc import Sequence
from dataclasses import dataclass, field

from .answers import Answer, Stage, answer
from .smtp_envelope import needs_utf8, wire_body
from .smtp_wire import Reply, Wire, WireLost

FINAL_DOT = b".\r\n"
QUIT_PATIENCE = 2.0
_QUEUE_ID = re.compile(rb"queued as ([\w.-]{1,200})|\bid=([\w.-]{1,200})", re.IGNORECASE)


class SMTPFailure(smtplib.SMTPException):
    """No acceptance: ``answer`` says how far it came and what was said.

    ``accepted`` names the recipients of the same message that had taken it before (only through
    ``send_messages`` with several recipients).
    """

    def __init__(self, answer: Answer, accepted: tuple[str, ...] = ()) -> None:
        said = " ".join(str(part) for part in (answer.code, answer.text) if part)
        super().__init__(f"{answer.stage}: {said}")
        self.answer = answer
        self.accepted = accepted


class SMTPRefusedLocally(SMTPFailure, ValueError):
    """The message never reached the network; also a ``ValueError``, as Django's backend raises."""


@dataclass(frozen=True)
class Timeouts:
    """Seconds: for connecting, for each command and write, and for the reply after the dot."""

    connect: float = 30.0
    command: float = 300.0
    final: float = 600.0


@dataclass(frozen=True, slots=True)
class Step:
    """A command before the body, and the codes with which it goes on."""

    stage: Stage
    command: str
    wanted: tuple[int, ...]

    def is_unreadable(self, reply: Reply) -> bool:
        """DATA is answered by 354 or refused; anything below 400 is neither."""
        return self.stage is Stage.DATA and reply.code < 400 and reply.code != 354


@dataclass
class Session:
    """A dialogue on one connection. Not thread-safe, save for ``abort``."""

    host: str
    port: int
    local_hostname: str
    timeouts: Timeouts = field(default_factory=Timeouts)
    username: str = ""
    password: str = ""
    use_tls: bool = False
    use_ssl: bool = False
    context: ssl.SSLContext | None = None
    wire: Wire = field(default_factory=Wire, repr=False)
    features: dict[str, str] = field(default_factory=dict)
    delivered: int = 0
    is_open: bool = False

    # -- opening ---------------------------------------------------------------------------

    def open(self) -> None:
        """Connect, greet, secure, authenticate. Raises ``SMTPFailure``; leaves nothing open."""
        stage = Stage.CONNECT
        try:
            self.wire.connect(self.host, self.port, self.timeouts.connect)
            if self.use_ssl:
                stage = Stage.TLS
                self._wrap()
            stage = Stage.GREETING
            self._expect(stage, self._reply(), 220)
            stage = Stage.EHLO
            self._hello()
            if self.use_tls:
                stage = Stage.TLS
                self._starttls()
                stage = Stage.EHLO
                self._hello()
            if self.username and self.password:
                stage = Stage.AUTH
                self._authenticate()
        except WireLost as lost:
            self.drop()
            raise SMTPFailure(answer(stage, None, str(lost))) from lost
        except SMTPFailure:
            self.drop()
            raise
        self.is_open = True

    def _wrap(self) -> None:
        assert self.context is not None
        self.wire.wrap(self.context, self.host, self.timeouts.connect)

    def _hello(self) -> None:
        reply = self._command(f"EHLO {self.local_hostname}")
        if reply.code in (500, 502):
            self._expect(Stage.EHLO, self._command(f"HELO {self.local_hostname}"), 250)
            self.features = {}
            return
        self._expect(Stage.EHLO, reply, 250)
        self.features = {}
        for line in reply.lines[1:]:
            keyword, _, parameters = line.decode("ascii", "replace").strip().partition(" ")
            self.features[keyword.upper()] = parameters.strip()
            if keyword.upper().startswith("AUTH="):  # older servers, as smtplib reads them
                self.features.setdefault("AUTH", f"{keyword[5:]} {parameters}")

    def _starttls(self) -> None:
        if "STARTTLS" not in self.features:
            raise SMTPFailure(answer(Stage.TLS, None, "the server does not offer STARTTLS"))
        self._expect(Stage.TLS, self._command("STARTTLS"), 220)
        self._wrap()

    def _authenticate(self) -> None:
        offered = self.features.get("AUTH", "").upper().split()
        ways = [way for way in ("CRAM-MD5", "PLAIN", "LOGIN") if way in offered]
        if not ways:
            said = f"the server offers no known authentication ({' '.join(offered) or 'none'})"
            raise SMTPFailure(answer(Stage.AUTH, None, said))
        failure: SMTPFailure | None = None
        for way in ways:
            try:
                reply = self._try_login(way)
            except WireLost:
                if failure is None:
                    raise
                break  # hung up after a refusal: the refusal is what counts
            if reply.code in (235, 503):  # 503: already authenticated
                return
            failure = self._failure(Stage.AUTH, reply)
            if reply.code == 421:
                break
        assert failure is not None
        raise failure

    def _try_login(self, way: str) -> Reply:
        user, secret = self.username.encode(), self.password.encode()
        if way == "PLAIN":
            return self._command("AUTH PLAIN " + _b64(b"\0" + user + b"\0" + secret))
        if way == "LOGIN":
            reply = self._command(f"AUTH LOGIN {_b64(user)}")
            return self._command(_b64(secret)) if reply.code == 334 else reply
        reply = self._command("AUTH CRAM-MD5")
        if reply.code != 334:
            return reply
        try:
            challenge = base64.b64decode(reply.text)
            digest = hmac.new(secret, challenge, "md5").hexdigest()
        except ValueError:  # garbage, or a system that forbids MD5
            return self._command("*")
        return self._command(_b64(user + b" " + digest.encode()))

    # -- one message -----------------------------------------------------------------------

    def deliver(self, sender: str, recipient: str, data: bytes) -> Answer:
        """Hand over one message to one recipient; the acceptance, or ``SMTPFailure``.

        ``sender`` and ``recipient`` are bare addresses that ``smtp_envelope.mailbox`` returned.
        8-bit content goes out as it is also to a server without 8BITMIME, as Django does.
        """
        body = wire_body(data)
        steps = (
            Step(Stage.MAIL, self._mail_command(sender, recipient, data), (250,)),
            Step(Stage.RCPT, f"RCPT TO:<{recipient}>", (250, 251, 252)),
            Step(Stage.DATA, "DATA", (354,)),
        )
        if "PIPELINING" in self.features:
            self._all_at_once(steps)
        else:
            self._one_by_one(steps)
        stage = Stage.BODY
        try:
            self._write_body(body)
            stage = Stage.DOT
            self.wire.write(FINAL_DOT, self.timeouts.command)
            reply = self.wire.read_reply(self.timeouts.final)
        except WireLost as lost:
            self.drop()
            raise SMTPFailure(answer(stage, None, str(lost))) from lost
        if 200 <= reply.code < 300:
            self.delivered += 1
            found = _QUEUE_ID.search(reply.text)
            queue_id = (found[1] or found[2]).decode("ascii", "replace") if found else ""
            return answer(Stage.DOT, reply.code, reply.text, message_id=queue_id)
        if reply.code < 400:
            self.drop()
            said = f"unreadable reply: {reply.code} after the final dot"
            raise SMTPFailure(answer(Stage.DOT, None, said))
        raise self._reset_after(self._failure(Stage.DOT, reply))

    def _one_by_one(self, steps: Sequence[Step]) -> None:
        for step in steps:
            try:
                reply = self._ask(step.command)
                if step.is_unreadable(reply):
                    raise WireLost(f"unreadable reply: {reply.code} to DATA")
                self._expect_or_reset(step.stage, reply, *step.wanted)
            except WireLost as lost:
                self.drop()
                raise SMTPFailure(answer(step.stage, None, str(lost))) from lost

    def _all_at_once(self, steps: Sequence[Step]) -> None:
        """One write; then the replies, each for its own step. The first that refuses is the
        answer: whatever follows it refuses for that reason, or (DATA) has to be ended empty."""
        refused: SMTPFailure | None = None
        taken: set[Stage] = set()
        step = steps[0]
        try:
            if self.wire.spoke_unasked():
                reply = self._unasked()
                raise self._reset_after(self._failure(step.stage, reply))
            lines = "".join(f"{each.command}\r\n" for each in steps)
            self.wire.write(lines.encode(), self.timeouts.command)
            for step in steps:
                reply = self._reply()
                if reply.code in step.wanted:
                    taken.add(step.stage)
                    continue
                if reply.code < 400:
                    raise WireLost(f"unreadable reply: {reply.code} to {step.command[:4]}")
                refused = refused or self._failure(step.stage, reply)
                if reply.code == 421:
                    break
            if refused is None:
                return
            if Stage.DATA in taken:
                # It waits for a message although it refused (RFC 2920 3.1): an empty one ends
                # that, but only where nobody can get it.
                if Stage.RCPT in taken:
                    self.drop()
                    raise refused
                self.wire.write(FINAL_DOT, self.timeouts.command)
                self._reply()
        except WireLost as lost:
            self.drop()
            if refused is None:
                raise SMTPFailure(answer(step.stage, None, str(lost))) from lost
            raise refused from lost
        raise self._reset_after(refused)

    def _mail_command(self, sender: str, recipient: str, data: bytes) -> str:
        parameters = ""
        if needs_utf8(sender, recipient):
            if "SMTPUTF8" not in self.features:
                said = "the address needs SMTPUTF8 and the relay does not offer it"
                raise SMTPRefusedLocally(answer(Stage.LOCAL, None, said, enhanced="5.6.7"))
            parameters += " SMTPUTF8"
        if "8BITMIME" in self.features and (parameters or not data.isascii()):
            parameters += " BODY=8BITMIME"
        if "SIZE" in self.features:
            limit = self.features["SIZE"]
            if limit.isdigit() and 0 < int(limit) < len(data):
                said = f"the message has {len(data)} bytes, the relay takes {limit}"
                raise SMTPRefusedLocally(answer(Stage.LOCAL, None, said, enhanced="5.3.4"))
            parameters += f" SIZE={len(data)}"
        return f"MAIL FROM:<{sender}>{parameters}"

    def _write_body(self, body: bytes) -> None:
        """Write the body. What the server says meanwhile is its refusal: the dot is not sent."""
        try:
            self.wire.write(body, self.timeouts.command)
            if not self.wire.spoke_unasked():
                return
        except WireLost as lost:
            early = self._last_words()
            if early is None:
                raise lost
        else:
            early = self.wire.read_reply(self.timeouts.command)
        self.drop()
        if early.code < 400:
            raise WireLost(f"unreadable reply: {early.code} before the final dot")
        raise self._failure(Stage.BODY, early)

    def _last_words(self) -> Reply | None:
        try:
            return self.wire.read_reply(1.0)
        except WireLost:
            return None

    # -- closing ---------------------------------------------------------------------------

    def quit(self) -> None:
        """Say QUIT and close. Whatever comes of it is irrelevant: it never raises."""
        if self.is_open:
            try:
                self.wire.write(b"QUIT\r\n", QUIT_PATIENCE)
                self.wire.read_reply(QUIT_PATIENCE)
            except WireLost:
                pass
        self.drop()

    def drop(self) -> None:
        """Close without QUIT. Never raises."""
        self.is_open = False
        self.wire.close()

    def abort(self) -> None:
        """Shut down hard, from any thread; a waiting call fails with the stage it had reached."""
        self.wire.abort()

    # -- the dialogue ----------------------------------------------------------------------

    def _ask(self, command: str) -> Reply:
        if self.wire.spoke_unasked():
            return self._unasked()
        return self._command(command)

    def _unasked(self) -> Reply:
        """A 421 may come at any time and answers whatever is asked next (RFC 5321 3.8); with
        anything else the dialogue is out of step."""
        reply = self.wire.read_reply(self.timeouts.command)
        if reply.code != 421:
            raise WireLost(f"unreadable reply: {reply.code} unasked")
        return reply

    def _command(self, line: str) -> Reply:
        self.wire.write(line.encode() + b"\r\n", self.timeouts.command)
        return self._reply()

    def _reply(self) -> Reply:
        return self.wire.read_reply(self.timeouts.command)

    def _expect(self, stage: Stage, reply: Reply, *codes: int) -> None:
        if reply.code not in codes:
            raise self._failure(stage, reply)

    def _expect_or_reset(self, stage: Stage, reply: Reply, *codes: int) -> None:
        if reply.code not in codes:
            raise self._reset_after(self._failure(stage, reply))

    def _failure(self, stage: Stage, reply: Reply) -> SMTPFailure:
        return SMTPFailure(answer(stage, reply.code, reply.text))

    def _reset_after(self, failure: SMTPFailure) -> SMTPFailure:
        """RSET, so that the session serves the next message; without success it is closed."""
        try:
            if failure.answer.code == 421 or self._command("RSET").code != 250:
                self.drop()
        except WireLost:
            self.drop()
        return failure


def _b64(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")
