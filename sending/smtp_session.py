"""One SMTP session: opened, secured, authenticated, and then a message after the other.

Every failure is an ``SMTPFailure`` whose answer carries the stage.
"""

from __future__ import annotations

import base64
import hmac
import ssl
from dataclasses import dataclass

from .answers import Stage, answer
from .smtp_bdat import by_chunk
from .smtp_dialogue import Dialogue, SMTPFailure
from .smtp_transaction import Transaction, back_to_back, by_data
from .smtp_wire import Reply, WireLost


@dataclass(kw_only=True)
class Session(Dialogue):
    """A dialogue on one connection. Not thread-safe, save for ``abort``.

    ``chunking``: send messages by BDAT where the server offers CHUNKING and PIPELINING.
    ``back_to_back``: send the envelope of the next message with the end of the one before.
    """

    host: str
    port: int
    local_hostname: str
    username: str = ""
    password: str = ""
    use_tls: bool = False
    use_ssl: bool = False
    context: ssl.SSLContext | None = None
    chunking: bool = False
    back_to_back: bool = False
    delivered: int = 0

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
            self.expect(stage, self.reply(), 220)
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
            raise self.lost(stage, lost) from lost
        except SMTPFailure:
            self.drop()
            raise
        self.is_open = True

    def _wrap(self) -> None:
        assert self.context is not None
        self.wire.wrap(self.context, self.host, self.timeouts.connect)

    def _hello(self) -> None:
        reply = self.command(f"EHLO {self.local_hostname}")
        if reply.code in (500, 502):
            self.expect(Stage.EHLO, self.command(f"HELO {self.local_hostname}"), 250)
            self.features = {}
            return
        self.expect(Stage.EHLO, reply, 250)
        self.features = {}
        for line in reply.lines[1:]:
            keyword, _, parameters = line.decode("ascii", "replace").strip().partition(" ")
            self.features[keyword.upper()] = parameters.strip()
            if keyword.upper().startswith("AUTH="):  # older servers, as smtplib reads them
                self.features.setdefault("AUTH", f"{keyword[5:]} {parameters}")

    def _starttls(self) -> None:
        if "STARTTLS" not in self.features:
            raise SMTPFailure(answer(Stage.TLS, None, "the server does not offer STARTTLS"))
        self.expect(Stage.TLS, self.command("STARTTLS"), 220)
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
            failure = self.failure(Stage.AUTH, reply)
            if reply.code == 421:
                break
        assert failure is not None
        raise failure

    def _try_login(self, way: str) -> Reply:
        user, secret = self.username.encode(), self.password.encode()
        if way == "PLAIN":
            return self.command("AUTH PLAIN " + _b64(b"\0" + user + b"\0" + secret))
        if way == "LOGIN":
            reply = self.command(f"AUTH LOGIN {_b64(user)}")
            return self.command(_b64(secret)) if reply.code == 334 else reply
        reply = self.command("AUTH CRAM-MD5")
        if reply.code != 334:
            return reply
        try:
            challenge = base64.b64decode(reply.text)
            digest = hmac.new(secret, challenge, "md5").hexdigest()
        except ValueError:  # garbage, or a system that forbids MD5
            return self.command("*")
        return self.command(_b64(user + b" " + digest.encode()))

    @property
    def announces(self) -> bool:
        """Whether the envelope of the ``following`` message goes with the end of the one before."""
        return self.back_to_back and "PIPELINING" in self.features

    # -- one message -----------------------------------------------------------------------

    def transaction(
        self,
        sender: str,
        recipient: str,
        data: bytes,
        *,
        is_stuffed: bool = False,
        following: tuple[str, str, bytes] | None = None,
    ) -> Transaction:
        """Hand over one message to one recipient; the acceptance, or ``SMTPFailure``.

        ``sender`` and ``recipient`` are bare addresses that ``smtp_envelope.mailbox`` returned.
        ``is_stuffed``: ``data`` is what ``smtp_envelope.wire_body`` makes of a message; it is not
        looked at again. ``following`` is the message after it, of such data too, if that is known:
        back to back no other can be next. 8-bit content goes out as it is also to a server without
        8BITMIME, as Django does.
        """
        features = self.features
        if is_stuffed and self.announces:
            steps = back_to_back(self, sender, recipient, data, following)
        elif self.chunking and "CHUNKING" in features and "PIPELINING" in features:
            steps = by_chunk(self, sender, recipient, data, is_stuffed=is_stuffed)
        else:
            steps = by_data(self, sender, recipient, data, is_stuffed=is_stuffed)
        said = yield from steps
        self.delivered += 1
        return said


def _b64(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")
