"""An ordinary Django e-mail backend that knows the stage every failure had reached.

Use it as ``EMAIL_BACKEND`` (Django 5.2) or as a ``BACKEND`` of ``MAILERS`` (6.1), or through
``sending.transports``, whose lanes drive ``open``, ``transaction`` and ``close`` themselves.
"""

from __future__ import annotations

import logging
import ssl
import threading
from collections.abc import Sequence
from typing import Any

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.core.mail.backends.base import BaseEmailBackend
from django.core.mail.utils import DNS_NAME

from .answers import Answer, Stage, answer
from .smtp_dialogue import NeverBegun, SMTPFailure, SMTPRefusedLocally, Timeouts
from .smtp_message import message_bytes
from .smtp_options import check_options, checked_message
from .smtp_session import Session
from .smtp_transaction import Transaction, brought_to_an_end

__all__ = ["EmailBackend", "SMTPFailure", "SMTPRefusedLocally", "StaleConnection"]


log = logging.getLogger("sendonce.sender")

#: Host and port of relays that were seen to throw away what comes behind a message.
_unanswering: set[tuple[str, int]] = set()


class StaleConnection(SMTPFailure):
    """The session had come to its end before this message began; nothing was attempted."""


class EmailBackend(BaseEmailBackend):
    """Options as of Django's own SMTP backend, and beyond them:

    ``messages_per_connection``: reconnect after so many (100; Google allows 50, Yahoo 20, Apple
    5); ``connect_timeout`` (30), ``timeout`` for each command (300; RFC 5321 4.5.3.2) and
    ``reply_timeout`` for the reply after the final dot (600; 4.5.3.2.6), all in seconds;
    ``local_hostname`` for EHLO; ``chunking`` (False): where the server offers it, a message goes
    by BDAT (RFC 3030) in one round trip instead of two. More is in doubt then: a connection that
    is lost while the server thinks about the recipient may have brought it the whole message.
    ``back_to_back`` (False): where the server offers PIPELINING (RFC 2920), the envelope of a
    lane's next message goes with the end of the one before, one round trip a message. It is for a
    relay that was seen to go along with it.

    Without ``host`` the ``EMAIL_*`` settings are read, where Django still has them; with it none
    of them is, so that credentials never go to another host than the one they were written for.
    """

    def __init__(
        self,
        host: str | None = None,
        port: int | None = None,
        username: str | None = None,
        password: str | None = None,
        use_tls: bool | None = None,
        fail_silently: bool = False,
        use_ssl: bool | None = None,
        timeout: float | None = None,
        ssl_keyfile: str | None = None,
        ssl_certfile: str | None = None,
        *,
        messages_per_connection: int = 100,
        connect_timeout: float = 30.0,
        reply_timeout: float = 600.0,
        local_hostname: str | None = None,
        chunking: bool = False,
        back_to_back: bool = False,
        **kwargs: Any,
    ) -> None:
        unknown = kwargs.keys() - {"alias", "_ignore_unknown_kwargs"}
        if unknown and "_ignore_unknown_kwargs" not in kwargs:  # 5.2 would overlook a misspelling
            raise ImproperlyConfigured(f"SMTP: unknown options {', '.join(sorted(unknown))}.")
        super().__init__(**kwargs)
        self.fail_silently = fail_silently
        given: dict[str, Any] = {
            "HOST": host,
            "PORT": port,
            "HOST_USER": username,
            "HOST_PASSWORD": password,
            "USE_TLS": use_tls,
            "USE_SSL": use_ssl,
            "TIMEOUT": timeout,
            "SSL_KEYFILE": ssl_keyfile,
            "SSL_CERTFILE": ssl_certfile,
        }
        if host is None:
            given = self._from_settings(given)
        check_options(
            {
                "use_tls": given["USE_TLS"],
                "use_ssl": given["USE_SSL"],
                "chunking": chunking,
                "back_to_back": back_to_back,
            },
            {
                "timeout": given["TIMEOUT"],
                "connect_timeout": connect_timeout,
                "reply_timeout": reply_timeout,
            },
            messages_per_connection,
        )
        self.host: str = given["HOST"]
        self.use_tls = bool(given["USE_TLS"])
        self.use_ssl = bool(given["USE_SSL"])
        self.port = int(given["PORT"] or (465 if self.use_ssl else 587 if self.use_tls else 25))
        self.username: str = given["HOST_USER"] or ""
        self.password: str = given["HOST_PASSWORD"] or ""
        self.ssl_keyfile: str | None = given["SSL_KEYFILE"]
        self.ssl_certfile: str | None = given["SSL_CERTFILE"]
        self.timeouts = Timeouts(
            connect=connect_timeout,
            command=float(given["TIMEOUT"] or Timeouts.command),
            final=reply_timeout,
        )
        self.local_hostname = local_hostname
        self.messages_per_connection = messages_per_connection
        self.chunking = chunking
        self.back_to_back = back_to_back
        if chunking and back_to_back:
            raise ImproperlyConfigured("SMTP: set at most one of chunking and back_to_back.")
        if self.use_ssl and self.use_tls:
            raise ImproperlyConfigured("SMTP: set at most one of use_ssl and use_tls.")
        #: Seconds that each step of opening may take at most, if its time-out is longer.
        self.patience: float | None = None
        self._session: Session | None = None
        self._context: ssl.SSLContext | None = None
        self._aborted = False
        self._lock = threading.RLock()

    def _from_settings(self, given: dict[str, Any]) -> dict[str, Any]:
        if getattr(self, "alias", None) is not None or hasattr(settings, "MAILERS"):
            raise ImproperlyConfigured("SMTP: the OPTIONS must define 'host'.")
        found = dict(given)
        is_overridden = getattr(settings, "is_overridden")  # noqa: B009  # unknown to the stubs
        for name, value in given.items():
            # A default of Django's is not read: on 6.1 even looking at it warns.
            if value is None and is_overridden(f"EMAIL_{name}"):
                found[name] = getattr(settings, f"EMAIL_{name}")
        found["HOST"] = found["HOST"] or "localhost"
        return found

    # -- connections -----------------------------------------------------------------------

    @property
    def is_open(self) -> bool:
        """Whether a session is open as far as is known without asking the server."""
        return self._session is not None and self._session.is_open

    @property
    def is_used_up(self) -> bool:
        """Whether the session has had its ``messages_per_connection``."""
        session = self._session
        return session is not None and session.delivered >= self.messages_per_connection

    @property
    def is_ready(self) -> bool:
        """Whether the next message can start on the open session at once: it is not used up,
        and the server has neither closed it nor said anything meanwhile."""
        session = self._session
        return (
            session is not None
            and session.is_open
            and session.announced is None
            and not self.is_used_up
            and not session.wire.spoke_unasked()
        )

    def fileno(self) -> int:
        """Of the open connection; -1 where there is none."""
        return self._session.wire.fileno() if self._session is not None else -1

    @property
    def announces(self) -> bool:
        """Whether the ``following`` message is of any consequence on the open session."""
        return self._session is not None and self._session.announces

    def open(self) -> bool | None:
        """Connect and authenticate unless that is done; whether a new connection was needed.

        Raises ``SMTPFailure`` with the stage (connect, greeting, tls, ehlo, auth); with
        ``fail_silently`` returns None instead.
        """
        if self.is_open:
            return False
        try:
            self._connect()
        except SMTPFailure:
            if not self.fail_silently:
                raise
            return None
        return True

    def close(self) -> None:
        """QUIT and close; never raises. Also ends the effect of ``abort``."""
        session, self._session = self._session, None
        if session is not None:
            session.quit()
        self._aborted = False

    def abort(self) -> None:
        """Shut the connection down hard, from any thread.

        A waiting ``deliver`` fails with the stage it had reached. No connection is made again
        before ``close`` was called.
        """
        self._aborted = True
        session = self._session
        if session is not None:
            session.abort()

    def _connect(self) -> Session:
        if self._session is not None:
            self._session.drop()
        if (self.use_tls or self.use_ssl) and self._context is None:
            self._context = self._ssl_context()
        session = Session(
            host=self.host,
            port=self.port,
            local_hostname=self.local_hostname or DNS_NAME.get_fqdn(),
            timeouts=self.timeouts.for_opening(self.patience),
            username=self.username,
            password=self.password,
            use_tls=self.use_tls,
            use_ssl=self.use_ssl,
            context=self._context,
            chunking=self.chunking,
            back_to_back=self.back_to_back and (self.host, self.port) not in _unanswering,
        )
        self._session = session  # before opening and before the look at the flag: see abort
        if self._aborted:
            session.abort()
        session.open()
        session.timeouts = self.timeouts
        return session

    def _ssl_context(self) -> ssl.SSLContext:
        try:
            context = ssl.create_default_context()
            if self.ssl_certfile or self.ssl_keyfile:
                context.load_cert_chain(self.ssl_certfile or "", self.ssl_keyfile)
        except OSError as error:  # SSLError is one
            raise SMTPFailure(answer(Stage.TLS, None, f"client certificate: {error}")) from error
        return context

    # -- one message -----------------------------------------------------------------------

    def deliver(
        self,
        envelope_from: str,
        recipient: str,
        data: bytes,
        *,
        is_stuffed: bool = False,
        reconnect: bool = True,
        following: tuple[str, str, bytes] | None = None,
    ) -> Answer:
        """Hand over one message (RFC 5322, CRLF or LF) to one recipient. ``is_stuffed``: ``data``
        is what ``smtp_envelope.wire_body`` makes of a message, and the addresses are what
        ``mailbox`` does; all goes out as it is. ``following`` is the next such message (sender,
        recipient, data), whose envelope may go out with the end of this one: with
        ``back_to_back`` no other can be next.

        Returns the acceptance. Raises ``SMTPFailure`` for every other end; its ``answer`` says
        which (bad addresses: stage ``local``). Opens a connection when there is none, changes it
        at ``messages_per_connection``, and replaces one that the server had closed meanwhile:
        as long as MAIL has no answer nothing was attempted. Without ``reconnect`` it raises
        ``StaleConnection`` instead of making one, which may take minutes.
        """
        return brought_to_an_end(
            self.transaction(
                envelope_from,
                recipient,
                data,
                is_stuffed=is_stuffed,
                reconnect=reconnect,
                following=following,
            )
        )

    def transaction(
        self,
        envelope_from: str,
        recipient: str,
        data: bytes,
        *,
        is_stuffed: bool = False,
        reconnect: bool = True,
        following: tuple[str, str, bytes] | None = None,
    ) -> Transaction:
        """``deliver`` in steps: a generator that yields before each wait for the server, and
        returns and raises what ``deliver`` does. One at a time on a connection."""
        sender, bare = envelope_from, recipient
        if not is_stuffed:
            sender, bare = checked_message(envelope_from, recipient, data)
        session = self._session
        if session is not None and self.is_used_up:
            session.quit()
        if session is None or not session.is_open:
            if not reconnect:
                raise StaleConnection(answer(Stage.MAIL, None, "the session is not open"))
            session = self._connect()
        if session.delivered + 1 >= self.messages_per_connection:
            following = None
        try:
            return (
                yield from session.transaction(
                    sender, bare, data, is_stuffed=is_stuffed, following=following
                )
            )
        except SMTPFailure as failure:
            if session.is_unanswered:
                self._stop_back_to_back()
            if self._aborted or not self._went_stale(session, failure):
                raise
            if not reconnect:
                raise StaleConnection(failure.answer) from failure
        return (yield from self._connect().transaction(sender, bare, data, is_stuffed=is_stuffed))

    def _stop_back_to_back(self) -> None:
        """Each further message would cost the time for a command, and be in doubt."""
        if (self.host, self.port) not in _unanswering:
            _unanswering.add((self.host, self.port))
            log.warning(
                "the relay does not answer what comes behind a message: back_to_back is off for it "
                "until this process ends",
                extra={"event": "back_to_back_off", "host": self.host, "port": self.port},
            )

    @staticmethod
    def _went_stale(session: Session, failure: SMTPFailure) -> bool:
        """Whether a connection had simply come to its end (Yahoo closes without a word, Exim says
        421): a used one, or one that nothing was written to. A 421 4.7.x is a request to slow
        down and stands."""
        said = failure.answer
        if said.stage is not Stage.MAIL:
            return False
        if not session.delivered and not isinstance(failure, NeverBegun):
            return False
        return said.code is None or (said.code == 421 and not said.enhanced.startswith("4.7."))

    # -- as Django uses it -----------------------------------------------------------------

    def send_messages(self, email_messages: Sequence[Any]) -> int:
        """Send each message in a transaction per recipient; how many messages were accepted.

        A message counts when at least one recipient took it, as with Django's backend; which did
        is left on it as ``smtp_answers`` ({recipient: Answer}). Raises ``SMTPFailure`` when none
        did or when the session failed; its ``accepted`` then names those who have it already.
        With ``fail_silently`` goes on with the next message instead.
        """
        if not email_messages:
            return 0
        with self._lock:
            opened = self.open()
            if opened is None:
                return 0
            sent = 0
            try:
                for message in email_messages:
                    try:
                        sent += self._send(message)
                    except SMTPFailure:
                        if not self.fail_silently:
                            raise
            finally:
                if opened:
                    self.close()
        return sent

    def _send(self, message: Any) -> bool:
        recipients = list(dict.fromkeys(message.recipients()))
        if not recipients:
            return False
        sender, data = message_bytes(message)
        answers: dict[str, Answer] = {}
        accepted: list[str] = []
        refused: SMTPFailure | None = None
        message.smtp_answers = answers
        for recipient in recipients:
            try:
                answers[recipient] = self.deliver(sender, recipient, data)
                accepted.append(recipient)
            except SMTPFailure as failure:
                answers[recipient] = failure.answer
                failure.accepted = tuple(accepted)
                said = failure.answer
                only_this_one = said.stage is Stage.RCPT and said.code not in (None, 421)
                if not only_this_one and said.stage is not Stage.LOCAL:
                    raise
                refused = refused or failure
        if not accepted and refused is not None:
            raise refused
        return bool(accepted)
