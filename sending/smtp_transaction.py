"""One message to one recipient: the commands, their replies, and where doubt begins.

Where the server offers PIPELINING (RFC 2920), MAIL, RCPT and DATA go out in one write and their
three replies are read one after the other, so that the stage is known as well as without. The
body and the final dot are two writes: a loss during the first is definite (the server has no
complete message), a loss from the beginning of the second on can't be known (RFC 1047).

Back to back, the final dot and the envelope of the message after it leave in one write with the
body: one round trip a message instead of two, and two calls into the kernel instead of seven. How
much of a write that fails was taken tells doubt from none.

A transaction is a generator, which yields before it waits for the server, and again when a second
has brought nothing: who has several sessions goes on with another one meanwhile. Its return value
is the acceptance; ``brought_to_an_end`` takes it there at once.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Generator, Iterable
from typing import NamedTuple, TypeAlias

from .answers import Answer, Stage, answer
from .smtp_dialogue import Announced, Dialogue, SMTPFailure, SMTPRefusedLocally
from .smtp_envelope import needs_utf8, wire_body
from .smtp_wire import Reply, WireClosed, WireLost, WireTimedOut

#: Yields when what comes next is a wait for the server: for a tick (``smtp_wire.TICK``), and again
#: before the next; who sends True has waited (``Dialogue.heard``). Raises ``SMTPFailure`` for
#: every end that is no acceptance.
Transaction: TypeAlias = Generator[None, bool | None, Answer]
Waits: TypeAlias = Generator[None, bool | None, None]

FINAL_DOT = b".\r\n"
_QUEUE_ID = re.compile(rb"queued as ([\w.-]{1,200})|\bid=([\w.-]{1,200})", re.IGNORECASE)


class Step(NamedTuple):
    """A command before the body, and the codes with which it goes on."""

    stage: Stage
    wanted: tuple[int, ...]

    def fits(self, reply: Reply, in_step: bool) -> bool:
        """Whether the reply can be this step's. ``in_step``: none before it refused. Whoever has
        refused the sender takes no recipient."""
        if reply.code in self.wanted:
            return in_step or self is not RCPT
        return reply.code >= 400

    def is_unreadable(self, reply: Reply) -> bool:
        """DATA is answered by 354 or refused; anything below 400 is neither."""
        return self.stage is Stage.DATA and reply.code < 400 and reply.code != 354


MAIL = Step(Stage.MAIL, (250,))
RCPT = Step(Stage.RCPT, (250, 251, 252))
DATA = Step(Stage.DATA, (354,))
#: Nothing is said between the beginning and the end of a message but refusals.
END = Step(Stage.BODY, ())


def brought_to_an_end(transaction: Transaction) -> Answer:
    """The acceptance, with all the waits for it. Raises what the transaction raises."""
    try:
        while True:
            next(transaction)
    except StopIteration as end:
        said: Answer = end.value
        return said


# -- DATA ----------------------------------------------------------------------------------------


def by_data(
    dialogue: Dialogue, sender: str, recipient: str, data: bytes, *, is_stuffed: bool = False
) -> Transaction:
    """Hand the message over by DATA; for the arguments see ``Session.transaction``."""
    body = data if is_stuffed else wire_body(data)
    mail, rcpt = mail_command(dialogue, sender, recipient, data), f"RCPT TO:<{recipient}>"
    dialogue.begin()
    if "PIPELINING" in dialogue.features:
        _write_ahead(dialogue, f"{mail}\r\n{rcpt}\r\nDATA\r\n".encode())
        yield from _heard_all(dialogue)
    else:
        yield from _one_by_one(dialogue, mail, rcpt)
    stage = Stage.BODY
    try:
        _write_body(dialogue, body)
        stage = Stage.DOT
        dialogue.wire.write(FINAL_DOT, dialogue.timeouts.command)
        reply = yield from dialogue.heard(dialogue.timeouts.final)
    except WireLost as lost:
        raise dialogue.lost(stage, lost) from lost
    return (yield from end_of(dialogue, reply))


def _one_by_one(dialogue: Dialogue, mail: str, rcpt: str) -> Waits:
    for step, command in ((MAIL, mail), (RCPT, rcpt), (DATA, "DATA")):
        try:
            spoke = step is not MAIL and dialogue.wire.spoke_unasked()
            if spoke:
                reply = dialogue.unasked()
            else:
                dialogue.wire.write(command.encode() + b"\r\n", dialogue.timeouts.command)
                reply = yield from dialogue.heard()
            if step.is_unreadable(reply):
                raise WireLost(f"unreadable reply: {reply.code} to DATA")
        except WireLost as lost:
            raise dialogue.lost(step.stage, lost) from lost
        if reply.code not in step.wanted:
            raise (yield from dialogue.reset_after(dialogue.failure(step.stage, reply)))


def _write_ahead(dialogue: Dialogue, lines: bytes) -> None:
    """MAIL, RCPT and DATA in one write. Raises ``SMTPFailure``."""
    try:
        dialogue.wire.write(lines, dialogue.timeouts.command)
    except WireLost as lost:
        raise dialogue.lost(Stage.MAIL, lost) from lost


def _heard_all(dialogue: Dialogue, known: Iterable[Reply] = ()) -> Waits:
    """The replies to MAIL, RCPT and DATA, each for its own step; those that are ``known`` were
    heard before. The first that refuses is the answer: whatever follows it refuses for that
    reason, or (DATA) has to be ended empty.

    Where a reply can't be its step's, somebody said one too many, and whose the refusal before it
    was nobody knows: nothing was attempted then, by which nobody's address is judged.
    """
    refused: SMTPFailure | None = None
    taken: list[Step] = []
    step = MAIL
    replies = iter(known)
    try:
        for step in (MAIL, RCPT, DATA):
            reply = next(replies, None) or (yield from dialogue.heard())
            if not step.fits(reply, refused is None):
                said = f"unreadable reply: {reply.code} to {step.stage.upper()}"
                if refused is not None:
                    raise dialogue.lost(Stage.MAIL, said)
                raise WireLost(said)
            if reply.code in step.wanted:
                taken.append(step)
                continue
            refused = refused or dialogue.failure(step.stage, reply)
            if reply.code == 421:
                break
        if refused is None:
            return
        if DATA in taken:
            # It waits for a message although it refused (RFC 2920 3.1): an empty one ends that,
            # but only where nobody can get it.
            if RCPT in taken:
                dialogue.drop()
                raise refused
            dialogue.wire.write(FINAL_DOT, dialogue.timeouts.command)
            yield from dialogue.heard()
    except WireLost as lost:
        failure = dialogue.lost(step.stage, lost)
        raise refused or failure from lost
    raise (yield from dialogue.reset_after(refused))


def _write_body(dialogue: Dialogue, body: bytes) -> None:
    """Write the body. What the server says meanwhile is its refusal: the dot is not sent."""
    wire = dialogue.wire
    try:
        wire.write(body, dialogue.timeouts.command, more=True)
        if not wire.spoke_unasked():
            return
    except WireLost as lost:
        raise _refused_early(dialogue, _last_words(dialogue), lost) from lost
    raise _refused_early(dialogue, dialogue.reply())


def _refused_early(
    dialogue: Dialogue, early: Reply | None, lost: WireLost | None = None
) -> SMTPFailure | WireLost:
    """What the server said before it had the whole message, whose end it does not get."""
    if early is None:
        return lost or WireLost("connection lost")
    dialogue.drop()
    if early.code < 400:
        return WireLost(f"unreadable reply: {early.code} before the final dot")
    return dialogue.failure(Stage.BODY, early)


# -- DATA, back to back --------------------------------------------------------------------------


def back_to_back(
    dialogue: Dialogue,
    sender: str,
    recipient: str,
    data: bytes,
    following: tuple[str, str, bytes] | None,
) -> Transaction:
    """Hand the message over by DATA, and with its end the envelope of the one that ``following``
    names (RFC 2920 4 has commands in one group with the final dot); as ``by_data`` of bodies that
    are stuffed. The server must offer PIPELINING.

    After this nothing but ``following`` can be sent; whoever has something else closes.

    The answer counts once the replies to that envelope have come and fit: a server that leaves out
    a reply, or says one too many, would else be heard about the wrong message. Where they do not,
    or do not come, this one is in doubt. A server that hangs up behind its answer has given it.
    """
    message = sender, recipient, data
    announced = dialogue.announced
    if announced is not None and announced.message == message:
        dialogue.announced = None
        if not announced.is_taken:
            yield from _heard_all(dialogue, announced.replies)
    else:
        dialogue.begin()
        _write_ahead(dialogue, _envelope(dialogue, *message))
        yield from _heard_all(dialogue)
    ahead = b""
    if following is not None:
        with contextlib.suppress(SMTPRefusedLocally):  # which it will be told in its own turn
            ahead = _envelope(dialogue, *following)
    wire, stage, is_whole = dialogue.wire, Stage.BODY, True
    try:
        if wire.spoke_unasked():
            # It can't be about a message of which it has nothing yet.
            raise WireLost(f"unreadable reply: {dialogue.reply().code} before the message")
        try:
            wire.write(data + FINAL_DOT + ahead, dialogue.timeouts.command)
        except WireLost as lost:
            if lost.taken < len(data) + len(FINAL_DOT):
                raise _refused_early(dialogue, _last_words(dialogue), lost) from lost
            is_whole = False  # nobody answers half an envelope
        stage = Stage.DOT
        reply = yield from dialogue.heard(dialogue.timeouts.final)
        replies = None
        if ahead and is_whole and reply.code != 421 and not 300 <= reply.code < 400:
            replies = yield from _heard_ahead(dialogue)
    except WireLost as lost:
        raise dialogue.lost(stage, lost) from lost
    if not ahead and is_whole:
        return (yield from end_of(dialogue, reply))
    if replies is None or following is None:
        dialogue.drop()
    else:
        is_taken = len(replies) == 3 and all(reply.code < 400 for reply in replies)
        dialogue.announced = Announced(following, replies, is_taken)
    return _told(dialogue, reply)


def _heard_ahead(dialogue: Dialogue) -> Generator[None, bool | None, tuple[Reply, ...] | None]:
    """The replies to the next envelope, which fit; None when the server hung up instead.

    Raises ``WireLost`` when they do not fit, or time is up."""
    replies: list[Reply] = []
    in_step = True
    for step in (MAIL, RCPT, DATA):
        try:
            reply = dialogue.reply() if dialogue.wire.has_words else (yield from dialogue.heard())
        except WireTimedOut:
            dialogue.is_unanswered = not replies
            raise
        except WireClosed:
            raise
        except WireLost:  # it hung up, or speaks of something else
            return None
        if not step.fits(reply, in_step):
            raise WireLost(f"unreadable reply: {reply.code} to the next {step.stage.upper()}")
        replies.append(reply)
        in_step = in_step and reply.code < 400
        if reply.code == 421:
            break
    return tuple(replies)


def _envelope(dialogue: Dialogue, sender: str, recipient: str, data: bytes) -> bytes:
    mail = mail_command(dialogue, sender, recipient, data)
    return f"{mail}\r\nRCPT TO:<{recipient}>\r\nDATA\r\n".encode()


# -- what all ways have in common, BDAT (``smtp_bdat``) among them --------------------------------


def mail_command(dialogue: Dialogue, sender: str, recipient: str, data: bytes) -> str:
    features, parameters = dialogue.features, ""
    if needs_utf8(sender, recipient):
        if "SMTPUTF8" not in features:
            said = "the address needs SMTPUTF8 and the relay does not offer it"
            raise SMTPRefusedLocally(answer(Stage.LOCAL, None, said, enhanced="5.6.7"))
        parameters += " SMTPUTF8"
    if "8BITMIME" in features and (parameters or not data.isascii()):
        parameters += " BODY=8BITMIME"
    if "SIZE" in features:
        limit = features["SIZE"]
        if limit.isdigit() and 0 < int(limit) < len(data):
            said = f"the message has {len(data)} bytes, the relay takes {limit}"
            raise SMTPRefusedLocally(answer(Stage.LOCAL, None, said, enhanced="5.3.4"))
        parameters += f" SIZE={len(data)}"
    return f"MAIL FROM:<{sender}>{parameters}"


def _last_words(dialogue: Dialogue) -> Reply | None:
    try:
        return dialogue.wire.read_reply(1.0)
    except WireLost:
        return None


def end_of(dialogue: Dialogue, reply: Reply) -> Transaction:
    """What the reply to the whole message says. Raises ``SMTPFailure`` unless it is acceptance;
    the session serves the next message."""
    try:
        return _told(dialogue, reply)
    except SMTPFailure as failure:
        if failure.answer.code is None:
            raise
        raise (yield from dialogue.reset_after(failure)) from None


def _told(dialogue: Dialogue, reply: Reply) -> Answer:
    """The acceptance, or the ``SMTPFailure`` that the reply to the whole message means."""
    if 200 <= reply.code < 300:
        found = _QUEUE_ID.search(reply.text)
        queue_id = (found[1] or found[2]).decode("ascii", "replace") if found else ""
        return answer(Stage.DOT, reply.code, reply.text, message_id=queue_id)
    if reply.code < 400:
        said = f"unreadable reply: {reply.code} after the end of the message"
        raise dialogue.lost(Stage.DOT, said)
    raise dialogue.failure(Stage.DOT, reply)
