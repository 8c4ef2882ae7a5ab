"""Commands and replies on one wire, and how a failure of an SMTP dialogue is told."""

from __future__ import annotations

import smtplib
import time
from collections.abc import Generator
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from .answers import Answer, Stage, answer
from .smtp_wire import Reply, Wire, WireLost

QUIT_PATIENCE = 2.0
#: Seconds for the rest of a reply that has begun, however late it is.
AT_LEAST = 0.1


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


class NeverBegun(SMTPFailure):
    """The server had ended the session before a byte of the message was written."""


class Announced(NamedTuple):
    """The message whose envelope was written behind the one before, and what was said of that."""

    message: tuple[str, str, bytes]
    replies: tuple[Reply, ...]
    #: All of it was taken: the message itself is waited for.
    is_taken: bool


@dataclass(frozen=True)
class Timeouts:
    """Seconds: for connecting, for each command and write, and for the reply after the dot."""

    connect: float = 30.0
    command: float = 300.0
    final: float = 600.0

    def for_opening(self, patience: float | None) -> Timeouts:
        """None of them longer than ``patience`` seconds; None: as they are."""
        if patience is None:
            return self
        connect, command = min(self.connect, patience), min(self.command, patience)
        return replace(self, connect=connect, command=command)


@dataclass(kw_only=True)
class Dialogue:
    """One conversation with a server. Not thread-safe, save for ``abort``."""

    timeouts: Timeouts = field(default_factory=Timeouts)
    wire: Wire = field(default_factory=Wire, repr=False)
    #: What EHLO offered: keyword in capitals, and its parameters.
    features: dict[str, str] = field(default_factory=dict)
    is_open: bool = False
    #: Nothing but this message can be sent then.
    announced: Announced | None = None
    #: No word came of an envelope that was written behind a message, in the time for a command.
    is_unanswered: bool = False

    def command(self, line: str) -> Reply:
        """Send a command and read its reply. Raises ``WireLost``."""
        self.wire.write(line.encode() + b"\r\n", self.timeouts.command)
        return self.reply()

    def reply(self) -> Reply:
        """The next reply, within the time for a command. Raises ``WireLost``."""
        return self.wire.read_reply(self.timeouts.command)

    def heard(self, patience: float | None = None) -> Generator[None, bool | None, Reply]:
        """``reply``, within ``patience`` seconds from now; yields before each tick for which it
        has to wait until the server begins. Who sends True has waited for that tick already, and
        nothing came. Raises ``WireLost``."""
        wire = self.wire
        deadline = time.monotonic() + (self.timeouts.command if patience is None else patience)
        if not wire.has_words:
            was_silent = yield
            while not wire.hears(deadline, waits=not was_silent):
                was_silent = yield
        return wire.read_reply(max(deadline - time.monotonic(), AT_LEAST))

    def begin(self) -> None:
        """Look, just before a message, whether the server has ended the session or said anything:
        it would be read as the answer to MAIL. Raises ``SMTPFailure`` if so, and where another
        message was announced: what is written next would be part of that one."""
        if self.announced is not None:
            self.drop()
            said = "the session is open for another message"
            raise NeverBegun(answer(Stage.MAIL, None, said))
        if not self.wire.spoke_unasked():
            return
        try:
            reply = self.reply()
        except WireLost as lost:
            self.drop()
            raise NeverBegun(answer(Stage.MAIL, None, str(lost))) from lost
        self.drop()
        if reply.code == 421:
            raise NeverBegun(answer(Stage.MAIL, reply.code, reply.text))
        said = f"unreadable reply: {reply.code} unasked"
        raise SMTPFailure(answer(Stage.MAIL, None, said))

    def unasked(self) -> Reply:
        """What was said though nothing had been asked. A 421 may come at any time and answers
        whatever is asked next (RFC 5321 3.8); with anything else the dialogue is out of step.
        Raises ``WireLost``."""
        reply = self.reply()
        if reply.code != 421:
            raise WireLost(f"unreadable reply: {reply.code} unasked")
        return reply

    def expect(self, stage: Stage, reply: Reply, *codes: int) -> None:
        """Raise ``SMTPFailure`` unless the reply has one of these codes."""
        if reply.code not in codes:
            raise self.failure(stage, reply)

    def failure(self, stage: Stage, reply: Reply) -> SMTPFailure:
        """The failure that a reply means at this stage."""
        return SMTPFailure(answer(stage, reply.code, reply.text))

    def lost(self, stage: Stage, why: WireLost | str) -> SMTPFailure:
        """The failure of a loss at this stage; the session is closed."""
        self.drop()
        return SMTPFailure(answer(stage, None, str(why)))

    def reset_after(self, failure: SMTPFailure) -> Generator[None, bool | None, SMTPFailure]:
        """RSET, so that the session serves the next message; without success it is closed.

        The failure, unless the reply to RSET can't be that: then a reply came too many before it,
        and the refusal may have been about another message."""
        try:
            if failure.answer.code == 421:
                self.drop()
                return failure
            self.wire.write(b"RSET\r\n", self.timeouts.command)
            reply = yield from self.heard()
            if reply.code != 250:
                self.drop()
            if reply.code < 400 and reply.code != 250:
                stage = Stage.DOT if failure.answer.stage is Stage.DOT else Stage.MAIL
                return SMTPFailure(answer(stage, None, f"unreadable reply: {reply.code} to RSET"))
        except WireLost:
            self.drop()
        return failure

    def quit(self) -> None:
        """Say QUIT and close. Whatever comes of it is irrelevant: it never raises."""
        if self.is_open and self.announced is None:
            try:
                self.wire.write(b"QUIT\r\n", QUIT_PATIENCE)
                self.wire.read_reply(QUIT_PATIENCE)
            except WireLost:
                pass
        self.drop()

    def drop(self) -> None:
        """Close without QUIT. Never raises."""
        self.is_open = False
        self.announced = None
        self.wire.close()

    def abort(self) -> None:
        """Shut down hard, from any thread; a waiting call fails with the stage it had reached."""
        self.wire.abort()
